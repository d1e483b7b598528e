//! [`Memory`]: which skills were activated in which session, kept in a directory (`--state DIR`).
//!
//! An agent that loads or resumes a session has its history, and so the skills in it; a proxy that starts anew would know
//! nothing of that. One small file a session, named by a digest of the session's id, holds names and who activated them,
//! and nothing else.

use std::{
    collections::HashMap,
    fs,
    io::{self, Write},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use serde::{Deserialize, Serialize};
use skills_core::{SkillName, remote::Sha256};

use crate::{
    backlog::{Backlog, Batch, Inbox},
    private,
};
use acp_skills_intercept::{Active, By};

/// How many sessions may wait to be written.
const MAX_WAITING: usize = 4096;
/// A file of ours is never longer.
const MAX_BYTES: u64 = 1024 * 1024;
const VERSION: u32 = 1;

/// A directory that remembers. All clones are the same; dropping the last one writes what is left.
#[derive(Clone)]
pub struct Memory(Arc<Inner>);

struct Inner {
    dir: PathBuf,
    /// What was kept in this run; it may not be on disk yet.
    kept: Mutex<HashMap<String, Active>>,
    inbox: Inbox<(String, Active)>,
    backlog: Backlog<(String, Active)>,
}

/// What is in a file.
#[derive(Debug, Serialize, Deserialize)]
struct Remembered {
    v: u32,
    skills: Vec<Entry>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Entry {
    name: String,
    by: By,
}

impl Memory {
    /// Uses a directory; creates it, for nobody else to read, when there is none.
    ///
    /// # Errors
    /// It cannot be created, or the thread that writes cannot be started.
    pub fn open(dir: &Path) -> io::Result<Self> {
        private::create_dir(dir)?;
        let place = dir.to_owned();
        let mut warned = false;
        let backlog = Backlog::start("state", MAX_WAITING, move |batch: Batch<(String, Active)>| {
            for (session, active) in batch.items {
                if let Err(error) = write(&file(&place, &session), &active)
                    && !warned
                {
                    warned = true;
                    tracing::warn!("cannot keep the active skills in {}: {error}", place.display());
                }
            }
        })?;
        let inbox = backlog.inbox();
        Ok(Self(Arc::new(Inner { dir: dir.to_owned(), kept: Mutex::default(), inbox, backlog })))
    }

    /// What was active in this session of the agent's.
    pub fn recall(&self, session: &str) -> Active {
        let kept = self.0.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(active) = kept.get(session) {
            return active.clone();
        }
        let path = file(&self.0.dir, session);
        match read(&path) {
            Ok(active) => active,
            Err(error) => {
                if error.kind() != io::ErrorKind::NotFound {
                    tracing::warn!("cannot read {}: {error}", path.display());
                }
                Active::new()
            }
        }
    }

    /// Keeps what is active in this session; nothing forgets it.
    pub fn keep(&self, session: &str, active: Active) {
        let mut kept = self.0.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.insert(session.to_owned(), active.clone());
        self.0.inbox.put((session.to_owned(), active));
    }

    /// Keeps no more, and writes what is left.
    pub fn finish(&self) {
        self.0.backlog.finish();
    }
}

/// Ids can be anything; a digest can be the name of a file everywhere.
fn file(dir: &Path, session: &str) -> PathBuf {
    dir.join(format!("{}.json", Sha256::of(session.as_bytes())))
}

fn read(path: &Path) -> io::Result<Active> {
    if fs::metadata(path)?.len() > MAX_BYTES {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "it is too long to be ours"));
    }
    let remembered: Remembered = serde_json::from_slice(&fs::read(path)?)?;
    let skills = remembered.skills.into_iter();
    Ok(skills.filter_map(|entry| Some((SkillName::new(&entry.name)?, entry.by))).collect())
}

/// The whole file or none of it, also when we are killed.
fn write(path: &Path, active: &Active) -> io::Result<()> {
    if active.is_empty() {
        return match fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        };
    }
    let entry = |(name, by): &(SkillName, By)| Entry { name: name.to_string(), by: *by };
    let remembered = Remembered { v: VERSION, skills: active.iter().map(entry).collect() };
    let mut temporary = tempfile::NamedTempFile::new_in(path.parent().unwrap_or(Path::new(".")))?;
    temporary.write_all(&serde_json::to_vec(&remembered)?)?;
    temporary.persist(path)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_there_again() {
        let directory = tempfile::tempdir().unwrap();
        let place = directory.path().join("a/b");
        let name = |name: &str| SkillName::new(name).unwrap();
        let first = vec![(name("a"), By::Model)];
        let both = vec![(name("a"), By::Model), (name("Ü b"), By::User)];
        let memory = Memory::open(&place).unwrap();
        memory.keep("../../x", first);
        memory.keep("../../x", both.clone());
        memory.keep("other", both.clone());
        assert_eq!(memory.recall("../../x"), both);
        drop(memory);
        let memory = Memory::open(&place).unwrap();
        assert_eq!((memory.recall("../../x"), memory.recall("none")), (both, Active::new()));
        // Names only, and nothing outside.
        let files: Vec<_> = fs::read_dir(&place).unwrap().map(|it| it.unwrap().path()).collect();
        assert_eq!(files.len(), 2, "{files:?}");
        let text = fs::read_to_string(file(&place, "../../x")).unwrap();
        let expected = r#"{"v":1,"skills":[{"name":"a","by":"model"},{"name":"Ü b","by":"user"}]}"#;
        assert_eq!(text, expected);
        memory.keep("other", Active::new());
        drop(memory);
        assert!(!file(&place, "other").exists());
        // Whatever somebody else wrote there is no reason to fail.
        fs::write(file(&place, "broken"), "{").unwrap();
        assert_eq!(Memory::open(&place).unwrap().recall("broken"), Active::new());
    }

    #[cfg(unix)]
    #[test]
    fn nobody_else_may_look() {
        use std::os::unix::fs::PermissionsExt;
        let directory = tempfile::tempdir().unwrap();
        let place = directory.path().join("state");
        Memory::open(&place).unwrap().keep("s", vec![(SkillName::new("a").unwrap(), By::User)]);
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&place), mode(&file(&place, "s"))), (0o700, 0o600));
    }
}
