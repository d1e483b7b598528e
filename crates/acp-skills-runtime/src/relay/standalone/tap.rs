//! [`Tap`]: observes the bytes that are sent to the agent.

use std::io::{self, Write};

/// A function that is called with the bytes before they are written.
pub type Tap = Box<dyn FnMut(&[u8]) + Send>;

/// Returns `writer`, with `tap` in front of it if there is one.
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
        // The tap must be called first, because the agent can respond while we're still in this write.
        (self.tap)(bytes);
        self.writer.write_all(bytes)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer.flush()
    }
}
