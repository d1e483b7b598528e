//! Compares owners. A repository of the user, of root, or of the owner of the session's directory is accepted.

use std::{fs::Metadata, io, os::unix::fs::MetadataExt, path::Path};

use rustix::process::geteuid;

/// The mode of a directory such as `/tmp`: everyone can create files, but not replace those of others.
const SHARED: u32 = 0o1002;
/// The mode of a directory in which others than the owner can create files.
const WRITABLE: u32 = 0o022;

/// Returns true if another user could have created the repository at `root`, which contains `dir`.
pub(super) fn is_of_stranger(root: &Path, dir: &Path) -> bool {
    let metadata = || -> io::Result<[Metadata; 3]> {
        Ok([root.metadata()?, root.join(".git").symlink_metadata()?, dir.metadata()?])
    };
    let Ok([above, git, below]) = metadata() else { return true };
    let known = [0, geteuid().as_raw(), below.uid()];
    // A hard link to a file of root or of the user could be called `.git`. Directories of the user can be writable on file systems
    // without modes.
    let is_shared =
        above.mode() & SHARED == SHARED || above.mode() & WRITABLE != 0 && !known[1..].contains(&above.uid());
    is_shared || ![above.uid(), git.uid()].iter().all(|owner| known.contains(owner))
}

#[cfg(test)]
mod tests {
    use std::{
        fs::{self, Permissions},
        os::unix::fs::{PermissionsExt, lchown},
    };

    use super::*;

    const STRANGER: u32 = 54321;

    #[test]
    fn repositories_of_strangers() {
        if !geteuid().is_root() {
            // Only root can create files of another user.
            return;
        }
        // The owners of the root, of `.git` and of the session's directory, the mode of the root, and the result.
        let cases = [
            ([0, 0, 0], 0o755, false),
            ([STRANGER, STRANGER, STRANGER], 0o755, false),
            ([0, STRANGER, STRANGER], 0o755, false),
            ([0, STRANGER, 0], 0o755, true),
            ([0, STRANGER, 0], 0o1777, true),
            ([STRANGER, 0, 0], 0o755, true),
            ([STRANGER, STRANGER, 0], 0o755, true),
            ([0, 0, 0], 0o777, false),
            ([0, 0, 0], 0o1777, true),
            ([0, 0, STRANGER], 0o2775, false),
            ([STRANGER, STRANGER, STRANGER], 0o775, false),
            ([0, STRANGER, STRANGER], 0o1777, true),
        ];
        for (owners, mode, expected) in cases {
            let base = tempfile::tempdir().unwrap();
            let root = dunce::canonicalize(base.path()).unwrap();
            let (git, dir) = (root.join(".git"), root.join("a"));
            fs::create_dir(&git).unwrap();
            fs::create_dir(&dir).unwrap();
            for (path, owner) in [&root, &git, &dir].into_iter().zip(owners) {
                lchown(path, Some(owner), None).unwrap();
            }
            fs::set_permissions(&root, Permissions::from_mode(mode)).unwrap();
            assert_eq!(is_of_stranger(&root, &dir), expected, "{owners:?} {mode:o}");
            assert_eq!(super::super::root_of(&dir).is_none(), expected);
            assert_eq!(super::super::root_of(&root), Some(&*root), "the session's own directory");
        }
    }
}
