//! The sockets of the system, which a sandbox must not contain.

use std::{
    fs,
    os::unix::fs::FileTypeExt,
    path::{Path, PathBuf},
};

/// The directories that contain the system's sockets, apart from the user's runtime directory. `/var/run` is nearly always a
/// link to `/run`.
const SOCKET_DIRECTORIES: [&str; 3] = ["/run", "/tmp", "/var/run"];

/// Returns true if the path is that of a socket.
#[must_use]
pub fn is_socket(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|metadata| metadata.file_type().is_socket())
}

/// Lists the existing directories that are empty in the sandbox, with links resolved.
#[must_use]
pub fn directories() -> Vec<PathBuf> {
    let runtime_dir = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|dir| dir.is_absolute());
    let all = SOCKET_DIRECTORIES.into_iter().map(PathBuf::from).chain(runtime_dir);
    let mut found: Vec<PathBuf> = Vec::new();
    for dir in all.filter_map(|dir| fs::canonicalize(dir).ok()).filter(|dir| dir.is_dir()) {
        if !found.iter().any(|parent| dir.starts_with(parent)) {
            found.push(dir);
        }
    }
    found
}
