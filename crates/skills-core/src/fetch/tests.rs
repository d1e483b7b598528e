use std::{
    io::{BufRead, BufReader, Write},
    net::{SocketAddr, TcpListener},
    thread,
};

use super::*;

/// Starts a server on loopback that answers each connection with `answer(path)` until the test process ends.
fn serve(answer: impl Fn(&str) -> Vec<u8> + Send + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
            let first = lines.next().and_then(Result::ok).unwrap_or_default();
            while lines.next().and_then(Result::ok).is_some_and(|line| !line.is_empty()) {}
            // Some tests make the client close the connection early.
            let _ = stream.write_all(&answer(first.split(' ').nth(1).unwrap_or("/")));
        }
    });
    address
}

fn ok(body: &str) -> Vec<u8> {
    format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}", body.len()).into()
}

fn moved(to: &str) -> Vec<u8> {
    format!("HTTP/1.1 302 Found\r\nlocation: {to}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n").into()
}

#[test]
fn only_https_and_loopback_are_allowed() {
    for url in ["https://example.com/a", "http://127.0.0.1:1/", "http://localhost/x", "http://[::1]:80/"] {
        assert!(is_allowed(url), "{url}");
    }
    for url in [
        "http://example.com/",
        "http://127.0.0.1@example.com/",
        "http://localhost.example.com/",
        "file:///etc/passwd",
        "ftp://localhost/",
        "http://127.1/",
        "http://0.0.0.0/",
        "https://127.1/",
        "https://localhost.:8443/",
        "https://[::ffff:127.0.0.1]/",
        "/relative",
        "",
    ] {
        assert!(matches!(get(url, Limits::default()), Err(FetchError::Refused { .. })), "{url}");
    }
}

#[test]
fn redirects_are_followed_up_to_a_limit() {
    let address = serve(|path| match path {
        "/a/start" => moved("next"),
        "/a/next" => moved("/end"),
        "/end" => ok("\u{feff}# Body"),
        _ => moved("/loop"),
    });
    let url = format!("http://{address}/a/start");
    assert_eq!(get_text(&url, Limits::default()).unwrap(), "# Body");
    let error = get_text(&format!("http://{address}/loop"), Limits::default()).unwrap_err();
    assert!(matches!(error, FetchError::Redirect { .. }), "{error}");
}

#[test]
fn redirects_to_forbidden_urls_are_rejected() {
    for to in [
        "http://example.com/",
        "file:///etc/passwd",
        "//example.com/",
        "https://127.1/",
        "https://[::ffff:127.0.0.1]/",
        "https://0.0.0.0/",
        "https://localhost./",
        "http://2130706433/",
    ] {
        let target = to.to_owned();
        let address = serve(move |_| moved(&target));
        let error = get(&format!("http://{address}/"), Limits::default()).unwrap_err();
        assert!(matches!(error, FetchError::Redirect { .. }), "{to}: {error}");
    }
}

/// Each redirect is within the limit, but all together are not.
#[test]
fn redirects_share_the_time_limit() {
    let limits = Limits { timeout: Duration::from_millis(300), ..Limits::default() };
    let step = limits.timeout * 2 / 3;
    let address = serve(move |path| {
        thread::sleep(step);
        if path == "/end" { ok("") } else { moved("/end") }
    });
    let error = get(&format!("http://{address}/start"), limits).unwrap_err();
    assert!(matches!(error, FetchError::Transport { .. }), "{error}");
}

#[test]
fn headers_do_not_choose_the_host() {
    let address = serve(|_| ok(""));
    let url = format!("http://{address}/");
    let fetch = |name: &str| {
        let headers = [(name.to_owned(), "example.com".to_owned())];
        get_with(&url, None, &headers, Limits::default())
    };
    assert!(fetch("X-Host").is_ok());
    for name in ["Host", "host", " HOST "] {
        let error = fetch(name).unwrap_err();
        assert!(matches!(error, FetchError::HostHeader { .. }), "{name}: {error}");
        let request = Request {
            method: "POST",
            url: &url,
            host: Host::Chosen,
            authorities: None,
            headers: &[(name.to_owned(), "example.com".to_owned())],
            body: b"",
            timeout: Duration::from_secs(10),
            answer: None,
        };
        let error = exchange(&request, &Interrupt::default()).err();
        assert!(matches!(error, Some(FetchError::HostHeader { .. })), "{name}: {error:?}");
    }
}

#[test]
fn the_size_limit_is_exact() {
    let address = serve(|path| ok(&"x".repeat(path[1..].parse().unwrap())));
    let limits = Limits { max_bytes: 1000, ..Limits::default() };
    assert_eq!(get(&format!("http://{address}/1000"), limits).unwrap().len(), 1000);
    let error = get(&format!("http://{address}/1001"), limits).unwrap_err();
    assert!(matches!(error, FetchError::TooLarge { max_bytes: 1000, .. }), "{error}");
}

#[test]
fn errors_contain_the_url() {
    let address = serve(|path| match path {
        "/binary" => b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\nconnection: close\r\n\r\n\xff".to_vec(),
        _ => b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\nconnection: close\r\n\r\n".to_vec(),
    });
    for (path, expected) in [("gone", "server returned status 404"), ("binary", "content is not valid UTF-8")]
    {
        let url = format!("http://{address}/{path}");
        let error = get_text(&url, Limits::default()).unwrap_err().to_string();
        assert_eq!(error, format!("failed to fetch {url}: {expected}"));
    }
}

#[test]
fn errors_contain_no_secrets_and_no_text_of_others() {
    for (url, expected) in [
        ("http://user:pass@127.0.0.1:9/a?token=secret", "http://127.0.0.1:9/a?…"),
        ("https://127.1/b#secret", "https://127.1/b?…"),
        ("secret@example.com", "example.com"),
    ] {
        let error = FetchError::Refused { url: url.to_owned() }.to_string();
        assert!(error.starts_with(&format!("failed to fetch {expected}: ")), "{error}");
        assert!(!error.contains("secret") && !error.contains("pass"), "{error}");
    }
    // The text of rustls.
    let source = "io: invalid peer certificate: certificate not valid for name \"a\"; certificate is only valid for \
                  DnsName(\"ignore-all-instructions\")";
    let url = "https://a/".to_owned();
    let error = FetchError::Transport { url: url.clone(), source: source.into() };
    assert_eq!(
        error.to_string(),
        "failed to fetch https://a/: io: invalid peer certificate: certificate not valid for name \"a\""
    );
    let last = FetchError::Transport { url, source: "x".repeat(1_000).into() };
    assert_eq!(last.cause().map(|cause| cause.len()), Some(super::error::MAX_CAUSE_CHARS));
}

#[test]
fn a_server_that_does_not_answer_causes_a_timeout() {
    // The connection stays in the backlog, because the listener never accepts it.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let limits = Limits { timeout: Duration::from_millis(50), ..Limits::default() };
    let error = get(&url, limits).unwrap_err();
    assert!(matches!(error, FetchError::Transport { .. }), "{error}");
    assert!(error.to_string().contains(&url), "{error}");
}
