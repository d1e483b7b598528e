//! [`Evaluation`]: the skill, the agents and the options of an evaluation, and the plan of its runs.

use std::{
    collections::{BTreeMap, HashSet},
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use acp_skills::{intercept::Policy, library::MakeToolbox};
use skills_core::{
    Discovery, Skill, SkillSet,
    discovery::{Root, load_dir},
    exec::Sandbox,
    remote::Sha256,
};

use super::{
    Allow, Case, Configuration, EvaluationError, OutputCase, Part, RunId, TriggerCase, cases,
    connection::{Connection, Launch, OpenError},
    directory::copy_without_cases,
    scratch::Scratch,
    statistics::split,
};

/// The name of the built-in agent, which is used if no agent is given.
pub const EMBEDDED: &str = "embedded";

/// An agent to evaluate on.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct AgentCommand {
    /// The name in reports and directories.
    pub name: String,
    /// The program and its arguments, which are run without a shell. If it is empty, the built-in agent is used.
    pub command: Vec<OsString>,
}

/// The grader for assertions that are sentences.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Grader {
    /// The evaluated agent itself, in a new session without skills.
    #[default]
    Same,
    /// Another agent: its program and arguments.
    Command(Vec<OsString>),
    /// No grader. Sentences are skipped.
    Nobody,
}

/// The options of an evaluation.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Options {
    /// The number of runs of each case in each configuration. The default is 3.
    pub runs: u32,
    /// The maximum number of concurrent runs. The default is 1.
    pub jobs: usize,
    /// The timeout of a run, from the start of its agent. The default is 5 minutes.
    pub timeout: Duration,
    /// The maximum number of times that a run is repeated if the agent fails in it. The default is 2.
    pub retries: u32,
    /// The minimum share of runs that have to load the skill, from 0 to 1, so that a query counts as loading it. The default
    /// is 0.5.
    pub threshold: f64,
    /// The permissions of agents. The default allows nothing.
    pub allow: Allow,
    /// The grader for assertions that are sentences. The default is the evaluated agent.
    pub grader: Grader,
    /// The share of the queries for tuning, from 0 to 1. By default, the queries are not split.
    pub split: Option<f64>,
    /// The seed for selecting the queries for tuning. The default is 0.
    pub seed: u64,
    /// The proxy's policy.
    pub policy: Policy,
    /// The sandbox in which agents run. It has to allow the network, because agents need it to reach their model. By default,
    /// there is no sandbox.
    pub sandbox: Option<Sandbox>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            runs: 3,
            jobs: 1,
            timeout: Duration::from_mins(5),
            retries: 2,
            threshold: 0.5,
            allow: Allow::default(),
            grader: Grader::Same,
            split: None,
            seed: 0,
            policy: Policy::default(),
            sandbox: None,
        }
    }
}

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

