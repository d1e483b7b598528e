//! [`StateDir`]: a directory of small state files, such as one per session or per working directory.
//!
//! A file is named by the checksum of its key, because a key can be any text. Files are readable by their owner only and are written
//! atomically, even if the process is killed. Invalid content is an error that a later change overwrites. Several processes may write
//! at the same time, because each change is made under a file lock.

use std::{
    fs,
    io::{self, Write},
    path::{Path, PathBuf},
    time::Duration,
};

use serde::{Serialize, de::DeserializeOwned};
use skills_core::skill::Sha256;

use super::{lock::FileLock, private};

/// The maximum size of a state file, in bytes.
const MAX_BYTES: u64 = 1024 * 1024;

/// The timeout for the lock of the directory. A process that is stopped while it holds the lock must not block this one.
const LOCK_TIMEOUT: Duration = Duration::from_secs(3);

/// A directory of state files.
#[derive(Debug, Clone)]
pub struct StateDir(PathBuf);

impl StateDir {
    /// Returns the state directory `dir`, which is created on the first write.
    pub fn later(dir: impl Into<PathBuf>) -> Self {
        Self(dir.into())
    }

    /// Returns the state directory `dir`, and creates it so that only its owner can read it.
    ///
    /// # Errors
    /// Returns the system's error if the directory can't be created.
    pub fn open(dir: impl Into<PathBuf>) -> io::Result<Self> {
        let dir = Self::later(dir);
        private::create_dir(&dir.0)?;
        Ok(dir)
    }

    /// Returns the path of the directory.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Returns the path of the file for a key.
    pub fn about(&self, key: &[u8]) -> PathBuf {
        self.0.join(format!("{}.json", Sha256::of(key)))
    }

    /// Returns the path of the file for a directory. Symbolic links and trailing separators make no difference. A relative path, such as
    /// the identity of a server, is not looked for on the disk.
    pub fn about_directory(&self, dir: &Path) -> PathBuf {
        let real = if dir.is_absolute() { dunce::canonicalize(dir).ok() } else { None };
        let real = real.unwrap_or_else(|| dir.components().collect());
        self.about(real.as_os_str().as_encoded_bytes())
    }

    /// Changes a file under the lock of the directory. `change` receives the content, or `None` if the file is missing or invalid.
    /// The file is removed if `change` returns `None`.
    ///
    /// # Errors
    /// Returns an error if another process holds the lock for more than 3 seconds, if the file can't be read, for example because too
    /// many files are open, or if it can't be written. The file is then unchanged.
    pub fn change<T: Serialize + DeserializeOwned>(
        &self,
        file: &Path,
        change: impl FnOnce(Option<T>) -> Option<T>,
    ) -> io::Result<()> {
        private::create_dir(&self.0)?;
        let _lock = FileLock::acquire_within(&self.0.join(".lock"), LOCK_TIMEOUT)?;
        let old = match read(file) {
            Err(error) if is_invalid(&error) => None,
            old => old?,
        };
        write(file, change(old).as_ref())
    }
}

/// Reads a state file. Returns `None` if it doesn't exist.
///
/// # Errors
/// Returns an error if the file can't be read, is larger than 1 MiB, or has invalid content.
pub fn read<T: DeserializeOwned>(file: &Path) -> io::Result<Option<T>> {
    match private::read(file, MAX_BYTES) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        bytes => Ok(Some(serde_json::from_slice(&bytes?)?)),
    }
}

/// Returns true for the error of [`read`] if the file was read, but has invalid content.
pub fn is_invalid(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof)
}

/// Escapes the characters of JSON that an interpreter could evaluate. A script of a skill may run a file of this program, which can contain
/// text of a server.
pub fn inert(json: String) -> String {
    // These characters only occur in strings.
    let signs = ['$', '`', '#', '@', '%'];
    if !json.contains(signs) {
        return json;
    }
    signs.iter().fold(json, |json, c| json.replace(*c, &format!("\\u{:04x}", u32::from(*c))))
}

