//! Keeps an interpreter from running files that don't belong to the skill.
//!
//! Some interpreters read the configuration of the working directory, or of the directories above the script, before they run
//! a script. Both often belong to a project, and such a configuration can name programs to run first, other modules to load,
//! or another place to download packages from. The user has not approved these files, so the interpreter shouldn't read them.
//! The user's own configuration, for example in the home directory, is still read if the interpreter allows to tell them
//! apart.
//!
//! Modules that a script asks for by name are not covered: Node.js and Bun look for them in the `node_modules` of all
//! directories above the script.

use std::{
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
};

use super::{Interpreter, InterpreterError, Machine, Place, Platform, shebang::base_name};

/// The variables that all scripts receive, because they can start other interpreters.
pub(in crate::exec) const VARIABLES: &[(&str, &str)] = &[
    // Otherwise, Python would write `__pycache__` into the skill, which would then differ from what the user approved.
    ("PYTHONDONTWRITEBYTECODE", "1"),
    // Otherwise, `cmd` would prefer a program in the working directory to one on the search path.
    #[cfg(windows)]
    ("NoDefaultCurrentDirectoryInExePath", "1"),
];

/// The Python versions for `uv` if the script doesn't name any. `uv` reads no `.python-version` if there is a request.
const ANY_PYTHON: &str = ">=3";

/// Files near a script that no option of an interpreter excludes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(in crate::exec) struct Surroundings {
    /// True if `uv` would find a virtual environment.
    has_environment: bool,
    /// True if Bun would find a file that chooses where it installs packages from.
    has_registry: bool,
}

impl Surroundings {
    /// Looks for files around a script of the skill in `dir` that runs in `cwd`.
    pub(in crate::exec) fn of(cwd: &Path, dir: &Path) -> Self {
        let home = std::env::home_dir().and_then(|home| dunce::canonicalize(home).ok());
        Self::within(home.as_deref(), &real(cwd), &real(dir))
    }

    fn within(home: Option<&Path>, cwd: &Path, dir: &Path) -> Self {
        let has = |dir: &Path, name: &str| fs::symlink_metadata(dir.join(name)).is_ok();
        let mut configured =
            std::iter::once(cwd).chain(dir.ancestors().skip(1)).filter(|dir| Some(*dir) != home);
        Self {
            has_environment: cwd.ancestors().any(|dir| has(dir, ".venv") || has(dir, "pyvenv.cfg")),
            // Bun also reads its own configuration beside the nearest `package.json`.
            has_registry: configured
                .any(|dir| [".npmrc", "bunfig.toml", ".bunfig.toml"].iter().any(|name| has(dir, name))),
        }
    }
}

pub(super) fn real(path: &Path) -> PathBuf {
    dunce::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}

