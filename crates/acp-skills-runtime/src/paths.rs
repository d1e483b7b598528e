//! [`resolve`]: the file that a path of a tool call refers to.
//!
//! Permission rules are about real files, and a path can pass through symbolic links. All callers resolve paths with the
//! function in this file, so that a path means the same to each of them.

use std::{
    io,
    path::{Path, PathBuf},
};

use acp_skills_intercept::{Resolved, Workspace};

/// Returns `path` without symbolic links. A relative path starts at `base`.
///
/// The file and the directories above it don't have to exist: the nearest directory that exists is resolved, and the rest of
/// the path is appended. The result contains `..` only below a directory that doesn't exist.
///
/// Returns `None` if the path cannot be resolved: it is relative without a `base`, passes through a regular file, or passes
/// through a link that is dangling or part of a loop. A write through a dangling link would create its target, which is
/// why the link's own location is not a safe answer.
///
/// Blocks while the disk is read.
pub fn resolve(path: &Path, base: Option<&Path>) -> Option<PathBuf> {
    let absolute = base.map_or_else(|| path.to_owned(), |base| base.join(path));
    if !absolute.is_absolute() {
        return None;
    }
    let exists = |ancestor: &&Path| {
        ancestor.symlink_metadata().map_or_else(|error| error.kind() != io::ErrorKind::NotFound, |_| true)
    };
    let nearest = absolute.ancestors().find(exists)?;
    let real = dunce::canonicalize(nearest).ok()?.join(absolute.strip_prefix(nearest).ok()?);
    // If we join an empty path, we get a separator at the end. Use `components` to remove it.
    Some(real.components().collect())
}

/// Returns a workspace without symbolic links. A directory that can't be resolved stays as it is.
///
/// Blocks while the disk is read.
pub(crate) fn without_links(workspace: &Workspace) -> Workspace {
    let real = |dir: &PathBuf| dunce::canonicalize(dir).unwrap_or_else(|_| dir.clone());
    let cwd = workspace.cwd.as_ref().map(real);
    Workspace { cwd, ..Workspace::default() }.with(workspace.additional.iter().map(real))
}

#[cfg(all(test, unix))]
mod tests {
    use std::{fs, os::unix::fs::symlink};

    use super::*;

    #[test]
    fn links_are_resolved_and_the_file_need_not_exist() {
        let directory = tempfile::tempdir().unwrap();
        let root = dunce::canonicalize(directory.path()).unwrap();
        fs::create_dir_all(root.join("real/src")).unwrap();
        symlink("/etc", root.join("real/src/link")).unwrap();
        symlink(root.join("real"), root.join("project")).unwrap();
        let base = root.join("project");
        for (path, expected) in [
            ("src/new.rs", root.join("real/src/new.rs")),
            ("src", root.join("real/src")),
            ("src/../src", root.join("real/src")),
            ("src/link/passwd", PathBuf::from("/etc/passwd")),
            ("src/link/not-there/x", PathBuf::from("/etc/not-there/x")),
            ("src/link/../x", PathBuf::from("/x")),
            ("not-there/../x", root.join("real/not-there/../x")),
            ("/etc/hosts", PathBuf::from("/etc/hosts")),
        ] {
            assert_eq!(resolve(Path::new(path), Some(&base)), Some(expected), "{path}");
        }
        symlink(root.join("elsewhere/not-there"), root.join("real/src/dangling")).unwrap();
        symlink(root.join("real/src/loop"), root.join("real/src/loop")).unwrap();
        fs::write(root.join("real/src/file"), "").unwrap();
        for path in ["src/dangling", "src/dangling/x", "src/file/x", "src/loop", "src/loop/x"] {
            assert_eq!(resolve(Path::new(path), Some(&base)), None, "{path}");
        }
        assert_eq!(resolve(Path::new("x"), None), None);
    }
}

/// Resolves a path of a tool call in the directories of its session. Blocks while the disk is read.
pub(crate) fn resolved(path: &Path, workspace: &Workspace) -> Resolved {
    let workspace = without_links(workspace);
    Resolved { path: resolve(path, workspace.cwd.as_deref()), workspace }
}
