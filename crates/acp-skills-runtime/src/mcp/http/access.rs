//! Access control.
//!
//! Any process of any user on this machine can connect, and so can a web page. For this reason, each session has a
//! random path and a bearer token, which is compared in constant time. `Host` must be a loopback name or the address of
//! the listener, so that DNS rebinding fails. `Origin`, which only browsers send, must be absent.

use std::net::IpAddr;

use hyper::{
    HeaderMap,
    header::{AUTHORIZATION, HOST, HeaderValue, ORIGIN},
};
use subtle::ConstantTimeEq;

/// Returns true if a request comes from a program on this machine instead of a web page. `address` is the address of the listener.
pub(crate) fn is_local(headers: &HeaderMap, address: IpAddr) -> bool {
    let host = headers.get(HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    let name = match host.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((name, _)) => name,
        None => host.rsplit_once(':').map_or(host, |(name, _)| name),
    };
    let is_own = matches!(name, "127.0.0.1" | "localhost") || name.parse() == Ok(address);
    is_own && !headers.contains_key(ORIGIN)
}

/// Replaces `Host` by a loopback name if it is the host of `base`, which the user has chosen for the agent.
pub(crate) fn accept_host_of(base: &str, headers: &mut HeaderMap) {
    let chosen = base.split_once("://").map_or(base, |(_, host)| host);
    // Clients leave out the usual port.
    let usual = [":80", ":443"].into_iter().find_map(|port| chosen.strip_suffix(port));
    let is_chosen = headers.get(HOST).is_some_and(|host| {
        [Some(chosen), usual]
            .into_iter()
            .flatten()
            .any(|name| host.as_bytes().eq_ignore_ascii_case(name.as_bytes()))
    });
    if is_chosen {
        headers.insert(HOST, HeaderValue::from_static("localhost"));
    }
}

/// Returns true if a URL such as `http://host:7000` has a port.
pub(crate) fn has_port(url: &str) -> bool {
    let host = url.split_once("://").map_or(url, |(_, host)| host);
    host.rsplit_once(':')
        .is_some_and(|(_, port)| !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Removes `Origin` if it is that of the server itself, which serves no web pages. Some clients send it although they are no browsers.
pub(crate) fn ignore_own_origin(headers: &mut HeaderMap) {
    let host = headers.get(HOST).map(HeaderValue::as_bytes).unwrap_or_default();
    let is_own =
        headers.get(ORIGIN).is_some_and(|origin| origin.as_bytes().strip_prefix(b"http://") == Some(host));
    if is_own {
        headers.remove(ORIGIN);
    }
}

/// Returns true if the request includes the token of the session.
pub(crate) fn is_authorized(headers: &HeaderMap, token: &str) -> bool {
    let given = headers.get(AUTHORIZATION).map(HeaderValue::as_bytes).unwrap_or_default();
    // The scheme isn't secret, so there is no need for a comparison in constant time. Note that it's not
    // case-sensitive.
    given.split_at_checked("Bearer ".len()).is_some_and(|(scheme, given)| {
        scheme.eq_ignore_ascii_case(b"Bearer ") && bool::from(given.ct_eq(token.as_bytes()))
    })
}
