//! [`Inbox`]: the messages that a run has received and not read yet, within a limit, and the thread that reads the agent's lines.
//!
//! The limit applies to lines: if too many bytes are queued, the thread that reads from the agent waits, and then the agent waits
//! for its full pipe. Notices about loaded skills never wait, because they come from the proxy's threads. There is at most one
//! unread notice per skill.

use std::{
    collections::HashSet,
    io::{self, BufRead, BufReader, Read},
    sync::{Arc, Mutex, PoisonError},
};

use tokio::{
    runtime::Handle,
    sync::{
        OwnedSemaphorePermit, Semaphore,
        mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel},
    },
};

/// The maximum size of the queued lines in KiB. A longer line is queued alone.
const MAX_QUEUED_KIB: usize = 4 * 1024;

/// A message from the agent or the proxy, in the order of arrival.
#[derive(Debug, PartialEq, Eq)]
pub(in super::super) enum Received {
    /// A line from the agent.
    Line(String),
    /// The model received the instructions of the skill with this name.
    Loaded(String),
    /// The agent sent a line that exceeds this maximum size in bytes. No more lines are read.
    TooLong(usize),
    /// The agent has closed its output.
    Closed,
}

/// The receiving end of the queue.
pub(super) struct Inbox {
    messages: UnboundedReceiver<(Received, Option<OwnedSemaphorePermit>)>,
    shared: Arc<Shared>,
}

/// The sending end of the queue.
#[derive(Clone)]
pub(super) struct InboxSender {
    messages: UnboundedSender<(Received, Option<OwnedSemaphorePermit>)>,
    shared: Arc<Shared>,
    runtime: Handle,
}

struct Shared {
    /// One permit per KiB of a queued line. Closed when lines are discarded.
    room: Arc<Semaphore>,
    /// Guards the names in unread notices. It is only held to add or to remove a name.
    noticed: Mutex<HashSet<String>>,
}

impl Inbox {
    /// Creates a queue. Must be called within a tokio runtime.
    pub(super) fn new() -> (InboxSender, Self) {
        let (sender, messages) = unbounded_channel();
        let shared =
            Arc::new(Shared { room: Arc::new(Semaphore::new(MAX_QUEUED_KIB)), noticed: Mutex::default() });
        let runtime = Handle::current();
        (InboxSender { messages: sender, shared: Arc::clone(&shared), runtime }, Self { messages, shared })
    }

    /// Waits for the next message. It is safe to drop the future.
    pub(super) async fn receive(&mut self) -> Received {
        let Some((received, permit)) = self.messages.recv().await else { return Received::Closed };
        drop(permit);
        if let Received::Loaded(skill) = &received {
            self.shared.noticed.lock().unwrap_or_else(PoisonError::into_inner).remove(skill);
        }
        received
    }

    /// Drops all lines that arrive from now on, so that an agent that is told to end doesn't wait for a full pipe.
    pub(super) fn discard_lines(&self) {
        self.shared.room.close();
    }
}

impl Drop for Inbox {
    fn drop(&mut self) {
        // Wake up a thread that waits for room.
        self.shared.room.close();
    }
}

impl InboxSender {
    /// Adds a notice about a loaded skill. Never blocks. A notice that the run has not read yet is not repeated.
    pub(super) fn loaded(&self, skill: String) {
        let is_new = self.shared.noticed.lock().unwrap_or_else(PoisonError::into_inner).insert(skill.clone());
        if is_new {
            self.send(Received::Loaded(skill), None);
        }
    }

    /// Adds a line of the agent. Blocks until there is room for it. Returns false if the run is over.
    fn line(&self, line: String) -> bool {
        let units = line.len().div_ceil(1024).clamp(1, MAX_QUEUED_KIB);
        let units = u32::try_from(units).unwrap_or(u32::MAX);
        let room = Arc::clone(&self.shared.room);
        match self.runtime.block_on(room.acquire_many_owned(units)) {
            Ok(permit) => self.send(Received::Line(line), Some(permit)),
            // The line is discarded.
            Err(_) => !self.messages.is_closed(),
        }
    }

    /// Sends a message. Returns false if the run is over.
    fn send(&self, received: Received, permit: Option<OwnedSemaphorePermit>) -> bool {
        self.messages.send((received, permit)).is_ok()
    }
}

/// Reads the lines of the agent into the queue until its output ends. Blocks while the queue is full.
pub(super) fn read_lines(reader: impl Read, sender: &InboxSender) {
    let mut reader = BufReader::new(reader);
    let mut line = Vec::new();
    // If we can't read from the agent, treat it as the end of the output.
    while let Ok(1..) = reader.read_until(b'\n', &mut line) {
        if !sender.line(String::from_utf8_lossy(&line).trim_end().to_owned()) {
            break;
        }
        // Free the memory of a long line before waiting for the next one.
        line.clear();
        line.shrink_to(1024 * 1024);
    }
    sender.send(Received::Closed, None);
}

/// The output of an agent. It ends with an error if a line is longer than the maximum.
pub(super) struct Limited<R> {
    source: R,
    sender: InboxSender,
    /// The maximum size of a line in bytes, without the line break.
    max_line: usize,
    /// The size of the incomplete line that was read last.
    line: usize,
    has_ended: bool,
}

impl<R> Limited<R> {
    /// Limits the lines of `source`. If one exceeds `max_line` bytes, the run receives [`Received::TooLong`].
    pub(super) fn new(source: R, sender: InboxSender, max_line: usize) -> Self {
        Self { source, sender, max_line, line: 0, has_ended: false }
    }
}

