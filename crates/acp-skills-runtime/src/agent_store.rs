//! [`AgentStore`]: the agents that never connect to our MCP server by themselves, stored in a directory (`--state
//! DIR`).
//!
//! Before the first prompt of a session is sent, we wait for the agent to connect to our tools. Some agents never
//! connect on their own, so we should not wait for them again in later runs. For each such agent and version, there
//! is a small file, with a digest of both as its name. Files are written in the background.

use std::{io, path::Path, sync::Arc};

use serde::{Deserialize, Serialize};
use skills_sources::disk::state::{self, StateDir};

use crate::worker::{Batch, Submitter, Worker};

/// The maximum number of changes that wait to be written.
const QUEUE_CAPACITY: usize = 64;
const VERSION: u32 = 1;

/// A store of agents in a directory. Cheap to clone; all clones share their state. Dropping the last clone writes all
/// pending changes.
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
    /// The name and version of the agent, for people who read the file.
    agent: String,
    connects: bool,
}

impl AgentStore {
    /// Opens the store in the directory `agents` below `state`. Creates the directory if it doesn't exist, so that
    /// only the current user can read it.
    ///
    /// # Errors
    /// Returns an error if the directory cannot be created or the writing thread cannot be started.
    pub fn open(state: &Path) -> io::Result<Self> {
        let dir = StateDir::open(state.join("agents"))?;
        let target = dir.clone();
        let mut has_warned = false;
        let writer = Worker::start("agents", QUEUE_CAPACITY, move |batch: Batch<(String, bool)>| {
            for (agent, connects) in batch.items {
                if let Err(error) = write(&target, &agent, connects)
                    && !has_warned
                {
                    has_warned = true;
                    tracing::warn!("cannot write agent state to {}: {error}", target.path().display());
                }
            }
        })?;
        let submitter = writer.submitter();
        Ok(Self(Arc::new(Inner { dir, submitter, writer })))
    }

    /// Returns true if this agent (name and version) did not connect to our server when a prompt last waited for it.
    /// Reads a file. If the file cannot be read, logs a warning and returns false.
    pub fn never_connects(&self, agent: &str) -> bool {
        let path = self.0.dir.about(agent.as_bytes());
        let file = state::read::<AgentFile>(&path).unwrap_or_else(|error| {
            tracing::warn!("cannot read agent state from {}: {error}", path.display());
            None
        });
        file.is_some_and(|file| !file.connects)
    }

    /// Saves whether the agent connects on its own. Never blocks on the disk.
    pub fn save(&self, agent: String, connects: bool) {
        self.0.submitter.submit((agent, connects));
    }

    /// Closes the store and writes all pending changes.
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
    fn agents_that_never_connect_are_stored() {
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
        // If an agent connects, it should not have a file. It's not an error to remove a file that doesn't exist.
        store.save("cline 3.0".to_owned(), true);
        store.save("other".to_owned(), true);
        store.finish();
        assert!(!open().never_connects("cline 3.0"));
        // Invalid files should be ignored.
        fs::write(store.0.dir.about(b"x"), "{").unwrap();
        assert!(!open().never_connects("x"));
    }
}
