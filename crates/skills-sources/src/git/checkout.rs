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

use super::{super::system, GitError, tree::Wanted};

/// The maximum size of a file, in bytes. Larger files aren't served to models either.
pub(super) const MAX_FILE_BYTES: u64 = skills_core::files::HARD_CAP_BYTES;
/// The maximum size of all files of a source, in bytes.
pub(super) const MAX_TOTAL_BYTES: u64 = 512 * 1024 * 1024;

/// Reads the output of `git cat-file --batch` for the `wanted` files, in their order, and writes the files.
pub(super) fn write(output: &mut dyn Read, wanted: &[Wanted], directory: &Path) -> Result<(), GitError> {
    let failed = |source| GitError::Write { path: directory.to_owned(), source };
    let system = |source| GitError::System { what: "cat-file".to_owned(), source };
    let dir = Dir::open_ambient_dir(directory, ambient_authority()).map_err(failed)?;
    let mut output = BufReader::with_capacity(256 * 1024, output);
    let mut total = 0;
    for file in wanted {
        let size = read_header(&mut output, file).map_err(system)?;
        total += size;
        if size > MAX_FILE_BYTES {
            return Err(GitError::TooMuch(format!("`{}` is larger than {MAX_FILE_BYTES} bytes", file.path)));
        }
        if total > MAX_TOTAL_BYTES {
            return Err(GitError::TooMuch(format!("skills are larger than {MAX_TOTAL_BYTES} bytes")));
        }
        if let Some((parent, _)) = file.path.rsplit_once('/') {
            dir.create_dir_all(parent).map_err(failed)?;
        }
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        system::protect(&mut options, file.is_program);
        let mut target = dir.open_with(&file.path, &options).map_err(failed)?;
        let copied = io::copy(&mut (&mut output).take(size), &mut target).map_err(failed)?;
        target.flush().map_err(failed)?;
        let mut end = [0];
        output.read_exact(&mut end).map_err(system)?;
        if copied != size || end != *b"\n" {
            return Err(system(io::ErrorKind::UnexpectedEof.into()));
        }
    }
    Ok(())
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
