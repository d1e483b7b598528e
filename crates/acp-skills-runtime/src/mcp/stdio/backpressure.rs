//! [`split`]: back-pressure for the stream of a bridge. The stream is not read while its output is not read.
//!
//! The MCP server accepts each request at once and keeps each answer until it is read. Without back-pressure, an
//! agent that sends requests and never reads the answers would make the server keep an unlimited number of them.
//!
//! A message that is too long, or a request that the server cannot read, is replaced: the server receives a short request with the
//! same id, and answers it with an error. Otherwise, the error would have no id.

use std::{
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, Waker, ready},
};

use acp_skills_intercept::MAX_MCP_MESSAGE;
use acp_skills_wire::{Id, Kind, Message, Skim};
use parking_lot::Mutex;
use rmcp::model::ClientJsonRpcMessage;
use skills_core::json::{MAX_VALUES, has_more_values_than};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf, ReadHalf, WriteHalf};

use crate::mcp::{TOO_LONG, UNREADABLE};

/// The size of one read, in bytes.
const CHUNK_BYTES: usize = 8 * 1024;

/// The state that both halves share. No other lock is taken while it is held.
type Shared = Arc<Mutex<State>>;

#[derive(Default)]
struct State {
    /// True if the latest output could not be written yet.
    is_full: bool,
    /// The reader to wake once the output was written.
    reader: Option<Waker>,
}

/// A stream whose type is erased, so that the code of the transport exists once.
type AnyStream = Pin<Box<dyn Stream>>;

/// A stream in both directions.
pub(super) trait Stream: AsyncRead + AsyncWrite + Send {}

impl<S: AsyncRead + AsyncWrite + Send> Stream for S {}

/// The half for reading.
pub(super) struct Reader {
    inner: ReadHalf<AnyStream>,
    state: Shared,
    lines: Lines,
    has_ended: bool,
}

/// The lines that were read and not passed on yet.
#[derive(Default)]
struct Lines {
    /// The bytes of these lines. The last line may be incomplete, and only complete lines are passed on.
    kept: Vec<u8>,
    /// The number of bytes of `kept` that were passed on.
    passed: usize,
    /// The number of bytes of `kept` that are complete lines.
    complete: usize,
    /// The current line, if it is too long. Its bytes are not kept.
    skipped: Option<Skim>,
}

/// The half for writing.
pub(super) struct Writer {
    inner: WriteHalf<AnyStream>,
    state: Shared,
}

/// Splits a stream of lines.
pub(super) fn split(stream: AnyStream) -> (Reader, Writer) {
    let (reader, writer) = tokio::io::split(stream);
    let state = Shared::default();
    (
        Reader { inner: reader, state: Arc::clone(&state), lines: Lines::default(), has_ended: false },
        Writer { inner: writer, state },
    )
}

impl Lines {
    /// Adds bytes of the stream. A line that is too long is replaced at its end.
    fn add(&mut self, bytes: &[u8]) {
        for piece in bytes.split_inclusive(|&byte| byte == b'\n') {
            if let Some(skim) = &mut self.skipped {
                skim.read(piece);
            } else if self.kept.len() - self.complete + piece.trim_ascii_end().len() > MAX_MCP_MESSAGE {
                let mut skim = Skim::default();
                skim.read(&self.kept[self.complete..]);
                skim.read(piece);
                self.skipped = Some(skim);
                self.kept.truncate(self.complete);
                self.kept.shrink_to(CHUNK_BYTES);
            } else {
                self.kept.extend_from_slice(piece);
            }
            if piece.ends_with(b"\n") {
                let line = &self.kept[self.complete..];
                let instead = self.skipped.take().map(|skim| replacement(&skim)).or_else(|| refused(line));
                if let Some(instead) = instead {
                    self.kept.truncate(self.complete);
                    self.kept.extend(instead);
                }
                self.complete = self.kept.len();
            }
        }
    }

    /// Completes the last line at the end of the stream.
    fn end(&mut self) {
        if self.kept.len() > self.complete || self.skipped.is_some() {
            self.add(b"\n");
        }
    }

