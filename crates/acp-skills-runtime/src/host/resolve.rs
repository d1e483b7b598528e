//! [`resolve`]: finds out where a path of a permission request leads to.

use std::{
    io,
    path::{Path, PathBuf},
};

use acp_skills_intercept::Resolved;

/// Returns the absolute path that `path` leads to, without symbolic links. The path and its parents need not exist.
/// This may block, because it reads from disk.
pub(super) fn resolve(path: &Path, cwd: Option<PathBuf>) -> Resolved {
    let cwd = cwd.map(|cwd| dunce::canonicalize(&cwd).unwrap_or(cwd));
    let absolute = cwd.as_ref().map_or_else(|| path.to_owned(), |cwd| cwd.join(path));
    // The file may not exist yet, so we resolve the nearest parent that does.
    let exists = |above: &&Path| {
        above.symlink_metadata().map_or_else(|error| error.kind() != io::ErrorKind::NotFound, |_| true)
    };
    let nearest = absolute.ancestors().filter(|_| absolute.is_absolute()).find(exists);
    // A dangling link exists but cannot be resolved. There is no path then, because a write would create the target of the link.
    let path = nearest.and_then(|above| {
        let real = dunce::canonicalize(above).ok()?.join(absolute.strip_prefix(above).ok()?);
        // Collecting the components removes the trailing separator that joining an empty path leaves.
        Some(real.components().collect())
    });
    Resolved { path, cwd }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn paths_are_resolved_even_if_they_do_not_exist() {
        let directory = tempfile::tempdir().unwrap();
        let base = dunce::canonicalize(directory.path()).unwrap();
        std::fs::create_dir_all(base.join("real/src")).unwrap();
        std::os::unix::fs::symlink("/etc", base.join("real/src/link")).unwrap();
        std::os::unix::fs::symlink(base.join("real"), base.join("project")).unwrap();
        let cwd = base.join("project");
        for (path, expected) in [
            ("src/new.rs", base.join("real/src/new.rs")),
            ("src", base.join("real/src")),
            ("src/link/passwd", PathBuf::from("/etc/passwd")),
            ("src/link/not-there/x", PathBuf::from("/etc/not-there/x")),
            ("/etc/hosts", PathBuf::from("/etc/hosts")),
        ] {
            let resolved = resolve(Path::new(path), Some(cwd.clone()));
            assert_eq!(resolved, Resolved { path: Some(expected), cwd: Some(base.join("real")) }, "{path}");
        }
        // Not resolved: dangling links, paths below a file, circular links, and relative paths without a working directory.
        let link =
            |to: &Path, name: &str| std::os::unix::fs::symlink(to, base.join("real/src").join(name)).unwrap();
        link(&base.join("elsewhere/not-there"), "dangling");
        link(&base.join("real/src/circle"), "circle");
        std::fs::write(base.join("real/src/file"), "").unwrap();
        for path in ["src/dangling", "src/dangling/x", "src/file/x", "src/circle", "src/circle/x"] {
            assert_eq!(resolve(Path::new(path), Some(cwd.clone())).path, None, "{path}");
        }
        assert_eq!(resolve(Path::new("x"), None).path, None);
    }
}
