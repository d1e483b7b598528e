//! Writes files of a repository below a fresh directory.
//!
//! Git's own checkout obeys the repository: attributes start filter programs, links are made, submodules are entered. Here
//! bytes become regular files and nothing else, through a handle of the directory that nothing leads out of.

use std::{
    io::{self, BufRead, BufReader, Read, Write},
    path::Path,
};

use cap_std::{
    ambient_authority,
    fs::{Dir, OpenOptions},
};

use super::{super::system, GitError, tree::Wanted};

/// Largest file, in bytes. Models are not served larger ones.
pub(super) const MAX_FILE_BYTES: u64 = skills_core::files::HARD_CAP_BYTES;
/// Largest sum of all files of a source, in bytes.
pub(super) const MAX_TOTAL_BYTES: u64 = 512 * 1024 * 1024;

/// Reads the answers of `git cat-file --batch` to the names of these files, in their order, and writes the files.
pub(super) fn write(output: &mut dyn Read, wanted: &[Wanted], directory: &Path) -> Result<(), GitError> {
    let failed = |source| GitError::Write { path: directory.to_owned(), source };
    let system = |source| GitError::System { what: "cat-file".to_owned(), source };
    let dir = Dir::open_ambient_dir(directory, ambient_authority()).map_err(failed)?;
    let mut output = BufReader::with_capacity(256 * 1024, output);
    let mut total = 0;
    for file in wanted {
        let size = answered(&mut output, file).map_err(system)?;
        total += size;
        if size > MAX_FILE_BYTES {
            return Err(GitError::TooMuch(format!("`{}` has more than {MAX_FILE_BYTES} bytes", file.path)));
        }
        if total > MAX_TOTAL_BYTES {
            return Err(GitError::TooMuch(format!("its skills have more than {MAX_TOTAL_BYTES} bytes")));
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

/// The size of the file that comes next: `OBJECT blob SIZE`.
fn answered(output: &mut impl BufRead, file: &Wanted) -> io::Result<u64> {
    let mut line = String::new();
    output.take(256).read_line(&mut line)?;
    let [object, "blob", size] = line.trim_end().split(' ').collect::<Vec<_>>()[..] else {
        let line = line.trim_end();
        return Err(io::Error::new(
            io::ErrorKind::InvalidData,
            format!("there is no `{}`: {line}", file.path),
        ));
    };
    size.parse().ok().filter(|_| object == file.object).ok_or_else(|| io::ErrorKind::InvalidData.into())
}
