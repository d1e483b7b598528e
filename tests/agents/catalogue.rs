//! The agents in `agents.json`: how to install and start each of them.
//!
//! Versions are exact, so that a run can be repeated. Everything is installed below the directory that `AGENTS_HOME`
//! names. Each agent runs with its own home directory and almost none of our environment, so that it does not get the
//! keys of the person who runs this.

use std::{
    collections::BTreeMap,
    env,
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use serde::Deserialize;
use serde_json::Value;

/// The contents of `agents.json`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Catalogue {
    /// The npm package with Node.js, because several agents need a newer version than most machines have.
    node: String,
    /// The PyPI package that installs the other PyPI packages.
    uv: String,
    pub(crate) agents: Vec<Spec>,
}

/// An agent.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Spec {
    /// The identifier in the program's own table of agents.
    pub(crate) id: String,
    #[serde(default)]
    npm: Vec<String>,
    /// True if the scripts of its npm packages run at installation. Some of them download files that are not needed.
    #[serde(default = "yes")]
    scripts: bool,
    #[serde(default)]
    pypi: Vec<String>,
    /// The version of Python for the PyPI packages. The default is 3.
    python: Option<String>,
    cargo: Option<String>,
    /// Its directory below `AGENTS_HOME`. The default is its identifier.
    folder: Option<String>,
    run: Vec<String>,
    #[serde(default)]
    env: BTreeMap<String, String>,
    /// Files to create in its home directory: the path and the lines of each.
    #[serde(default)]
    files: BTreeMap<String, Vec<String>>,
    /// True if its model can be scripted.
    #[serde(default = "yes")]
    pub(crate) model: bool,
    /// The call with which its model finds a hidden tool.
    pub(crate) find: Option<Step>,
    /// The call with which its model calls a tool that it has found, unless it uses the tool's name.
    pub(crate) via: Option<Step>,
    /// Additional arguments that its model has to send in each call.
    #[serde(default)]
    pub(crate) with: serde_json::Map<String, Value>,
    /// The reason why the user is asked about calls of our reading tools.
    pub(crate) asks: Option<String>,
    /// The reason why it gets the catalog again after a load.
    pub(crate) retold: Option<String>,
    /// The reason why it is killed before it exits by itself.
    pub(crate) leaves: Option<String>,
    /// The reason why sessions cannot be loaded.
    pub(crate) load: Option<String>,
}

/// A call of one of the agent's own tools. In its arguments, `{tool}` is replaced by the name of the tool to call, and a
/// text `{arguments}` by that tool's arguments.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Step {
    pub(crate) tool: String,
    pub(crate) arguments: Value,
}

fn yes() -> bool {
    true
}

/// Returns the directory where agents are installed, if `AGENTS_HOME` is set.
pub(crate) fn home() -> Option<PathBuf> {
    env::var_os("AGENTS_HOME").filter(|home| !home.is_empty()).map(PathBuf::from)
}

pub(crate) fn read() -> Catalogue {
    serde_json::from_str(include_str!("agents.json")).expect("agents.json is sound")
}

impl Catalogue {
    /// Installs an agent if it is missing.
    pub(crate) fn install(&self, agent: &Spec, home: &Path) -> Result<(), String> {
        fs::create_dir_all(home).map_err(|error| format!("{}: {error}", home.display()))?;
        let node = home.join("node");
        if !agent.npm.is_empty() && !node.join("node_modules/node/bin/node").exists() {
            npm(&node, std::slice::from_ref(&self.node), true)?;
        }
        let folder = agent.folder(home);
        if !agent.npm.is_empty() {
            npm(&folder, &agent.npm, agent.scripts)?;
        }
        if !agent.pypi.is_empty() {
            let uv = self.uv(home)?;
            let python = agent.python.as_deref().unwrap_or("3");
            run(Command::new(&uv).args(["venv", "-q", "--allow-existing", "--python", python]).arg(&folder))?;
            let install = ["pip", "install", "-q", "--python"];
            run(Command::new(&uv).args(install).arg(folder.join("bin/python")).args(&agent.pypi))?;
        }
        if let Some(package) = &agent.cargo {
            run(Command::new("cargo")
                .args(["install", "-q", "--locked", "--root"])
                .arg(&folder)
                .arg(package))?;
        }
        Ok(())
    }
}

