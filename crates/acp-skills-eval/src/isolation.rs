//! [`Home`]: a home directory for one agent process, with the agent's login but without installed skills and other settings.
//!
//! On Unix, the files of the login are links to the user's files, so that a renewed login is seen by all processes. Some agents
//! replace the file instead of writing to it; then the new file is copied back when the agent has ended. Otherwise, the user would
//! be logged out, because the old login is no longer valid.

use std::{
    env,
    ffi::OsString,
    fs, io,
    path::{Path, PathBuf},
};

use super::{installed, scratch::Scratch};

/// Variables with the path of a directory, and its default path in the home directory. They are removed, so that an agent uses the
/// default path in its new home directory.
const MOVED: [(&str, &str); 4] = [
    ("XDG_CONFIG_HOME", ".config"),
    ("XDG_DATA_HOME", ".local/share"),
    ("CLAUDE_CONFIG_DIR", ".claude"),
    ("CODEX_HOME", ".codex"),
];
/// Directories of tools that start agents. They stay where they are: without them, `npx` would download the agent each time.
const TOOLS: [(&str, &str); 12] = [
    ("XDG_CACHE_HOME", ".cache"),
    ("NPM_CONFIG_CACHE", ".npm"),
    ("NVM_DIR", ".nvm"),
    ("VOLTA_HOME", ".volta"),
    ("FNM_DIR", ".local/share/fnm"),
    ("BUN_INSTALL", ".bun"),
    ("PYENV_ROOT", ".pyenv"),
    ("ASDF_DATA_DIR", ".asdf"),
    ("UV_TOOL_DIR", ".local/share/uv/tools"),
    ("UV_PYTHON_INSTALL_DIR", ".local/share/uv/python"),
    ("CARGO_HOME", ".cargo"),
    ("RUSTUP_HOME", ".rustup"),
];
/// The maximum size of a file that is copied back.
const MAX_BYTES: u64 = 16 * 1024 * 1024;

/// Variables of the agent's process. `None` removes a variable.
pub(super) type Environment = Vec<(OsString, Option<OsString>)>;

/// A home directory. Dropping it copies a replaced login back, and removes the directory.
pub(super) struct Home {
    scratch: Scratch,
    files: Vec<Login>,
    environment: Environment,
}

/// A file with the agent's login.
struct Login {
    /// The user's file.
    original: PathBuf,
    /// Its place in the new home directory.
    place: PathBuf,
    /// The contents at the start.
    before: Vec<u8>,
}

impl Home {
    /// Creates a home directory for an agent.
    ///
    /// # Errors
    /// Returns an error if the user's home directory is not known, or if a file can't be created.
    pub(super) fn new(command: &[OsString]) -> io::Result<Self> {
        let user = env::home_dir().filter(|home| home.is_absolute());
        let user = user.ok_or_else(|| io::Error::other("home directory is not known"))?;
        Self::of(&user, command, |name| env::var_os(name))
    }

    fn of(
        user: &Path,
        command: &[OsString],
        variable: impl Fn(&str) -> Option<OsString>,
    ) -> io::Result<Self> {
        let scratch = Scratch::new()?;
        let path = dunce::canonicalize(scratch.path())?;
        let set = |name: &str| variable(name).filter(|value| !value.is_empty());
        let mut environment: Environment =
            ["HOME", "USERPROFILE"].map(|name| (name.into(), Some(path.clone().into()))).to_vec();
        for (name, dir) in [("APPDATA", "AppData/Roaming"), ("LOCALAPPDATA", "AppData/Local")] {
            if set(name).is_some() {
                environment.push((name.into(), Some(path.join(dir).into())));
            }
        }
        for (name, _) in MOVED {
            environment.push((name.into(), None));
        }
        for (name, dir) in TOOLS {
            if set(name).is_none() && user.join(dir).is_dir() {
                environment.push((name.into(), Some(user.join(dir).into())));
            }
        }
        let mut files = Vec::new();
        for file in installed::login(command).unwrap_or_default() {
            let moved = MOVED.iter().find_map(|(name, dir)| {
                let rest = Path::new(file).strip_prefix(dir).ok()?;
                Some(PathBuf::from(set(name)?).join(rest))
            });
            let original = moved.unwrap_or_else(|| user.join(file));
            // Files that the agent doesn't have are left out.
            let Ok(before) = fs::read(&original) else { continue };
            let place = path.join(file);
            if let Some(parent) = place.parent() {
                fs::create_dir_all(parent)?;
            }
            link(&original, &place)?;
            files.push(Login { original, place, before });
        }
        Ok(Self { scratch, files, environment })
    }

