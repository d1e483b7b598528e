//! [`Evaluation`]: what is evaluated, how, and which runs that takes.

use std::{
    collections::{BTreeMap, HashSet},
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use acp_skills_intercept::Policy;
use skills_core::{
    Discovery, Skill, SkillSet,
    discovery::{Root, load_dir},
    exec::Sandbox,
    remote::Sha256,
};
use tempfile::TempDir;

use super::{
    Allow, Case, Configuration, EvaluationError, OutputCase, RunId, TriggerCase, cases,
    connection::{Connection, Launch, OpenError},
    directory::without_cases,
};
use acp_skills_runtime::library::MakeToolbox;

/// The name of the agent when none is given.
pub const EMBEDDED: &str = "embedded";

/// An agent to evaluate on.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct AgentCommand {
    /// What it is called in reports; names a directory.
    pub name: String,
    /// Its program and arguments, run without a shell; the embedded agent when it is empty.
    pub command: Vec<OsString>,
}

/// Who judges sentences.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Grader {
    /// The agent whose work it is, in a fresh session without skills.
    #[default]
    Same,
    /// This one.
    Command(Vec<OsString>),
    /// Nobody.
    Nobody,
}

/// How an evaluation is made.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Options {
    /// How often each case is run in each configuration.
    pub runs: u32,
    /// How many runs are made at the same time.
    pub jobs: usize,
    /// How long one run may take, from the start of its agent.
    pub timeout: Duration,
    /// From which share of its runs on a query counts as triggering.
    pub threshold: f64,
    /// What agents may do without a person.
    pub allow: Allow,
    /// Who judges sentences.
    pub grader: Grader,
    /// Which share of the queries is to train with; all are one part without it.
    pub split: Option<f64>,
    /// Which queries those are.
    pub seed: u64,
    /// What the proxy does.
    pub policy: Policy,
    /// The sandbox in which agents run, made with the network: without it no model answers.
    pub sandbox: Option<Sandbox>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            runs: 3,
            jobs: 1,
            timeout: Duration::from_mins(5),
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

/// What is evaluated, and how.
pub struct Evaluation {
    /// The skill.
    pub skill: Arc<Skill>,
    /// Its directory.
    pub dir: PathBuf,
    /// Other skills that compete for the model's attention when queries are run.
    pub among: Vec<Arc<Skill>>,
    /// An older version of the skill, to compare with instead of no skill.
    pub baseline: Option<Arc<Skill>>,
    /// The queries.
    pub queries: Vec<TriggerCase>,
    /// The tasks.
    pub evals: Vec<OutputCase>,
    /// The agents.
    pub agents: Vec<AgentCommand>,
    /// How.
    pub options: Options,
    toolbox: Option<MakeToolbox>,
    program: Option<PathBuf>,
    /// Copies of skills without their cases, which are what agents get.
    copies: Vec<TempDir>,
}

/// The runs that an evaluation takes.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Plan {
    /// In the order in which they begin.
    pub runs: Vec<RunId>,
    /// How many turns that takes of each agent, by its name, and of the grader if that is another one (`None`).
    pub turns: BTreeMap<Option<String>, usize>,
}

impl Evaluation {
    /// Of the skill in `dir`, with the cases that are there, on the embedded agent.
    ///
    /// # Errors
    /// The skill or its cases cannot be read.
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

