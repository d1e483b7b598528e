//! [`split`]: back-pressure for the stream of a bridge. The stream is not read while its output is not read.
//!
//! The MCP server accepts each request at once and keeps each answer until it is read. Without back-pressure, an
//! agent that sends requests and never reads the answers would make the server keep an unlimited number of them.

use std::{
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, Waker, ready},
};

use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf, ReadHalf, WriteHalf};

/// The maximum length of a message in bytes. It is the same as over HTTP.
const MAX_LINE_BYTES: usize = 4 * 1024 * 1024;

/// The state that both halves share. No other lock is taken while it is held.
type Shared = Arc<Mutex<State>>;

#[derive(Default)]
struct State {
    /// True if the latest output could not be written yet.
    is_full: bool,
    /// The reader to wake once the output was written.
    reader: Option<Waker>,
}

/// The half for reading.
pub(super) struct Reader<S> {
    inner: ReadHalf<S>,
    state: Shared,
    /// The number of bytes that were read of the current line.
    line: usize,
}

/// The half for writing.
pub(super) struct Writer<S> {
    inner: WriteHalf<S>,
    state: Shared,
}

/// Splits a stream of lines. Reading fails if a line is longer than [`MAX_LINE_BYTES`].
pub(super) fn split<S: AsyncRead + AsyncWrite>(stream: S) -> (Reader<S>, Writer<S>) {
    let (reader, writer) = tokio::io::split(stream);
    let state = Shared::default();
    (Reader { inner: reader, state: Arc::clone(&state), line: 0 }, Writer { inner: writer, state })
}

impl<S: AsyncRead> AsyncRead for Reader<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        {
            let mut state = self.state.lock();
            if state.is_full {
                state.reader = Some(context.waker().clone());
                return Poll::Pending;
            }
        }
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.inner).poll_read(context, buffer))?;
        let read = &buffer.filled()[before..];
        let end = memchr::memchr(b'\n', read).unwrap_or(read.len());
        if self.line + end > MAX_LINE_BYTES {
            // Remove the data again, because `poll_read` must either return data or an error, not both.
            buffer.set_filled(before);
            let text = format!("a message is longer than {MAX_LINE_BYTES} bytes");
            return Poll::Ready(Err(io::Error::new(io::ErrorKind::InvalidData, text)));
        }
        self.line = match memchr::memrchr(b'\n', read) {
            Some(at) => read.len() - at - 1,
            None => self.line + read.len(),
        };
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite> AsyncWrite for Writer<S> {
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
    async fn the_length_of_a_message_is_limited() {
        for (sent, is_read) in [(MAX_LINE_BYTES, true), (MAX_LINE_BYTES + 1, false)] {
            let (mut theirs, ours) = tokio::io::duplex(64 * 1024);
            let (mut reader, _writer) = split(ours);
            let sends = tokio::spawn(async move {
                // Send the message twice, because the limit should apply to each message. If the message is too long,
                // the reader stops and this fails.
                for line in [vec![b'x'; sent], b"\n".to_vec()].iter().cycle().take(4) {
                    let _ = theirs.write_all(line).await;
                }
            });
            let read = reader.read_to_end(&mut Vec::new()).await;
            sends.abort();
            assert_eq!(read.is_ok(), is_read, "{sent}");
        }
    }
}
