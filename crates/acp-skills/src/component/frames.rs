//! Connects the SDK's channels of frames with the byte streams of the relay.

use std::io::{self, Read, Write};

use agent_client_protocol::{Channel, TransportFrame};
use futures::{
    StreamExt,
    channel::mpsc::{UnboundedReceiver, UnboundedSender},
    executor::block_on,
};

use acp_skills_runtime::relay::Ends;

/// Returns the byte streams for the other side of `channel`.
pub(super) fn ends(channel: Channel) -> Ends {
    let (frames, sink) = channel.into_parts();
    Ends::new(Source { frames, line: Vec::new(), at: 0 }, Sink { sink, line: Vec::new() })
}

struct Source {
    frames: UnboundedReceiver<TransportFrame>,
    /// The frame that is being read, as a line.
    line: Vec<u8>,
    at: usize,
}

impl Read for Source {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.at == self.line.len() {
            let Some(frame) = block_on(self.frames.next()) else { return Ok(0) };
            let mut line = frame.to_json().map_err(io::Error::other)?;
            // A malformed frame may contain line breaks, and must not be turned into two messages.
            if line.contains('\n') {
                line = line.replace('\n', " ");
            }
            line.push('\n');
            self.line = line.into_bytes();
            self.at = 0;
        }
        let count = buffer.len().min(self.line.len() - self.at);
        buffer[..count].copy_from_slice(&self.line[self.at..self.at + count]);
        self.at += count;
        Ok(count)
    }
}

struct Sink {
    sink: UnboundedSender<TransportFrame>,
    /// The beginning of an incomplete line.
    line: Vec<u8>,
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        for piece in bytes.split_inclusive(|&byte| byte == b'\n') {
            self.line.extend_from_slice(piece);
            if piece.ends_with(b"\n") {
                let frame = TransportFrame::parse_json(String::from_utf8_lossy(&self.line).trim_end());
                self.line.clear();
                self.sink.unbounded_send(frame).map_err(|_| io::Error::from(io::ErrorKind::BrokenPipe))?;
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use agent_client_protocol::Error;

    use super::*;

    #[test]
    fn a_frame_becomes_one_line() {
        let (ours, theirs) = Channel::duplex();
        let (_, frames) = theirs.into_parts();
        let raw = "[\n{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"x\"}\n]".to_owned();
        frames.unbounded_send(TransportFrame::Malformed { raw, error: Error::invalid_request() }).unwrap();
        drop(frames);
        let mut text = String::new();
        ends(ours).reader.read_to_string(&mut text).unwrap();
        assert_eq!(text, "[ {\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"x\"} ]\n");
    }
}