/// The runs of an evaluation.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Plan {
    /// The runs, in the order in which they start.
    pub runs: Vec<RunId>,
    /// The number of turns of each agent by name. A grader that is not one of the agents is counted as `None`.
    pub turns: BTreeMap<Option<String>, usize>,
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
            evals: cases::find_output_cases(&dir)?,
            skill,
            dir,
            among: Vec::new(),
            baseline: None,
            agents: vec![AgentCommand { name: EMBEDDED.to_owned(), command: Vec::new() }],
            options: Options::default(),
            toolbox: None,
            program: None,
        })
    }

    /// Sets the agents, each with a name and a command. An empty list keeps the built-in agent.
    ///
    /// # Errors
    /// Returns [`EvaluationError::SameName`] if two names differ at most in case, and [`EvaluationError::AgentName`] if a name
    /// can't be used for a directory.
    pub fn on(
        mut self,
        agents: impl IntoIterator<Item = (String, Vec<OsString>)>,
    ) -> Result<Self, EvaluationError> {
        let agents: Vec<_> =
            agents.into_iter().map(|(name, command)| AgentCommand { name, command }).collect();
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
    /// Returns [`EvaluationError::Unreadable`] if the directory can't be listed.
    pub fn among(mut self, dir: &Path) -> Result<Self, EvaluationError> {
        fs::read_dir(dir).map_err(|source| EvaluationError::Unreadable { path: dir.to_owned(), source })?;
        let found = match load_dir(dir) {
            Ok((skill, _)) => vec![Arc::new(skill)],
            Err(_) => Discovery::new([Root::scanned(dir)]).find().iter().cloned().collect(),
        };
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

    /// Returns the planned runs.
    ///
    /// # Errors
    /// Returns [`EvaluationError::NoCases`] if there are neither queries nor tasks.
    pub fn plan(&self) -> Result<Plan, EvaluationError> {
        if self.queries.is_empty() && self.evals.is_empty() {
            return Err(EvaluationError::NoCases(self.dir.clone()));
        }
        let mut runs = Vec::new();
        let mut turns: BTreeMap<_, usize> = BTreeMap::new();
        let compared = self.compared_with();
        // Queries are only run with the skill, because otherwise there is nothing to load.
        let for_queries = [Some(Configuration::WithSkill), self.baseline.is_some().then_some(compared)];
        for number in 1..=self.options.runs {
            for agent in &self.agents {
                let id =
                    |case, configuration| RunId { agent: agent.name.clone(), case, configuration, number };
                for place in 0..self.queries.len() {
                    let configurations = for_queries.into_iter().flatten();
                    runs.extend(configurations.map(|configuration| id(Case::Query(place), configuration)));
                }
                for case in &self.evals {
                    for configuration in [Configuration::WithSkill, compared] {
                        runs.push(id(Case::Eval(case.name.clone()), configuration));
                        match &self.options.grader {
                            Grader::Nobody => {}
                            _ if !case.has_sentences() => {}
                            Grader::Same => *turns.entry(Some(agent.name.clone())).or_default() += 1,
                            Grader::Command(_) => *turns.entry(None).or_default() += 1,
                        }
                    }
                }
            }
        }
        for run in &runs {
            *turns.entry(Some(run.agent.clone())).or_default() += 1;
        }
        // Finish all runs of a case before we start the next one, so that we have complete results for some of the
        // cases if the evaluation is stopped.
        runs.sort_by_key(|run| (run.case.clone(), run.number));
        Ok(Plan { runs, turns })
    }

    /// Returns a hash of everything that the runs depend on. An evaluation can be resumed only if it is unchanged.
    pub(super) fn fingerprint(&self) -> String {
        let text = |skill: &Skill| match (skill.dir(), &skill.source) {
            (Some(_), skills_core::Source::Stored(stored)) => fs::read(stored.file()).unwrap_or_default(),
            _ => Vec::new(),
        };
        let mut all = text(&self.skill);
        for skill in self.among.iter().chain(&self.baseline) {
            all.extend(text(skill));
        }
        let Options { runs, timeout, allow, grader, .. } = &self.options;
        let Self { queries, evals, agents, .. } = self;
        all.extend(format!("{queries:?}{evals:?}{agents:?}{runs}{timeout:?}{allow:?}{grader:?}").bytes());
        Sha256::of(&all).to_string()
    }

    /// Returns the agent with this name.
    pub(super) fn agent(&self, name: &str) -> Option<&AgentCommand> {
        self.agents.iter().find(|agent| agent.name == name)
    }

    /// Returns the command of the grader for the work of `agent`, or `None` if there is no grader.
    pub(super) fn grader_of<'a>(&'a self, agent: &'a AgentCommand) -> Option<&'a [OsString]> {
        match &self.options.grader {
            Grader::Same => Some(&agent.command),
            Grader::Command(command) => Some(command),
            Grader::Nobody => None,
        }
    }

    /// Starts an agent in a directory. If there are skills, the proxy is put in front of it.
    pub(super) fn open(
        &self,
        command: &[OsString],
        directory: &Path,
        skills: Option<SkillSet>,
    ) -> Result<Connection, OpenError> {
        let launch = Launch {
            policy: self.options.policy.clone(),
            toolbox: self.toolbox.clone(),
            program: self.program.clone(),
        };
        let mut command = absolute(command);
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
        Connection::open(&launch, &command, directory, skills)
    }
}

/// Makes relative paths of existing files in a command absolute, because agents start in the directory of their run.
fn absolute(command: &[OsString]) -> Vec<OsString> {
    let words = command.iter().map(|word| {
        let path = Path::new(word);
        let names_file = path.is_relative() && path.components().count() > 1 && path.exists();
        let absolute = names_file.then(|| std::path::absolute(path).ok()).flatten();
        absolute.map_or_else(|| word.clone(), PathBuf::into_os_string)
    });
    words.collect()
}

/// Loads the skill in a directory. Returns the directory, a copy of the skill without its cases, and the copy's directory.
fn load(dir: &Path) -> Result<(PathBuf, Arc<Skill>, Scratch), EvaluationError> {
    let failed = |source| EvaluationError::Skill { path: dir.to_owned(), source };
    let unreadable = |source| EvaluationError::Unreadable { path: dir.to_owned(), source };
    let absolute = std::path::absolute(dir).map_err(unreadable)?;
    let (skill, _diagnostics) = load_dir(&absolute).map_err(failed)?;
    let real = skill.dir().unwrap_or(&absolute).to_owned();
    let (copy, path) = copy_without_cases(&real).map_err(unreadable)?;
    let (skill, _diagnostics) = load_dir(&path).map_err(failed)?;
    Ok((real, Arc::new(skill), copy))
}
