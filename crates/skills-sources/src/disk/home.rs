//! Expands `~` and `$HOME` in paths. A shell does that, but editors and configuration files don't.

use std::{
    env,
    path::{Component, Path, PathBuf},
};

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
