//! [`Home`]: where on this machine people keep settings.

use std::{
    env,
    ffi::OsString,
    path::{Path, PathBuf},
};

use crate::error::UsageError;

/// The directories of a user.
#[derive(Debug, Clone)]
pub(crate) struct Home {
    /// The home directory.
    pub dir: PathBuf,
    /// Where programs keep settings: `~/.config`, `~/Library/Application Support`, or `%APPDATA%`.
    pub config: PathBuf,
    /// Where we remember what was changed.
    pub changes: PathBuf,
}

impl Home {
    /// The directories of whoever runs us.
    ///
    /// # Errors
    /// It is not known where they are.
    pub(crate) fn find() -> Result<Self, UsageError> {
        let dir = env::home_dir().filter(|dir| dir.is_absolute()).ok_or_else(|| {
            let variable = if cfg!(windows) { "USERPROFILE" } else { "HOME" };
            UsageError::new("it is not known where your home directory is").hint(format!("set {variable}"))
        })?;
        Ok(Self::of(dir, |name| env::var_os(name)))
    }

    fn of(dir: PathBuf, variable: impl Fn(&str) -> Option<OsString>) -> Self {
        // A relative path is to be ignored (XDG Base Directory Specification).
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

    /// A path as people write it: from the home directory on.
    pub(crate) fn shown(&self, path: &Path) -> String {
        let shown = match path.strip_prefix(&self.dir) {
            Ok(rest) if cfg!(unix) => Path::new("~").join(rest),
            _ => path.to_owned(),
        };
        skills_core::text::shown_path(&shown)
    }
}

// Only these systems have directories that variables move.
#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn where_things_are() {
        let home = |variables: &'static [(&str, &str)]| {
            let variable = |name: &str| variables.iter().find(|it| it.0 == name).map(|it| it.1.into());
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
