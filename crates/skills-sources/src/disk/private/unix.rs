//! File modes and FIFOs on Unix.

use std::{
    fs::{self, DirBuilder, File, Metadata, OpenOptions, Permissions},
    io,
    os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt, fchown},
    path::Path,
};

use rustix::{
    fs::{FileType, OFlags},
    io::Errno,
};
use tempfile::Builder;

pub(super) fn private_file(options: &mut OpenOptions) {
    // Use this flag to avoid blocking if the file is a FIFO that nothing reads from.
    options.mode(0o600).custom_flags(OFlags::NONBLOCK.bits().cast_signed());
}

/// Makes opening a symbolic link fail.
pub(in super::super) fn refuse_link(options: &mut OpenOptions) {
    options.custom_flags(OFlags::NOFOLLOW.bits().cast_signed());
}

pub(super) fn private_dir(builder: &mut DirBuilder) {
    builder.mode(0o700);
}

pub(super) fn copy_permissions(file: &File, path: &Path) -> io::Result<()> {
    let mode = fs::metadata(path).map_or(0o644, |metadata| metadata.permissions().mode() & 0o777);
    file.set_permissions(Permissions::from_mode(mode))
}

pub(super) fn copy_owner(file: &File, path: &Path) -> io::Result<()> {
    let Ok(before) = fs::metadata(path) else { return Ok(()) };
    let now = file.metadata()?;
    if (before.uid(), before.gid()) == (now.uid(), now.gid()) {
        return Ok(());
    }
    let mode = before.mode();
    // Another group is harmless if it has the same rights as all other users.
    let is_harmless = before.uid() == now.uid() && (mode >> 3) & 0o7 == mode & 0o7;
    fchown(file, Some(before.uid()), Some(before.gid())).or_else(|error| {
        let message = || format!("cannot keep the owner of the file: {error}");
        if is_harmless { Ok(()) } else { Err(io::Error::new(error.kind(), message())) }
    })
}

/// Returns true if both are of the same file. A path can lead to another one a moment later.
pub(super) fn is_same(one: &Metadata, other: &Metadata) -> bool {
    (one.dev(), one.ino()) == (other.dev(), other.ino())
}

pub(super) fn tighten(file: &File) -> io::Result<bool> {
    let metadata = file.metadata()?;
    let is_exposed = metadata.is_file() && metadata.permissions().mode() & 0o077 != 0;
    if is_exposed {
        file.set_permissions(Permissions::from_mode(0o600))?;
    }
    Ok(is_exposed)
}

/// The sticky bit doesn't help, because it keeps others from removing files, but not from creating them.
pub(super) fn is_own(dir: &Path) -> bool {
    fs::metadata(dir).is_ok_and(|metadata| {
        let is_owner = [0, rustix::process::geteuid().as_raw()].contains(&metadata.uid());
        is_owner && metadata.permissions().mode() & 0o022 == 0
    })
}

pub(super) fn is_device(metadata: &Metadata) -> bool {
    metadata.file_type().is_char_device() || metadata.file_type().is_block_device()
}

/// Returns true if a file, a FIFO or a pipe is also our stdout. Devices such as terminals don't count, because they have other uses.
pub(super) fn is_stdout(file: &File) -> bool {
    let (Ok(file), Ok(stdout)) = (rustix::fs::fstat(file), rustix::fs::fstat(io::stdout())) else {
        return false;
    };
    let is_device = FileType::from_raw_mode(file.st_mode).is_char_device();
    !is_device && (file.st_dev, file.st_ino) == (stdout.st_dev, stdout.st_ino)
}

/// Replaces the system's message for a FIFO without a reader, which is `No such device or address`.
pub(super) fn explained(error: io::Error, path: &Path) -> io::Error {
    let is_fifo = || fs::metadata(path).is_ok_and(|metadata| metadata.file_type().is_fifo());
    if error.raw_os_error() == Some(Errno::NXIO.raw_os_error()) && is_fifo() {
        return io::Error::new(io::ErrorKind::NotConnected, "file is a FIFO without a reader");
    }
    error
}

pub(super) fn wait_when_full(file: &File) -> io::Result<()> {
    Ok(rustix::io::ioctl_fionbio(file, false)?)
}

/// Sets the permissions of temporary directories: only this user can use them, whatever the umask is.
pub fn for_owner<'a, 'p, 's>(builder: &'a mut Builder<'p, 's>) -> &'a mut Builder<'p, 's> {
    builder.permissions(Permissions::from_mode(0o700))
}