impl Interpreter {
    /// Adds the options and variables with which the interpreter reads no configuration of a project.
    ///
    /// # Errors
    /// Returns [`InterpreterError::NotInstalled`] if only a virtual environment of a project has a Python.
    pub(super) fn isolated(
        mut self,
        path: &str,
        head: &[u8],
        surroundings: Surroundings,
        platform: &dyn Platform,
        machine: &dyn Machine,
    ) -> Result<Self, InterpreterError> {
        let Some(program) = self.program.as_ref().and_then(|program| program.to_str()) else {
            return Ok(self);
        };
        let name = base_name(program).to_ascii_lowercase();
        match name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.') {
            "python" | "pythonw" | "pypy" | "py" => self.isolate_python(),
            "uv" => self.isolate_uv(path, head, surroundings, platform, machine)?,
            "bun" => self.isolate_bun(surroundings, machine),
            "deno" => self.isolate_deno(),
            "r" | "rscript" => {
                // If these are set, R doesn't look for the files in the working directory.
                self.set_default("R_PROFILE_USER", "~/.Rprofile", machine);
                self.set_default("R_ENVIRON_USER", "~/.Renviron", machine);
            }
            "java" => {
                // The default is the working directory, in which `META-INF/services` can name plugins of the compiler. We use a path below
                // a file, which can't exist, because the compiler reports an error for an empty file.
                let nowhere = format!("{}/none", machine.empty_file().display());
                self.set_default("CLASSPATH", &nowhere, machine);
            }
            "tsx" => self.set("TSX_TSCONFIG_PATH", machine.empty_file()),
            name if name.starts_with("ts-node") => self.isolate_ts_node(machine),
            _ => {}
        }
        Ok(self)
    }

    /// With `-E` in the `#!` line, Python would ignore the variable that keeps it from writing `__pycache__`.
    fn isolate_python(&mut self) {
        // The launcher of Windows expects the version first.
        let has_version = self.arg(0).is_some_and(|arg| arg.starts_with("-2") || arg.starts_with("-3"));
        self.args.insert(usize::from(has_version), "-B".into());
    }

    /// Without an option, `uv` reads `uv.toml`, `pyproject.toml` and `.python-version` in the directories above the script, and
    /// runs the Python of a virtual environment in or above the working directory. `--no-config` would also ignore the user's
    /// own package indexes.
    fn isolate_uv(
        &mut self,
        path: &str,
        head: &[u8],
        surroundings: Surroundings,
        platform: &dyn Platform,
        machine: &dyn Machine,
    ) -> Result<(), InterpreterError> {
        if surroundings.has_environment {
            let locate = |name| platform.locate(Place::SearchPath(name), machine);
            let python = ["python3", "python"].into_iter().find_map(locate);
            let python = python.ok_or_else(|| InterpreterError::NotInstalled {
                path: path.to_owned(),
                programs: "`python3` or `python`".to_owned(),
                advice: super::INSTALL,
            })?;
            self.remove_python_option();
            self.set("UV_PYTHON", python);
        } else {
            let version = required_python(head).unwrap_or_else(|| ANY_PYTHON.to_owned());
            self.set_default("UV_PYTHON", &version, machine);
        }
        if !self.texts().any(|arg| arg.starts_with("--project")) {
            self.args.splice(0..0, ["--project".into(), platform.system_directory(machine).into()]);
        }
        Ok(())
    }

    /// Without an option, Bun reads `bunfig.toml`, `tsconfig.json` and `.env` in the working directory.
    fn isolate_bun(&mut self, surroundings: Surroundings, machine: &dyn Machine) {
        let empty = machine.empty_file();
        let mut options: Vec<_> = ["--config=", "--env-file=", "--tsconfig-override="]
            .into_iter()
            .map(|option| {
                let mut option = OsString::from(option);
                option.push(&empty);
                option
            })
            .collect();
        // Bun installs missing packages from the registry of a `.npmrc`, and has no option to ignore this file.
        options.extend(surroundings.has_registry.then(|| "--no-install".into()));
        self.args.splice(0..0, options);
    }

    /// Without an option, Deno reads `deno.json` and `package.json` in the directories above the script.
    fn isolate_deno(&mut self) {
        let is_config = |arg: &&str| *arg == "-c" || arg.starts_with("--config");
        if self.texts().any(|arg| is_config(&arg)) {
            return;
        }
        let after_run = self.texts().position(|arg| arg == "run").map(|index| index + 1);
        let has_command = self.arg(0).is_some_and(|arg| !arg.starts_with('-'));
        self.args.insert(after_run.unwrap_or(usize::from(has_command)), "--no-config".into());
    }

    /// Without a variable, ts-node reads `tsconfig.json`, and loads the compiler from the `node_modules` of the directories above the
    /// script or the working directory. With it, ts-node uses the compiler that is installed beside it, or fails.
    fn isolate_ts_node(&mut self, machine: &dyn Machine) {
        self.set("TS_NODE_SKIP_PROJECT", "true");
        let program = machine.real_path(self.program.as_deref().unwrap_or("".as_ref()));
        let mut places = program.ancestors().skip(1).map(|dir| match dir.file_name() {
            Some(name) if name == "node_modules" => dir.join("typescript"),
            _ => dir.join("node_modules/typescript"),
        });
        let is_installed =
            |place: &PathBuf| place.join("package.json").to_str().is_some_and(|path| machine.has_file(path));
        let missing = program.with_file_name("typescript");
        self.set("TS_NODE_COMPILER", places.find(is_installed).unwrap_or(missing));
    }

    fn arg(&self, index: usize) -> Option<&str> {
        self.args.get(index)?.to_str()
    }

    fn texts(&self) -> impl Iterator<Item = &str> {
        self.args.iter().map(|arg| arg.to_str().unwrap_or_default())
    }

    fn set(&mut self, name: &str, value: impl Into<OsString>) {
        self.env.retain(|(other, _)| other != name);
        self.env.push((name.into(), value.into()));
    }

    /// Sets a variable to the user's own value, or to `value` if neither the user nor the `#!` line sets it.
    fn set_default(&mut self, name: &str, value: &str, machine: &dyn Machine) {
        if self.env.iter().all(|(other, _)| other != name) {
            let own = machine.variable(name).filter(|own| !own.is_empty());
            self.set(name, own.unwrap_or_else(|| value.to_owned()));
        }
    }

    /// Removes the option of `uv` for the version of Python: `--python 3.12`, `--python=3.12`, `-p 3.12` or `-p3.12`.
    fn remove_python_option(&mut self) {
        let mut is_value = false;
        self.args.retain(|arg| {
            let arg = arg.to_str().unwrap_or_default();
            let is_option = arg.starts_with("--python=") || arg.starts_with("-p") || arg == "--python";
            let keep = !is_value && !is_option;
            is_value = !is_value && ["--python", "-p"].contains(&arg);
            keep
        });
    }
}

/// Returns the `requires-python` of the inline metadata.
fn required_python(head: &[u8]) -> Option<String> {
    let head = String::from_utf8_lossy(head);
    let mut lines = head.lines().skip_while(|line| line.trim_end() != "# /// script").skip(1);
    let value = lines.by_ref().take_while(|line| line.trim_end() != "# ///").find_map(|line| {
        line.strip_prefix('#')?.trim().strip_prefix("requires-python")?.trim_start().strip_prefix('=')
    })?;
    let value = value.trim();
    let quote = value.chars().next().filter(|c| ['"', '\''].contains(c))?;
    let (version, _) = value[1..].split_once(quote)?;
    Some(version.trim().to_owned()).filter(|version| !version.is_empty())
}

/// Returns the path of an empty file. On Windows, the null device has no path in a file system, so we create a file.
pub(super) fn empty_file() -> PathBuf {
    if cfg!(windows) {
        // The temporary directory belongs to the user. If this fails, the interpreter reports that the file is missing.
        let path = std::env::temp_dir().join("skills-core-empty");
        let _ = fs::File::create(&path);
        path
    } else {
        "/dev/null".into()
    }
}

#[cfg(test)]
mod tests;
