//! What is created takes the rights of the directory that it is in; a user's own directories are private. There are no FIFOs
//! among the files.

use std::{
    fs::{DirBuilder, File, Metadata, OpenOptions},
    io,
    path::Path,
};

pub(super) fn private_file(_options: &mut OpenOptions) {}

pub(super) fn private_dir(_builder: &mut DirBuilder) {}

/// No path that we make leads to one.
pub(super) fn is_device(_metadata: &Metadata) -> bool {
    false
}

/// There is no path that leads to it.
pub(super) fn is_stdout(_file: &File) -> bool {
    false
}

pub(super) fn explained(error: io::Error, _path: &Path) -> io::Error {
    error
}

#[expect(clippy::unnecessary_wraps, reason = "the interface of the other systems")]
pub(super) fn take_rights(_file: &File, _path: &Path) -> io::Result<()> {
    Ok(())
}

#[expect(clippy::unnecessary_wraps, reason = "the interface of the other systems")]
pub(super) fn wait_when_full(_file: &File) -> io::Result<()> {
    Ok(())
}