#[cfg(test)]
mod tests {
    use std::{
        io::{Read, Write},
        process::Command,
    };

    use super::{
        super::{append, append_and_wait, create_dir},
        *,
    };

    #[test]
    fn new_files_are_private() {
        let directory = tempfile::tempdir().unwrap();
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        let dir = directory.path().join("a/b");
        let file = directory.path().join("a/b/file");
        create_dir(&dir).unwrap();
        append(&file).unwrap();
        assert_eq!((mode(&directory.path().join("a")), mode(&dir), mode(&file)), (0o700, 0o700, 0o600));
    }

    #[test]
    fn results_are_not_written_through_a_link() {
        let directory = tempfile::tempdir().unwrap();
        let [target, link] = ["target", "link"].map(|name| directory.path().join(name));
        fs::write(&target, "mine").unwrap();
        std::os::unix::fs::symlink(&target, &link).unwrap();
        let write = |path: &Path| crate::disk::patient::write(path, "new".to_owned());
        let error = write(&link).unwrap_err().to_string();
        assert!(error.contains("symbolic link") && fs::read_to_string(&target).unwrap() == "mine", "{error}");
        write(&target).unwrap();
        assert_eq!(fs::read_to_string(&target).unwrap(), "new");
    }

    #[test]
    fn no_file_is_created_through_a_link() {
        let directory = tempfile::tempdir().unwrap();
        let [target, link] = ["target", "link"].map(|name| directory.path().join(name));
        std::os::unix::fs::symlink(&target, &link).unwrap();
        let error = append(&link).unwrap_err().to_string();
        assert!(error.contains("target does not exist") && !target.exists(), "{error}");
        fs::write(&target, "").unwrap();
        append(&link).unwrap();
    }

    #[test]
    fn directories_of_all_users_are_not_our_own() {
        assert!(super::super::is_own(Path::new("/")));
        let directory = tempfile::tempdir().unwrap();
        let shared = directory.path().join("shared");
        let below = shared.join("below");
        create_dir(&below).unwrap();
        for mode in [0o777, 0o1777, 0o770] {
            fs::set_permissions(&shared, Permissions::from_mode(mode)).unwrap();
            assert!(!super::is_own(&shared) && !super::super::is_own(&below), "{mode:o}");
        }
        fs::set_permissions(&shared, Permissions::from_mode(0o755)).unwrap();
        assert!(super::is_own(&shared) && !super::super::is_own(&shared.join("missing")));
    }

    #[test]
    fn existing_files_become_private() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        for (before, changes) in [(0o644, true), (0o600, false), (0o660, true), (0o604, true), (0o400, false)]
        {
            let file = File::create(&path).unwrap();
            file.set_permissions(Permissions::from_mode(before)).unwrap();
            assert_eq!(super::super::tighten(&file).unwrap(), changes, "{before:o}");
            let after = file.metadata().unwrap().permissions().mode() & 0o777;
            assert_eq!(after, if changes { 0o600 } else { before }, "{before:o}");
            fs::remove_file(&path).unwrap();
        }
        assert!(!super::super::tighten(&append(Path::new("/dev/null")).unwrap()).unwrap());
    }

    #[test]
    fn a_fifo_does_not_block() {
        let directory = tempfile::tempdir().unwrap();
        let fifo = directory.path().join("fifo");
        assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
        for open in [append, append_and_wait] {
            let error = open(&fifo).unwrap_err();
            assert!(error.to_string().contains("a FIFO without a reader"), "{error}");
        }
        // Now that the FIFO has a reader, we can open it.
        let mut reader = OpenOptions::new().read(true).write(true).open(&fifo).unwrap();
        let mut writer = append(&fifo).unwrap();
        let full = std::iter::repeat_with(|| writer.write(&[b'x'; 1024])).find_map(Result::err).unwrap();
        assert_eq!(full.kind(), io::ErrorKind::WouldBlock);
        // `append_and_wait` blocks until there is space.
        let mut blocking = append_and_wait(&fifo).unwrap();
        let writer_thread = std::thread::spawn(move || blocking.write_all(b"last"));
        let mut bytes = Vec::new();
        while !bytes.ends_with(b"last") {
            let mut buffer = [0; 4096];
            let count = reader.read(&mut buffer).unwrap();
            bytes.extend_from_slice(&buffer[..count]);
        }
        writer_thread.join().unwrap().unwrap();
    }

    #[test]
    fn directories_and_devices() {
        let error = append(Path::new("/")).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::IsADirectory);
        append(Path::new("/dev/null")).unwrap();
    }
}
