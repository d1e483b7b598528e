//! [`EventFile`]: the record in a file, written by a thread of its own.
//!
//! Whole lines are appended, so several proxies can share a file. Whatever goes wrong with it while the proxy runs, a full
//! disk for example, is one warning and never an error of the relay; what was lost is counted in the file as soon as it
//! can be written again.

use std::{
    io::{self, Write},
    path::Path,
    sync::Arc,
};

use super::{EventKind, Record};
use skills_sources::disk::private;

use crate::worker::{Batch, Submitter, Worker};

/// How many events may wait for the disk. Of more than that only their number is kept.
const MAX_WAITING: usize = 8192;

/// About how many bytes are written at once: the kernel appends them as one piece, whoever else writes.
const CHUNK_BYTES: usize = 32 * 1024;

/// A file that events are appended to. Dropping it writes what is left.
pub struct EventFile {
    writer: Worker<Arc<Record>>,
}

/// Appends events to an [`EventFile`]. All clones lead to the same file.
#[derive(Clone)]
pub struct Appender(Submitter<Arc<Record>>);

impl EventFile {
    /// Opens, or creates for nobody else to read, the file.
    ///
    /// # Errors
    /// It cannot be opened, or the thread cannot be started.
    pub fn open(path: &Path) -> io::Result<Self> {
        let file = private::append_and_wait(path)?;
        let mut lines = LineWriter::new(file, path.display().to_string());
        let writer = Worker::start("events", MAX_WAITING, move |batch| lines.write(batch))?;
        Ok(Self { writer })
    }

    /// What appends to the file.
    pub fn appender(&self) -> Appender {
        Appender(self.writer.submitter())
    }
}

impl Appender {
    /// Appends an event. Never blocks; what the disk is too slow for is dropped and counted.
    pub fn append(&self, record: Arc<Record>) {
        self.0.submit(record);
    }
}

/// Writes lines, and keeps count of those that are lost.
struct LineWriter<W> {
    file: W,
    name: String,
    pending: Vec<u8>,
    /// How many events were lost since the file last said so.
    lost: u64,
    /// The last line was not written to its end.
    is_cut: bool,
    has_warned: bool,
}

impl<W: Write> LineWriter<W> {
    fn new(file: W, name: String) -> Self {
        Self { file, name, pending: Vec::new(), lost: 0, is_cut: false, has_warned: false }
    }

    fn write(&mut self, batch: Batch<Arc<Record>>) {
        self.lost += batch.dropped;
        let mut count = 0;
        for record in batch.items {
            self.line(&record);
            count += 1;
            if self.pending.len() >= CHUNK_BYTES {
                self.flush(count);
                count = 0;
            }
        }
        if self.lost > 0 {
            let dropped = Record::now(None, EventKind::EventsDropped { count: self.lost });
            self.line(&dropped);
            let reported = self.lost;
            if self.flush(count) {
                self.lost -= reported;
            }
        } else {
            self.flush(count);
        }
    }

    fn line(&mut self, record: &Record) {
        let before = self.pending.len();
        if serde_json::to_writer(&mut self.pending, record).is_ok() {
            self.pending.push(b'\n');
        } else {
            // Texts and numbers can always be written; if not, no line is better than half of one.
            self.pending.truncate(before);
            self.lost += 1;
        }
    }

    /// Writes what is pending, with `count` events in it. Returns whether that worked.
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
                // An upper bound: some of them may have been written.
                self.lost += count;
                self.is_cut = self.is_cut || (written > 0 && written < all);
                if !self.has_warned {
                    self.has_warned = true;
                    tracing::warn!("cannot write events to {}: {error}; they are lost", self.name);
                }
                false
            }
        }
    }
}

/// Writes all of it, or says how much it wrote.
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

    /// A disk with room for so many bytes.
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

    fn batch(numbers: std::ops::Range<u64>, lost: u64) -> Batch<Arc<Record>> {
        let record = |found| {
            let what = EventKind::EventsDropped { count: found };
            Arc::new(Record::now(None, what))
        };
        Batch { items: numbers.map(record).collect(), dropped: lost }
    }

    /// The counts in what was written; `None` for a line that is cut.
    fn counts(disk: &Disk) -> Vec<Option<u64>> {
        let text = String::from_utf8(disk.written.clone()).unwrap();
        let count = |line: &str| serde_json::from_str::<serde_json::Value>(line).ok()?["count"].as_u64();
        text.lines().map(count).collect()
    }

    #[test]
    fn a_disk_that_is_full_for_a_while() {
        let disk = Disk { written: Vec::new(), room: 120 };
        let mut lines = LineWriter::new(disk, "x".to_owned());
        lines.write(batch(10..11, 0));
        assert_eq!((counts(&lines.file), lines.lost), (vec![Some(10)], 0));
        // The second of these is cut, so nobody knows how many are whole.
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
}
