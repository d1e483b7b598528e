//! [`ProjectTree`]: the directories for skills in the subdirectories of a project, as monorepos have them.

use std::{
    fs,
    path::{Path, PathBuf},
};

use skills_core::{
    Diagnostic, Scope,
    discovery::{IN_PROJECT, PROJECT_ENTRIES, Root, is_hidden, may_have_skills},
    order,
    set::Skipped,
};

/// The maximum depth of a directory with skills below the root of a session.
const MAX_TREE_DEPTH: usize = 5;

/// Directories of generated files and of other projects, which are usually ignored by git. A skill may have such a name, so they
/// are only skipped in the tree of a project.
const GENERATED: [&str; 5] = ["bazel-out", "coverage", "dist", "vendor", "venv"];

/// The directories below the root of a session, and those of them that may have skills.
///
/// Hidden directories are not searched, and neither are those of package managers and build tools (such as `node_modules`,
/// `target` and `dist`), links, and other repositories. `.gitignore` is not read: skills can be ignored by git and still be meant
/// for the project. Each level is searched before the next one, in the order of the names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct ProjectTree {
    /// The directories that may have skills, nearest first. They need not exist, and can be links.
    pub(super) roots: Vec<Root>,
    /// All directories that were searched, without the root itself. New skills can appear in each of them.
    pub(super) directories: Vec<PathBuf>,
    /// A warning if there are more directories than could be searched.
    pub(super) limited: Option<Skipped>,
}

impl ProjectTree {
    /// Searches at most `max_dirs` directories below `root`, up to a depth of [`MAX_TREE_DEPTH`]. Links in the directories that are
    /// found must not lead out of `boundary`.
    pub(super) fn search(root: &Path, boundary: &Path, max_dirs: usize) -> Self {
        let mut tree = Self::default();
        let Ok(real) = dunce::canonicalize(root) else { return tree };
        let mut level = subdirectories(&real);
        for depth in 1..=MAX_TREE_DEPTH {
            let mut next = Vec::new();
            for dir in level {
                if tree.directories.len() >= max_dirs {
                    tree.limited = Some(too_many(root, max_dirs));
                    return tree;
                }
                // In a submodule, `.git` is a file.
                if dir.join(".git").exists() {
                    continue;
                }
                if PROJECT_ENTRIES.iter().any(|name| dir.join(name).is_dir()) {
                    let roots = IN_PROJECT.map(|place| dir.join(place));
                    let roots = roots.map(|path| Root::new(Scope::Project, path).within(boundary));
                    tree.roots.extend(roots);
                }
                if depth < MAX_TREE_DEPTH {
                    next.extend(subdirectories(&dir));
                }
                tree.directories.push(dir);
            }
            level = next;
        }
        tree
    }
}

/// Returns the subdirectories that may belong to the project, sorted by name.
fn subdirectories(dir: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(dir) else { return Vec::new() };
    let is_searched = |entry: &fs::DirEntry| {
        let name = entry.file_name();
        entry.file_type().is_ok_and(|kind| kind.is_dir()) && is_in_tree(&name)
    };
    let mut found: Vec<_> = entries.flatten().filter(is_searched).map(|entry| entry.path()).collect();
    order::sort(&mut found);
    found
}

/// Returns true if a directory with this name can be part of a project's tree.
pub(super) fn is_in_tree(name: &std::ffi::OsStr) -> bool {
    may_have_skills(name)
        && !is_hidden(name)
        && !PROJECT_ENTRIES.iter().chain(&GENERATED).any(|other| name == *other)
}

fn too_many(root: &Path, max_dirs: usize) -> Skipped {
    let message = format!("too many directories in the project: searched only the first {max_dirs}");
    let help = "open a directory closer to the skills, or use `--skills` for it";
    Skipped::new(root, vec![Diagnostic::warning("too-many-directories", message).help(help)])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(dirs: &[&str], max_dirs: usize, expected: &[&str], searched: usize, is_limited: bool) {
        let base = tempfile::tempdir().unwrap();
        let base = dunce::canonicalize(base.path()).unwrap();
        for dir in dirs {
            fs::create_dir_all(base.join(dir)).unwrap();
        }
        let tree = ProjectTree::search(&base, &base, max_dirs);
        let places = tree.roots.iter().filter(|root| root.path.is_dir());
        let places: Vec<_> = places
            .map(|root| root.path.strip_prefix(&base).unwrap().to_str().unwrap().replace('\\', "/"))
            .collect();
        assert_eq!(places, expected, "{dirs:?}");
        assert_eq!((tree.directories.len(), tree.limited.is_some()), (searched, is_limited), "{dirs:?}");
    }

    #[test]
    fn directories_below_a_project() {
        check(&[], 100, &[], 0, false);
        // The directories of the root itself are found without a search.
        check(&[".skills/a", ".claude/skills/b"], 100, &[], 0, false);
        check(
            &["b/.skills/x", "a/c/.agents/skills/x", "a/.claude/skills/x", "d"],
            100,
            &["a/.claude/skills", "b/.skills", "a/c/.agents/skills"],
            4,
            false,
        );
        for hidden in ["node_modules/p", "target/x", "dist", "vendor/x", ".venv", ".hidden/x"] {
            check(&[&format!("{hidden}/.skills/x")], 100, &[], 0, false);
        }
        // This is another repository.
        check(&["modules/lib/.git", "modules/lib/.skills/x"], 100, &[], 1, false);
        check(&["1/2/3/4/5/.skills/x"], 100, &["1/2/3/4/5/.skills"], 5, false);
        check(&["1/2/3/4/5/6/.skills/x"], 100, &[], 5, false);
        check(&["a/.skills/x", "b/.skills/x", "c/.skills/x"], 2, &["a/.skills", "b/.skills"], 2, true);
    }

    #[cfg(unix)]
    #[test]
    fn links_are_not_followed() {
        let base = tempfile::tempdir().unwrap();
        fs::create_dir_all(base.path().join("a/.skills/x")).unwrap();
        std::os::unix::fs::symlink(base.path(), base.path().join("a/loop")).unwrap();
        let tree = ProjectTree::search(base.path(), base.path(), 100);
        assert_eq!(tree.directories.len(), 1);
    }
}
