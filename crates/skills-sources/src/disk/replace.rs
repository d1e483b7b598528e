//! Replaces files that other processes may have open.

use std::{
    io,
    path::Path,
    thread,
    time::{Duration, Instant},
};

use tempfile::NamedTempFile;

/// The time for which replacing a file is retried on Windows, where it fails while another process has the file open.
const TIMEOUT: Duration = Duration::from_secs(5);
/// The time between two attempts.
const PAUSE: Duration = Duration::from_millis(5);
/// The error codes of Windows for a file that is in use: `ERROR_ACCESS_DENIED`, `ERROR_SHARING_VIOLATION` and
/// `ERROR_LOCK_VIOLATION`.
const IN_USE: [i32; 3] = [5, 32, 33];

/// Moves a temporary file to `path`, and replaces an existing file there. On Windows, this is retried for five seconds if another
/// process has the existing file open.
///
/// # Errors
/// Returns the system's error if the file can't be replaced. The temporary file is then removed.
pub fn replace(file: NamedTempFile, path: &Path) -> io::Result<()> {
    retry(cfg!(windows), file, |file| match file.persist(path) {
        Ok(_) => Ok(()),
        Err(error) => Err((error.error, error.file)),
    })
}

/// Calls `attempt` with `file` until it succeeds. It is called again only if `is_windows` is set and the file is in use.
fn retry<T>(
    is_windows: bool,
    mut file: T,
    mut attempt: impl FnMut(T) -> Result<(), (io::Error, T)>,
) -> io::Result<()> {
    let started = Instant::now();
    loop {
        let Err((error, same)) = attempt(file) else { return Ok(()) };
        let is_in_use = is_windows && error.raw_os_error().is_some_and(|code| IN_USE.contains(&code));
        if !is_in_use || started.elapsed() >= TIMEOUT {
            return Err(error);
        }
        file = same;
        thread::sleep(PAUSE);
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_file_in_use_is_retried_on_windows() {
        let attempts = |is_windows, failures, code| {
            let mut count = 0;
            let result = retry(is_windows, (), |()| {
                count += 1;
                if count > failures { Ok(()) } else { Err((io::Error::from_raw_os_error(code), ())) }
            });
            (count, result.is_ok())
        };
        for code in IN_USE {
            assert_eq!(attempts(true, 3, code), (4, true));
            assert_eq!(attempts(false, 3, code), (1, false));
        }
        // Other errors, such as a missing directory, stay.
        assert_eq!(attempts(true, 3, 2), (1, false));
    }

    #[test]
    fn readers_dont_prevent_a_replacement() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        fs::write(&path, "0").unwrap();
        thread::scope(|scope| {
            scope.spawn(|| {
                let started = Instant::now();
                while started.elapsed() < TIMEOUT / 10 {
                    // On Windows, this can fail while the file is replaced.
                    let _ = fs::read(&path);
                }
            });
            for number in 0..100 {
                let file = NamedTempFile::new_in(dir.path()).unwrap();
                fs::write(file.path(), number.to_string()).unwrap();
                replace(file, &path).unwrap();
            }
        });
        assert_eq!(fs::read(&path).unwrap(), b"99");
    }
}