    /// Returns the variables of the agent's process.
    pub(super) fn environment(&self) -> &Environment {
        &self.environment
    }
}

#[cfg(unix)]
fn link(original: &Path, place: &Path) -> io::Result<()> {
    std::os::unix::fs::symlink(original, place)
}

#[cfg(not(unix))]
fn link(original: &Path, place: &Path) -> io::Result<()> {
    fs::copy(original, place).map(drop)
}

impl Login {
    /// Copies the file back if the agent has replaced it, and the user's file has not changed since.
    fn restore(&self) -> io::Result<()> {
        let metadata = fs::symlink_metadata(&self.place)?;
        if !metadata.is_file() || metadata.len() > MAX_BYTES {
            return Ok(());
        }
        let new = fs::read(&self.place)?;
        if new.is_empty() || new == self.before || fs::read(&self.original)? != self.before {
            return Ok(());
        }
        // The user's file can be a link to another file system, and a rename works only within one.
        let original = dunce::canonicalize(&self.original)?;
        let mut file = tempfile::NamedTempFile::new_in(original.parent().unwrap_or(Path::new(".")))?;
        io::Write::write_all(&mut file, &new)?;
        file.as_file().set_permissions(fs::metadata(&original)?.permissions())?;
        file.persist(original).map_err(|error| error.error).map(drop)
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        for file in &self.files {
            if let Err(error) = file.restore() {
                tracing::warn!("cannot keep the login of the agent: {}: {error}", file.original.display());
            }
        }
        tracing::trace!("removing {}", self.scratch.path().display());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user() -> tempfile::TempDir {
        let user = tempfile::tempdir().unwrap();
        for (file, text) in [
            (".claude/.credentials.json", "old"),
            (".claude/skills/demo/SKILL.md", "skill"),
            (".npm/x", "cache"),
            ("data/opencode/auth.json", "moved"),
        ] {
            let path = user.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        user
    }

    fn home(user: &Path, command: &str) -> (Home, PathBuf) {
        let data = user.join("data");
        let variable = |name: &str| (name == "XDG_DATA_HOME").then(|| data.clone().into());
        let home = Home::of(user, &[command.into()], variable).unwrap();
        let path = dunce::canonicalize(home.scratch.path()).unwrap();
        (home, path)
    }

    #[test]
    fn only_the_login_is_there() {
        let user = user();
        let (claude, path) = home(user.path(), "claude-agent-acp");
        assert_eq!(fs::read_to_string(path.join(".claude/.credentials.json")).unwrap(), "old");
        assert!(!path.join(".claude/skills").exists());
        let value = |name: &str| {
            claude.environment().iter().find(|(known, _)| known == name).map(|(_, value)| value.clone())
        };
        assert_eq!(value("HOME"), Some(Some(path.clone().into())));
        assert_eq!(value("XDG_DATA_HOME"), Some(None));
        assert_eq!(value("NPM_CONFIG_CACHE"), Some(Some(user.path().join(".npm").into())));
        assert_eq!(value("NVM_DIR"), None);
        drop(claude);
        assert!(!path.exists());
        let (_opencode, path) = home(user.path(), "opencode");
        assert_eq!(fs::read_to_string(path.join(".local/share/opencode/auth.json")).unwrap(), "moved");
        let (_unknown, path) = home(user.path(), "my-agent");
        assert_eq!(fs::read_dir(path).unwrap().count(), 0);
    }

    #[test]
    fn a_renewed_login_is_kept() {
        let original = |user: &tempfile::TempDir| {
            fs::read_to_string(user.path().join(".claude/.credentials.json")).unwrap()
        };
        let replace = |path: &Path, text: &str| {
            fs::write(path.join("new"), text).unwrap();
            fs::rename(path.join("new"), path.join(".claude/.credentials.json")).unwrap();
        };
        let user = user();
        let (renewed, path) = home(user.path(), "claude-agent-acp");
        replace(&path, "renewed");
        drop(renewed);
        assert_eq!(original(&user), "renewed");
        // A login that was renewed by another process in the meantime is newer.
        let (late, path) = home(user.path(), "claude-agent-acp");
        replace(&path, "late");
        fs::write(user.path().join(".claude/.credentials.json"), "newest").unwrap();
        drop(late);
        assert_eq!(original(&user), "newest");
        // An agent that removes or empties the file doesn't log the user out.
        let (removed, path) = home(user.path(), "claude-agent-acp");
        replace(&path, "");
        drop(removed);
        assert_eq!(original(&user), "newest");
    }
}
