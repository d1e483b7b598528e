//! Permissions on Windows: new files inherit the permissions of their directory, and the user's own directories are private. There are
//! no FIFOs in the file system.

use std::{
    fs::{DirBuilder, File, Metadata, OpenOptions},
    io,
    path::Path,
};

use tempfile::Builder;

pub(super) fn private_file(_options: &mut OpenOptions) {}

pub(in super::super) fn refuse_link(_options: &mut OpenOptions) {}

pub(super) fn private_dir(_builder: &mut DirBuilder) {}

#[expect(clippy::unnecessary_wraps, reason = "the interface of the other systems")]
pub(super) fn tighten(_file: &File) -> io::Result<bool> {
    Ok(false)
}

/// Directories of users are private on Windows.
pub(super) fn is_own(_dir: &Path) -> bool {
    true
}

/// Returns true, because scripts have no sandbox on this system.
pub(super) fn is_same(_one: &Metadata, _other: &Metadata) -> bool {
    true
}

/// Returns false, because no path that we open leads to a device.
pub(super) fn is_device(_metadata: &Metadata) -> bool {
    false
}

/// Returns false, because no path leads to stdout.
pub(super) fn is_stdout(_file: &File) -> bool {
    false
}

pub(super) fn explained(error: io::Error, _path: &Path) -> io::Error {
    error
}

#[expect(clippy::unnecessary_wraps, reason = "same interface as on Unix")]
pub(super) fn copy_permissions(_file: &File, _path: &Path) -> io::Result<()> {
    Ok(())
}

#[expect(clippy::unnecessary_wraps, reason = "same interface as on Unix")]
pub(super) fn copy_owner(_file: &File, _path: &Path) -> io::Result<()> {
    Ok(())
}

#[expect(clippy::unnecessary_wraps, reason = "same interface as on Unix")]
pub(super) fn wait_when_full(_file: &File) -> io::Result<()> {
    Ok(())
}

/// Does nothing. Temporary directories have the permissions of the directory that contains them.
pub fn for_owner<'a, 'p, 's>(builder: &'a mut Builder<'p, 's>) -> &'a mut Builder<'p, 's> {
    builder
}
