//! [`Outbox`]: the lines for the agent, and the thread that writes them.

use std::{
    io::{self, Write},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
        mpsc::{Sender, channel},
    },
    thread,
};

use tokio::sync::Notify;

/// The size of the queued lines, in bytes, from which the run waits for the agent.
const MAX_QUEUED_BYTES: usize = 4 * 1024 * 1024;

/// The queue of lines for the agent.
pub(super) struct Outbox {
    /// `None` once the agent's stdin is to be closed.
    lines: Option<Sender<String>>,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    queued: AtomicUsize,
    /// True if the agent no longer reads.
    is_closed: AtomicBool,
    /// Notified when the queue has become shorter or was closed.
    progress: Notify,
}

impl Outbox {
    /// Starts a thread that writes to the agent, so that an agent that doesn't read never blocks other runs.
    ///
    /// # Errors
    /// Returns an error if the thread cannot be started.
    pub(super) fn start(mut writer: impl Write + Send + 'static) -> io::Result<Self> {
        let (lines, to_write) = channel::<String>();
        let shared = Arc::<Shared>::default();
        let state = Arc::clone(&shared);
        thread::Builder::new().name("to-agent".to_owned()).spawn(move || {
            for line in to_write {
                if writer.write_all(line.as_bytes()).and_then(|()| writer.flush()).is_err() {
                    // The agent has ended, which is reported by the thread that reads from it.
                    break;
                }
                state.queued.fetch_sub(line.len(), Ordering::Relaxed);
                state.progress.notify_waiters();
            }
            state.is_closed.store(true, Ordering::Relaxed);
            state.progress.notify_waiters();
        })?;
        Ok(Self { lines: Some(lines), shared })
    }

    /// Queues a line. Never blocks. `line` has no line break at its end.
    pub(super) fn send(&self, line: &str) {
        if let Some(lines) = &self.lines {
            self.shared.queued.fetch_add(line.len() + 1, Ordering::Relaxed);
            // Ignore the error here: if the agent has ended, the run is told by the thread that reads from it.
            let _ = lines.send(format!("{line}\n"));
        }
    }

    /// Waits until the agent has read enough of the queued lines, or has ended.
    pub(super) async fn has_room(&self) {
        loop {
            let progress = self.shared.progress.notified();
            let is_closed = self.shared.is_closed.load(Ordering::Relaxed);
            if is_closed || self.shared.queued.load(Ordering::Relaxed) <= MAX_QUEUED_BYTES {
                return;
            }
            progress.await;
        }
    }

    /// Closes the agent's stdin once all queued lines are written.
    pub(super) fn close(&mut self) {
        self.lines = None;
    }
}

#[cfg(test)]
mod tests {
    use std::{io::Read, time::Duration};

    use tokio::time::timeout;

    use super::*;

    const DEADLINE: Duration = Duration::from_secs(30);

    #[tokio::test]
    async fn an_agent_that_does_not_read_stops_the_run() {
        let line = "x".repeat(1024 * 1024);
        for agent_ends in [false, true] {
            let (mut stdin, writer) = io::pipe().unwrap();
            let mut outbox = Outbox::start(writer).unwrap();
            outbox.has_room().await;
            for _ in 0..8 {
                outbox.send(&line);
            }
            timeout(Duration::from_millis(50), outbox.has_room()).await.unwrap_err();
            if agent_ends {
                drop(stdin);
            } else {
                outbox.close();
                thread::spawn(move || stdin.read_to_end(&mut Vec::new()).unwrap());
            }
            timeout(DEADLINE, outbox.has_room()).await.unwrap();
        }
    }
}
