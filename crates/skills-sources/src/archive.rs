//! Unpacks the skills of an archive. The archive is untrusted.
//!
//! | file | responsible for |
//! |---|---|
//! | `tar` | reading tar archives that are compressed with gzip |
//! | `zip` | reading zip archives |
//!
//! Only regular files are written, and only those of skills, like the files of a repository ([`tree::select`]). An archive that
//! programs could read in different ways is rejected as a whole: for example, if a path leads out of the directory, if a path occurs
//! twice, or if a zip archive has two names for a file.
//!
//! The archive is read twice: first for the paths of its entries, and then for the contents of the selected files.

mod tar;
mod zip;

use std::{
    collections::HashSet,
    fs::File,
    io::{self, BufReader, Read, Seek},
    path::Path,
    time::Instant,
};

use skills_core::text::shown;

use super::git::{
    GitError, Limits,
    checkout::Writer,
    mebibytes,
    tree::{self, Entry, Mode},
};
use super::paths::has_safe_length;

/// An entry of an archive.
#[derive(Debug)]
struct Member {
    /// The path as it is written in the archive.
    path: Vec<u8>,
    kind: Kind,
    /// The size of the content in bytes.
    size: u64,
}

/// The kind of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Directory,
    File(Mode),
}

/// A callback for each entry and its content.
type Visit<'a> = &'a mut dyn FnMut(&Member, &mut dyn Read) -> Result<(), GitError>;

/// Unpacks the skills in `archive` to `directory`, which must be empty. If all files are in the same directory at the top, its name is
/// removed from their paths, because it often contains the version. Returns notes for the user about files that were left out.
///
/// # Errors
/// Returns [`GitError::Archive`] if the archive is invalid or ambiguous, [`GitError::LargeArchive`] if it exceeds a limit, and
/// [`GitError::Write`] if a file can't be written.
pub(super) fn unpack(archive: &mut File, directory: &Path, limits: &Limits) -> Result<Vec<String>, GitError> {
    let mut listing = Listing { limits, entries: Vec::new(), path_bytes: 0 };
    read(archive, limits, &mut |member, _| listing.add(member))?;
    let mut entries = listing.entries;
    remove_top(&mut entries);
    check_names(&entries)?;
    let selection = tree::select(&entries, limits).map_err(of_archive)?;
    let mut writer = Writer::new(directory, &selection, limits.bytes)?;
    let mut wanted = selection.wanted.iter().peekable();
    let mut number = 0;
    read(archive, limits, &mut |member, content| {
        if !matches!(member.kind, Kind::File(_)) {
            return Ok(());
        }
        let object = number.to_string();
        number += 1;
        let Some(file) = wanted.next_if(|file| file.object == object) else { return Ok(()) };
        writer.write(file, member.size, content, &unreadable).map_err(of_archive)
    })?;
    Ok([selection.notes.clone(), tree::notes_on_pointers(&selection.wanted, &writer.pointers)].concat())
}

/// Calls `visit` for each entry of an archive, whose format is recognized by its first bytes.
fn read(archive: &mut File, limits: &Limits, visit: Visit<'_>) -> Result<(), GitError> {
    archive.rewind().map_err(unreadable)?;
    let mut start = [0; 4];
    let length = archive.read(&mut start).map_err(unreadable)?;
    archive.rewind().map_err(unreadable)?;
    match &start[..length] {
        [0x1f, 0x8b, ..] => {
            let input = Timed { input: archive, deadline: Instant::now() + limits.total, limits };
            tar::read(BufReader::new(input), limits.bytes, visit)
        }
        [b'P', b'K', 3 | 5, 4 | 6] => zip::read(archive, limits, visit),
        _ => Err(invalid("it is neither a tar.gz nor a zip file")),
    }
}

/// Collects the entries of an archive, within limits.
struct Listing<'a> {
    limits: &'a Limits,
    entries: Vec<Entry>,
    path_bytes: u64,
}

impl Listing<'_> {
    fn add(&mut self, member: &Member) -> Result<(), GitError> {
        let path = plain(&member.path)?;
        self.path_bytes += path.len() as u64;
        if self.path_bytes > self.limits.path_bytes() {
            return Err(too_large(format!(
                "file paths are larger than {}",
                mebibytes(self.limits.path_bytes())
            )));
        }
        let Kind::File(mode) = member.kind else { return Ok(()) };
        if self.entries.len() == self.limits.entries() {
            return Err(too_large(format!("more than {} files", self.limits.entries())));
        }
        // The number of the file identifies its content.
        self.entries.push(Entry::new(mode, self.entries.len().to_string(), path.to_vec()));
        Ok(())
    }
}

