//! Access control.
//!
//! Any process of any user on this machine can connect, and so can a web page. For this reason, each session has a
//! random path and a bearer token, which is compared in constant time. `Host` must be a loopback name, so that DNS
//! rebinding fails. `Origin`, which only browsers send, must be absent.

use hyper::{
    HeaderMap,
    header::{AUTHORIZATION, HOST, HeaderValue, ORIGIN},
};
use subtle::ConstantTimeEq;

/// Returns true if a request comes from a program on this machine instead of a web page.
pub(super) fn is_local(headers: &HeaderMap) -> bool {
    let host = headers.get(HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    let name = host.rsplit_once(':').map_or(host, |(name, _)| name);
    matches!(name, "127.0.0.1" | "localhost") && !headers.contains_key(ORIGIN)
}

/// Returns true if the request includes the token of the session.
pub(super) fn is_authorized(headers: &HeaderMap, token: &str) -> bool {
    let given = headers.get(AUTHORIZATION).map(HeaderValue::as_bytes).unwrap_or_default();
    // The scheme isn't secret, so there is no need for a comparison in constant time. Note that it's not
    // case-sensitive.
    given.split_at_checked("Bearer ".len()).is_some_and(|(scheme, given)| {
        scheme.eq_ignore_ascii_case(b"Bearer ") && bool::from(given.ct_eq(token.as_bytes()))
    })
}
