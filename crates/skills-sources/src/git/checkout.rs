//! Writes the files of a repository to a new directory.
//!
//! Git's own checkout would obey the repository: attributes start filter programs, symbolic links are created, and submodules are
//! entered. This module writes regular files only, through a directory handle that paths can't escape from.

use std::{
    io::{self, BufRead, BufReader, Read, Write},
    path::Path,
};

use cap_std::{
    ambient_authority,
    fs::{Dir, OpenOptions},
};

use super::{
    super::system,
    BLOCK_BYTES, GitError,
    error::mebibytes,
    tree::{Selection, Wanted},
};

/// The maximum size of a file, in bytes. Larger files aren't served to models either.
pub(super) const MAX_FILE_BYTES: u64 = skills_core::files::HARD_CAP_BYTES;

/// The maximum size of a Git LFS pointer, in bytes.
const MAX_POINTER_BYTES: u64 = 1024;

/// Writes selected files to a directory, within a limit.
pub(crate) struct Writer<'a> {
    dir: Dir,
    path: &'a Path,
    total: u64,
    max_bytes: u64,
    /// The paths of Git LFS pointers. These are not written, because they are not the files that the author meant.
    pub(crate) pointers: Vec<String>,
}

impl<'a> Writer<'a> {
    /// Creates a writer for a directory. The files may need `max_bytes` with their directories.
    pub(crate) fn new(path: &'a Path, selection: &Selection, max_bytes: u64) -> Result<Self, GitError> {
        let dir = Dir::open_ambient_dir(path, ambient_authority())
            .map_err(|source| GitError::Write { path: path.to_owned(), source })?;
        let total = selection.directories as u64 * BLOCK_BYTES;
        Ok(Self { dir, path, total, max_bytes, pointers: Vec::new() })
    }

    /// Writes a file with the next `size` bytes of `content`. `unreadable` returns the error for content that can't be read.
    pub(crate) fn write(
        &mut self,
        file: &Wanted,
        size: u64,
        content: &mut dyn Read,
        unreadable: &dyn Fn(io::Error) -> GitError,
    ) -> Result<(), GitError> {
        let failed = |source| GitError::Write { path: self.path.to_owned(), source };
        if size > MAX_FILE_BYTES {
            return Err(GitError::FileTooLarge(file.path.clone()));
        }
        self.total += size.max(1).next_multiple_of(BLOCK_BYTES);
        if self.total > self.max_bytes {
            return Err(GitError::TooMuch(format!("skills are larger than {}", mebibytes(self.max_bytes))));
        }
        let mut content = content.take(size);
        let mut start = Vec::new();
        (&mut content).take(MAX_POINTER_BYTES).read_to_end(&mut start).map_err(unreadable)?;
        if start.len() as u64 == size && is_pointer(&start) {
            self.pointers.push(file.path.clone());
            return Ok(());
        }
        if let Some((parent, _)) = file.path.rsplit_once('/') {
            self.dir.create_dir_all(parent).map_err(failed)?;
        }
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        system::protect(&mut options, file.is_program);
        let mut target = self.dir.open_with(&file.path, &options).map_err(failed)?;
        target.write_all(&start).map_err(failed)?;
        let mut buffer = [0; 8 * 1024];
        loop {
            match content.read(&mut buffer) {
                Ok(0) => break,
                Ok(length) => target.write_all(&buffer[..length]).map_err(failed)?,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(unreadable(error)),
            }
        }
        target.flush().map_err(failed)?;
        if content.limit() > 0 { Err(unreadable(io::ErrorKind::UnexpectedEof.into())) } else { Ok(()) }
    }
}

/// Reads the output of `git cat-file --batch` for the selected files, in their order, and writes the files. Fails if
/// they need more than `max_bytes` with their directories. Returns the paths of Git LFS pointers.
pub(super) fn write(
    output: &mut dyn Read,
    selection: &Selection,
    directory: &Path,
    max_bytes: u64,
) -> Result<Vec<String>, GitError> {
    let system = |source| GitError::System { what: "cat-file".to_owned(), source };
    let mut writer = Writer::new(directory, selection, max_bytes)?;
    let mut output = BufReader::with_capacity(256 * 1024, output);
    for file in &selection.wanted {
        let size = read_header(&mut output, file).map_err(system)?;
        writer.write(file, size, &mut output, &system)?;
        read_end(&mut output).map_err(system)?;
    }
    Ok(writer.pointers)
}

/// Returns true if the content of a file is a pointer to a file in [Git LFS](https://github.com/git-lfs/git-lfs/blob/main/docs/spec.md).
fn is_pointer(content: &[u8]) -> bool {
    ["version https://git-lfs.github.com/spec/", "version https://hawser.github.com/spec/"]
        .iter()
        .any(|version| content.starts_with(version.as_bytes()))
        && content.windows(4).any(|bytes| bytes == b"oid ")
}

/// Reads the line break that git writes after each file.
fn read_end(output: &mut impl Read) -> io::Result<()> {
    let mut end = [0];
    output.read_exact(&mut end)?;
    if end == *b"\n" { Ok(()) } else { Err(io::ErrorKind::InvalidData.into()) }
}

/// Reads the header of the next file, `OBJECT blob SIZE`, and returns the size.
fn read_header(output: &mut impl BufRead, file: &Wanted) -> io::Result<u64> {
    let mut line = String::new();
    output.take(256).read_line(&mut line)?;
    let [object, "blob", size] = line.trim_end().split(' ').collect::<Vec<_>>()[..] else {
        let line = line.trim_end();
        return Err(io::Error::new(
            io::ErrorKind::InvalidData,
            format!("`{}` is missing: {line}", file.path),
        ));
    };
    size.parse().ok().filter(|_| object == file.object).ok_or_else(|| io::ErrorKind::InvalidData.into())
}