impl<R: Read> Read for Limited<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.has_ended {
            return Ok(0);
        }
        let read = self.source.read(buffer)?;
        let mut longest = 0;
        let mut start = 0;
        for line_break in memchr::memchr_iter(b'\n', &buffer[..read]) {
            longest = longest.max(self.line + line_break - start);
            start = line_break + 1;
            self.line = 0;
        }
        self.line += read - start;
        longest = longest.max(self.line);
        if longest > self.max_line {
            self.has_ended = true;
            self.sender.send(Received::TooLong(self.max_line), None);
            // Because of the error, the start of the line is not forwarded.
            return Err(io::Error::other(format!("a line is longer than {} bytes", self.max_line)));
        }
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use std::{thread, time::Duration};

    use super::*;

    const DEADLINE: Duration = Duration::from_secs(30);

    /// Calls a function for each read, with the number of earlier reads.
    struct Source<F>(usize, F);

    impl<F: FnMut(usize, &mut [u8]) -> usize> Read for Source<F> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            self.0 += 1;
            Ok((self.1)(self.0 - 1, buffer))
        }
    }

    async fn all(inbox: &mut Inbox) -> Vec<Received> {
        let mut all = Vec::new();
        loop {
            all.push(inbox.receive().await);
            if all.last() == Some(&Received::Closed) {
                return all;
            }
        }
    }

    #[tokio::test]
    async fn a_line_that_is_too_long_ends_the_output() {
        let line = |text: &str| Received::Line(text.to_owned());
        let too_long = || Received::TooLong(5);
        for (text, expected) in [
            ("12345\n1\n", vec![line("12345"), line("1")]),
            ("12345", vec![line("12345")]),
            ("1\n123456\n1\n", vec![too_long()]),
            ("123456", vec![too_long()]),
            ("1\n12345678", vec![too_long()]),
        ] {
            // The size of the reads must not matter for the limit.
            for size in [1, 3, 100] {
                let (sender, mut inbox) = Inbox::new();
                let bytes = text.as_bytes().to_vec();
                let source = Source(0, move |number: usize, buffer: &mut [u8]| {
                    let rest = bytes.get(number * size..).unwrap_or_default();
                    let rest = &rest[..rest.len().min(size)];
                    buffer[..rest.len()].copy_from_slice(rest);
                    rest.len()
                });
                let reader = Limited::new(source, sender.clone(), 5);
                thread::spawn(move || read_lines(reader, &sender));
                let mut received = all(&mut inbox).await;
                assert_eq!(received.pop(), Some(Received::Closed));
                if expected == [too_long()] {
                    assert!(received.contains(&too_long()), "{text:?}: {received:?}");
                } else {
                    assert_eq!(received, expected, "{text:?}");
                }
            }
        }
    }

    #[tokio::test]
    async fn an_endless_line_is_not_kept() {
        let (sender, mut inbox) = Inbox::new();
        let source = Source(0, |_, buffer: &mut [u8]| {
            buffer.fill(b'x');
            buffer.len()
        });
        let reader = Limited::new(source, sender.clone(), 1024 * 1024);
        let reading = thread::spawn(move || read_lines(reader, &sender));
        assert_eq!(inbox.receive().await, Received::TooLong(1024 * 1024));
        drop(inbox);
        reading.join().unwrap();
    }

    /// An agent that floods waits, the notice about a loaded skill doesn't, and all threads end with the run.
    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn a_flood_meets_back_pressure() {
        enum End {
            Drop,
            Discard,
        }
        for end in [End::Drop, End::Discard] {
            let (sender, mut inbox) = Inbox::new();
            let produced = Arc::new(Mutex::new(0));
            let count = Arc::clone(&produced);
            let (stop, stopped) = std::sync::mpsc::channel::<()>();
            let source = Source(0, move |_, buffer: &mut [u8]| {
                if stopped.try_recv().is_ok() {
                    return 0;
                }
                buffer.fill(b'x');
                buffer[buffer.len() - 1] = b'\n';
                *count.lock().unwrap() += buffer.len();
                buffer.len()
            });
            let flooding = sender.clone();
            let (done, reading) = tokio::sync::oneshot::channel();
            thread::spawn(move || {
                read_lines(source, &flooding);
                done.send(())
            });
            // Wait until the queue is full.
            let is_full = async {
                while inbox.shared.room.available_permits() >= 8 {
                    tokio::task::yield_now().await;
                }
            };
            tokio::time::timeout(DEADLINE, is_full).await.unwrap();
            assert!(*produced.lock().unwrap() <= (MAX_QUEUED_KIB + 16) * 1024);
            // A thousand notices are one message, and a second skill another.
            for _ in 0..1000 {
                sender.loaded("a".to_owned());
            }
            sender.loaded("b".to_owned());
            let mut loaded = Vec::new();
            let mut lines = 0;
            while loaded.len() < 2 {
                match inbox.receive().await {
                    Received::Line(_) => lines += 1,
                    Received::Loaded(skill) => loaded.push(skill),
                    other => panic!("{other:?}"),
                }
            }
            assert_eq!((loaded, lines > 100), (vec!["a".to_owned(), "b".to_owned()], true));
            // A notice that was read can be repeated.
            sender.loaded("a".to_owned());
            while inbox.receive().await != Received::Loaded("a".to_owned()) {}
            match end {
                End::Drop => drop(inbox),
                End::Discard => {
                    inbox.discard_lines();
                    let before = *produced.lock().unwrap();
                    let goes_on = async {
                        while *produced.lock().unwrap() < before + 4 * MAX_QUEUED_KIB * 1024 {
                            tokio::task::yield_now().await;
                        }
                    };
                    tokio::time::timeout(DEADLINE, goes_on).await.unwrap();
                    assert!(inbox.messages.len() <= MAX_QUEUED_KIB);
                    stop.send(()).unwrap();
                }
            }
            tokio::time::timeout(DEADLINE, reading).await.unwrap().unwrap();
        }
    }
}