    /// On these agents, each with a name.
    ///
    /// # Errors
    /// Two names are the same, or one cannot name a directory.
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
            // `eval-…` is what directories of cases are called.
            let is_taken = name.starts_with("eval-") || name == "triggers";
            if name.is_empty() || name.starts_with('.') || is_taken || !name.chars().all(is_plain) {
                return Err(EvaluationError::AgentName(name.clone()));
            }
            // Some file systems do not tell case.
            if !names.insert(name.to_ascii_lowercase()) {
                return Err(EvaluationError::SameName(name.clone()));
            }
        }
        if !agents.is_empty() {
            self.agents = agents;
        }
        Ok(self)
    }

    /// Among the skills below `dir`.
    ///
    /// # Errors
    /// There is no such directory.
    pub fn among(mut self, dir: &Path) -> Result<Self, EvaluationError> {
        fs::read_dir(dir).map_err(|source| EvaluationError::Unreadable { path: dir.to_owned(), source })?;
        let found = match load_dir(dir) {
            Ok((skill, _)) => vec![Arc::new(skill)],
            Err(_) => Discovery::new([Root::scanned(dir)]).find().iter().cloned().collect(),
        };
        // The skill itself may be there too.
        self.among.extend(found.into_iter().filter(|skill| skill.name != self.skill.name));
        Ok(self)
    }

    /// Compared with the older version in `dir`.
    ///
    /// # Errors
    /// It cannot be loaded.
    pub fn baseline(mut self, dir: &Path) -> Result<Self, EvaluationError> {
        let (_, skill, copy) = load(dir)?;
        self.baseline = Some(skill);
        self.copies.push(copy);
        Ok(self)
    }

    /// With the queries in a file.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn queries(mut self, path: &Path) -> Result<Self, EvaluationError> {
        self.queries = cases::read_queries(path)?;
        Ok(self)
    }

    /// How.
    #[must_use]
    pub fn options(self, options: Options) -> Self {
        Self { options, ..self }
    }

    /// How the tools over the skills are made.
    #[must_use]
    pub fn toolbox(self, toolbox: MakeToolbox) -> Self {
        Self { toolbox: Some(toolbox), ..self }
    }

    /// `acp-skills-proxy`: the bridge for agents without MCP over HTTP, and what ends agents when we are killed.
    #[must_use]
    pub fn program(self, program: impl Into<PathBuf>) -> Self {
        Self { program: Some(program.into()), ..self }
    }

    /// What the skill is compared with.
    pub fn compared_with(&self) -> Configuration {
        if self.baseline.is_some() { Configuration::OldSkill } else { Configuration::WithoutSkill }
    }

    /// Which runs it takes.
    ///
    /// # Errors
    /// There is no case.
    pub fn plan(&self) -> Result<Plan, EvaluationError> {
        if self.queries.is_empty() && self.evals.is_empty() {
            return Err(EvaluationError::NoCases(self.dir.clone()));
        }
        let mut runs = Vec::new();
        let (mut turns, compared): (BTreeMap<_, usize>, _) = (BTreeMap::new(), self.compared_with());
        // Without the skill nothing can load it.
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
        // All runs of one case, then the next: what is done is of use when somebody ends it early.
        runs.sort_by_key(|run| (run.case.clone(), run.number));
        Ok(Plan { runs, turns })
    }

    /// A fingerprint of all that runs depend on, so that a later session goes on with the same.
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
        let (queries, evals, agents) = (&self.queries, &self.evals, &self.agents);
        all.extend(format!("{queries:?}{evals:?}{agents:?}{runs}{timeout:?}{allow:?}{grader:?}").bytes());
        Sha256::of(&all).to_string()
    }

    /// The agent of a run.
    pub(super) fn agent(&self, name: &str) -> Option<&AgentCommand> {
        self.agents.iter().find(|agent| agent.name == name)
    }

    /// Who judges the work of `agent`.
    pub(super) fn grader_of<'a>(&'a self, agent: &'a AgentCommand) -> Option<&'a [OsString]> {
        match &self.options.grader {
            Grader::Same => Some(&agent.command),
            Grader::Command(command) => Some(command),
            Grader::Nobody => None,
        }
    }

    /// Starts an agent in a directory, behind the proxy when it is to have skills.
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
            // The fallback of agents that take no tools is to read the files, and those are often below `/tmp`.
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

/// A command whose words mean the same in another directory: agents start in that of their run.
fn absolute(command: &[OsString]) -> Vec<OsString> {
    let words = command.iter().map(|word| {
        let path = Path::new(word);
        let names_file = path.is_relative() && path.components().count() > 1 && path.exists();
        let absolute = names_file.then(|| std::path::absolute(path).ok()).flatten();
        absolute.map_or_else(|| word.clone(), PathBuf::into_os_string)
    });
    words.collect()
}

/// The skill in a directory: where that is, and the skill as agents get it.
fn load(dir: &Path) -> Result<(PathBuf, Arc<Skill>, TempDir), EvaluationError> {
    let failed = |source| EvaluationError::Skill { path: dir.to_owned(), source };
    let unreadable = |source| EvaluationError::Unreadable { path: dir.to_owned(), source };
    let absolute = std::path::absolute(dir).map_err(unreadable)?;
    let (skill, _diagnostics) = load_dir(&absolute).map_err(failed)?;
    let real = skill.dir().unwrap_or(&absolute).to_owned();
    let (copy, path) = without_cases(&real).map_err(unreadable)?;
    let (skill, _diagnostics) = load_dir(&path).map_err(failed)?;
    Ok((real, Arc::new(skill), copy))
}
