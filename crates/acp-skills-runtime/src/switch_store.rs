//! [`SwitchStore`]: the skills that are off in each working directory, stored in a directory (`--state DIR`).
//!
//! There is one small file for each working directory, with a digest of the path as its name. It only contains the
//! names of the skills that are off. Several proxies can write at the same time, because each change is read,
//! modified and written under a lock of the operating system.

use std::{io, path::Path};

use serde::{Deserialize, Serialize};
use skills_core::SkillName;
use skills_sources::disk::state::{self, StateDir};

/// The maximum number of names that are read from a file. No real directory has that many skills.
const MAX_NAMES: usize = 10_000;
const VERSION: u32 = 1;

/// A store of switched-off skills in a directory.
#[derive(Debug, Clone)]
pub struct SwitchStore(StateDir);

/// The contents of a file.
#[derive(Debug, Serialize, Deserialize)]
struct Switches {
    v: u32,
    off: Vec<String>,
}

impl SwitchStore {
    /// Opens the store in the directory `off` below `state`. Creates the directory if it doesn't exist, so that only
    /// the current user can read it.
    ///
    /// # Errors
    /// Returns an error if the directory cannot be created.
    pub fn open(state: &Path) -> io::Result<Self> {
        StateDir::open(state.join("off")).map(Self)
    }

    /// Returns the skills that are off in the working directory `cwd`. Reads a file. If its content is invalid, logs a warning and
    /// returns an empty list.
    ///
    /// # Errors
    /// Returns an error if the file can't be read, for example because too many files are open. Any skill may be off then.
    pub fn load(&self, cwd: &Path) -> io::Result<Vec<SkillName>> {
        let path = self.0.about_directory(cwd);
        read(&path).or_else(|error| {
            tracing::warn!("cannot read disabled skills from {}: {error}", path.display());
            if state::is_invalid(&error) { Ok(Vec::new()) } else { Err(error) }
        })
    }

    /// Saves that skills are on or off in the working directory `cwd`. Blocks while it waits for the disk, or for
    /// another proxy that is writing the same file.
    ///
    /// # Errors
    /// Returns an error if the file cannot be locked or written. The file is unchanged then.
    pub fn save(&self, cwd: &Path, names: &[SkillName], on: bool) -> io::Result<()> {
        self.0.change(&self.0.about_directory(cwd), |old: Option<Switches>| {
            let mut off = old.map(Switches::names).unwrap_or_default();
            off.retain(|old| !names.iter().any(|name| name.key() == old.key()));
            if !on {
                off.extend_from_slice(names);
            }
            let off: Vec<_> = off.iter().map(ToString::to_string).collect();
            (!off.is_empty()).then_some(Switches { v: VERSION, off })
        })
    }
}

impl Switches {
    fn names(self) -> Vec<SkillName> {
        self.off.iter().take(MAX_NAMES).filter_map(|name| SkillName::new(name)).collect()
    }
}

fn read(path: &Path) -> io::Result<Vec<SkillName>> {
    Ok(state::read::<Switches>(path)?.map(Switches::names).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn names(names: &[&str]) -> Vec<SkillName> {
        names.iter().map(|name| SkillName::new(name).unwrap()).collect()
    }

    #[test]
    fn skills_are_off_by_directory() {
        let directory = tempfile::tempdir().unwrap();
        let project = directory.path().join("project");
        let other = directory.path().join("missing");
        fs::create_dir(&project).unwrap();
        let store = SwitchStore::open(&directory.path().join("state")).unwrap();
        assert!(store.load(&project).unwrap().is_empty());
        store.save(&project, &names(&["pdf", "Ü b"]), false).unwrap();
        store.save(&project, &names(&["review"]), false).unwrap();
        store.save(&project, &names(&["review"]), false).unwrap();
        let again = SwitchStore::open(&directory.path().join("state")).unwrap();
        assert_eq!(again.load(&project.join(".")).unwrap(), names(&["pdf", "Ü b", "review"]));
        assert!(again.load(&other).unwrap().is_empty());
        again.save(&other, &names(&["x"]), false).unwrap();
        // Names should not be case-sensitive, and the file should only contain names.
        store.save(&project, &names(&["PDF"]), true).unwrap();
        assert_eq!(store.load(&project).unwrap(), names(&["Ü b", "review"]));
        let text = fs::read_to_string(store.0.about_directory(&project)).unwrap();
        assert_eq!(text, r#"{"v":1,"off":["Ü b","review"]}"#);
        store.save(&project, &names(&["ü b", "review"]), true).unwrap();
        assert!(!store.0.about_directory(&project).exists());
        // An invalid file should be ignored, and then replaced on the next change.
        fs::write(store.0.about_directory(&project), "{").unwrap();
        assert!(store.load(&project).unwrap().is_empty());
        store.save(&project, &names(&["pdf"]), false).unwrap();
        assert_eq!(store.load(&project).unwrap(), names(&["pdf"]));
    }

    /// A skill must not be on because of an error that passes.
    #[cfg(unix)]
    #[test]
    fn an_unreadable_file_is_an_error() {
        let directory = tempfile::tempdir().unwrap();
        let store = SwitchStore::open(directory.path()).unwrap();
        let file = store.0.about_directory(directory.path());
        std::os::unix::fs::symlink(&file, &file).unwrap();
        store.load(directory.path()).unwrap_err();
    }

    #[test]
    fn concurrent_changes_are_not_lost() {
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
        assert_eq!(open().load(cwd).unwrap().len(), 40);
    }
}
