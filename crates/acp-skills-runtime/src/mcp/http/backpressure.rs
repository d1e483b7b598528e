//! [`split`]: the stream of a bridge, which is not read while nobody reads what is written to it.
//!
//! The MCP server behind it takes a request as soon as it is there and keeps each answer until it is read. So an agent that asks
//! and never reads would have it keep any number of them.

use std::{
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, Waker, ready},
};

use parking_lot::Mutex;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf, ReadHalf, WriteHalf};

/// How long a message may be, in bytes: as over HTTP.
const MAX_LINE_BYTES: usize = 4 * 1024 * 1024;

/// What the two halves know of each other. The lock is taken alone, and for a moment.
type Shared = Arc<Mutex<State>>;

#[derive(Default)]
struct State {
    /// What was written last has not gone out.
    is_full: bool,
    /// Waits for it to.
    reader: Option<Waker>,
}

/// The half that is read.
pub(super) struct Reader<S> {
    inner: ReadHalf<S>,
    state: Shared,
    /// How much of the line was read that has not ended.
    line: usize,
}

/// The half that is written.
pub(super) struct Writer<S> {
    inner: WriteHalf<S>,
    state: Shared,
}

/// The two halves of a stream of lines. Reading fails at a line of more than [`MAX_LINE_BYTES`].
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
            // Whoever gets an error gets nothing else.
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
    async fn a_message_has_an_end() {
        for (sent, is_read) in [(MAX_LINE_BYTES, true), (MAX_LINE_BYTES + 1, false)] {
            let (mut theirs, ours) = tokio::io::duplex(64 * 1024);
            let (mut reader, _writer) = split(ours);
            let sends = tokio::spawn(async move {
                // Twice: each message counts for itself. Whoever reads may have had enough.
                for line in [vec![b'x'; sent], b"\n".to_vec()].iter().cycle().take(4) {
                    drop(theirs.write_all(line).await);
                }
            });
            let read = reader.read_to_end(&mut Vec::new()).await;
            sends.abort();
            assert_eq!(read.is_ok(), is_read, "{sent}");
        }
    }
}
