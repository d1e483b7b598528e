//! What was fetched, on Windows.

use std::{fs, io, path::Path};

use cap_std::fs::OpenOptions;

/// The user's own directories are closed to others there, and a file that is read-only is in the way of whoever removes it.
pub(super) fn protect(_options: &mut OpenOptions, _is_program: bool) {}

/// Removes a directory, with files that are read-only, as git makes its objects. The standard library has Windows ignore
/// that where it can, which is on NTFS alone ([`FILE_DISPOSITION_INFORMATION_EX`]).
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

#[expect(clippy::permissions_set_readonly_false, reason = "that is about Unix")]
fn make_writable(dir: &Path) -> io::Result<()> {
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        // Does not follow links, which are removed as they are.
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
