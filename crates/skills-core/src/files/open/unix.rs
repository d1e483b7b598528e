//! Opening files on Unix. An open file can always be deleted or renamed by another process.

use std::{io, path::Path};

use cap_fs_ext::OpenOptionsSyncExt;
use cap_std::fs::{Dir, File, OpenOptions};

/// Opens a file or a directory. If it's a FIFO, this doesn't wait for a writer.
pub(super) fn open(dir: &Dir, path: &Path) -> io::Result<File> {
    dir.open_with(path, OpenOptions::new().read(true).nonblock(true))
}

/// Returns the error unchanged: there are no sharing violations on Unix.
pub(in crate::files) fn explain_sharing_violation(error: io::Error) -> io::Error {
    error
}
