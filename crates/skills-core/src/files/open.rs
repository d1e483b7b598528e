//! Opens a path under a directory without blocking, and checks its type after that.

#[cfg_attr(windows, path = "open/windows.rs")]
#[cfg_attr(not(windows), path = "open/unix.rs")]
mod platform;

use std::{io, path::Path};

use cap_std::fs::{Dir, File};

use super::metadata::{Metadata, of_file};
pub(super) use platform::explain_sharing_violation;

/// An opened file or directory.
pub(super) enum Opened {
    File(File, Metadata),
    Dir(Dir),
    /// A FIFO, a socket or a device.
    Special,
}

/// Opens `path` relative to `dir`. Fails if the path leads out of `dir`.
pub(super) fn open_any(dir: &Dir, path: &Path) -> io::Result<Opened> {
    let file = platform::open(dir, path)?;
    let (file, metadata) = of_file(file)?;
    Ok(if metadata.is_file() {
        Opened::File(file, metadata)
    } else if metadata.is_dir() {
        Opened::Dir(Dir::from_std_file(file.into_std()))
    } else {
        Opened::Special
    })
}
