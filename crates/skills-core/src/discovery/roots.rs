//! [`Root`]: a directory to scan, and the places where agents keep their skills.

use std::{
    env,
    path::{Path, PathBuf},
};

use crate::skill::Scope;

/// A directory to scan for skills.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Root {
    /// The directory; a skill itself, or skills are somewhere below.
    pub path: PathBuf,
    /// The scope of what is found there.
    pub scope: Scope,
    /// Links are followed to what is in this directory; `None` follows them anywhere.
    pub boundary: Option<PathBuf>,
}

impl Root {
    /// A directory with skills of this scope.
    pub fn new(scope: Scope, path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), scope, boundary: None }
    }

    /// The same, but links that lead out of `boundary` are not followed, not even one in `path` itself. For directories that
    /// the user did not name.
    #[must_use]
    pub fn within(self, boundary: impl Into<PathBuf>) -> Self {
        Self { boundary: Some(boundary.into()), ..self }
    }

    /// A directory that the user named, to be scanned.
    pub fn scanned(path: impl Into<PathBuf>) -> Self {
        Self::new(Scope::Scanned, path)
    }
}

/// Where skills are in a project, the most important place first.
const IN_PROJECT: [&str; 3] = [".skills", ".agents/skills", ".claude/skills"];

/// Where skills are in a home directory, the most important place first.
const IN_HOME: [&str; 2] = [".agents/skills", ".claude/skills"];

/// The places of the user who runs this process: `~/.agents/skills`, `~/.claude/skills` and
/// `$XDG_CONFIG_HOME/agents/skills`. They need not exist.
pub fn user_roots() -> Vec<Root> {
    let config = env::var_os("XDG_CONFIG_HOME").map(PathBuf::from);
    user_roots_in(env::home_dir().as_deref(), config.as_deref())
}

/// The same for a home directory and a configuration directory (by default `.config` in `home`).
///
/// Relative paths are ignored, as the [specification](https://specifications.freedesktop.org/basedir-spec/latest/) of
/// the variable asks for.
pub fn user_roots_in(home: Option<&Path>, config: Option<&Path>) -> Vec<Root> {
    let home = home.filter(|path| path.is_absolute());
    let config = config.filter(|path| path.is_absolute()).map(Path::to_owned);
    let config = config.or_else(|| Some(home?.join(".config")));
    let in_home = home.into_iter().flat_map(|home| IN_HOME.map(|place| home.join(place)));
    let in_config = config.into_iter().map(|config| config.join("agents/skills"));
    in_home.chain(in_config).map(|path| Root::new(Scope::User, path)).collect()
}

/// The places of a project: `.skills`, `.agents/skills` and `.claude/skills` in `cwd` and in each directory above it up
/// to the root of the repository (where there is a `.git`), the nearest first. Outside of a repository only `cwd` counts.
/// They need not exist.
///
/// Whoever can write to the project decides what is there: ask the user before these are scanned. Links are followed
/// within the repository, or `cwd`, alone: one that leads to `/` would offer whatever is on the machine.
pub fn project_roots(cwd: &Path) -> Vec<Root> {
    let cwd = dunce::canonicalize(cwd).unwrap_or_else(|_| cwd.to_owned());
    // In a worktree or submodule `.git` is a file.
    let levels = cwd.ancestors().position(|dir| dir.join(".git").exists()).map_or(1, |above| above + 1);
    let project = cwd.ancestors().nth(levels - 1).unwrap_or(&cwd);
    let places = cwd.ancestors().take(levels).flat_map(|dir| IN_PROJECT.map(|place| dir.join(place)));
    places.map(|path| Root::new(Scope::Project, path).within(project)).collect()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn check(roots: &[Root], base: &Path, expected: &[&str]) {
        let shown: Vec<String> = roots
            .iter()
            .map(|root| root.path.strip_prefix(base).unwrap().to_str().unwrap().replace('\\', "/"))
            .collect();
        assert_eq!(shown, expected);
    }

    #[test]
    fn users() {
        let base = tempfile::tempdir().unwrap();
        let (home, config) = (base.path().join("home"), base.path().join("config"));
        let roots = user_roots_in(Some(&home), None);
        check(
            &roots,
            base.path(),
            &["home/.agents/skills", "home/.claude/skills", "home/.config/agents/skills"],
        );
        let roots = user_roots_in(Some(&home), Some(&config));
        check(&roots, base.path(), &["home/.agents/skills", "home/.claude/skills", "config/agents/skills"]);
        let roots = user_roots_in(Some(&home), Some(Path::new("relative")));
        check(
            &roots,
            base.path(),
            &["home/.agents/skills", "home/.claude/skills", "home/.config/agents/skills"],
        );
        check(&user_roots_in(None, Some(&config)), base.path(), &["config/agents/skills"]);
        check(&user_roots_in(Some(Path::new("relative")), None), base.path(), &[]);
        assert!(roots.iter().all(|root| root.scope == Scope::User));
    }

    #[test]
    fn projects() {
        let base = tempfile::tempdir().unwrap();
        let base = dunce::canonicalize(base.path()).unwrap();
        let cwd = base.join("repo/a");
        fs::create_dir_all(&cwd).unwrap();
        check(
            &project_roots(&cwd),
            &base,
            &["repo/a/.skills", "repo/a/.agents/skills", "repo/a/.claude/skills"],
        );
        fs::write(base.join("repo/.git"), "gitdir: elsewhere").unwrap();
        check(
            &project_roots(&cwd.join("../a")),
            &base,
            &[
                "repo/a/.skills",
                "repo/a/.agents/skills",
                "repo/a/.claude/skills",
                "repo/.skills",
                "repo/.agents/skills",
                "repo/.claude/skills",
            ],
        );
    }

    #[test]
    fn boundaries() {
        let base = tempfile::tempdir().unwrap();
        let base = dunce::canonicalize(base.path()).unwrap();
        let cwd = base.join("repo/a");
        fs::create_dir_all(&cwd).unwrap();
        let boundaries = || -> Vec<_> { project_roots(&cwd).into_iter().map(|it| it.boundary).collect() };
        assert_eq!(boundaries(), vec![Some(cwd.clone()); 3]);
        fs::create_dir(base.join("repo/.git")).unwrap();
        assert_eq!(boundaries(), vec![Some(base.join("repo")); 6]);
        assert!(user_roots_in(Some(&base), None).iter().all(|root| root.boundary.is_none()));
        assert_eq!(Root::scanned(&base).boundary, None);
    }
}
