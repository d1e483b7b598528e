//! Opens a directory on other systems: component by component, each relative to the handle of its parent. Needs read
//! permission for all parent directories.

use std::path::Path;

use cap_fs_ext::DirExt;
use cap_std::{ambient_authority, fs::Dir};

use crate::files::{FileError, open::explain_sharing_violation};

/// Opens the directory at the absolute `path`.
pub(in crate::files) fn open_without_links(path: &Path) -> Result<Dir, FileError> {
    let failed =
        |source| FileError::Directory { dir: path.to_owned(), source: explain_sharing_violation(source) };
    let root = path.ancestors().last().unwrap_or(path);
    let mut dir = Dir::open_ambient_dir(root, ambient_authority()).map_err(failed)?;
    for name in path.strip_prefix(root).unwrap_or(path) {
        dir = match dir.open_dir_nofollow(name) {
            Ok(child) => child,
            Err(_) if dir.symlink_metadata(name).is_ok_and(|metadata| metadata.is_symlink()) => {
                return Err(FileError::LinkInPath { dir: path.to_owned() });
            }
            Err(error) => return Err(failed(error)),
        };
    }
    Ok(dir)
}
