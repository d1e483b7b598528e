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

/// Reads the output of `git cat-file --batch` for the selected files, in their order, and writes the files. Fails if
/// they need more than `max_bytes` with their directories. Git LFS pointers are not written, because they are not the files that the
/// author meant. Returns their paths.
pub(super) fn write(
    output: &mut dyn Read,
    selection: &Selection,
    directory: &Path,
    max_bytes: u64,
) -> Result<Vec<String>, GitError> {
    let failed = |source| GitError::Write { path: directory.to_owned(), source };
    let system = |source| GitError::System { what: "cat-file".to_owned(), source };
    let dir = Dir::open_ambient_dir(directory, ambient_authority()).map_err(failed)?;
    let mut output = BufReader::with_capacity(256 * 1024, output);
    let mut total = selection.directories as u64 * BLOCK_BYTES;
    let mut pointers = Vec::new();
    for file in &selection.wanted {
        let size = read_header(&mut output, file).map_err(system)?;
        if size > MAX_FILE_BYTES {
            return Err(GitError::FileTooLarge(file.path.clone()));
        }
        total += size.max(1).next_multiple_of(BLOCK_BYTES);
        if total > max_bytes {
            return Err(GitError::TooMuch(format!("skills are larger than {}", mebibytes(max_bytes))));
        }
        let mut start = Vec::new();
        (&mut output).take(size.min(MAX_POINTER_BYTES)).read_to_end(&mut start).map_err(system)?;
        let rest = size - start.len() as u64;
        if rest == 0 && is_pointer(&start) {
            pointers.push(file.path.clone());
            read_end(&mut output).map_err(system)?;
            continue;
        }
        if let Some((parent, _)) = file.path.rsplit_once('/') {
            dir.create_dir_all(parent).map_err(failed)?;
        }
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        system::protect(&mut options, file.is_program);
        let mut target = dir.open_with(&file.path, &options).map_err(failed)?;
        target.write_all(&start).map_err(failed)?;
        let copied = io::copy(&mut (&mut output).take(rest), &mut target).map_err(failed)?;
        target.flush().map_err(failed)?;
        if copied != rest {
            return Err(system(io::ErrorKind::UnexpectedEof.into()));
        }
        read_end(&mut output).map_err(system)?;
    }
    Ok(pointers)
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
