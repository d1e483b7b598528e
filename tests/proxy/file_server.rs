//! A server with files for the tests of archives and packages.

use std::{
    collections::{BTreeMap, HashMap},
    io::{BufRead, BufReader, Write},
    net::TcpListener,
    sync::{Arc, Mutex},
    thread,
};

use skills_core::skill::Sha256;

use crate::editor::DEADLINE;

/// A request, and the status of its answer.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    path: String,
    pub(crate) headers: HashMap<String, String>,
    status: u16,
}

/// A server with files. Each has an `ETag`, which is its checksum.
pub(crate) struct Server {
    port: u16,
    files: Arc<Mutex<BTreeMap<String, Vec<u8>>>>,
    pub(crate) redirects: Arc<Mutex<BTreeMap<String, String>>>,
    /// The value of `authorization` without which the server answers 401.
    required: Arc<Mutex<Option<String>>>,
    seen: Arc<Mutex<Vec<Seen>>>,
}

impl Server {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let server = Self {
            port,
            files: Arc::default(),
            redirects: Arc::default(),
            required: Arc::default(),
            seen: Arc::default(),
        };
        let (files, redirects) = (Arc::clone(&server.files), Arc::clone(&server.redirects));
        let (required, seen) = (Arc::clone(&server.required), Arc::clone(&server.seen));
        thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.expect("a connection");
                stream.set_read_timeout(Some(DEADLINE)).expect("a deadline");
                let mut lines = BufReader::new(&stream).lines().map_while(Result::ok);
                let first = lines.next().unwrap_or_default();
                let headers = lines.take_while(|line| !line.is_empty());
                let headers = headers.filter_map(|line| {
                    let (name, value) = line.split_once(": ")?;
                    Some((name.to_lowercase(), value.to_owned()))
                });
                let headers: HashMap<String, String> = headers.collect();
                let path = first.split(' ').nth(1).unwrap_or_default().to_owned();
                let file = files.lock().expect("no panic").get(&path).cloned();
                let etag = file.as_ref().map(|file| format!("\"{}\"", Sha256::of(file)));
                let is_denied = required
                    .lock()
                    .expect("no panic")
                    .as_ref()
                    .is_some_and(|required| headers.get("authorization") != Some(required));
                let target = redirects.lock().expect("no panic").get(&path).cloned();
                let (status, more, body) = match (file, target) {
                    _ if is_denied => (401, String::new(), Vec::new()),
                    (_, Some(target)) => (302, format!("location: {target}\r\n"), Vec::new()),
                    (Some(_), _) if headers.get("if-none-match") == etag.as_ref() => {
                        (304, String::new(), Vec::new())
                    }
                    (Some(file), _) => (200, format!("etag: {}\r\n", etag.unwrap_or_default()), file),
                    (None, None) => (404, String::new(), Vec::new()),
                };
                seen.lock().expect("no panic").push(Seen { path, headers, status });
                let length = body.len();
                let head = format!(
                    "HTTP/1.1 {status} S\r\nconnection: close\r\n{more}content-length: {length}\r\n\r\n"
                );
                // This fails if the client has closed the connection.
                let _ = stream.write_all(&[head.into_bytes(), body].concat());
            }
        });
        server
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    pub(crate) fn serve(&self, path: &str, content: impl Into<Vec<u8>>) {
        self.files.lock().expect("no panic").insert(path.to_owned(), content.into());
    }

    pub(crate) fn redirect(&self, path: &str, target: String) {
        self.redirects.lock().expect("no panic").insert(path.to_owned(), target);
    }

    pub(crate) fn require(&self, authorization: &str) {
        *self.required.lock().expect("no panic") = Some(authorization.to_owned());
    }

    /// Returns the requests since the last call.
    pub(crate) fn seen(&self) -> Vec<Seen> {
        std::mem::take(&mut self.seen.lock().expect("no panic"))
    }

    /// Returns the paths and statuses of the requests since the last call.
    pub(crate) fn answers(&self) -> Vec<(String, u16)> {
        self.seen().into_iter().map(|seen| (seen.path, seen.status)).collect()
    }
}
