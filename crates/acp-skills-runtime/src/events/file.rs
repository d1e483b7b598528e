//! [`EventFile`]: appends the record to a file, from a background thread.
//!
//! Only whole lines are appended, so several proxies can share a file. A write error, such as a full disk, is logged
//! once and does not affect the relay. Lost events are counted, and the count is added to the file when it is
//! writable again.

use std::{
    io::{self, Write},
    path::Path,
    sync::Arc,
};

use skills_core::text::shown_path;
use skills_sources::disk::{private, state};

use super::{Event, EventKind};
use crate::worker::{Batch, Submitter, Worker};

/// The maximum number of events that wait for the disk. Further events are dropped and counted.
const QUEUE_CAPACITY: usize = 8192;

/// The approximate size of a write, in bytes. Writes of this size are appended as a whole, even if other processes
/// use the same file.
const CHUNK_BYTES: usize = 32 * 1024;

/// A file that events are appended to. Dropping it writes all pending events.
pub struct EventFile {
    writer: Worker<Arc<Event>>,
}

/// Appends events to an [`EventFile`]. All clones append to the same file.
#[derive(Clone)]
pub struct Appender(Submitter<Arc<Event>>);

impl EventFile {
    /// Opens the file. Creates it if it doesn't exist, so that only the current user can read it. An existing file that other
    /// users can read becomes private, with a warning.
    ///
    /// # Errors
    /// Returns an error if the file cannot be opened or made private, if it exists and doesn't begin with an event, or if the writing
    /// thread cannot be started.
    pub fn open(path: &Path) -> io::Result<Self> {
        let file = private::append_and_wait(path)?;
        private::check_start(&file, path, is_event)?;
        if private::tighten(&file)? {
            tracing::warn!("{} was readable by other users; changed its mode to 0600", shown_path(path));
        }
        let mut lines = LineWriter::new(file, path.display().to_string());
        let writer = Worker::start("events", QUEUE_CAPACITY, move |batch| lines.write(batch))?;
        Ok(Self { writer })
    }

    /// Returns a handle that appends events to the file.
    pub fn appender(&self) -> Appender {
        Appender(self.writer.submitter())
    }
}

impl Appender {
    /// Appends an event. Never blocks. If the queue is full, the event is dropped and counted.
    pub fn append(&self, event: Arc<Event>) {
        self.0.submit(event);
    }
}

/// Writes lines, and counts the lost ones.
struct LineWriter<W> {
    file: W,
    name: String,
    pending: Vec<u8>,
    /// The number of lost events that the file doesn't report yet.
    lost: u64,
    /// True if the last line was written only in part.
    is_cut: bool,
    has_warned: bool,
}

impl<W: Write> LineWriter<W> {
    fn new(file: W, name: String) -> Self {
        Self { file, name, pending: Vec::new(), lost: 0, is_cut: false, has_warned: false }
    }

    fn write(&mut self, batch: Batch<Arc<Event>>) {
        self.lost += batch.dropped;
        let mut count = 0;
        for event in batch.items {
            self.line(&event);
            count += 1;
            if self.pending.len() >= CHUNK_BYTES {
                self.flush(count);
                count = 0;
            }
        }
        if self.lost > 0 {
            let dropped = Event::now(None, EventKind::EventsDropped { count: self.lost });
            self.line(&dropped);
            let reported = self.lost;
            if self.flush(count) {
                self.lost -= reported;
            }
        } else {
            self.flush(count);
        }
    }

    fn line(&mut self, event: &Event) {
        if let Ok(line) = serde_json::to_string(event) {
            // A shell that reads the file should not run what the author of a skill has written.
            self.pending.extend_from_slice(state::inert(line).as_bytes());
            self.pending.push(b'\n');
        } else {
            // This should never happen for strings and numbers.
            self.lost += 1;
        }
    }

