//! [`ChangeRecord`]: a change of a settings file, with the content of the file before and after. Each record has its own directory,
//! so that it never replaces an older one.
//!
//! Records are in the user's state directory, because settings may be in a repository. Only the owner can read them, because
//! settings may contain API keys.

use std::{
    fs,
    io::{self, Write},
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};
use skills_core::order;
use skills_sources::disk::private;

use super::edit::Change;

/// The maximum number of records of a user.
const MAX_RECORDS: u32 = 1_000_000;

const CHANGE: &str = "change.json";
const BEFORE: &str = "before.json";
const AFTER: &str = "after.json";
const UNDONE: &str = "undone";

/// A change of a settings file.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ChangeRecord {
    /// The identifier of the editor.
    pub editor: String,
    /// The path of the settings file, after symbolic links.
    pub file: PathBuf,
    /// The changes, in the order in which they were made.
    pub changes: Vec<Change>,
    #[serde(skip)]
    dir: PathBuf,
}

impl ChangeRecord {
    /// Creates a record, which is not on disk yet.
    pub fn new(editor: &str, file: &Path, changes: Vec<Change>) -> Self {
        Self { editor: editor.to_owned(), file: file.to_owned(), changes, dir: PathBuf::new() }
    }

    /// Writes the record below `dir`, with the content of the file before and after the change.
    ///
    /// # Errors
    /// Returns an error if the record cannot be written, or if there are too many records.
    pub fn keep(mut self, dir: &Path, before: Option<&[u8]>, after: &[u8]) -> io::Result<Self> {
        private::create_dir(dir)?;
        // We can't use the number of records here, as the user may have removed some of them.
        let last = numbers(dir)?.into_iter().max().unwrap_or(0);
        self.dir = (last + 1..MAX_RECORDS)
            .map(|number| dir.join(format!("{number:04}")))
            .find_map(|dir| match fs::create_dir(&dir) {
                Ok(()) => Some(Ok(dir)),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => None,
                Err(error) => Some(Err(error)),
            })
            .unwrap_or_else(|| Err(io::Error::other("too many change records")))?;
        match self.write(before, after) {
            Ok(()) => Ok(self),
            Err(error) => {
                self.forget();
                Err(error)
            }
        }
    }

    fn write(&self, before: Option<&[u8]>, after: &[u8]) -> io::Result<()> {
        let write = |name: &str, bytes: &[u8]| {
            let mut file = fs::File::create_new(self.dir.join(name))?;
            file.write_all(bytes)?;
            // The settings are changed after this, and must not reach the disk before their record.
            file.sync_all()
        };
        if let Some(before) = before {
            write(BEFORE, before)?;
        }
        write(AFTER, after)?;
        write(CHANGE, &serde_json::to_vec_pretty(self)?)?;
        for dir in self.dir.ancestors().take(2) {
            // Windows and some file systems can't do this for a directory.
            let _ = fs::File::open(dir).and_then(|dir| dir.sync_all());
        }
        Ok(())
    }

    /// Removes the record, because the file was not changed after all.
    pub fn forget(self) {
        // If this fails, we just keep a backup that we don't need.
        let _ = fs::remove_dir_all(self.dir);
    }

    /// Returns the latest change of `file` that was not reverted.
    ///
    /// # Errors
    /// Returns an error if `dir` cannot be listed.
    pub fn last(dir: &Path, file: &Path) -> io::Result<Option<Self>> {
        let mut found = numbers(dir)?;
        order::sort_by(&mut found, |a, b| b.cmp(a));
        for number in found {
            let dir = dir.join(format!("{number:04}"));
            // If the record is not complete, the change was never made.
            let Ok(text) = fs::read(dir.join(CHANGE)) else { continue };
            let Ok(record) = serde_json::from_slice::<Self>(&text) else { continue };
            if record.file == file && !dir.join(UNDONE).exists() {
                return Ok(Some(Self { dir, ..record }));
            }
        }
        Ok(None)
    }

    /// Reads the content of the file before the change. `None` if there was no file.
    ///
    /// # Errors
    /// Returns an error if the backup cannot be read.
    pub fn before(&self) -> io::Result<Option<Vec<u8>>> {
        match fs::read(self.before_path()) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Returns the path of the backup, which is the content of the file before the change.
    pub fn before_path(&self) -> PathBuf {
        self.dir.join(BEFORE)
    }

    /// Reads the content of the file after the change.
    ///
    /// # Errors
    /// Returns an error if the copy cannot be read.
    pub fn after(&self) -> io::Result<Vec<u8>> {
        fs::read(self.dir.join(AFTER))
    }

    /// Marks the change as reverted.
    ///
    /// # Errors
    /// Returns an error if the mark cannot be written.
    pub fn undone(&self) -> io::Result<()> {
        fs::write(self.dir.join(UNDONE), "")
    }
}

/// Returns the numbers of the existing records. Empty if `dir` does not exist.
fn numbers(dir: &Path) -> io::Result<Vec<u32>> {
    let entries = match fs::read_dir(dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let names = entries.map(|entry| entry.map(|entry| entry.file_name())).collect::<io::Result<Vec<_>>>()?;
    Ok(names.iter().filter_map(|name| name.to_str()?.parse().ok()).collect())
}
