//! [`Root`]: a directory to search for skills, and the usual directories of projects and users.

use std::{
    env,
    path::{Path, PathBuf},
    sync::Arc,
};

use super::repository;
use crate::skill::Scope;

/// A directory to search for skills.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Root {
    /// The path of the directory. The directory can be a skill itself, or have skills below it.
    pub path: PathBuf,
    /// The scope of the skills that are found.
    pub scope: Scope,
    /// The directory that links must not lead out of. With `None`, all links are followed.
    pub boundary: Option<PathBuf>,
    /// Other directories into which links may lead.
    pub reachable: Arc<[PathBuf]>,
    /// The root of a session's workspace for which this directory is searched ([`Skill::session_root`]).
    ///
    /// [`Skill::session_root`]: crate::Skill::session_root
    pub session_root: Option<Arc<Path>>,
}

impl Root {
    /// Creates a root without a boundary.
    pub fn new(scope: Scope, path: impl Into<PathBuf>) -> Self {
        let reachable = Arc::default();
        Self { path: path.into(), scope, boundary: None, reachable, session_root: None }
    }

    /// Sets the boundary: links that lead out of it are not followed, including a link in the root's own path.
    ///
    /// Use this for directories that the user did not name.
    #[must_use]
    pub fn within(self, boundary: impl Into<PathBuf>) -> Self {
        Self { boundary: Some(boundary.into()), ..self }
    }

    /// Creates a root for a directory that the user named, with [`Scope::Scanned`].
    pub fn scanned(path: impl Into<PathBuf>) -> Self {
        Self::new(Scope::Scanned, path)
    }
}

/// The directories for skills in a project, in the order of precedence.
pub const IN_PROJECT: [&str; 3] = [".skills", ".agents/skills", ".claude/skills"];

/// The directories for skills in a home directory, in the order of precedence.
const IN_HOME: [&str; 2] = [".agents/skills", ".claude/skills"];

/// Returns the directories for skills of the current user: `~/.agents/skills`, `~/.claude/skills` and
/// `$XDG_CONFIG_HOME/agents/skills`. They may not exist.
pub fn user_roots() -> Vec<Root> {
    let config = env::var_os("XDG_CONFIG_HOME").map(PathBuf::from);
    user_roots_in(env::home_dir().as_deref(), config.as_deref())
}

/// Returns the directories for skills in a home directory and a configuration directory. The default for the latter is
/// `.config` in `home`.
///
/// Relative paths are ignored, as the [XDG specification](https://specifications.freedesktop.org/basedir-spec/latest/)
/// requires.
pub fn user_roots_in(home: Option<&Path>, config: Option<&Path>) -> Vec<Root> {
    let home = home.filter(|path| path.is_absolute());
    let config = config.filter(|path| path.is_absolute()).map(Path::to_owned);
    let config = config.or_else(|| Some(home?.join(".config")));
    let in_home = home.into_iter().flat_map(|home| IN_HOME.map(|place| home.join(place)));
    let in_config = config.into_iter().map(|config| config.join("agents/skills"));
    in_home.chain(in_config).map(|path| Root::new(Scope::User, path)).collect()
}

/// Returns the directories for skills of a project: `.skills`, `.agents/skills` and `.claude/skills` in `cwd` and in each parent
/// directory up to the root of the repository, which contains `.git`. The nearest come first. Outside of a repository, and in a
/// repository that another user has created above `cwd`, only those in `cwd` are returned. They may not exist.
///
/// Ask the user before you load skills from these directories, because anyone who can write to the project can add skills to
/// them. Links that lead out of the repository (or `cwd`) are not followed.
pub fn project_roots(cwd: &Path) -> Vec<Root> {
    let cwd = dunce::canonicalize(cwd).unwrap_or_else(|_| cwd.to_owned());
    let project = repository::root_of(&cwd).unwrap_or(&cwd);
    let levels = cwd.ancestors().take_while(|dir| dir.starts_with(project));
    let places = levels.flat_map(|dir| IN_PROJECT.map(|place| dir.join(place)));
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
    fn user_directories() {
        let base = tempfile::tempdir().unwrap();
        let home = base.path().join("home");
        let config = base.path().join("config");
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
    fn project_directories_up_to_the_repository() {
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
    fn links_are_confined_to_the_repository() {
        let base = tempfile::tempdir().unwrap();
        let base = dunce::canonicalize(base.path()).unwrap();
        let cwd = base.join("repo/a");
        fs::create_dir_all(&cwd).unwrap();
        let boundaries = || -> Vec<_> { project_roots(&cwd).into_iter().map(|root| root.boundary).collect() };
        assert_eq!(boundaries(), vec![Some(cwd.clone()); 3]);
        fs::create_dir(base.join("repo/.git")).unwrap();
        assert_eq!(boundaries(), vec![Some(base.join("repo")); 6]);
        assert!(user_roots_in(Some(&base), None).iter().all(|root| root.boundary.is_none()));
        assert_eq!(Root::scanned(&base).boundary, None);
    }
}
