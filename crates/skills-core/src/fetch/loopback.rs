//! Addresses of this machine. A URL uses them only if it names them in a plain form, so that neither a redirect nor an entry of an
//! index can reach a local service by another spelling, or by a name that resolves to such an address.

use std::{
    io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket},
};

use ureq::{
    config::Config,
    http::Uri,
    unversioned::{
        resolver::{DefaultResolver, ResolvedSocketAddrs, Resolver},
        transport::NextTimeout,
    },
};

/// The error of a connection to an address of this machine that the URL doesn't name.
#[derive(Debug, thiserror::Error)]
#[error("the host is this machine")]
pub(super) struct ThisMachine;

/// Returns true if a URL names this machine in a plain form: `localhost`, `127.0.0.1` or `[::1]`.
pub(super) fn is_plain(uri: &Uri) -> bool {
    let host = bare(uri);
    host.eq_ignore_ascii_case("localhost") || host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

/// Returns true if a URL names this machine in any other form, such as `127.1`, `localhost.` or `[::ffff:127.0.0.1]`.
pub(super) fn is_disguised(uri: &Uri) -> bool {
    let host = bare(uri).trim_end_matches('.').to_ascii_lowercase();
    let ip = host.parse::<IpAddr>().ok().or_else(|| of_numbers(&host).map(IpAddr::V4));
    let is_local = host == "localhost" || host.ends_with(".localhost") || ip.is_some_and(is_this_machine);
    is_local && !is_plain(uri)
}

fn bare(uri: &Uri) -> &str {
    uri.host().unwrap_or_default().trim_start_matches('[').trim_end_matches(']')
}

/// Returns true if a connection to the address stays on this machine. Systems connect the unspecified address to loopback.
fn is_this_machine(ip: IpAddr) -> bool {
    let ip = ip.to_canonical();
    ip.is_loopback() || ip.is_unspecified() || is_of_interface(ip)
}

/// Returns true if an interface of this machine has the address: systems then connect from the address itself. Connecting a UDP socket
/// sends nothing.
fn is_of_interface(ip: IpAddr) -> bool {
    let any: IpAddr = if ip.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    let local = UdpSocket::bind((any, 0)).and_then(|socket| {
        socket.connect((ip, 9))?;
        socket.local_addr()
    });
    local.is_ok_and(|local| local.ip() == ip)
}

/// Parses the old forms of an IPv4 address that systems still accept: one to four numbers, which can be octal or hexadecimal. The
/// last number fills the remaining bytes.
fn of_numbers(host: &str) -> Option<Ipv4Addr> {
    let number = |text: &str| match text.strip_prefix("0x") {
        Some("") => Some(0),
        Some(digits) => u32::from_str_radix(digits, 16).ok(),
        None if text.starts_with('0') && text.len() > 1 => u32::from_str_radix(text, 8).ok(),
        None => text.parse().ok(),
    };
    let numbers = host.split('.').map(number).collect::<Option<Vec<u32>>>()?;
    let (last, first) = numbers.split_last()?;
    if first.len() > 3 || first.iter().any(|byte| *byte > 255) {
        return None;
    }
    let shifts = [24, 16, 8];
    let high = first.iter().zip(shifts).map(|(byte, shift)| byte << shift).sum::<u32>();
    let rest = 32 - 8 * u32::try_from(first.len()).ok()?;
    (u64::from(*last) < 1 << rest).then(|| Ipv4Addr::from_bits(high | last))
}

/// Resolves names, and leaves out the addresses that a URL must not use.
#[derive(Debug)]
pub(super) struct Checked {
    /// The URL of the request. With a proxy, the name of the proxy is resolved as well, and may be on this machine.
    pub(super) uri: Uri,
}

impl Resolver for Checked {
    fn resolve(
        &self,
        uri: &Uri,
        config: &Config,
        timeout: NextTimeout,
    ) -> Result<ResolvedSocketAddrs, ureq::Error> {
        let resolver = DefaultResolver::default();
        let found = resolver.resolve(uri, config, timeout)?;
        if uri.authority() != self.uri.authority() {
            return Ok(found);
        }
        let mut kept = resolver.empty();
        for address in found.iter().filter(|address| is_this_machine(address.ip()) == is_plain(uri)) {
            kept.push(*address);
        }
        if kept.is_empty() { Err(ureq::Error::Io(io::Error::other(ThisMachine))) } else { Ok(kept) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spellings_of_this_machine() {
        for (host, plain, disguised) in [
            ("localhost", true, false),
            ("LOCALHOST", true, false),
            ("127.0.0.1", true, false),
            ("127.9.9.9", true, false),
            ("[::1]", true, false),
            ("localhost.", false, true),
            ("a.localhost", false, true),
            ("127.0.0.1.", false, true),
            ("127.1", false, true),
            ("127.0.1", false, true),
            ("2130706433", false, true),
            ("0x7f000001", false, true),
            ("0x7F.1", false, true),
            ("0177.0.0.1", false, true),
            ("017700000001", false, true),
            ("0", false, true),
            ("0.0.0.0", false, true),
            ("0x", false, true),
            ("[::]", false, true),
            ("[::ffff:127.0.0.1]", false, true),
            ("[::ffff:7f00:1]", false, true),
            ("[::ffff:0:0]", false, true),
            ("[0:0:0:0:0:0:0:1]", true, false),
            ("example.com", false, false),
            ("localhost.example.com", false, false),
            ("127.0.0.1.example.com", false, false),
            ("8.8.8.8", false, false),
            ("8.8", false, false),
            ("256.1.1.1", false, false),
            ("127.0.0.256", false, false),
            ("4294967296", false, false),
            ("127.0.0.0.1", false, false),
            ("[2001:db8::1]", false, false),
        ] {
            let uri: Uri = format!("https://{host}:1/x").parse().unwrap();
            assert_eq!((is_plain(&uri), is_disguised(&uri)), (plain, disguised), "{host}");
        }
    }

    /// The addresses are literals, so they are resolved without a name server.
    #[test]
    fn hosts_are_checked_by_their_address() {
        let resolve = |requested: &str, resolved: &str| {
            let checked = Checked { uri: requested.parse().unwrap() };
            checked.resolve(&resolved.parse().unwrap(), &Config::default(), NextTimeout::default())
        };
        for (requested, resolved, expected) in [
            ("https://127.0.0.1:1/", "https://127.0.0.1:1/", true),
            ("https://127.1:1/", "https://127.1:1/", false),
            ("https://0.0.0.0:1/", "https://0.0.0.0:1/", false),
            ("https://[::ffff:127.0.0.1]:1/", "https://[::ffff:127.0.0.1]:1/", false),
            ("https://8.8.8.8:1/", "https://8.8.8.8:1/", true),
            // An HTTP proxy is allowed to run on this machine.
            ("https://8.8.8.8:1/", "http://127.1:3128/", true),
        ] {
            assert_eq!(resolve(requested, resolved).is_ok(), expected, "{requested}");
        }
    }

    /// A service that listens on all interfaces is reachable by their addresses.
    #[test]
    fn addresses_of_interfaces_are_this_machine() {
        // This is an address for documentation. No packet is sent. Without a network, there is no such address to check.
        let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
        let Ok(local) = socket.connect("192.0.2.1:9").and_then(|()| socket.local_addr()) else { return };
        assert!(is_this_machine(local.ip()), "{local}");
        let uri: Uri = format!("https://{}:1/x", local.ip()).parse().unwrap();
        assert!(is_disguised(&uri), "{local}");
        assert!(!is_this_machine("192.0.2.1".parse().unwrap()));
    }
}