/// Writes a state file atomically. `None` removes the file.
///
/// # Errors
/// Returns the system's error if the file can't be written or removed, and an error if it would be larger than 1 MiB, because it could not
/// be read again.
pub fn write<T: Serialize>(file: &Path, contents: Option<&T>) -> io::Result<()> {
    let Some(contents) = contents else {
        return match fs::remove_file(file) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        };
    };
    let contents = inert(serde_json::to_string(contents)?).into_bytes();
    if contents.len() as u64 > MAX_BYTES {
        return Err(io::Error::other(format!("file would be larger than {MAX_BYTES} bytes")));
    }
    // Temporary files should be private from the start.
    let mut temporary = tempfile::NamedTempFile::new_in(file.parent().unwrap_or(Path::new(".")))?;
    temporary.write_all(&contents)?;
    super::replace(temporary, file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_of_others_is_not_evaluated() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("file");
        let text = "\"; $(touch x) `y` #@% $'\\x24' é";
        write(&file, Some(&text)).unwrap();
        assert_eq!(read::<String>(&file).unwrap().as_deref(), Some(text));
        let written = fs::read_to_string(&file).unwrap();
        assert!(!written.contains(['$', '`', '#', '@', '%']), "{written}");
    }

    #[test]
    fn changes_are_atomic_and_leave_nothing_behind() {
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
        // Invalid content should be overwritten.
        fs::write(&file, "{").unwrap();
        read::<Vec<u32>>(&file).unwrap_err();
        add(3).unwrap();
        assert_eq!(read::<Vec<u32>>(&file).unwrap(), Some(vec![3]));
        let too_long = "x".repeat(usize::try_from(MAX_BYTES).unwrap());
        assert!(write(&file, Some(&too_long)).unwrap_err().to_string().contains("larger than"));
        assert_eq!(read::<Vec<u32>>(&file).unwrap(), Some(vec![3]));
        let long = vec![b' '; usize::try_from(MAX_BYTES).unwrap() + 1];
        fs::write(&file, long).unwrap();
        assert!(read::<Vec<u32>>(&file).unwrap_err().to_string().contains("maximum size"));
        state.change(&file, |_: Option<Vec<u32>>| None).unwrap();
        state.change(&file, |_: Option<Vec<u32>>| None).unwrap();
        assert!(!file.exists());
        // There should be no temporary files left.
        let left: Vec<_> =
            fs::read_dir(state.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(left, [".lock"]);
    }

    /// Reading a device may never end, and opening a FIFO for writing may block.
    #[cfg(unix)]
    #[test]
    fn devices_and_fifos_are_rejected() {
        let directory = tempfile::tempdir().unwrap();
        let state = StateDir::later(directory.path());
        let file = state.about(b"x");
        std::os::unix::fs::symlink("/dev/zero", &file).unwrap();
        assert!(read::<u32>(&file).unwrap_err().to_string().contains("not a regular file"));
        // A change should replace the link with a file.
        state.change(&file, |_: Option<u32>| Some(1)).unwrap();
        assert_eq!(read::<u32>(&file).unwrap(), Some(1));
        let lock = directory.path().join(".lock");
        fs::remove_file(&lock).unwrap();
        assert!(std::process::Command::new("mkfifo").arg(&lock).status().unwrap().success());
        let error = state.change(&file, |_: Option<u32>| Some(1)).unwrap_err();
        assert!(error.to_string().contains("a FIFO without a reader"), "{error}");
    }

    /// A file that can't be read at the moment must not lose its content.
    #[cfg(unix)]
    #[test]
    fn an_unreadable_file_is_not_replaced() {
        let directory = tempfile::tempdir().unwrap();
        let state = StateDir::later(directory.path());
        let file = state.about(b"x");
        // For root, the permissions of a file don't matter, but a chain of links that is too long does.
        std::os::unix::fs::symlink(&file, &file).unwrap();
        state.change(&file, |_: Option<u32>| Some(1)).unwrap_err();
        state.change(&file, |_: Option<u32>| None).unwrap_err();
        assert!(file.is_symlink());
    }

    /// A directory with the name of a server must not lead to the decisions about another one.
    #[test]
    fn relative_paths_are_only_names() {
        let state = StateDir::later(PathBuf::from("state"));
        for name in ["src", "src/../src", "mcp docs\n./server []"] {
            let components: PathBuf = Path::new(name).components().collect();
            let expected = state.about(components.as_os_str().as_encoded_bytes());
            assert_eq!(state.about_directory(Path::new(name)), expected, "{name}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn state_files_are_private() {
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
