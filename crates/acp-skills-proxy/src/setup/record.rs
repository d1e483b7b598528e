//! [`Record`]: what was changed in a settings file, in a directory of its own each, so that none replaces an older one.
//!
//! It lies in the user's state directory and not beside the settings, which may be in a repository; and for the owner alone,
//! because settings may have keys in them.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};
use skills_sources::disk::private;

use super::edit::Change;

/// How many changes of one user are kept at most. Nobody gets there.
const MAX_RECORDS: u32 = 1_000_000;

const CHANGE: &str = "change.json";
const BEFORE: &str = "before.json";
const AFTER: &str = "after.json";
const UNDONE: &str = "undone";

/// What was changed.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Record {
    /// The editor's name on the command line.
    pub editor: String,
    /// The settings file, where it really is.
    pub file: PathBuf,
    /// The changes, in their order.
    pub changes: Vec<Change>,
    #[serde(skip)]
    dir: PathBuf,
}

impl Record {
    /// What was changed.
    pub(crate) fn new(editor: &str, file: &Path, changes: Vec<Change>) -> Self {
        Self { editor: editor.to_owned(), file: file.to_owned(), changes, dir: PathBuf::new() }
    }

    /// Writes it below `dir`, with what the file said before and after.
    ///
    /// # Errors
    /// As the system says.
    pub(crate) fn keep(mut self, dir: &Path, before: Option<&[u8]>, after: &[u8]) -> io::Result<Self> {
        private::create_dir(dir)?;
        // Not the number of those that are there: somebody may have removed one.
        let last = numbers(dir)?.into_iter().max().unwrap_or(0);
        self.dir = (last + 1..MAX_RECORDS)
            .map(|number| dir.join(format!("{number:04}")))
            .find_map(|dir| match fs::create_dir(&dir) {
                Ok(()) => Some(Ok(dir)),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => None,
                Err(error) => Some(Err(error)),
            })
            .unwrap_or_else(|| Err(io::Error::other("there are too many")))?;
        match self.write(before, after) {
            Ok(()) => Ok(self),
            Err(error) => {
                self.forget();
                Err(error)
            }
        }
    }

    fn write(&self, before: Option<&[u8]>, after: &[u8]) -> io::Result<()> {
        if let Some(before) = before {
            fs::write(self.dir.join(BEFORE), before)?;
        }
        fs::write(self.dir.join(AFTER), after)?;
        fs::write(self.dir.join(CHANGE), serde_json::to_vec_pretty(self)?)
    }

    /// Forgets it: the file was not changed after all.
    pub(crate) fn forget(self) {
        // What is left of it is a backup of what is still there.
        drop(fs::remove_dir_all(self.dir));
    }

    /// The last change of this file that was not taken back.
    ///
    /// # Errors
    /// As the system says.
    pub(crate) fn last(dir: &Path, file: &Path) -> io::Result<Option<Self>> {
        let mut found = numbers(dir)?;
        found.sort_unstable_by(|a, b| b.cmp(a));
        for number in found {
            let dir = dir.join(format!("{number:04}"));
            // One that is not whole belongs to a change that was not made.
            let Ok(text) = fs::read(dir.join(CHANGE)) else { continue };
            let Ok(record) = serde_json::from_slice::<Self>(&text) else { continue };
            if record.file == file && !dir.join(UNDONE).exists() {
                return Ok(Some(Self { dir, ..record }));
            }
        }
        Ok(None)
    }

    /// What the file said before; `None` where there was none.
    ///
    /// # Errors
    /// As the system says.
    pub(crate) fn before(&self) -> io::Result<Option<Vec<u8>>> {
        match fs::read(self.before_path()) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Where that is.
    pub(crate) fn before_path(&self) -> PathBuf {
        self.dir.join(BEFORE)
    }

    /// What the file said after the change.
    ///
    /// # Errors
    /// As the system says.
    pub(crate) fn after(&self) -> io::Result<Vec<u8>> {
        fs::read(self.dir.join(AFTER))
    }

    /// It was taken back.
    ///
    /// # Errors
    /// As the system says.
    pub(crate) fn undone(&self) -> io::Result<()> {
        fs::write(self.dir.join(UNDONE), "")
    }
}

/// The numbers of the records that are there.
fn numbers(dir: &Path) -> io::Result<Vec<u32>> {
    let entries = match fs::read_dir(dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let names = entries.map(|entry| entry.map(|entry| entry.file_name())).collect::<io::Result<Vec<_>>>()?;
    Ok(names.iter().filter_map(|name| name.to_str()?.parse().ok()).collect())
}
