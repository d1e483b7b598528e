//! Metadata from `cap_std`.

use std::{io, path::Path};

use cap_std::{
    fs::{self, Dir, DirEntry, File},
    time::SystemTime,
};

use super::{Metadata, Type};

pub(super) fn of(file: &File) -> io::Result<Metadata> {
    file.metadata().map(from)
}

pub(super) fn at(dir: &Dir, path: &Path, follows: bool) -> io::Result<Metadata> {
    if follows { dir.metadata(path) } else { dir.symlink_metadata(path) }.map(from)
}

pub(super) fn of_entry(entry: &DirEntry) -> io::Result<Metadata> {
    entry.metadata().map(from)
}

fn from(metadata: fs::Metadata) -> Metadata {
    let kind = if metadata.is_file() {
        Type::File
    } else if metadata.is_dir() {
        Type::Dir
    } else if metadata.is_symlink() {
        Type::Link
    } else {
        Type::Special
    };
    Metadata { kind, len: metadata.len(), modified: metadata.modified().ok().map(SystemTime::into_std) }
}
