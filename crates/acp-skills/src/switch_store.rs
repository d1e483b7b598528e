//! [`SwitchStore`]: which skills are off in which directory, kept in a directory (`--state DIR`).
//!
//! One small file per directory, named by a digest of its path, holds the names of the skills that are off there, and
//! nothing else. Several proxies may write: each change is read, changed and written under a lock of the operating system.

use std::{
    fs::{self, File},
    io::{self, Write},
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};
use skills_core::{SkillName, remote::Sha256};

use crate::private;

/// A file of ours is never longer.
const MAX_BYTES: u64 = 1024 * 1024;
/// More names than these are nobody's.
const MAX_NAMES: usize = 10_000;
const VERSION: u32 = 1;

/// The switches of directories, in a directory.
#[derive(Debug, Clone)]
pub struct SwitchStore {
    dir: PathBuf,
}

/// The contents of a file.
#[derive(Debug, Serialize, Deserialize)]
struct Switches {
    v: u32,
    off: Vec<String>,
}

impl SwitchStore {
    /// Uses the directory `off` below `state`; creates it, for nobody else to read, when there is none.
    ///
    /// # Errors
    /// It cannot be created.
    pub fn open(state: &Path) -> io::Result<Self> {
        let dir = state.join("off");
        private::create_dir(&dir)?;
        Ok(Self { dir })
    }

    /// What is off in the directory `cwd`. Reads a file; one that cannot be read is a warning, and nothing is off.
    pub fn load(&self, cwd: &Path) -> Vec<SkillName> {
        let path = self.file(cwd);
        read(&path).unwrap_or_else(|error| {
            tracing::warn!("cannot read {}: {error}", path.display());
            Vec::new()
        })
    }

    /// Keeps that these skills are on or off in the directory `cwd`. Blocks for as long as the disk, and another proxy that
    /// writes there, takes.
    ///
    /// # Errors
    /// The file cannot be locked or written; then it is as it was.
    pub fn save(&self, cwd: &Path, names: &[SkillName], on: bool) -> io::Result<()> {
        let path = self.file(cwd);
        let lock = File::create(self.dir.join(".lock"))?;
        lock.lock()?;
        // Whatever cannot be read is written anew.
        let mut off = read(&path).unwrap_or_default();
        off.retain(|old| !names.iter().any(|name| name.key() == old.key()));
        if !on {
            off.extend_from_slice(names);
        }
        write(&path, &off)
    }

    /// Paths can be anything; a digest can be the name of a file everywhere. Links and a separator at the end make no
    /// difference.
    fn file(&self, cwd: &Path) -> PathBuf {
        let real = dunce::canonicalize(cwd).unwrap_or_else(|_| cwd.components().collect());
        self.dir.join(format!("{}.json", Sha256::of(real.as_os_str().as_encoded_bytes())))
    }
}

fn read(path: &Path) -> io::Result<Vec<SkillName>> {
    match fs::metadata(path) {
        Ok(metadata) if metadata.len() > MAX_BYTES => {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "it is too long to be ours"));
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        _ => {}
    }
    let file: Switches = serde_json::from_slice(&fs::read(path)?)?;
    Ok(file.off.iter().take(MAX_NAMES).filter_map(|name| SkillName::new(name)).collect())
}

/// Writes the whole file or none of it, even when we are killed.
fn write(path: &Path, off: &[SkillName]) -> io::Result<()> {
    if off.is_empty() {
        return match fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        };
    }
    let file = Switches { v: VERSION, off: off.iter().map(ToString::to_string).collect() };
    let mut temporary = tempfile::NamedTempFile::new_in(path.parent().unwrap_or(Path::new(".")))?;
    temporary.write_all(&serde_json::to_vec(&file)?)?;
    temporary.persist(path)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(names: &[&str]) -> Vec<SkillName> {
        names.iter().map(|name| SkillName::new(name).unwrap()).collect()
    }

    #[test]
    fn what_is_off_is_kept_by_directory() {
        let directory = tempfile::tempdir().unwrap();
        let (project, other) = (directory.path().join("project"), directory.path().join("not-there"));
        fs::create_dir(&project).unwrap();
        let store = SwitchStore::open(&directory.path().join("state")).unwrap();
        assert!(store.load(&project).is_empty());
        store.save(&project, &names(&["pdf", "Ü b"]), false).unwrap();
        store.save(&project, &names(&["review"]), false).unwrap();
        store.save(&project, &names(&["review"]), false).unwrap();
        let again = SwitchStore::open(&directory.path().join("state")).unwrap();
        assert_eq!(again.load(&project.join(".")), names(&["pdf", "Ü b", "review"]));
        assert!(again.load(&other).is_empty());
        again.save(&other, &names(&["x"]), false).unwrap();
        // Case does not count, and names alone are kept.
        store.save(&project, &names(&["PDF"]), true).unwrap();
        assert_eq!(store.load(&project), names(&["Ü b", "review"]));
        let text = fs::read_to_string(store.file(&project)).unwrap();
        assert_eq!(text, r#"{"v":1,"off":["Ü b","review"]}"#);
        store.save(&project, &names(&["ü b", "review"]), true).unwrap();
        assert!(!store.file(&project).exists());
        // Whatever somebody else wrote there is no reason to fail.
        fs::write(store.file(&project), "{").unwrap();
        assert!(store.load(&project).is_empty());
        store.save(&project, &names(&["pdf"]), false).unwrap();
        assert_eq!(store.load(&project), names(&["pdf"]));
    }

    #[test]
    fn two_proxies_lose_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let open = || SwitchStore::open(directory.path()).unwrap();
        let cwd = directory.path();
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let store = open();
                scope.spawn(move || {
                    for number in 0..10 {
                        store.save(cwd, &names(&[&format!("{thread}-{number}")]), false).unwrap();
                    }
                });
            }
        });
        assert_eq!(open().load(cwd).len(), 40);
    }
}
