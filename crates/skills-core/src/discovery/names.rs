//! Decides which directories to search, based on their names.

use std::ffi::OsStr;

/// The names of the entries that lead to the directories for skills of a project.
pub const PROJECT_ENTRIES: [&str; 3] = [".skills", ".agents", ".claude"];

/// Directories of version control, package managers, build tools and desktops, sorted. They are never searched.
const OF_TOOLS: [&str; 48] = [
    ".Trash",
    ".Trashes",
    ".bundle",
    ".bzr",
    ".cabal",
    ".cache",
    ".cargo",
    ".composer",
    ".direnv",
    ".eggs",
    ".gem",
    ".git",
    ".gradle",
    ".hg",
    ".ivy2",
    ".jj",
    ".m2",
    ".mypy_cache",
    ".next",
    ".nox",
    ".npm",
    ".nuget",
    ".nuxt",
    ".nx",
    ".parcel-cache",
    ".pijul",
    ".pnpm-store",
    ".pub-cache",
    ".pyenv",
    ".pytest_cache",
    ".ruff_cache",
    ".rustup",
    ".sl",
    ".stack",
    ".svelte-kit",
    ".svn",
    ".terraform",
    ".tox",
    ".turbo",
    ".uv",
    ".venv",
    ".virtualenvs",
    ".yarn",
    "__pycache__",
    "_darcs",
    "bower_components",
    "node_modules",
    "target",
];

/// Returns true if a directory may have skills.
pub fn may_have_skills(name: &OsStr) -> bool {
    name.to_str().is_none_or(|name| OF_TOOLS.binary_search(&name).is_err())
}

/// Returns true if a directory is hidden and not used by agents for skills. Such directories are searched only below a root
/// that the user named.
pub fn is_hidden(name: &OsStr) -> bool {
    name.as_encoded_bytes().starts_with(b".") && !PROJECT_ENTRIES.iter().any(|known| name == *known)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_are_classified_by_name() {
        assert!(OF_TOOLS.is_sorted());
        for (name, may_have, hidden) in [
            ("skills", true, false),
            (".claude", true, false),
            (".agents", true, false),
            (".skills", true, false),
            (".curated", true, true),
            (".github", true, true),
            (".system", true, true),
            (".git", false, true),
            (".github2", true, true),
            (".venv", false, true),
            ("node_modules", false, false),
            ("target", false, false),
            ("targets", true, false),
        ] {
            assert_eq!(
                (may_have_skills(name.as_ref()), is_hidden(name.as_ref())),
                (may_have, hidden),
                "{name}"
            );
        }
    }
}