    /// Writes the pending bytes, which hold `count` events. Returns true if all of them were written.
    fn flush(&mut self, count: u64) -> bool {
        if self.is_cut {
            self.pending.insert(0, b'\n');
        }
        let result = write_all(&mut self.file, &self.pending);
        let all = self.pending.len();
        self.pending.clear();
        match result {
            Ok(()) => {
                self.is_cut = false;
                true
            }
            Err((written, error)) => {
                // Note that this is an upper bound: some of these events may be in the file.
                self.lost += count;
                self.is_cut = self.is_cut || (written > 0 && written < all);
                if !self.has_warned {
                    self.has_warned = true;
                    tracing::warn!("cannot write events to {}: {error}; these events are lost", self.name);
                }
                false
            }
        }
    }
}

/// Returns true if a file that begins with `start` holds events. A full disk may have cut the first one.
fn is_event(start: &[u8]) -> bool {
    let event = br#"{"v":"#;
    start.starts_with(event) || event.starts_with(start)
}

/// Writes all bytes, or returns the error and the number of bytes that were written before it.
fn write_all(file: &mut impl Write, bytes: &[u8]) -> Result<(), (usize, io::Error)> {
    let mut written = 0;
    while written < bytes.len() {
        match file.write(&bytes[written..]) {
            Ok(0) => return Err((written, io::ErrorKind::WriteZero.into())),
            Ok(count) => written += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err((written, error)),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A disk with room for a limited number of bytes.
    struct Disk {
        written: Vec<u8>,
        room: usize,
    }

    impl Write for Disk {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let fits = bytes.len().min(self.room);
            if fits == 0 && !bytes.is_empty() {
                return Err(io::ErrorKind::StorageFull.into());
            }
            self.room -= fits;
            self.written.extend_from_slice(&bytes[..fits]);
            Ok(fits)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn batch(numbers: std::ops::Range<u64>, lost: u64) -> Batch<Arc<Event>> {
        let event = |found| {
            let what = EventKind::EventsDropped { count: found };
            Arc::new(Event::now(None, what))
        };
        Batch { items: numbers.map(event).collect(), dropped: lost, is_last: false }
    }

    /// Returns the counts in the written lines, with `None` for an incomplete line.
    fn counts(disk: &Disk) -> Vec<Option<u64>> {
        let text = String::from_utf8(disk.written.clone()).unwrap();
        let count = |line: &str| serde_json::from_str::<serde_json::Value>(line).ok()?["count"].as_u64();
        text.lines().map(count).collect()
    }

    #[test]
    fn lost_events_are_counted_once_the_disk_has_room() {
        let disk = Disk { written: Vec::new(), room: 120 };
        let mut lines = LineWriter::new(disk, "x".to_owned());
        lines.write(batch(10..11, 0));
        assert_eq!((counts(&lines.file), lines.lost), (vec![Some(10)], 0));
        // The second line is cut off, so we don't know how many of its events were written. Both should be counted as
        // lost.
        lines.write(batch(11..13, 0));
        assert_eq!((counts(&lines.file), lines.lost, lines.is_cut), (vec![Some(10), None], 2, true));
        lines.write(batch(13..14, 5));
        assert_eq!((lines.lost, lines.has_warned), (8, true));
        lines.file.room = 10_000;
        lines.write(batch(14..15, 0));
        assert_eq!(counts(&lines.file), [Some(10), None, Some(14), Some(8)]);
        lines.write(batch(15..16, 0));
        assert_eq!(counts(&lines.file)[4..], [Some(15)]);
    }

    #[test]
    fn a_shell_evaluates_nothing_of_an_event() {
        let disk = Disk { written: Vec::new(), room: 1000 };
        let mut lines = LineWriter::new(disk, "x".to_owned());
        let reason = "source https://x.example/$(id)`id` #1";
        let event = Event::now(None, EventKind::Refused { reason: reason.to_owned() });
        lines.write(Batch { items: vec![Arc::new(event)], dropped: 0, is_last: false });
        let text = String::from_utf8(lines.file.written).unwrap();
        assert!(!text.contains(['$', '`']), "{text}");
        let read: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(read["reason"], reason);
    }
}