impl Catalogue {
    /// Returns uv, which finds or downloads a suitable Python. Installs it if it is missing.
    fn uv(&self, home: &Path) -> Result<PathBuf, String> {
        let folder = home.join("uv");
        let program = folder.join("bin/uv");
        if !program.exists() {
            run(Command::new("python3").args(["-m", "venv"]).arg(&folder))?;
            run(Command::new(folder.join("bin/pip")).args(["install", "-q", &self.uv]))?;
        }
        Ok(program)
    }
}

fn npm(folder: &Path, packages: &[String], scripts: bool) -> Result<(), String> {
    fs::create_dir_all(folder)
        .and_then(|()| fs::write(folder.join("package.json"), "{\"private\":true}"))
        .map_err(|error| format!("{}: {error}", folder.display()))?;
    let flags = ["install", "--save-exact", "--no-audit", "--no-fund", "--loglevel=error"];
    let scripts = (!scripts).then_some("--ignore-scripts");
    run(Command::new("npm").current_dir(folder).args(flags).args(scripts).args(packages))
}

fn run(command: &mut Command) -> Result<(), String> {
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("{command:?}: {status}")),
        Err(error) => Err(format!("{command:?}: {error}")),
    }
}

impl Spec {
    /// Returns the tested version.
    pub(crate) fn version(&self) -> &str {
        let package =
            self.npm.first().or(self.pypi.first()).or(self.cargo.as_ref()).map_or("", String::as_str);
        package.rsplit(['@', '=']).next().unwrap_or_default()
    }

    /// Returns the name of the tested package.
    pub(crate) fn package(&self) -> String {
        let package =
            self.npm.first().or(self.pypi.first()).or(self.cargo.as_ref()).map_or("", String::as_str);
        let at = package[1..].find(['@', '=', '[']).map_or(package.len(), |at| at + 1);
        package[..at].to_owned()
    }

    fn folder(&self, home: &Path) -> PathBuf {
        home.join(self.folder.as_deref().unwrap_or(&self.id))
    }

    /// Returns true if the agent is installed.
    pub(crate) fn is_installed(&self, home: &Path) -> bool {
        let place = |text: &str| PathBuf::from(self.filled(text, home, Path::new(""), ""));
        self.run.iter().any(|word| word.starts_with('{') && place(word).exists())
    }

    fn filled(&self, text: &str, home: &Path, own: &Path, model: &str) -> String {
        let folder = self.folder(home);
        let path = |path: PathBuf| path.to_string_lossy().into_owned();
        text.replace("{bin}", &path(folder.join("node_modules/.bin")))
            .replace("{folder}", &path(folder))
            .replace("{home}", &path(own.to_owned()))
            .replace("{model}", model)
    }

    /// Writes its files into its home directory `own`.
    pub(crate) fn settle(&self, home: &Path, own: &Path, model: &str) {
        for (path, lines) in &self.files {
            let path = own.join(path);
            fs::create_dir_all(path.parent().expect("a directory")).expect("a directory");
            fs::write(&path, self.filled(&lines.join("\n"), home, own, model)).expect("a file");
        }
        fs::create_dir_all(own.join("tmp")).expect("a directory");
    }

    /// Returns the command that starts it, and its complete environment.
    pub(crate) fn command(
        &self,
        home: &Path,
        own: &Path,
        model: &str,
    ) -> (Vec<OsString>, Vec<(String, OsString)>) {
        let node = home.join("node/node_modules/node/bin");
        let system = ["/usr/local/bin", "/usr/bin", "/bin"].map(PathBuf::from);
        let path = env::join_paths(std::iter::once(node).chain(system)).expect("a path");
        let mut environment: Vec<(String, OsString)> = vec![
            ("PATH".to_owned(), path),
            ("HOME".to_owned(), own.into()),
            ("TMPDIR".to_owned(), own.join("tmp").into()),
            ("LANG".to_owned(), "C.UTF-8".into()),
            ("TERM".to_owned(), "xterm".into()),
            ("SHELL".to_owned(), "/bin/sh".into()),
            ("NO_COLOR".to_owned(), "1".into()),
        ];
        let fill = |text: &String| OsString::from(self.filled(text, home, own, model));
        environment.extend(self.env.iter().map(|(name, value)| (name.clone(), fill(value))));
        (self.run.iter().map(fill).collect(), environment)
    }
}
