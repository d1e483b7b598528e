//! Reads `agents.json`: the agents, and how each is installed and started.
//!
//! Versions are exact, so that a run can be repeated. All files are installed in the directory `AGENTS_HOME`. An agent runs with
//! its own home directory and a minimal environment, so the user's API keys never reach it.

use std::{
    collections::BTreeMap,
    env,
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result, ensure};
use serde::Deserialize;
use serde_json::Value;

/// The contents of `agents.json`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Catalogue {
    /// The npm package of Node.js. Several agents need a newer version than most machines have.
    node: String,
    /// The PyPI package of uv, which installs the other packages from PyPI.
    uv: String,
    pub(crate) agents: Vec<Spec>,
}

/// One agent.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Spec {
    /// The identifier in the program's own table of agents.
    pub(crate) id: String,
    #[serde(default)]
    npm: Vec<String>,
    /// True if install scripts of npm packages run. Some of them download files that the tests don't need.
    #[serde(default = "yes")]
    scripts: bool,
    #[serde(default)]
    pypi: Vec<String>,
    /// The Python version for the packages of PyPI.
    python: Option<String>,
    cargo: Option<String>,
    /// The directory in `AGENTS_HOME`. The default is the identifier.
    folder: Option<String>,
    run: Vec<String>,
    #[serde(default)]
    env: BTreeMap<String, String>,
    /// The lines of files in the agent's home directory, by path.
    #[serde(default)]
    files: BTreeMap<String, Vec<String>>,
    /// True if the agent can use the scripted model.
    #[serde(default = "yes")]
    pub(crate) model: bool,
    /// The call with which the model finds a hidden tool.
    pub(crate) find: Option<Step>,
    /// The call with which the model uses a tool that it has found, if not by the tool's name.
    pub(crate) via: Option<Step>,
    /// Members that the model must add to the arguments of each call.
    #[serde(default)]
    pub(crate) with: serde_json::Map<String, Value>,
    /// The reason why the agent asks for permission for calls of our read-only tools, if it does.
    pub(crate) asks: Option<String>,
    /// The reason why the agent gets the catalog again after `session/load`, if it does.
    pub(crate) retold: Option<String>,
    /// The reason why the proxy kills the agent before it exits by itself, if it does.
    pub(crate) leaves: Option<String>,
    /// The reason why the test loads no sessions, if it doesn't.
    pub(crate) load: Option<String>,
}

/// A call of one of the agent's own tools. In its arguments, `{tool}` is replaced with the name of our tool, and a string
/// `{arguments}` with the arguments of our tool.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Step {
    pub(crate) tool: String,
    pub(crate) arguments: Value,
}

fn yes() -> bool {
    true
}

/// Returns the directory `AGENTS_HOME`, if it is set and not empty.
pub(crate) fn home() -> Option<PathBuf> {
    env::var_os("AGENTS_HOME").filter(|home| !home.is_empty()).map(PathBuf::from)
}

pub(crate) fn read() -> Catalogue {
    serde_json::from_str(include_str!("agents.json")).expect("agents.json is valid")
}

impl Catalogue {
    /// Installs an agent, with Node.js or uv if it needs them.
    ///
    /// # Errors
    /// Returns an error if a directory cannot be created or an installer fails.
    pub(crate) fn install(&self, agent: &Spec, home: &Path) -> Result<()> {
        fs::create_dir_all(home).with_context(|| format!("cannot create {}", home.display()))?;
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
    /// Returns the path of uv, which finds or downloads the right version of Python. Installs it if it is missing.
    fn uv(&self, home: &Path) -> Result<PathBuf> {
        let folder = home.join("uv");
        let program = folder.join("bin/uv");
        if !program.exists() {
            run(Command::new("python3").args(["-m", "venv"]).arg(&folder))?;
            run(Command::new(folder.join("bin/pip")).args(["install", "-q", &self.uv]))?;
        }
        Ok(program)
    }
}

fn npm(folder: &Path, packages: &[String], scripts: bool) -> Result<()> {
    fs::create_dir_all(folder)
        .and_then(|()| fs::write(folder.join("package.json"), "{\"private\":true}"))
        .with_context(|| format!("cannot create {}", folder.display()))?;
    let flags = ["install", "--save-exact", "--no-audit", "--no-fund", "--loglevel=error"];
    let scripts = (!scripts).then_some("--ignore-scripts");
    run(Command::new("npm").current_dir(folder).args(flags).args(scripts).args(packages))
}

fn run(command: &mut Command) -> Result<()> {
    let status = command.status().with_context(|| format!("cannot run {command:?}"))?;
    ensure!(status.success(), "{command:?} failed: {status}");
    Ok(())
}

impl Spec {
    /// Returns the version that the tests install.
    pub(crate) fn version(&self) -> &str {
        let package =
            self.npm.first().or(self.pypi.first()).or(self.cargo.as_ref()).map_or("", String::as_str);
        package.rsplit(['@', '=']).next().unwrap_or_default()
    }

    /// Returns the name of the package that the tests install.
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

    /// Writes the agent's files into its home directory `own`.
    pub(crate) fn settle(&self, home: &Path, own: &Path, model: &str) {
        for (path, lines) in &self.files {
            let path = own.join(path);
            fs::create_dir_all(path.parent().expect("a directory")).expect("a directory");
            fs::write(&path, self.filled(&lines.join("\n"), home, own, model)).expect("a file");
        }
        fs::create_dir_all(own.join("tmp")).expect("a directory");
    }

    /// Returns the command that starts the agent, and its whole environment.
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
