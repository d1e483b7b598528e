//! [`ActivationStore`]: the active skills of each session, stored in a directory (`--state DIR`).
//!
//! When an agent loads or resumes a session, the history already includes the instructions of active skills. A new
//! proxy process uses this store to find out which skills these are. There is one small file for each session, with a
//! digest of the session id as its name. It only contains the names of the skills, and for each name who activated
//! it, and which skill and version the user activated. Files are written in the background.

use std::{collections::HashMap, io, path::Path, sync::Arc};

use acp_skills_intercept::{ActivatedBy, ActiveSkill, ActiveSkills};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use skills_core::SkillName;
use skills_sources::disk::state::{self, StateDir};

use crate::worker::{Batch, Submitter, Worker};

/// The maximum number of sessions in the queue for writing.
const QUEUE_CAPACITY: usize = 4096;
/// The maximum length of the id of a session in bytes. Each change has a copy of it.
const MAX_ID: usize = 1024;
const VERSION: u32 = 1;

/// A store of active skills in a directory. Cheap to clone; all clones share their state. Dropping the last clone
/// writes all pending changes.
#[derive(Clone)]
pub struct ActivationStore(Arc<Inner>);

struct Inner {
    dir: StateDir,
    /// The skills that were saved in this run, which may not be on disk yet. The lock is held while a change is
    /// submitted, so that changes are written in the order in which they were saved. The lock of the queue may be
    /// taken while this lock is held.
    saved: Mutex<HashMap<String, ActiveSkills>>,
    submitter: Submitter<(String, ActiveSkills)>,
    writer: Worker<(String, ActiveSkills)>,
}

/// The contents of a file.
#[derive(Debug, Serialize, Deserialize)]
struct SessionFile {
    v: u32,
    skills: Vec<Entry>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Entry {
    name: String,
    by: ActivatedBy,
    /// [`ActiveSkill::identity`]. Earlier versions did not save it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    identity: Option<String>,
}

impl ActivationStore {
    /// Opens the store in the directory `dir`. Creates the directory if it doesn't exist, so that only the current
    /// user can read it.
    ///
    /// # Errors
    /// Returns an error if the directory cannot be created or the writing thread cannot be started.
    pub fn open(dir: &Path) -> io::Result<Self> {
        let dir = StateDir::open(dir)?;
        let target = dir.clone();
        let mut has_warned = false;
        let writer = Worker::start("state", QUEUE_CAPACITY, move |batch: Batch<(String, ActiveSkills)>| {
            for (session, active) in batch.items {
                if let Err(error) = write(&target, &session, &active)
                    && !has_warned
                {
                    has_warned = true;
                    tracing::warn!("cannot write active skills to {}: {error}", target.path().display());
                }
            }
        })?;
        let submitter = writer.submitter();
        Ok(Self(Arc::new(Inner { dir, saved: Mutex::default(), submitter, writer })))
    }

    /// Returns the active skills of a session. `session` is the agent's id. Reads a file unless the skills were saved
    /// in this run. If the file cannot be read, logs a warning and returns an empty list. For an id of more than 1 KiB, nothing is
    /// saved.
    pub fn load(&self, session: &str) -> ActiveSkills {
        if session.len() > MAX_ID {
            return ActiveSkills::new();
        }
        if let Some(active) = self.0.saved.lock().get(session) {
            return active.clone();
        }
        let path = self.0.dir.about(session.as_bytes());
        read(&path).unwrap_or_else(|error| {
            tracing::warn!("cannot read active skills from {}: {error}", path.display());
            ActiveSkills::new()
        })
    }

    /// Saves the active skills of a session. An empty list removes the file. Never blocks on the disk.
    pub fn save(&self, session: &str, active: ActiveSkills) {
        if session.len() > MAX_ID {
            return;
        }
        let mut saved = self.0.saved.lock();
        saved.insert(session.to_owned(), active.clone());
        self.0.submitter.submit((session.to_owned(), active));
    }

    /// Closes the store and writes all pending changes.
    pub fn finish(&self) {
        self.0.writer.finish();
    }
}

fn read(path: &Path) -> io::Result<ActiveSkills> {
    let file: Option<SessionFile> = state::read(path)?;
    let skills = file.into_iter().flat_map(|file| file.skills);
    let active = skills.filter_map(|entry| {
        let mut active = ActiveSkill::new(SkillName::new(&entry.name)?, entry.by);
        active.identity = entry.identity;
        Some(active)
    });
    Ok(active.collect())
}

fn write(dir: &StateDir, session: &str, active: &ActiveSkills) -> io::Result<()> {
    let entry = |active: &ActiveSkill| Entry {
        name: active.name.to_string(),
        by: active.by,
        identity: active.identity.clone(),
    };
    let file = SessionFile { v: VERSION, skills: active.iter().map(entry).collect() };
    state::write(&dir.about(session.as_bytes()), Some(&file).filter(|file| !file.skills.is_empty()))
}

#[cfg(test)]
mod tests {
    use std::{fs, path::PathBuf};

    use super::*;

    fn file(dir: &Path, session: &str) -> PathBuf {
        StateDir::later(dir).about(session.as_bytes())
    }

    #[test]
    fn saved_skills_are_loaded_again() {
        let directory = tempfile::tempdir().unwrap();
        let place = directory.path().join("a/b");
        let long = "s".repeat(MAX_ID + 1);
        let name = |name: &str| SkillName::new(name).unwrap();
        let first = vec![ActiveSkill::new(name("a"), ActivatedBy::Model)];
        let mut user = ActiveSkill::new(name("Ü b"), ActivatedBy::User);
        user.identity = Some("b".to_owned());
        let both = vec![ActiveSkill::new(name("a"), ActivatedBy::Model), user];
        let store = ActivationStore::open(&place).unwrap();
        store.save("../../x", first);
        store.save("../../x", both.clone());
        store.save("other", both.clone());
        store.save(&long, both.clone());
        assert_eq!(store.load(&long), ActiveSkills::new());
        assert_eq!(store.load("../../x"), both);
        drop(store);
        let store = ActivationStore::open(&place).unwrap();
        assert_eq!((store.load("../../x"), store.load("none")), (both, ActiveSkills::new()));
        // The files should not contain the id of the session, and should all be in the store's directory.
        let files: Vec<_> = fs::read_dir(&place).unwrap().map(|entry| entry.unwrap().path()).collect();
        assert_eq!(files.len(), 2, "{files:?}");
        let text = fs::read_to_string(file(&place, "../../x")).unwrap();
        let expected =
            r#"{"v":1,"skills":[{"name":"a","by":"model"},{"name":"Ü b","by":"user","identity":"b"}]}"#;
        assert_eq!(text, expected);
        store.save("other", ActiveSkills::new());
        drop(store);
        assert!(!file(&place, "other").exists());
        // Invalid files should be ignored.
        fs::write(file(&place, "broken"), "{").unwrap();
        assert_eq!(ActivationStore::open(&place).unwrap().load("broken"), ActiveSkills::new());
    }
}
