//! Where an open file can be deleted: its name goes, and readers read on.

use std::{io, path::Path};

use cap_fs_ext::OpenOptionsSyncExt;
use cap_std::fs::{Dir, File, OpenOptions};

/// Opens a file or a directory, and does not wait for the writer of a FIFO.
pub(super) fn open(dir: &Dir, path: &Path) -> io::Result<File> {
    dir.open_with(path, OpenOptions::new().read(true).nonblock(true))
}

/// The same error; what the system says is plain.
pub(in crate::files) fn in_plain_words(error: io::Error) -> io::Error {
    error
}
