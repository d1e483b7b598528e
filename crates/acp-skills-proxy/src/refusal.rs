//! Reports a failed start to the client, because editors discard stderr.
//!
//! The first request of an ACP client is answered with an error that contains the message and its hint. If the input is not
//! ACP, or comes from a terminal, nothing is written to stdout.

use std::{
    io::{self, BufRead, BufReader, Read, Write},
    sync::mpsc,
    thread,
    time::Duration,
};

use acp_skills::intercept::NOT_STARTED;
use serde_json::{Value, json};
use skills_core::text::shown_lines;

/// The timeout for the first request.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(2);
/// The time that a client has to close its end after the answer. Emacs discards the output of a program that exits at once.
const CLOSE_TIMEOUT: Duration = Duration::from_millis(500);
/// The size of the stack of the thread that reads from the client. It is small, because a lack of memory may be the reason for the
/// refusal.
const STACK_BYTES: usize = 512 * 1024;
/// The maximum number of bytes that are searched for a request.
const MAX_BYTES: u64 = 1024 * 1024;

/// Answers the first request of `client` with an error that contains `message` and `hint`. Returns without an answer if no
/// request arrives within 2 seconds.
pub(crate) fn answer(
    client: impl Read + Send + 'static,
    mut to_client: impl Write,
    message: &str,
    hint: Option<&str>,
) {
    let (found, request) = mpsc::channel();
    // A blocking read cannot be cancelled, so this thread runs until the program exits.
    let reader = thread::Builder::new().stack_size(STACK_BYTES).spawn(move || {
        let mut client = BufReader::new(client);
        // If this fails, the caller is no longer waiting. Otherwise, read until the client closes the pipe. The
        // channel is closed when this thread ends, which the caller is waiting for.
        if found.send(first_request(&mut client)).is_ok() {
            let _ = io::copy(&mut client, &mut io::sink());
        }
    });
    if reader.is_err() {
        return;
    }
    if let Ok(Some(id)) = request.recv_timeout(REQUEST_TIMEOUT) {
        let message = hint.map_or_else(|| message.to_owned(), |hint| format!("{message}\nhint: {hint}"));
        let error = json!({ "code": NOT_STARTED, "message": shown_lines(&message) });
        let line = format!("{}\n", json!({ "jsonrpc": "2.0", "id": id, "error": error }));
        // If this fails, the client has already closed the pipe.
        if to_client.write_all(line.as_bytes()).and_then(|()| to_client.flush()).is_ok() {
            let _ = request.recv_timeout(CLOSE_TIMEOUT);
        }
    }
}

/// Returns the id of the first request in the client's input. `None` if there is no request.
fn first_request(client: impl BufRead) -> Option<Value> {
    let lines = client.take(MAX_BYTES).lines();
    let messages = lines.map_while(Result::ok).filter_map(|line| serde_json::from_str::<Value>(&line).ok());
    let mut requests =
        messages.filter(|message| message["jsonrpc"] == "2.0" && message["method"].is_string());
    requests.find_map(|mut message| message.get_mut("id").map(Value::take).filter(|id| !id.is_null()))
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;

    #[test]
    fn the_first_request_is_answered() {
        let initialize = r#"{"jsonrpc":"2.0","id":"a","method":"initialize","params":{}}"#;
        for (input, expected) in [
            (format!("{initialize}\n"), Some(json!("a"))),
            (initialize.to_owned(), Some(json!("a"))),
            (format!("\n{{\"jsonrpc\":\"2.0\",\"method\":\"x\"}}\n{initialize}\n"), Some(json!("a"))),
            (format!("{{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"x\"}}\n{initialize}\n"), Some(json!(0))),
            // These inputs are not ACP.
            (String::new(), None),
            ("GET / HTTP/1.1\r\n\r\n".to_owned(), None),
            ("[]\n{\"id\":1}\nnull\n".to_owned(), None),
            (r#"{"jsonrpc":"2.0","id":null,"method":"x"}"#.to_owned(), None),
            (r#"{"jsonrpc":"2.0","id":1,"result":{}}"#.to_owned(), None),
        ] {
            let mut answered = Vec::new();
            answer(Cursor::new(input.clone()), &mut answered, "the start failed", Some("fix it"));
            let answered = String::from_utf8(answered).unwrap();
            let expected = expected.map_or_else(String::new, |id| {
                let error = json!({ "code": NOT_STARTED, "message": "the start failed\nhint: fix it" });
                format!("{}\n", json!({ "jsonrpc": "2.0", "id": id, "error": error }))
            });
            assert_eq!(answered, expected, "{input}");
        }
    }

    #[test]
    fn the_wait_for_a_silent_client_times_out() {
        let (reader, _writer) = std::io::pipe().unwrap();
        let mut answered = Vec::new();
        answer(reader, &mut answered, "the start failed", None);
        assert_eq!(answered, b"");
    }
}
