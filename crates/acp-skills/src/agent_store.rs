//! [`AgentStore`]: which agents never come to our server by themselves, kept in a directory (`--state DIR`).
//!
//! A first prompt waits for the agent to have our tools, and for some agents in vain. One small file per agent and version,
//! named by a digest of both, says so; there is none for an agent that comes. Writing happens in the background.

use std::{
    fs,
    io::{self, Write},
    path::{Path, PathBuf},
    sync::Arc,
};

use serde::{Deserialize, Serialize};
use skills_core::remote::Sha256;

use crate::{
    private,
    worker::{Batch, Submitter, Worker},
};

/// How many changes may wait to be written.
const MAX_WAITING: usize = 64;
/// A file of ours is never longer.
const MAX_BYTES: u64 = 64 * 1024;
const VERSION: u32 = 1;

/// What is remembered of agents, in a directory. All clones are the same store; dropping the last one writes what is left.
#[derive(Clone)]
pub struct AgentStore(Arc<Inner>);

struct Inner {
    dir: PathBuf,
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
        let dir = state.join("agents");
        private::create_dir(&dir)?;
        let target = dir.clone();
        let mut has_warned = false;
        let writer = Worker::start("agents", MAX_WAITING, move |batch: Batch<(String, bool)>| {
            for (agent, connects) in batch.items {
                if let Err(error) = write(&target, &agent, connects)
                    && !has_warned
                {
                    has_warned = true;
                    tracing::warn!("cannot keep what is known of agents in {}: {error}", target.display());
                }
            }
        })?;
        let submitter = writer.submitter();
        Ok(Self(Arc::new(Inner { dir, submitter, writer })))
    }

    /// Whether this agent, as name and version, did not come to our server when it was waited for last. Reads a file; one that
    /// cannot be read says nothing.
    pub fn never_connects(&self, agent: &str) -> bool {
        let path = file(&self.0.dir, agent);
        match read(&path) {
            Ok(file) => !file.connects,
            Err(error) => {
                if error.kind() != io::ErrorKind::NotFound {
                    tracing::warn!("cannot read {}: {error}", path.display());
                }
                false
            }
        }
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

/// Names can be anything; a digest can be the name of a file everywhere.
fn file(dir: &Path, agent: &str) -> PathBuf {
    dir.join(format!("{}.json", Sha256::of(agent.as_bytes())))
}

fn read(path: &Path) -> io::Result<AgentFile> {
    if fs::metadata(path)?.len() > MAX_BYTES {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "it is too long to be ours"));
    }
    Ok(serde_json::from_slice(&fs::read(path)?)?)
}

/// Writes the whole file or none of it, even when we are killed.
fn write(dir: &Path, agent: &str, connects: bool) -> io::Result<()> {
    let path = file(dir, agent);
    if connects {
        return match fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        };
    }
    let mut temporary = tempfile::NamedTempFile::new_in(dir)?;
    let file = AgentFile { v: VERSION, agent: agent.chars().take(200).collect(), connects };
    temporary.write_all(&serde_json::to_vec(&file)?)?;
    temporary.persist(path)?;
    Ok(())
}

#[cfg(test)]
mod tests {
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
        let text = fs::read_to_string(file(&directory.path().join("agents"), "cline 3.0")).unwrap();
        assert_eq!(text, r#"{"v":1,"agent":"cline 3.0","connects":false}"#);
        // It comes after all; what was never there can go, too.
        store.save("cline 3.0".to_owned(), true);
        store.save("other".to_owned(), true);
        store.finish();
        assert!(!open().never_connects("cline 3.0"));
        // Whatever somebody else wrote there says nothing.
        fs::write(file(&directory.path().join("agents"), "x"), "{").unwrap();
        assert!(!open().never_connects("x"));
    }
}
