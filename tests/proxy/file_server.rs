//! A server with files for the tests of archives and packages.

use std::{
    collections::{BTreeMap, HashMap},
    io::{self, BufRead, BufReader, Write},
    net::{TcpListener, TcpStream},
    sync::{Arc, Mutex},
    thread,
};

use rustls::{
    ServerConfig, ServerConnection, StreamOwned,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
};
use skills_core::skill::Sha256;

use crate::editor::DEADLINE;

/// The certificate of the authority that has signed the certificate of [`Server::encrypted_url`].
pub(crate) const AUTHORITY: &[u8] = include_bytes!("../certificates/authority.pem");
const CERTIFICATE: &[u8] = include_bytes!("../certificates/localhost.pem");
const KEY: &[u8] = include_bytes!("../certificates/localhost.key");

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
    /// The port of [`encrypted_url`](Self::encrypted_url).
    encrypted: Mutex<Option<u16>>,
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
            encrypted: Mutex::default(),
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

    /// Returns the URL of a file over https, with the certificate of a private authority.
    pub(crate) fn encrypted_url(&self, path: &str) -> String {
        let mut port = self.encrypted.lock().expect("no panic");
        let port = port.get_or_insert_with(|| encrypt(self.port));
        format!("https://localhost:{port}{path}")
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

/// Starts a server that decrypts requests and passes them to the server at `port`. Returns its own port.
fn encrypt(port: u16) -> u16 {
    let certificate = CertificateDer::from_pem_slice(CERTIFICATE).expect("a certificate");
    let key = PrivateKeyDer::from_pem_slice(KEY).expect("a key");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions of TLS")
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .expect("the certificate has this key");
    let config = Arc::new(config);
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let own = listener.local_addr().expect("an address").port();
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let connection = ServerConnection::new(Arc::clone(&config)).expect("a connection");
            // This fails if the client doesn't trust the certificate.
            let _ = decrypt(&mut StreamOwned::new(connection, stream), port);
        }
    });
    own
}

fn decrypt(stream: &mut StreamOwned<ServerConnection, TcpStream>, port: u16) -> io::Result<()> {
    stream.sock.set_read_timeout(Some(DEADLINE))?;
    let mut server = TcpStream::connect(("127.0.0.1", port))?;
    let mut line = String::new();
    let mut lines = BufReader::new(&mut *stream);
    while lines.read_line(&mut line)? > 2 {
        server.write_all(std::mem::take(&mut line).as_bytes())?;
    }
    server.write_all(line.as_bytes())?;
    io::copy(&mut server, stream)?;
    stream.conn.send_close_notify();
    stream.flush()
}
