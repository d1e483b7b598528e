//! [`StateDir`]: small files about something (a session, a directory), for whatever remembers.
//!
//! One file for each, named by a digest, because what they are about can be anything. They are for their owner alone, are
//! written whole or not at all, also when we are killed, and what somebody else wrote there is an error and never more.
//! Several proxies may write: a change is read, changed and written under a lock of the operating system.

use std::{
    fs,
    io::{self, Write},
    path::{Path, PathBuf},
    time::Duration,
};

use serde::{Serialize, de::DeserializeOwned};
use skills_core::remote::Sha256;

use super::{lock::FileLock, private};

/// A file of ours is never longer.
const MAX_BYTES: u64 = 1024 * 1024;

/// How long another process may take to change a file; one that is stopped must not stop us.
const PATIENCE: Duration = Duration::from_secs(3);

/// A directory of such files.
#[derive(Debug, Clone)]
pub struct StateDir(PathBuf);

impl StateDir {
    /// The directory `dir`, which is made when something is written.
    pub fn later(dir: impl Into<PathBuf>) -> Self {
        Self(dir.into())
    }

    /// The directory `dir`; creates it, for nobody else to read, when there is none.
    ///
    /// # Errors
    /// It cannot be created.
    pub fn open(dir: impl Into<PathBuf>) -> io::Result<Self> {
        let dir = Self::later(dir);
        private::create_dir(&dir.0)?;
        Ok(dir)
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// The file about something that this text names.
    pub fn about(&self, key: &[u8]) -> PathBuf {
        self.0.join(format!("{}.json", Sha256::of(key)))
    }

    /// The file about a directory. Links and a separator at the end make no difference.
    pub fn about_directory(&self, dir: &Path) -> PathBuf {
        let real = dunce::canonicalize(dir).unwrap_or_else(|_| dir.components().collect());
        self.about(real.as_os_str().as_encoded_bytes())
    }

    /// Changes a file of this directory, unless another process does: that one is waited for, for [`PATIENCE`]. What cannot be
    /// read is written anew, and nothing removes the file.
    ///
    /// # Errors
    /// It cannot be locked or written; then it is as it was.
    pub fn change<T: Serialize + DeserializeOwned>(
        &self,
        file: &Path,
        change: impl FnOnce(Option<T>) -> Option<T>,
    ) -> io::Result<()> {
        private::create_dir(&self.0)?;
        let _lock = FileLock::acquire_within(&self.0.join(".lock"), PATIENCE)?;
        write(file, change(read(file).unwrap_or_default()).as_ref())
    }
}

/// What a file says; nothing when there is none.
///
/// # Errors
/// It cannot be read, or is not ours.
pub fn read<T: DeserializeOwned>(file: &Path) -> io::Result<Option<T>> {
    match private::read(file, MAX_BYTES) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        bytes => Ok(Some(serde_json::from_slice(&bytes?)?)),
    }
}

/// Writes the whole file or none of it; nothing removes it.
///
/// # Errors
/// As the system says.
pub fn write<T: Serialize>(file: &Path, contents: Option<&T>) -> io::Result<()> {
    let Some(contents) = contents else {
        return match fs::remove_file(file) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        };
    };
    // Only its owner may read it, from the first moment.
    let mut temporary = tempfile::NamedTempFile::new_in(file.parent().unwrap_or(Path::new(".")))?;
    temporary.write_all(&serde_json::to_vec(contents)?)?;
    temporary.persist(file)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_or_not_at_all() {
        let directory = tempfile::tempdir().unwrap();
        let state = StateDir::later(directory.path().join("a/b"));
        let file = state.about(b"../../x");
        assert_eq!(read::<Vec<u32>>(&file).unwrap(), None);
        let add = |number| {
            state
                .change(&file, |old: Option<Vec<u32>>| Some([old.unwrap_or_default(), vec![number]].concat()))
        };
        add(1).unwrap();
        add(2).unwrap();
        assert_eq!(read::<Vec<u32>>(&file).unwrap(), Some(vec![1, 2]));
        // Whatever somebody else wrote there is no reason to fail.
        fs::write(&file, "{").unwrap();
        read::<Vec<u32>>(&file).unwrap_err();
        add(3).unwrap();
        assert_eq!(read::<Vec<u32>>(&file).unwrap(), Some(vec![3]));
        let long = vec![b' '; usize::try_from(MAX_BYTES).unwrap() + 1];
        fs::write(&file, long).unwrap();
        assert!(read::<Vec<u32>>(&file).unwrap_err().to_string().contains("too long"));
        state.change(&file, |_: Option<Vec<u32>>| None).unwrap();
        state.change(&file, |_: Option<Vec<u32>>| None).unwrap();
        assert!(!file.exists());
        // Nothing is left of what was being written.
        let left: Vec<_> = fs::read_dir(state.path()).unwrap().map(|it| it.unwrap().file_name()).collect();
        assert_eq!(left, [".lock"]);
    }

    /// A device has no end, and whoever opens a FIFO to write waits for somebody who reads.
    #[cfg(unix)]
    #[test]
    fn what_is_no_file() {
        let directory = tempfile::tempdir().unwrap();
        let state = StateDir::later(directory.path());
        let file = state.about(b"x");
        std::os::unix::fs::symlink("/dev/zero", &file).unwrap();
        assert!(read::<u32>(&file).unwrap_err().to_string().contains("no file"));
        // It gives way to a file.
        state.change(&file, |_: Option<u32>| Some(1)).unwrap();
        assert_eq!(read::<u32>(&file).unwrap(), Some(1));
        let lock = directory.path().join(".lock");
        fs::remove_file(&lock).unwrap();
        assert!(std::process::Command::new("mkfifo").arg(&lock).status().unwrap().success());
        let error = state.change(&file, |_: Option<u32>| Some(1)).unwrap_err();
        assert!(error.to_string().contains("a FIFO that nobody reads"), "{error}");
    }

    #[cfg(unix)]
    #[test]
    fn only_the_owner_may_read_it() {
        use std::os::unix::fs::PermissionsExt;
        let directory = tempfile::tempdir().unwrap();
        let state = StateDir::open(directory.path().join("state")).unwrap();
        let file = state.about_directory(directory.path());
        assert_eq!(file, state.about_directory(&directory.path().join(".")));
        write(&file, Some(&1)).unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(state.path()), mode(&file)), (0o700, 0o600));
    }
}
