//! [`Evaluation`]: the skill, its cases and the agents of an evaluation.

use std::{
    collections::HashSet,
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use acp_skills::{agents::ROOT, library::MakeToolbox};
use skills_core::{
    Discovery, Scope, Skill, SkillSet,
    discovery::{Root, load_dir},
};
use skills_sources::policy::Policy;

use super::{
    AgentCommand, Case, Configuration, EMBEDDED, EvaluationError, Grader, Options, OutputCase, Part,
    TriggerCase, cases,
    connection::{Connection, Launch, OpenError},
    directory::copy_without_cases,
    isolation::Home,
    scratch::Scratch,
    statistics::split,
};

/// An evaluation of a skill on agents. See the [crate documentation](crate) for an example.
pub struct Evaluation {
    /// The evaluated skill, without its cases.
    pub skill: Arc<Skill>,
    /// The skill's directory.
    pub dir: PathBuf,
    /// Other skills that are offered together with the skill when queries are run.
    pub among: Vec<Arc<Skill>>,
    /// An older version of the skill as the baseline. `None` compares with no skill.
    pub baseline: Option<Arc<Skill>>,
    /// The queries.
    pub queries: Vec<TriggerCase>,
    /// The tasks.
    pub evals: Vec<OutputCase>,
    /// The agents.
    pub agents: Vec<AgentCommand>,
    /// The options.
    pub options: Options,
    toolbox: Option<MakeToolbox>,
    program: Option<PathBuf>,
    /// The temporary directories with the copies of the skills.
    copies: Vec<Scratch>,
}

impl Evaluation {
    /// Creates an evaluation of the skill in `dir` with the cases in it, on the built-in agent.
    ///
    /// # Errors
    /// - [`EvaluationError::Skill`] if the skill is invalid.
    /// - [`EvaluationError::Unreadable`] if a file can't be read or copied.
    /// - [`EvaluationError::Cases`] if a file of cases is invalid.
    pub fn new(dir: &Path) -> Result<Self, EvaluationError> {
        let (dir, skill, copy) = load(dir)?;
        Ok(Self {
            copies: vec![copy],
            queries: cases::find_queries(&dir)?,
            evals: cases::find_output_cases(&dir, skill.name.as_str())?,
            skill,
            dir,
            among: Vec::new(),
            baseline: None,
            agents: vec![AgentCommand::new(EMBEDDED, Vec::new())],
            options: Options::default(),
            toolbox: None,
            program: None,
        })
    }

    /// Creates an evaluation of a skill that is stored in a workspace, without cases.
    pub(super) fn stored(skill: Arc<Skill>, dir: PathBuf, baseline: Option<Arc<Skill>>) -> Self {
        Self {
            skill,
            dir,
            among: Vec::new(),
            baseline,
            queries: Vec::new(),
            evals: Vec::new(),
            agents: vec![AgentCommand::new(EMBEDDED, Vec::new())],
            options: Options::default(),
            toolbox: None,
            program: None,
            copies: Vec::new(),
        }
    }

    /// Returns the same evaluation of another version of the skill, which is in the directory `copy`.
    pub(super) fn variant(&self, skill: Skill, copy: Scratch) -> Self {
        Self {
            skill: Arc::new(skill),
            dir: self.dir.clone(),
            among: self.among.clone(),
            baseline: None,
            queries: self.queries.clone(),
            evals: self.evals.clone(),
            agents: self.agents.clone(),
            options: self.options.clone(),
            toolbox: self.toolbox.clone(),
            program: self.program.clone(),
            copies: vec![copy],
        }
    }

    /// Replaces the queries and the tasks.
    pub(super) fn with_cases(self, queries: Vec<TriggerCase>, evals: Vec<OutputCase>) -> Self {
        Self { queries, evals, ..self }
    }

    /// Sets the agents, each with a name and a command. An empty list keeps the built-in agent.
    ///
    /// # Errors
    /// Returns [`EvaluationError::SameName`] if two names differ at most in case, and [`EvaluationError::AgentName`] if a name
    /// can't be used for a directory.
    pub fn on(mut self, agents: impl IntoIterator<Item = AgentCommand>) -> Result<Self, EvaluationError> {
        let agents: Vec<_> = agents.into_iter().collect();
        let mut names = HashSet::new();
        for agent in &agents {
            let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
            let name = &agent.name;
            // We already use these names for the directories of cases.
            let is_taken = name.starts_with("eval-") || name == "triggers";
            if name.is_empty() || name.starts_with('.') || is_taken || !name.chars().all(is_plain) {
                return Err(EvaluationError::AgentName(name.clone()));
            }
            // Compare names in lower case, as some file systems do.
            if !names.insert(name.to_ascii_lowercase()) {
                return Err(EvaluationError::SameName(name.clone()));
            }
        }
        if !agents.is_empty() {
            self.agents = agents;
        }
        Ok(self)
    }

    /// Adds the skills in and below `dir`, which are offered together with the skill when queries are run.
    ///
    /// # Errors
    /// Returns [`EvaluationError::Unreadable`] if the directory can't be listed, and [`EvaluationError::Refused`] if the policy doesn't
    /// allow one of the skills.
    pub fn among(mut self, dir: &Path) -> Result<Self, EvaluationError> {
        fs::read_dir(dir).map_err(|source| EvaluationError::Unreadable { path: dir.to_owned(), source })?;
        let found = match load_dir(dir) {
            Ok((skill, _)) => vec![Arc::new(skill)],
            Err(_) => Discovery::new([Root::scanned(dir)]).find().iter().cloned().collect(),
        };
        found.iter().try_for_each(|skill| permit(skill))?;
        // The skill that we evaluate can be in the same directory, so we need to skip it here.
        self.among.extend(found.into_iter().filter(|skill| skill.name != self.skill.name));
        Ok(self)
    }

    /// Compares with the older version of the skill in `dir` instead of no skill.
    ///
    /// # Errors
    /// Returns [`EvaluationError::Skill`] or [`EvaluationError::Unreadable`] if the older version can't be loaded.
    pub fn baseline(mut self, dir: &Path) -> Result<Self, EvaluationError> {
        let (_, skill, copy) = load(dir)?;
        self.baseline = Some(skill);
        self.copies.push(copy);
        Ok(self)
    }

    /// Replaces the queries with those in a file.
    ///
    /// # Errors
    /// See [`read_queries`](crate::read_queries).
    pub fn queries(mut self, path: &Path) -> Result<Self, EvaluationError> {
        self.queries = cases::read_queries(path)?;
        Ok(self)
    }

    /// Sets the options.
    #[must_use]
    pub fn options(self, options: Options) -> Self {
        Self { options, ..self }
    }

    /// Sets the function that creates the tools for a set of skills. The default is
    /// [`Toolbox::new`](skills_core::Toolbox::new).
    #[must_use]
    pub fn toolbox(self, toolbox: MakeToolbox) -> Self {
        Self { toolbox: Some(toolbox), ..self }
    }

    /// Sets the path of the `acp-skills-proxy` program. It is the bridge for agents without MCP over HTTP, and the watchdog that
    /// ends agents if this process is killed.
    #[must_use]
    pub fn program(self, program: impl Into<PathBuf>) -> Self {
        Self { program: Some(program.into()), ..self }
    }

    /// Returns the part of each query, or `None` if the queries are not split.
    pub(super) fn parts(&self) -> Option<Vec<Part>> {
        let share = self.options.split?;
        let cases: Vec<_> =
            self.queries.iter().map(|case| (case.query.as_str(), case.should_trigger)).collect();
        Some(split(&cases, share, self.options.seed))
    }

    /// Returns true if a case is a query for validation. Its results are only shown as part of rates, so that the
    /// description is not tuned with them.
    pub fn is_held_out(&self, case: &Case) -> bool {
        let Case::Query(place) = case else { return false };
        self.parts().is_some_and(|parts| parts.get(*place) == Some(&Part::Validation))
    }

    /// Returns the configuration with which the skill is compared.
    pub fn compared_with(&self) -> Configuration {
        if self.baseline.is_some() { Configuration::OldSkill } else { Configuration::WithoutSkill }
    }

    /// Returns the agent with this name.
    pub(super) fn agent(&self, name: &str) -> Option<&AgentCommand> {
        self.agents.iter().find(|agent| agent.name == name)
    }

    /// Returns the grader for the work of `agent`, or `None` if there is no grader.
    pub(super) fn grader_of(&self, agent: &AgentCommand) -> Option<AgentCommand> {
        match &self.options.grader {
            Grader::Same => Some(agent.clone()),
            Grader::Command(command) => Some(AgentCommand::new("grader", command.clone())),
            Grader::Nobody => None,
        }
    }

    /// Returns the second grader, if there is one.
    pub(super) fn second_grader(&self) -> Option<AgentCommand> {
        let command = self.options.second_grader.clone()?;
        Some(AgentCommand::new("second grader", command))
    }

    /// Starts an agent in a directory. If there are skills, the proxy is put in front of it.
    pub(super) fn open(
        &self,
        agent: &AgentCommand,
        directory: &Path,
        skills: Option<SkillSet>,
    ) -> Result<Connection, OpenError> {
        let mut policy = self.options.policy.clone();
        policy.catalog.style = agent.catalog_style.unwrap_or(policy.catalog.style);
        let launch = Launch {
            policy,
            toolbox: self.toolbox.clone(),
            program: self.program.clone(),
            environment: Vec::new(),
        };
        let is_isolated = self.options.isolate && !agent.command.is_empty();
        let home = is_isolated.then(|| Home::new(&agent.command)).transpose()?;
        let environment = home.iter().flat_map(Home::environment).cloned().collect();
        let launch = Launch { environment, ..launch };
        let mut command = without_packages(absolute(&agent.command));
        if let Some(sandbox) = self.options.sandbox.as_ref().filter(|_| !command.is_empty()) {
            // If an agent doesn't use our tools, it needs to read the files of the skills, but these are not in the
            // run's directory.
            let readable: Vec<_> = skills
                .iter()
                .flat_map(SkillSet::iter)
                .filter_map(|skill| Some(skill.dir()?.to_owned()))
                .collect();
            command = sandbox.command(&command, directory, &readable)?;
        }
        let mut connection = Connection::open(&launch, &command, directory, skills)?;
        connection.keep(home);
        Ok(connection)
    }
}

/// Makes relative paths of existing files in a command absolute, because agents start in the directory of their run. An argument
/// without a directory is only a path if it has an extension, such as `agent.py`.
fn absolute(command: &[OsString]) -> Vec<OsString> {
    let words = command.iter().enumerate().map(|(place, word)| {
        let path = Path::new(word);
        let is_script = || place > 0 && path.extension().is_some() && path.is_file();
        let is_path = || path.components().count() > 1 && path.exists();
        let names_file = path.is_relative() && (is_path() || is_script());
        let absolute = names_file.then(|| std::path::absolute(path).ok()).flatten();
        absolute.map_or_else(|| word.clone(), PathBuf::into_os_string)
    });
    words.collect()
}

/// Makes `npx` ignore the packages in the directory of the run, whose files the skill chooses.
fn without_packages(mut command: Vec<OsString>) -> Vec<OsString> {
    let is_npx = command.first().is_some_and(|word| Path::new(word).file_stem() == Some("npx".as_ref()));
    let has_prefix = || command.iter().any(|word| word.as_encoded_bytes().starts_with(b"--prefix"));
    if is_npx && !has_prefix() {
        command.splice(1..1, ["--prefix".into(), ROOT.into()]);
    }
    command
}

/// Checks that the policy of this machine allows a skill that the user names, and a copy of it that the user can change.
///
/// # Errors
/// Returns [`EvaluationError::Refused`] if it doesn't, and [`EvaluationError::Policy`] if the policy can't be used.
fn permit(skill: &Skill) -> Result<(), EvaluationError> {
    let policy = Policy::load()?.unwrap_or_default();
    policy.skill(skill.name.as_str(), Scope::Named, skill.dir())?;
    policy.skill(skill.name.as_str(), Scope::Named, None)?;
    Ok(())
}

/// Loads the skill in a directory. Returns the directory, a copy of the skill without its cases, and the copy's directory.
fn load(dir: &Path) -> Result<(PathBuf, Arc<Skill>, Scratch), EvaluationError> {
    let failed = |source| EvaluationError::Skill { path: dir.to_owned(), source };
    let unreadable = |source| EvaluationError::Unreadable { path: dir.to_owned(), source };
    let absolute = std::path::absolute(dir).map_err(unreadable)?;
    let (skill, _diagnostics) = load_dir(&absolute).map_err(failed)?;
    let real = skill.dir().unwrap_or(&absolute).to_owned();
    permit(&skill)?;
    let (scratch, path) = copy_without_cases(&real).map_err(unreadable)?;
    let (copy, _diagnostics) = load_dir(&path).map_err(failed)?;
    Ok((real, Arc::new(copy), scratch))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Tests run in the directory of the crate.
    #[test]
    fn relative_files_in_commands_become_absolute() {
        let here = std::env::current_dir().unwrap();
        let path = |name: &str| here.join(name).components().collect::<PathBuf>().into_os_string();
        let command = ["Cargo.toml", "Cargo.toml", "src/lib.rs", "src", "none.py", "none/none.py"];
        let expected: [OsString; 6] = [
            "Cargo.toml".into(),
            path("Cargo.toml"),
            path("src/lib.rs"),
            "src".into(),
            "none.py".into(),
            "none/none.py".into(),
        ];
        assert_eq!(absolute(&command.map(OsString::from)), expected);
    }

    #[test]
    fn npx_ignores_the_directory_of_the_run() {
        for (command, expected) in [
            (&["npx", "-y", "a"][..], &["npx", "--prefix", ROOT, "-y", "a"][..]),
            (&["/usr/bin/npx", "a"], &["/usr/bin/npx", "--prefix", ROOT, "a"]),
            (&["npx", "--prefix=/x", "a"], &["npx", "--prefix=/x", "a"]),
            (&["agent", "npx"], &["agent", "npx"]),
            (&[], &[]),
        ] {
            let command = command.iter().map(OsString::from).collect();
            assert_eq!(without_packages(command), expected);
        }
    }
}
