//! Reads regular files with a limit. The size of a file is no limit: files below `/proc` have none, and can be larger than the memory.

use std::{
    fs::{self, File},
    io::{self, Read},
    path::Path,
};

/// Reads a regular file of at most `max_bytes` bytes.
///
/// # Errors
/// Returns the system's error if the file can't be read, [`FileTooLarge`](io::ErrorKind::FileTooLarge) if it is larger, and an error of
/// the kind [`Other`](io::ErrorKind::Other) if it is not a regular file.
pub fn read(path: &Path, max_bytes: u64) -> io::Result<Vec<u8>> {
    let irregular = || io::Error::other("not a regular file");
    // Opening a FIFO would block.
    if !fs::metadata(path)?.is_file() {
        return Err(irregular());
    }
    let file = File::open(path)?;
    if !file.metadata()?.is_file() {
        return Err(irregular());
    }
    let mut bytes = Vec::new();
    file.take(max_bytes.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > max_bytes {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    Ok(bytes)
}

/// Reads a file as [`read`] does, and returns it as text.
///
/// # Errors
/// Returns the errors of [`read`], and [`InvalidData`](io::ErrorKind::InvalidData) if the file is not UTF-8.
pub fn read_text(path: &Path, max_bytes: u64) -> io::Result<String> {
    String::from_utf8(read(path, max_bytes)?)
        .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "the file is not valid UTF-8"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_is_exact() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("file");
        fs::write(&file, "1234").unwrap();
        assert_eq!(read_text(&file, 4).unwrap(), "1234");
        assert_eq!(read(&file, 3).unwrap_err().kind(), io::ErrorKind::FileTooLarge);
        assert_eq!(read(dir.path(), 4).unwrap_err().kind(), io::ErrorKind::Other);
        // A regular file without a size, which is larger than the memory.
        #[cfg(target_os = "linux")]
        assert!(read(Path::new("/proc/self/pagemap"), 10_000).is_err());
    }
}
