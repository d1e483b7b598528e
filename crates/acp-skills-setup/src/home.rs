//! [`Home`]: the directories of the user on this machine.

use std::{
    env,
    ffi::OsString,
    path::{Path, PathBuf},
};

use crate::SetupError;

/// The directories of a user.
#[derive(Debug, Clone)]
pub struct Home {
    /// The home directory.
    pub dir: PathBuf,
    /// The directory for settings: `~/.config`, `~/Library/Application Support`, or `%APPDATA%`.
    pub config: PathBuf,
    /// The directory in which we keep records of changes.
    pub changes: PathBuf,
}

impl Home {
    /// Returns the directories of the current user.
    ///
    /// # Errors
    /// Returns an error if the home directory is unknown.
    pub fn find() -> Result<Self, SetupError> {
        let dir = env::home_dir().filter(|dir| dir.is_absolute()).ok_or_else(|| {
            let variable = if cfg!(windows) { "USERPROFILE" } else { "HOME" };
            SetupError::new("cannot find home directory").with_hint(format!("set {variable}"))
        })?;
        Ok(Self::of(dir, |name| env::var_os(name)))
    }

    fn of(dir: PathBuf, variable: impl Fn(&str) -> Option<OsString>) -> Self {
        // According to the XDG Base Directory Specification, relative paths should be ignored.
        let absolute = |name| variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let (config, state) = if cfg!(windows) {
            let roaming = absolute("APPDATA").unwrap_or_else(|| dir.join("AppData").join("Roaming"));
            let local = absolute("LOCALAPPDATA").unwrap_or_else(|| dir.join("AppData").join("Local"));
            (roaming, local)
        } else {
            let config = if cfg!(target_os = "macos") {
                dir.join("Library/Application Support")
            } else {
                absolute("XDG_CONFIG_HOME").unwrap_or_else(|| dir.join(".config"))
            };
            (config, absolute("XDG_STATE_HOME").unwrap_or_else(|| dir.join(".local/state")))
        };
        Self { changes: state.join(super::NAME).join("setup"), dir, config }
    }

    /// Returns a path for messages, with `~` for the home directory on Unix.
    pub fn shown(&self, path: &Path) -> String {
        skills_sources::disk::home::shorten(path, Some(&self.dir))
    }
}

// On other systems, these directories can't be set with environment variables.
#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn variables_move_the_directories() {
        let home = |variables: &'static [(&str, &str)]| {
            let variable = |name: &str| {
                variables.iter().find(|(known, _)| *known == name).map(|(_, value)| value.into())
            };
            let home = Home::of("/home/me".into(), variable);
            (home.config, home.changes)
        };
        let of = |config: &str, state: &str| {
            (PathBuf::from(config), PathBuf::from(state).join("acp-skills-proxy/setup"))
        };
        assert_eq!(home(&[]), of("/home/me/.config", "/home/me/.local/state"));
        assert_eq!(
            home(&[("XDG_CONFIG_HOME", "/c"), ("XDG_STATE_HOME", "relative")]),
            of("/c", "/home/me/.local/state")
        );
    }
}
