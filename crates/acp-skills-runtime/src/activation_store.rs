//! [`ActivationStore`]: which skills were activated in which session, kept in a directory (`--state DIR`).
//!
//! An agent that loads or resumes a session has its history, and so the skills in it; a proxy that starts anew would know
//! nothing of that. One small file per session, named by a digest of the session's id, holds the names of the skills and
//! who activated them, and nothing else. Writing happens in the background.

use std::{collections::HashMap, io, path::Path, sync::Arc};

use parking_lot::Mutex;

use serde::{Deserialize, Serialize};
use skills_core::SkillName;

use skills_sources::disk::state::{self, StateDir};

use crate::worker::{Batch, Submitter, Worker};
use acp_skills_intercept::{ActivatedBy, ActiveSkills};

/// How many sessions may wait to be written.
const MAX_WAITING: usize = 4096;
const VERSION: u32 = 1;

/// The activations of sessions, in a directory. All clones are the same store; dropping the last one writes what is left.
#[derive(Clone)]
pub struct ActivationStore(Arc<Inner>);

struct Inner {
    dir: StateDir,
    /// Guards what was saved in this run, which may not be on disk yet. Held while the work is submitted, so that the
    /// last to save is the last to be written; the queue's own lock comes after it.
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
}

impl ActivationStore {
    /// Uses a directory; creates it, for nobody else to read, when there is none.
    ///
    /// # Errors
    /// It cannot be created, or the thread that writes cannot be started.
    pub fn open(dir: &Path) -> io::Result<Self> {
        let dir = StateDir::open(dir)?;
        let target = dir.clone();
        let mut has_warned = false;
        let writer = Worker::start("state", MAX_WAITING, move |batch: Batch<(String, ActiveSkills)>| {
            for (session, active) in batch.items {
                if let Err(error) = write(&target, &session, &active)
                    && !has_warned
                {
                    has_warned = true;
                    tracing::warn!("cannot keep the active skills in {}: {error}", target.path().display());
                }
            }
        })?;
        let submitter = writer.submitter();
        Ok(Self(Arc::new(Inner { dir, saved: Mutex::default(), submitter, writer })))
    }

    /// What was active in this session of the agent's. May read a file.
    pub fn load(&self, session: &str) -> ActiveSkills {
        if let Some(active) = self.0.saved.lock().get(session) {
            return active.clone();
        }
        let path = self.0.dir.about(session.as_bytes());
        read(&path).unwrap_or_else(|error| {
            tracing::warn!("cannot read {}: {error}", path.display());
            ActiveSkills::new()
        })
    }

    /// Saves what is active in this session. Never blocks on the disk.
    pub fn save(&self, session: &str, active: ActiveSkills) {
        let mut saved = self.0.saved.lock();
        saved.insert(session.to_owned(), active.clone());
        self.0.submitter.submit((session.to_owned(), active));
    }

    /// Saves no more, and writes what is left.
    pub fn finish(&self) {
        self.0.writer.finish();
    }
}

fn read(path: &Path) -> io::Result<ActiveSkills> {
    let file: Option<SessionFile> = state::read(path)?;
    let skills = file.into_iter().flat_map(|file| file.skills);
    Ok(skills.filter_map(|entry| Some((SkillName::new(&entry.name)?, entry.by))).collect())
}

fn write(dir: &StateDir, session: &str, active: &ActiveSkills) -> io::Result<()> {
    let entry = |(name, by): &(SkillName, ActivatedBy)| Entry { name: name.to_string(), by: *by };
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
    fn what_is_saved_is_loaded_again() {
        let directory = tempfile::tempdir().unwrap();
        let place = directory.path().join("a/b");
        let name = |name: &str| SkillName::new(name).unwrap();
        let first = vec![(name("a"), ActivatedBy::Model)];
        let both = vec![(name("a"), ActivatedBy::Model), (name("Ü b"), ActivatedBy::User)];
        let store = ActivationStore::open(&place).unwrap();
        store.save("../../x", first);
        store.save("../../x", both.clone());
        store.save("other", both.clone());
        assert_eq!(store.load("../../x"), both);
        drop(store);
        let store = ActivationStore::open(&place).unwrap();
        assert_eq!((store.load("../../x"), store.load("none")), (both, ActiveSkills::new()));
        // Names only, and nothing outside.
        let files: Vec<_> = fs::read_dir(&place).unwrap().map(|it| it.unwrap().path()).collect();
        assert_eq!(files.len(), 2, "{files:?}");
        let text = fs::read_to_string(file(&place, "../../x")).unwrap();
        let expected = r#"{"v":1,"skills":[{"name":"a","by":"model"},{"name":"Ü b","by":"user"}]}"#;
        assert_eq!(text, expected);
        store.save("other", ActiveSkills::new());
        drop(store);
        assert!(!file(&place, "other").exists());
        // Whatever somebody else wrote there is no reason to fail.
        fs::write(file(&place, "broken"), "{").unwrap();
        assert_eq!(ActivationStore::open(&place).unwrap().load("broken"), ActiveSkills::new());
    }
}
