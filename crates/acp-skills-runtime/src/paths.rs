//! [`resolve`]: the file that a path of a tool call refers to.
//!
//! Permission rules are about real files, and a path can pass through symbolic links.

use std::{
    io,
    path::{Component, Path, PathBuf},
};

use acp_skills_intercept::{Resolved, Workspace};

/// Returns the absolute path of the file to which `path` refers, in the directories of `workspace` without links. A relative path starts at
/// the working directory. The file and the directories above it don't have to exist.
///
/// Returns `None` if the path passes through a link: a link such as `/proc/self/cwd` leads to another file for the agent than for this
/// process, and a write through a dangling link creates its target. Only links above the directories of the workspace are followed. Also
/// returns `None` if the path contains `..`, passes through a regular file, or is relative and there is no working directory.
///
/// Blocks while the disk is read.
pub fn resolve(path: &Path, workspace: &Workspace) -> Option<PathBuf> {
    let absolute = workspace.cwd.as_ref().map_or_else(|| path.to_owned(), |cwd| cwd.join(path));
    let has_parent = absolute.components().any(|component| component == Component::ParentDir);
    if !absolute.is_absolute() || has_parent {
        return None;
    }
    let roots: Vec<_> = workspace.roots().map(|root| (root, without_link(root))).collect();
    let written = roots.iter().map(|(root, real)| (*root, real));
    let in_root = |(root, real): (&Path, &PathBuf)| Some(real.join(absolute.strip_prefix(root).ok()?));
    let target = written.chain(roots.iter().map(|(_, real)| (&**real, real))).find_map(in_root);
    // `components` removes a separator at the end, which follows a link.
    let target: PathBuf = target.as_ref().unwrap_or(&absolute).components().collect();
    let exists = |ancestor: &&Path| {
        ancestor.symlink_metadata().map_or_else(|error| error.kind() != io::ErrorKind::NotFound, |_| true)
    };
    let nearest = target.ancestors().find(exists)?;
    (dunce::canonicalize(nearest).ok()? == nearest).then_some(target)
}

/// Resolves a path of a tool call in the directories of its session. Blocks while the disk is read.
pub(crate) fn resolved(path: &Path, workspace: &Workspace) -> Resolved {
    Resolved { path: resolve(path, workspace), workspace: without_links(workspace) }
}

/// Returns a workspace without symbolic links. A directory that can't be resolved stays as it is.
///
/// Blocks while the disk is read.
pub(crate) fn without_links(workspace: &Workspace) -> Workspace {
    let cwd = workspace.cwd.as_deref().map(without_link);
    Workspace { cwd, ..Workspace::default() }.with(workspace.additional.iter().map(|root| without_link(root)))
}

fn without_link(root: &Path) -> PathBuf {
    dunce::canonicalize(root).unwrap_or_else(|_| root.to_owned())
}

#[cfg(all(test, unix))]
mod tests {
    use std::{fs, os::unix::fs::symlink};

    use super::*;

    #[test]
    fn links_are_not_followed_and_the_file_need_not_exist() {
        let directory = tempfile::tempdir().unwrap();
        let root = dunce::canonicalize(directory.path()).unwrap();
        fs::create_dir_all(root.join("real/src")).unwrap();
        symlink("/etc", root.join("real/src/link")).unwrap();
        symlink(root.join("real"), root.join("project")).unwrap();
        let workspace = Workspace::of(root.join("project")).with([root.join("real/src")]);
        for (path, expected) in [
            ("src/new.rs".into(), root.join("real/src/new.rs")),
            ("src/".into(), root.join("real/src")),
            ("not-there/x".into(), root.join("real/not-there/x")),
            (root.join("project/src/x"), root.join("real/src/x")),
            (root.join("real/x"), root.join("real/x")),
            (root.join("other"), root.join("other")),
        ] {
            assert_eq!(resolve(&path, &workspace), Some(expected), "{}", path.display());
        }
        symlink(root.join("elsewhere/not-there"), root.join("real/src/dangling")).unwrap();
        symlink(root.join("real/src/loop"), root.join("real/src/loop")).unwrap();
        symlink("/proc/self/cwd", root.join("real/src/process")).unwrap();
        symlink("new", root.join("real/src/inside")).unwrap();
        symlink("/", root.join("outside")).unwrap();
        fs::write(root.join("real/src/file"), "").unwrap();
        for path in [
            "src/link",
            "src/link/passwd",
            "src/link/not-there/x",
            "src/link/../x",
            "src/../src",
            "not-there/../x",
            "src/dangling",
            "src/dangling/",
            "src/dangling/x",
            "src/file/x",
            "src/inside",
            "src/loop",
            "src/loop/x",
            "src/process/x",
            "../outside/etc",
        ] {
            assert_eq!(resolve(Path::new(path), &workspace), None, "{path}");
        }
        assert_eq!(resolve(&root.join("outside/etc/hosts"), &workspace), None);
        assert_eq!(resolve(Path::new("x"), &Workspace::default()), None);
    }
}
