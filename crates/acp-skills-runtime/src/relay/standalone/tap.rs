//! [`Tap`]: sees bytes on their way to the agent.

use std::io::{self, Write};

/// Is called with the bytes, before they are written.
pub type Tap = Box<dyn FnMut(&[u8]) + Send>;

/// `writer`, with `tap` in front of it.
pub fn tapped(writer: impl Write + Send + 'static, tap: Option<Tap>) -> Box<dyn Write + Send> {
    match tap {
        Some(tap) => Box::new(Tapped { writer, tap }),
        None => Box::new(writer),
    }
}

struct Tapped<W> {
    writer: W,
    tap: Tap,
}

impl<W: Write> Write for Tapped<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // First, because the agent may answer while this returns.
        (self.tap)(bytes);
        self.writer.write_all(bytes)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer.flush()
    }
}
