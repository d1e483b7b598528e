//! A start that fails, told to the client: editors drop what is said on stderr.
//!
//! The first request of a client that speaks ACP is answered with an error that has the message and its remedy. Anybody
//! else, and a person on a terminal, hears nothing on stdout and is not waited for.

use std::{
    io::{self, BufRead, BufReader, Read, Write},
    sync::mpsc,
    thread,
    time::Duration,
};

use acp_skills::intercept::NOT_STARTED;
use serde_json::{Value, json};
use skills_core::text::shown_lines;

/// How long a client may take to say something.
const PATIENCE: Duration = Duration::from_secs(2);
/// How long a client may take to leave once it has its answer. Emacs forgets what a program said that it sees end at once.
const FAREWELL: Duration = Duration::from_millis(500);
/// How much is read in search of a request, in bytes.
const MAX_BYTES: u64 = 1024 * 1024;

/// Answers the first request that comes from `client` with `message` and what to do about it.
pub(crate) fn answer(
    client: impl Read + Send + 'static,
    mut to_client: impl Write,
    message: &str,
    hint: Option<&str>,
) {
    let (found, request) = mpsc::channel();
    // A read cannot be given up; the thread ends with the program.
    let reader = thread::Builder::new().spawn(move || {
        let mut client = BufReader::new(client);
        // Whoever waits may have given up already. The other end of the channel sees when the client has gone.
        if found.send(first_request(&mut client)).is_ok() {
            drop(io::copy(&mut client, &mut io::sink()));
        }
    });
    if reader.is_err() {
        return;
    }
    if let Ok(Some(id)) = request.recv_timeout(PATIENCE) {
        let message = hint.map_or_else(|| message.to_owned(), |hint| format!("{message}\nhint: {hint}"));
        let error = json!({ "code": NOT_STARTED, "message": shown_lines(&message) });
        let line = format!("{}\n", json!({ "jsonrpc": "2.0", "id": id, "error": error }));
        // A client that is gone needs no answer.
        if to_client.write_all(line.as_bytes()).and_then(|()| to_client.flush()).is_ok() {
            drop(request.recv_timeout(FAREWELL));
        }
    }
}

/// The id of the first request in what a client says.
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
        for (said, expected) in [
            (format!("{initialize}\n"), Some(json!("a"))),
            (initialize.to_owned(), Some(json!("a"))),
            (format!("\n{{\"jsonrpc\":\"2.0\",\"method\":\"x\"}}\n{initialize}\n"), Some(json!("a"))),
            (format!("{{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"x\"}}\n{initialize}\n"), Some(json!(0))),
            // Nobody who speaks ACP.
            (String::new(), None),
            ("GET / HTTP/1.1\r\n\r\n".to_owned(), None),
            ("[]\n{\"id\":1}\nnull\n".to_owned(), None),
            (r#"{"jsonrpc":"2.0","id":null,"method":"x"}"#.to_owned(), None),
            (r#"{"jsonrpc":"2.0","id":1,"result":{}}"#.to_owned(), None),
        ] {
            let mut answered = Vec::new();
            answer(Cursor::new(said.clone()), &mut answered, "it is wrong", Some("do it right"));
            let answered = String::from_utf8(answered).unwrap();
            let expected = expected.map_or_else(String::new, |id| {
                let error = json!({ "code": NOT_STARTED, "message": "it is wrong\nhint: do it right" });
                format!("{}\n", json!({ "jsonrpc": "2.0", "id": id, "error": error }))
            });
            assert_eq!(answered, expected, "{said}");
        }
    }

    #[test]
    fn a_client_that_says_nothing_is_not_waited_for() {
        let (reader, _writer) = std::io::pipe().unwrap();
        let mut answered = Vec::new();
        answer(reader, &mut answered, "it is wrong", None);
        assert_eq!(answered, b"");
    }
}
