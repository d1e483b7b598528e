//! [`AgentStore`]: which agents never come to our server by themselves, kept in a directory (`--state DIR`).
//!
//! A first prompt waits for the agent to have our tools, and for some agents in vain. One small file per agent and version,
//! named by a digest of both, says so; there is none for an agent that comes. Writing happens in the background.

use std::{io, path::Path, sync::Arc};

use serde::{Deserialize, Serialize};

use skills_sources::disk::state::{self, StateDir};

use crate::worker::{Batch, Submitter, Worker};

/// How many changes may wait to be written.
const MAX_WAITING: usize = 64;
const VERSION: u32 = 1;

/// What is remembered of agents, in a directory. All clones are the same store; dropping the last one writes what is left.
#[derive(Clone)]
pub struct AgentStore(Arc<Inner>);

struct Inner {
    dir: StateDir,
    submitter: Submitter<(String, bool)>,
    writer: Worker<(String, bool)>,
}

/// The contents of a file.
#[derive(Debug, Serialize, Deserialize)]
struct AgentFile {
    v: u32,
    /// Name and version, for people.
    agent: String,
    connects: bool,
}

impl AgentStore {
    /// Uses the directory `agents` below `state`; creates it, for nobody else to read, when there is none.
    ///
    /// # Errors
    /// It cannot be created, or the thread that writes cannot be started.
    pub fn open(state: &Path) -> io::Result<Self> {
        let dir = StateDir::open(state.join("agents"))?;
        let target = dir.clone();
        let mut has_warned = false;
        let writer = Worker::start("agents", MAX_WAITING, move |batch: Batch<(String, bool)>| {
            for (agent, connects) in batch.items {
                if let Err(error) = write(&target, &agent, connects)
                    && !has_warned
                {
                    has_warned = true;
                    tracing::warn!(
                        "cannot keep what is known of agents in {}: {error}",
                        target.path().display()
                    );
                }
            }
        })?;
        let submitter = writer.submitter();
        Ok(Self(Arc::new(Inner { dir, submitter, writer })))
    }

    /// Whether this agent, as name and version, did not come to our server when it was waited for last. Reads a file; one that
    /// cannot be read says nothing.
    pub fn never_connects(&self, agent: &str) -> bool {
        let path = self.0.dir.about(agent.as_bytes());
        let file = state::read::<AgentFile>(&path).unwrap_or_else(|error| {
            tracing::warn!("cannot read {}: {error}", path.display());
            None
        });
        file.is_some_and(|file| !file.connects)
    }

    /// Remembers whether it comes. Never blocks on the disk.
    pub fn save(&self, agent: String, connects: bool) {
        self.0.submitter.submit((agent, connects));
    }

    /// Saves no more, and writes what is left.
    pub fn finish(&self) {
        self.0.writer.finish();
    }
}

fn write(dir: &StateDir, agent: &str, connects: bool) -> io::Result<()> {
    let name = || agent.chars().take(200).collect();
    let file = (!connects).then(|| AgentFile { v: VERSION, agent: name(), connects });
    state::write(&dir.about(agent.as_bytes()), file.as_ref())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn who_never_connects_is_kept() {
        let directory = tempfile::tempdir().unwrap();
        let open = || AgentStore::open(directory.path()).unwrap();
        let store = open();
        assert!(!store.never_connects("cline 3.0"));
        store.save("cline 3.0".to_owned(), false);
        store.save("../x\n/ ☃".to_owned(), false);
        store.finish();
        let store = open();
        assert!(store.never_connects("cline 3.0") && store.never_connects("../x\n/ ☃"));
        assert!(!store.never_connects("cline 3.1") && !store.never_connects("cline"));
        let text = fs::read_to_string(store.0.dir.about(b"cline 3.0")).unwrap();
        assert_eq!(text, r#"{"v":1,"agent":"cline 3.0","connects":false}"#);
        // It comes after all; what was never there can go, too.
        store.save("cline 3.0".to_owned(), true);
        store.save("other".to_owned(), true);
        store.finish();
        assert!(!open().never_connects("cline 3.0"));
        // Whatever somebody else wrote there says nothing.
        fs::write(store.0.dir.about(b"x"), "{").unwrap();
        assert!(!open().never_connects("x"));
    }
}
