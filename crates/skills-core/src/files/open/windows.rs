//! Opening files on Windows. An open file can be deleted only if every program that has it open allows that.

use std::{io, path::Path};

use cap_fs_ext::OpenOptionsMaybeDirExt;
use cap_std::fs::{Dir, File, OpenOptions};

/// The system error if another program has the file open and does not share it.
const ERROR_SHARING_VIOLATION: i32 = 32;
/// The system error if another program has locked a part of the file.
const ERROR_LOCK_VIOLATION: i32 = 33;
/// The system error if the file will be deleted when the last program closes it.
const ERROR_DELETE_PENDING: i32 = 303;

/// Opens a file or a directory.
///
/// `maybe_dir` can open both, but then other programs can't delete or rename the file until we close it: `cap_std` pins
/// directories because it needs their paths, and it doesn't know the type before opening. So we try to open a file first.
pub(super) fn open(dir: &Dir, path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true);
    match dir.open_with(path, &options) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => dir.open_with(path, options.maybe_dir(true)),
        opened => opened,
    }
}

/// Explains a sharing violation and how to resolve it. Returns other errors unchanged.
pub(in crate::files) fn explain_sharing_violation(error: io::Error) -> io::Error {
    match error.raw_os_error() {
        Some(ERROR_SHARING_VIOLATION | ERROR_LOCK_VIOLATION | ERROR_DELETE_PENDING) => {
            let message =
                format!("file is being written or deleted by another program; retry later ({error})");
            io::Error::new(io::ErrorKind::ResourceBusy, message)
        }
        _ => error,
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use cap_std::ambient_authority;

    use super::*;

    #[test]
    fn a_file_can_be_deleted_while_it_is_read() {
        let base = tempfile::tempdir().unwrap();
        fs::write(base.path().join("file"), "text").unwrap();
        fs::create_dir(base.path().join("dir")).unwrap();
        let dir = Dir::open_ambient_dir(base.path(), ambient_authority()).unwrap();
        let file = open(&dir, "file".as_ref()).unwrap();
        fs::remove_file(base.path().join("file")).unwrap();
        assert_eq!(io::read_to_string(file).unwrap(), "text");
        assert!(open(&dir, "dir".as_ref()).unwrap().metadata().unwrap().is_dir());
        assert_eq!(open(&dir, "gone".as_ref()).unwrap_err().kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn a_sharing_violation_is_explained() {
        use std::os::windows::fs::OpenOptionsExt;
        let base = tempfile::tempdir().unwrap();
        let path = base.path().join("file");
        let _held = fs::File::options().write(true).create_new(true).share_mode(0).open(&path).unwrap();
        let dir = Dir::open_ambient_dir(base.path(), ambient_authority()).unwrap();
        let error = explain_sharing_violation(open(&dir, "file".as_ref()).unwrap_err());
        assert_eq!(error.kind(), io::ErrorKind::ResourceBusy, "{error}");
        assert_eq!(explain_sharing_violation(io::ErrorKind::NotFound.into()).kind(), io::ErrorKind::NotFound);
    }
}