/// Returns a path without `./` at its beginning and `/` at its end.
///
/// # Errors
/// Returns an error if the path leads out of the directory, or could do so on any operating system.
fn plain(path: &[u8]) -> Result<&[u8], GitError> {
    let mut plain = path;
    while let [b'.', b'/', rest @ ..] = plain {
        plain = rest;
    }
    while let [rest @ .., b'/'] = plain {
        plain = rest;
    }
    let has_drive = matches!(plain, [letter, b':', ..] if letter.is_ascii_alphabetic());
    let leaves = path.starts_with(b"/")
        || has_drive
        || plain.split(|byte| matches!(byte, b'/' | b'\\')).any(|name| name == b"..");
    if leaves {
        return Err(invalid(format!("the path {} leads out of the directory", quoted(path))));
    }
    // A reader on Windows would see directories in this name.
    if plain.contains(&b'\\') || plain.contains(&0) {
        return Err(invalid(format!("the path {} contains a character that is not allowed", quoted(path))));
    }
    Ok(plain)
}

/// Checks that no path occurs twice, and that no file is also the directory of another file. Paths that are too long to be written are
/// ignored, because a path with many directories would take quadratic time.
fn check_names(entries: &[Entry]) -> Result<(), GitError> {
    let paths = || entries.iter().map(Entry::path).filter(|path| has_safe_length(path));
    let mut files = HashSet::new();
    for path in paths() {
        if !files.insert(path) {
            return Err(invalid(format!("it contains {} twice", quoted(path))));
        }
    }
    for path in paths() {
        let ends = path.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(at, _)| at);
        if let Some(end) = ends.into_iter().find(|end| files.contains(&path[..*end])) {
            return Err(invalid(format!("{} is a file and a directory", quoted(&path[..end]))));
        }
    }
    Ok(())
}

/// Removes the first name of all paths if it is the same in all of them and is that of a directory.
fn remove_top(entries: &mut [Entry]) {
    let top = |entry: &Entry| entry.path().iter().position(|byte| *byte == b'/');
    let Some(end) = entries.first().and_then(top) else { return };
    let name = entries[0].path()[..=end].to_vec();
    if entries.iter().all(|entry| entry.path().starts_with(&name)) {
        for entry in entries {
            entry.remove_start(name.len());
        }
    }
}

/// Returns the error for an archive that is invalid or ambiguous. `why` is a clause.
fn invalid(why: impl Into<String>) -> GitError {
    GitError::Archive(why.into())
}

/// Returns the error for an archive that exceeds a limit.
fn too_large(why: String) -> GitError {
    GitError::LargeArchive(why)
}

/// Returns the error for content that can't be read.
pub(super) fn unreadable(error: io::Error) -> GitError {
    match error.downcast::<GitError>() {
        Ok(error) => error,
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => invalid("it is truncated"),
        Err(error) => invalid(error.to_string()),
    }
}

/// Converts an error about a repository to one about an archive.
fn of_archive(error: GitError) -> GitError {
    match error {
        GitError::TooMuch(why) => too_large(why),
        GitError::FileTooLarge(path) => too_large(format!("`{}` is larger than 64 MiB", shown(&path))),
        error => error,
    }
}

/// Returns a path for a message.
fn quoted(path: &[u8]) -> String {
    let text = String::from_utf8_lossy(path);
    let short: String = text.chars().take(100).collect();
    format!("`{}{}`", shown(&short), if short.len() < text.len() { "…" } else { "" })
}

/// Reads until a deadline. Compressed data can have millions of parts that unpack to nothing.
struct Timed<'a> {
    input: &'a mut File,
    deadline: Instant,
    limits: &'a Limits,
}

impl Read for Timed<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if Instant::now() >= self.deadline {
            let why = format!("it takes more than {} s to unpack", self.limits.total.as_secs());
            return Err(io::Error::other(too_large(why)));
        }
        self.input.read(buffer)
    }
}

/// Reads at most a number of bytes. More bytes are an error that names the limit, which stops bombs.
struct Limited<R> {
    input: R,
    left: u64,
    max: u64,
}

impl<R> Limited<R> {
    fn new(input: R, max: u64) -> Self {
        Self { input, left: max, max }
    }
}

impl<R: Read> Read for Limited<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.input.read(buffer)?;
        self.left = self.left.checked_sub(length as u64).ok_or_else(|| {
            io::Error::other(too_large(format!("it unpacks to more than {}", mebibytes(self.max))))
        })?;
        Ok(length)
    }
}

#[cfg(test)]
mod tests;
