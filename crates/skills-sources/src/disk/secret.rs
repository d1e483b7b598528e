//! The secret of an installation: random bytes that the first process creates, and that all later ones read.

use std::{
    fs,
    io::{self, ErrorKind, Write},
    path::Path,
};

use tempfile::NamedTempFile;

use super::{private, replace};

/// The length of a secret, in bytes.
pub const SECRET_BYTES: usize = 32;

/// The name of the file.
const FILE: &str = "marks.key";

/// Returns the secret in the directory `dir`. If there is none, stores `new`, which is random, in a file that only its owner can
/// read.
///
/// If several processes create the file at the same time, all of them get the same secret. A file with other content is replaced,
/// and so is a secret that other users could read. Processes that replace a file at the same time can get different secrets.
///
/// # Errors
/// Returns the system's error if the secret can't be read or stored, and an error if its path is not a regular file.
pub fn secret(dir: &Path, new: [u8; SECRET_BYTES]) -> io::Result<[u8; SECRET_BYTES]> {
    let path = dir.join(FILE);
    let is_new = match read(&path) {
        Ok(Some(secret)) => return Ok(secret),
        Ok(None) => false,
        Err(error) if error.kind() == ErrorKind::NotFound => true,
        Err(error) => return Err(error),
    };
    private::create_dir(dir)?;
    // Temporary files are private from the start.
    let mut file = NamedTempFile::new_in(dir)?;
    file.write_all(hex(new).as_bytes())?;
    if !is_new {
        replace(file, &path)?;
    } else if let Err(error) = file.persist_noclobber(&path)
        && error.error.kind() != ErrorKind::AlreadyExists
    {
        return Err(error.error);
    }
    // Another process may have stored its secret in the meantime, so use the one that is there now.
    read(&path)?
        .ok_or_else(|| io::Error::new(ErrorKind::InvalidData, "file was changed while it was written"))
}

/// Reads a secret. Returns `None` if the file has other content, or if other users could read it.
fn read(path: &Path) -> io::Result<Option<[u8; SECRET_BYTES]>> {
    // Opening a FIFO would block.
    if !fs::symlink_metadata(path)?.is_file() {
        return Err(io::Error::new(ErrorKind::InvalidData, "not a regular file"));
    }
    if private::tighten(&fs::File::open(path)?)? {
        return Ok(None);
    }
    match private::read(path, 2 * SECRET_BYTES as u64 + 1) {
        Ok(text) => Ok(from_hex(text.trim_ascii_end())),
        // The file is too large.
        Err(error) if error.kind() == ErrorKind::InvalidData => Ok(None),
        Err(error) => Err(error),
    }
}

fn hex(secret: [u8; SECRET_BYTES]) -> String {
    let digit = |digit: u8| char::from_digit(digit.into(), 16).unwrap_or_default();
    secret.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).chain(['\n']).collect()
}

fn from_hex(text: &[u8]) -> Option<[u8; SECRET_BYTES]> {
    let (pairs, []) = text.as_chunks::<2>() else { return None };
    let digit = |digit: u8| char::from(digit).to_digit(16);
    let bytes: Option<Vec<u8>> =
        pairs.iter().map(|&[high, low]| u8::try_from(digit(high)? << 4 | digit(low)?).ok()).collect();
    bytes?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn a_secret_is_kept() {
        let directory = tempfile::tempdir().unwrap();
        let dir = directory.path().join("a/b");
        assert_eq!(secret(&dir, [0xa1; SECRET_BYTES]).unwrap(), [0xa1; SECRET_BYTES]);
        assert_eq!(secret(&dir, [2; SECRET_BYTES]).unwrap(), [0xa1; SECRET_BYTES]);
        assert_eq!(fs::read_dir(&dir).unwrap().count(), 1, "no temporary file is left");
        // Files with other content are replaced.
        for text in ["", "x", &"a".repeat(63), &"g".repeat(64), &"a".repeat(66), &"a".repeat(1 << 20), "é"] {
            fs::write(dir.join(FILE), text).unwrap();
            assert_eq!(secret(&dir, [2; SECRET_BYTES]).unwrap(), [2; SECRET_BYTES], "{text:.70}");
            assert_eq!(secret(&dir, [3; SECRET_BYTES]).unwrap(), [2; SECRET_BYTES], "{text:.70}");
        }
    }

    #[test]
    fn processes_that_start_together_get_one_secret() {
        for _ in 0..20 {
            let directory = tempfile::tempdir().unwrap();
            let dir = directory.path().join("state");
            let starts = |number: u8| secret(&dir, [number; SECRET_BYTES]).unwrap();
            let secrets: Vec<_> = thread::scope(|scope| {
                let threads: Vec<_> = (0..8).map(|number| scope.spawn(move || starts(number))).collect();
                threads.into_iter().map(|thread| thread.join().unwrap()).collect()
            });
            assert!(secrets.iter().all(|secret| *secret == secrets[0]), "{secrets:?}");
            assert_eq!(starts(9), secrets[0]);
        }
    }

    #[test]
    fn a_directory_that_cannot_be_created() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("file");
        fs::write(&file, "").unwrap();
        secret(&file, [1; SECRET_BYTES]).unwrap_err();
        secret(&file.join("below"), [1; SECRET_BYTES]).unwrap_err();
        fs::create_dir(directory.path().join(FILE)).unwrap();
        secret(directory.path(), [1; SECRET_BYTES]).unwrap_err();
    }

    #[cfg(unix)]
    #[test]
    fn other_users_never_know_the_secret() {
        use std::os::unix::fs::{PermissionsExt, symlink};
        let directory = tempfile::tempdir().unwrap();
        let dir = directory.path().join("state");
        let file = dir.join(FILE);
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        secret(&dir, [1; SECRET_BYTES]).unwrap();
        assert_eq!((mode(&dir), mode(&file)), (0o700, 0o600));
        // A secret that others could read is not used again.
        fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
        assert_eq!(secret(&dir, [2; SECRET_BYTES]).unwrap(), [2; SECRET_BYTES]);
        assert_eq!(mode(&file), 0o600);
        // A link or a FIFO is left alone.
        let other = directory.path().join("other");
        fs::write(&other, hex([3; SECRET_BYTES])).unwrap();
        fs::remove_file(&file).unwrap();
        symlink(&other, &file).unwrap();
        secret(&dir, [4; SECRET_BYTES]).unwrap_err();
        fs::remove_file(&file).unwrap();
        assert!(std::process::Command::new("mkfifo").arg(&file).status().unwrap().success());
        secret(&dir, [4; SECRET_BYTES]).unwrap_err();
    }
}
