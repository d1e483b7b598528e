//! Who may come in.
//!
//! Any process of any user on this machine can connect, and so can a web page. So each session has a random path and a
//! Bearer token, which is compared in constant time; `Host` must be loopback, so that a page that rebinds its name fails;
//! and `Origin`, which only browsers send, must not be there at all.

use hyper::{
    HeaderMap,
    header::{AUTHORIZATION, HOST, HeaderValue, ORIGIN},
};
use subtle::ConstantTimeEq;

/// Whether a request comes from a program on this machine, and not from a web page.
pub(super) fn is_local(headers: &HeaderMap) -> bool {
    let host = headers.get(HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    let name = host.rsplit_once(':').map_or(host, |(name, _)| name);
    matches!(name, "127.0.0.1" | "localhost") && !headers.contains_key(ORIGIN)
}

/// Whether a request has the token of its session.
pub(super) fn is_authorized(headers: &HeaderMap, token: &str) -> bool {
    let given = headers.get(AUTHORIZATION).map(HeaderValue::as_bytes).unwrap_or_default();
    // The scheme is no secret and its case does not count.
    given.split_at_checked("Bearer ".len()).is_some_and(|(scheme, given)| {
        scheme.eq_ignore_ascii_case(b"Bearer ") && bool::from(given.ct_eq(token.as_bytes()))
    })
}
