//! The directories of this program's own files on each platform.
//!
//! | | Linux | macOS | Windows |
//! |---|---|---|---|
//! | configuration | `~/.config` | `~/Library/Application Support` | `%APPDATA%` |
//! | cache | `~/.cache` | `~/Library/Caches` | `%LOCALAPPDATA%` |
//! | state | `~/.local/state` | `~/Library/Application Support` | `%LOCALAPPDATA%` |
//!
//! The variables of the [XDG base directories](https://specifications.freedesktop.org/basedir-spec/latest/) take precedence on every
//! platform if their paths are absolute. In each directory, the files are in the subdirectory `acp-skills-proxy`.

use std::{
    env,
    ffi::OsString,
    path::{Path, PathBuf},
};

/// The name of our subdirectory.
const OURS: &str = "acp-skills-proxy";

/// A kind of files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Config,
    Cache,
    State,
}

/// Returns the path of the default configuration file, or `None` if there is no home directory. The file may not exist.
pub fn config_file() -> Option<PathBuf> {
    Some(here(Kind::Config)?.join("skills.yaml"))
}

/// Returns the cache directory, or `None` if there is no home directory. The directory may not exist yet.
pub fn cache_dir() -> Option<PathBuf> {
    let dir = here(Kind::Cache)?;
    // On Windows, cache and state share a directory, so we need to use a subdirectory.
    Some(if cfg!(windows) { dir.join("cache") } else { dir })
}

/// Returns the state directory for data that is kept between runs, or `None` if there is no home directory. The directory may
/// not exist yet.
pub fn state_dir() -> Option<PathBuf> {
    here(Kind::State)
}

fn here(kind: Kind) -> Option<PathBuf> {
    find(kind, |name| env::var_os(name), env::home_dir().as_deref())
}

fn find(kind: Kind, variable: impl Fn(&str) -> Option<OsString>, home: Option<&Path>) -> Option<PathBuf> {
    let absolute = |name| variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let home = |below: &str| Some(home.filter(|home| home.is_absolute())?.join(below));
    let (xdg, own, in_home) = match kind {
        Kind::Config if cfg!(windows) => ("XDG_CONFIG_HOME", "APPDATA", "AppData/Roaming"),
        Kind::Config if cfg!(target_os = "macos") => ("XDG_CONFIG_HOME", "", "Library/Application Support"),
        Kind::Config => ("XDG_CONFIG_HOME", "", ".config"),
        Kind::Cache if cfg!(windows) => ("XDG_CACHE_HOME", "LOCALAPPDATA", "AppData/Local"),
        Kind::Cache if cfg!(target_os = "macos") => ("XDG_CACHE_HOME", "", "Library/Caches"),
        Kind::Cache => ("XDG_CACHE_HOME", "", ".cache"),
        Kind::State if cfg!(windows) => ("XDG_STATE_HOME", "LOCALAPPDATA", "AppData/Local"),
        Kind::State if cfg!(target_os = "macos") => ("XDG_STATE_HOME", "", "Library/Application Support"),
        Kind::State => ("XDG_STATE_HOME", "", ".local/state"),
    };
    let base = absolute(xdg).or_else(|| absolute(own)).or_else(|| home(in_home))?;
    Some(base.join(OURS))
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn directories_of_each_kind() {
        let set = |name: &str| (name == "XDG_CACHE_HOME").then(|| OsString::from("/x"));
        let relative = |_: &str| Some(OsString::from("x"));
        let home = Some(Path::new("/home/me"));
        assert_eq!(find(Kind::Cache, set, home), Some(PathBuf::from("/x/acp-skills-proxy")));
        assert_eq!(find(Kind::State, set, None), None);
        assert_eq!(find(Kind::State, set, Some(Path::new("me"))), None);
        for kind in [Kind::Config, Kind::Cache, Kind::State] {
            let path = find(kind, relative, home).unwrap();
            assert!(path.starts_with("/home/me") && path.ends_with(OURS), "{}", path.display());
        }
    }
}