    /// Moves bytes of complete lines to `buffer`. Returns false if there are none.
    fn pass(&mut self, buffer: &mut ReadBuf<'_>) -> bool {
        let length = buffer.remaining().min(self.complete - self.passed);
        buffer.put_slice(&self.kept[self.passed..self.passed + length]);
        self.passed += length;
        if self.passed == self.complete {
            self.kept.drain(..self.complete);
            self.passed = 0;
            self.complete = 0;
        }
        length > 0
    }
}

/// Returns the message for the server in place of one that is too long. It is empty unless the client waits for an answer.
fn replacement(skim: &Skim) -> Vec<u8> {
    if let Some((id, Kind::Request)) = skim.addressee() {
        return request(&id, TOO_LONG);
    }
    tracing::warn!("a message of the MCP client is too long, so it was dropped");
    Vec::new()
}

/// Returns the message in place of a complete line, if the server cannot read it.
fn refused(line: &[u8]) -> Option<Vec<u8>> {
    if has_more_values_than(line, MAX_VALUES) {
        let mut skim = Skim::default();
        skim.read(line);
        return Some(replacement(&skim));
    }
    let message = Message::parse(line).filter(|message| message.kind() == Kind::Request)?;
    let is_readable = serde_json::from_slice::<ClientJsonRpcMessage>(line).is_ok();
    if is_readable { None } else { Some(request(&message.id()?, UNREADABLE)) }
}

/// Builds a request that the server answers with an error.
fn request(id: &Id, method: &str) -> Vec<u8> {
    format!("{{\"jsonrpc\":\"2.0\",\"id\":{},\"method\":\"{method}\"}}\n", id.to_json()).into_bytes()
}

impl AsyncRead for Reader {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        loop {
            if self.lines.pass(buffer) || self.has_ended || buffer.remaining() == 0 {
                return Poll::Ready(Ok(()));
            }
            {
                let mut state = self.state.lock();
                if state.is_full {
                    state.reader = Some(context.waker().clone());
                    return Poll::Pending;
                }
            }
            let mut chunk = [0; CHUNK_BYTES];
            let mut chunk = ReadBuf::new(&mut chunk);
            ready!(Pin::new(&mut self.inner).poll_read(context, &mut chunk))?;
            if chunk.filled().is_empty() {
                self.has_ended = true;
                self.lines.end();
            } else {
                self.lines.add(chunk.filled());
            }
        }
    }
}

impl AsyncWrite for Writer {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.inner).poll_write(context, bytes);
        let mut state = self.state.lock();
        state.is_full = written.is_pending();
        if let Some(reader) = state.reader.take_if(|_| written.is_ready()) {
            reader.wake();
        }
        drop(state);
        written
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    #[tokio::test]
    async fn a_message_that_is_too_long_is_replaced() {
        let message = |id: &str, length: usize| {
            let start = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"m","params":{{"a":""#);
            let end = "\"}}";
            format!("{start}{}{end}\n", "x".repeat(length - start.len() - end.len()))
        };
        let replaced = |id: &str| format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{TOO_LONG}"}}"#) + "\n";
        let fits = message("1", MAX_MCP_MESSAGE);
        let notification = message("1", 2 * MAX_MCP_MESSAGE).replace("\"id\":1,", "");
        let values = format!(r#"{{"id":8,"method":"m","params":[1{}]}}"#, ",1".repeat(MAX_VALUES));
        for (sent, expected) in [
            (fits.clone() + &fits, fits.clone() + &fits),
            (message("1", MAX_MCP_MESSAGE + 1) + &fits, replaced("1") + &fits),
            (fits.clone() + &message("\"a\"", 3 * MAX_MCP_MESSAGE), fits.clone() + &replaced("\"a\"")),
            (notification + &fits, fits.clone()),
            ("a\n\nb\nc".to_owned(), "a\n\nb\nc\n".to_owned()),
            (format!("{values}\n{fits}"), replaced("8") + &fits),
        ] {
            let (mut theirs, ours) = tokio::io::duplex(64 * 1024);
            let (mut reader, _writer) = split(Box::pin(ours));
            let sends = tokio::spawn(async move { theirs.write_all(sent.as_bytes()).await });
            let mut read = Vec::new();
            reader.read_to_end(&mut read).await.unwrap();
            sends.await.unwrap().unwrap();
            assert!(read == expected.as_bytes(), "{} instead of {} bytes", read.len(), expected.len());
        }
    }
}
