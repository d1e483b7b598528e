//! Write protection and removal of fetched files on Windows.

use std::{fs, io, path::Path};

use cap_std::fs::OpenOptions;

/// Does nothing: the user's directories are closed to other users, and a read-only file couldn't be removed.
pub(super) fn protect(_options: &mut OpenOptions, _is_program: bool) {}

/// Returns an estimate of the disk space that a file or a directory uses, in bytes.
pub(super) fn disk_bytes(metadata: &fs::Metadata) -> u64 {
    metadata.len().next_multiple_of(4096)
}

/// Returns false, because files have no such permission.
pub(super) fn is_executable(_metadata: &fs::Metadata) -> bool {
    false
}

/// Removes a directory that may contain read-only files, such as git's objects. The standard library makes Windows ignore the
/// attribute, but only on NTFS ([`FILE_DISPOSITION_INFORMATION_EX`]).
///
/// [`FILE_DISPOSITION_INFORMATION_EX`]: https://learn.microsoft.com/windows-hardware/drivers/ddi/ntddk/ns-ntddk-_file_disposition_information_ex
pub(super) fn remove_dir_all(dir: &Path) -> io::Result<()> {
    match fs::remove_dir_all(dir) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            make_writable(dir)?;
            fs::remove_dir_all(dir)
        }
        result => result,
    }
}

#[expect(clippy::permissions_set_readonly_false, reason = "the lint is only for Unix")]
fn make_writable(dir: &Path) -> io::Result<()> {
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        // Note that `metadata` doesn't follow links, so we don't change targets outside of the directory.
        let metadata = entry.metadata()?;
        if metadata.is_dir() {
            make_writable(&entry.path())?;
        } else if metadata.permissions().readonly() {
            let mut permissions = metadata.permissions();
            permissions.set_readonly(false);
            fs::set_permissions(entry.path(), permissions)?;
        }
    }
    Ok(())
}
