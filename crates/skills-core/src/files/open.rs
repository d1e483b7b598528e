//! Opens what is at a path below a directory, confined to it and without blocking, and only then looks what it is.

#[cfg_attr(windows, path = "open/windows.rs")]
#[cfg_attr(not(windows), path = "open/unix.rs")]
mod platform;

use std::{io, path::Path};

use cap_std::fs::{Dir, File, Metadata};

pub(super) use platform::in_plain_words;

/// What an open gave.
pub(super) enum Opened {
    File(File, Metadata),
    Dir(Dir),
    Special,
}

/// Opens `path`, which is relative to `dir` and cannot lead out of it.
pub(super) fn open_any(dir: &Dir, path: &Path) -> io::Result<Opened> {
    let file = platform::open(dir, path)?;
    let metadata = file.metadata()?;
    Ok(if metadata.is_file() {
        Opened::File(file, metadata)
    } else if metadata.is_dir() {
        Opened::Dir(Dir::from_std_file(file.into_std()))
    } else {
        Opened::Special
    })
}
