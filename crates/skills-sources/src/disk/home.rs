//! Expands `~` and `$HOME` in paths, and shortens paths with `~` in messages. A shell expands them, but editors and configuration
//! files don't.

use std::{
    env,
    path::{Component, Path, PathBuf},
};

use skills_core::text::shown_path;

/// Returns a path for messages: escaped, and with `~` for the home directory on Unix.
///
/// ```
/// use std::path::Path;
///
/// use skills_sources::disk::{expand_home, shorten_home};
///
/// # #[cfg(unix)]
/// assert_eq!(shorten_home(&expand_home(Path::new("~/skills"))), "~/skills");
/// ```
pub fn shorten_home(path: &Path) -> String {
    shorten(path, env::home_dir().as_deref())
}

/// Returns a path for messages as [`shorten_home`] does, for another home directory.
pub fn shorten(path: &Path, home: Option<&Path>) -> String {
    let home = home.filter(|home| cfg!(unix) && home.is_absolute() && home.parent().is_some());
    match home.and_then(|home| path.strip_prefix(home).ok()) {
        Some(rest) => shown_path(&Path::new("~").join(rest)),
        None => shown_path(path),
    }
}

/// Returns the path of a file of the user in the home directory, or `None` if there is no absolute home directory. [`expand_home`] would then
/// return a path in the working directory, which can be that of a project.
pub fn in_home(name: &str) -> Option<PathBuf> {
    Some(env::home_dir().filter(|home| home.is_absolute())?.join(name))
}

/// Returns `path` with its first component replaced by the home directory if it is `~`, `$HOME` or `${HOME}` (on Windows also
/// `%USERPROFILE%`). Use `./~` for a directory with this name. Without an absolute home directory, the path is unchanged.
///
/// ```
/// use std::path::Path;
/// use skills_sources::disk::expand_home;
///
/// assert_eq!(expand_home(Path::new("/skills/~")), Path::new("/skills/~"));
/// assert_ne!(expand_home(Path::new("~/skills")), Path::new("~/skills"));
/// ```
pub fn expand_home(path: &Path) -> PathBuf {
    expand(path, env::home_dir().as_deref())
}

fn expand(path: &Path, home: Option<&Path>) -> PathBuf {
    let mut components = path.components();
    let Some(Component::Normal(first)) = components.next() else { return path.to_owned() };
    let is_home = ["~", "$HOME", "${HOME}"].iter().any(|name| first == *name)
        || cfg!(windows) && first.eq_ignore_ascii_case("%USERPROFILE%");
    match home.filter(|home| is_home && home.is_absolute()) {
        Some(home) => home.join(components.as_path()),
        None => path.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn paths_below_the_home_directory_are_shortened() {
        let shorten = |path: &str, home: &str| shorten(Path::new(path), Some(Path::new(home)));
        for (path, home, expected) in [
            ("/home/me/skills/a", "/home/me", "~/skills/a"),
            ("/home/me", "/home/me", "~/"),
            ("/home/meme/a", "/home/me", "/home/meme/a"),
            ("/etc/a", "/", "/etc/a"),
            ("/etc/a", "", "/etc/a"),
            ("a/b", "a", "a/b"),
        ] {
            assert_eq!(shorten(path, home), expected, "{path} in {home}");
        }
    }

    #[test]
    fn only_the_first_component_is_expanded() {
        let home = if cfg!(windows) { r"C:\Users\me" } else { "/home/me" };
        for (path, rest) in [
            ("~", Some("")),
            ("~/a b/c", Some("a b/c")),
            ("$HOME/a", Some("a")),
            ("${HOME}/a", Some("a")),
            ("~me/a", None),
            ("./~/a", None),
            ("a/~", None),
            ("/~/a", None),
            ("$HOMER/a", None),
            ("", None),
        ] {
            let expected = rest.map_or(PathBuf::from(path), |rest| Path::new(home).join(rest));
            assert_eq!(expand(Path::new(path), Some(Path::new(home))), expected, "{path}");
            // Without a home directory, the path is unchanged.
            for none in [None, Some(Path::new("")), Some(Path::new("relative"))] {
                assert_eq!(expand(Path::new(path), none), Path::new(path));
            }
        }
    }
}
