//! One run: a fresh directory, an agent, one prompt, and the outcome. Failures of the agent are part of the outcome.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use jiff::Timestamp;
use serde_json::{Value, json};
use skills_core::{Skill, SkillSet, Source, order};
use tokio::sync::watch;
use tracing::Instrument;

use super::{
    AgentCommand, Case, Configuration, End, Evaluation, EvaluationError, Grade, Outcome, OutputCase, RunId,
    Status, Workspace,
    conversation::{Conversation, Script, converse},
    directory::RunDirectory,
    files,
    grading::{self, Work},
    permission::{self, CallPaths},
    transcript::Transcript,
    workspace,
};

/// Makes one attempt at a run and writes its files. Returns `None` if the evaluation was stopped.
///
/// # Errors
/// Returns an error if a file can't be written.
pub(super) async fn run(
    evaluation: &Evaluation,
    workspace: &Workspace,
    id: RunId,
    attempt: u32,
    stop: &watch::Receiver<bool>,
) -> Result<Option<Outcome>, EvaluationError> {
    let (Some(agent), Some(task)) = (evaluation.agent(&id.agent), Task::of(evaluation, &id)) else {
        return Ok(None);
    };
    let span = tracing::info_span!("run", %id, skill = %evaluation.skill.name, agent = %id.agent);
    let make = async {
        tracing::debug!("starting the run");
        let place = workspace.fresh_run(&id)?;
        let run = Run { evaluation, agent, task, id: &id, place };
        let Some(mut outcome) = run.make(stop).await? else { return Ok(None) };
        outcome.attempts = attempt;
        tracing::debug!(status = ?outcome.status, end = ?outcome.end, "run has ended");
        workspace.keep(&outcome)?;
        Ok(Some(outcome))
    };
    make.instrument(span).await
}

/// The agent's task.
#[derive(Clone, Copy)]
enum Task<'a> {
    Query { query: &'a str, should_trigger: bool },
    Eval(&'a OutputCase),
}

impl<'a> Task<'a> {
    fn of(evaluation: &'a Evaluation, id: &RunId) -> Option<Self> {
        match &id.case {
            Case::Query(place) => {
                let case = evaluation.queries.get(*place)?;
                Some(Self::Query { query: &case.query, should_trigger: case.should_trigger })
            }
            Case::Eval(_) => evaluation.task(&id.case).map(Self::Eval),
        }
    }

    /// Returns the prompts, one for each turn.
    fn prompts(self) -> Vec<&'a str> {
        match self {
            Self::Query { query, .. } => vec![query],
            Self::Eval(case) => {
                std::iter::once(&case.prompt).chain(&case.turns).map(String::as_str).collect()
            }
        }
    }
}

/// The files that a run made, and the grades of its assertions.
#[derive(Default)]
struct Judged {
    outputs: Vec<String>,
    grades: Vec<Grade>,
    /// The duration of the grading.
    took: Option<Duration>,
}

struct Run<'a> {
    evaluation: &'a Evaluation,
    agent: &'a AgentCommand,
    task: Task<'a>,
    id: &'a RunId,
    /// The directory for the run's files.
    place: PathBuf,
}

impl Run<'_> {
    async fn make(&self, stop: &watch::Receiver<bool>) -> Result<Option<Outcome>, EvaluationError> {
        let started = Timestamp::now();
        let files: &[String] = match self.task {
            Task::Query { .. } => &[],
            Task::Eval(case) => &case.files,
        };
        let with_settings = self.evaluation.options.allow.settings;
        let directory = match RunDirectory::new(&self.evaluation.dir, files, with_settings) {
            Ok(directory) => directory,
            Err(error) => {
                let why = format!("cannot create run directory: {error}");
                return Ok(Some(self.outcome(started, None, failed(why), Judged::default())));
            }
        };
        let conversation = self.converse(&directory, stop).await;
        if conversation.end == End::Interrupted {
            return Ok(None);
        }
        let transcript = conversation.transcript.markdown();
        if !self.is_held_out() {
            self.write("transcript.md", &transcript)?;
        }
        let Task::Eval(case) = self.task else {
            return Ok(Some(self.outcome(started, Some(&directory), conversation, Judged::default())));
        };
        let outputs = self.place.join("outputs");
        let kept = directory.keep(&outputs);
        let made = kept.map_err(|source| EvaluationError::Unwritable { path: outputs, source })?;
        let answer = conversation.transcript.answer();
        self.write("answer.md", &answer)?;
        self.write_for_viewers(case, &answer)?;
        let (grades, took) = if let Some(problem) = conversation.end.problem() {
            (unmet(case, &problem), None)
        } else {
            let directory = directory.path.as_path();
            let work = Work { directory, made: &made, answer: &answer, transcript: &transcript };
            match grading::grade(self.evaluation, self.agent, case, &work, stop).await {
                Some(graded) => graded,
                None => return Ok(None),
            }
        };
        let made: Vec<_> = made.into_iter().map(|made| made.path).collect();
        let judged = Judged { outputs: made, grades, took };
        let outcome = self.outcome(started, Some(&directory), conversation, judged);
        // Other tools would count a run without a result as failed, so don't write these files for it.
        if outcome.status != Status::Error {
            self.write_json("timing.json", &files::timing(&outcome))?;
            self.write_json("grading.json", &files::grading(&outcome))?;
        }
        Ok(Some(outcome))
    }

    /// Starts the agent and has the conversation with it.
    async fn converse(&self, directory: &RunDirectory, stop: &watch::Receiver<bool>) -> Conversation {
        let evaluation = self.evaluation;
        let skills = self.skills();
        let instructions: Vec<_> = skills.iter().flatten().filter_map(instructions).collect();
        let skills = skills.map(|skills| {
            let mut set = SkillSet::builder();
            for skill in skills {
                set.add_shared(skill, Vec::new());
            }
            set.build()
        });
        let stop_when_loaded = match self.task {
            Task::Query { .. } => Some(evaluation.skill.name.as_str()),
            Task::Eval(_) => None,
        };
        let prompts = self.task.prompts();
        let message_log = self.place.join("acp.jsonl");
        let script = Script {
            directory: &directory.path,
            prompts: &prompts,
            model: self.agent.model.as_deref(),
            timeout: evaluation.options.timeout,
            allow: evaluation.options.allow,
            stop_when_loaded,
            instructions: &instructions,
            message_log: (!self.is_held_out()).then_some(message_log.as_path()),
        };
        let mut connection = match evaluation.open(self.agent, &directory.path, skills) {
            Ok(connection) => connection,
            Err(error) => return failed(format!("{error:#}")),
        };
        let mut conversation = converse(&mut connection, &script, stop.clone()).await;
        let ended = connection.close().await;
        conversation.end = conversation.end.ended_as(&ended.how);
        if let End::Crashed { why } = &conversation.end {
            let how = format!("the agent {why}");
            conversation.transcript.note(how);
        }
        conversation.stderr = ended.stderr;
        conversation
    }

    /// Returns true if the run's messages should not be kept, because its query is for validation.
    fn is_held_out(&self) -> bool {
        self.evaluation.is_held_out(&self.id.case)
    }

    /// Returns the agent's skills, or `None` if it runs without the proxy.
    fn skills(&self) -> Option<Vec<Arc<Skill>>> {
        let evaluation = self.evaluation;
        let skill = match self.id.configuration {
            Configuration::WithSkill => Arc::clone(&evaluation.skill),
            Configuration::OldSkill => evaluation.baseline.clone()?,
            Configuration::WithoutSkill => return None,
        };
        let mut skills = vec![skill];
        if matches!(self.task, Task::Query { .. }) {
            skills.extend(evaluation.among.iter().cloned());
        }
        Some(skills)
    }

    fn outcome(
        &self,
        started: Timestamp,
        directory: Option<&RunDirectory>,
        conversation: Conversation,
        judged: Judged,
    ) -> Outcome {
        let name = match self.id.configuration {
            Configuration::OldSkill => self.evaluation.baseline.as_ref().map(|skill| &skill.name),
            _ => Some(&self.evaluation.skill.name),
        };
        let triggered =
            name.is_some_and(|name| conversation.loaded.iter().any(|loaded| loaded == name.as_str()));
        let transcript = &conversation.transcript;
        let outside =
            directory.map(|directory| Self::outside(transcript, &directory.path)).unwrap_or_default();
        let problem = conversation.end.problem();
        let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        let mut outcome = Outcome {
            run: self.id.clone(),
            status: Status::Passed,
            loaded: conversation.loaded,
            triggered,
            started,
            duration_ms: millis(conversation.duration),
            grader_ms: judged.took.map(millis),
            tokens: transcript.tokens(),
            cost: transcript.cost().cloned(),
            latency_ms: conversation.latency.map(millis),
            metrics: transcript.metrics(),
            permissions: conversation.permissions,
            outside,
            outputs: judged.outputs,
            grades: judged.grades,
            answer: if self.is_held_out() { String::new() } else { transcript.answer() },
            agent_info: conversation.agent,
            model: conversation.model,
            stderr: if problem.is_some() { conversation.stderr } else { String::new() },
            end: conversation.end,
            prompted: conversation.prompted,
            attempts: 1,
        };
        outcome.status = match problem {
            Some(_) => Status::Error,
            None => self.status(&outcome),
        };
        outcome
    }

    /// Returns the status of a run in which the agent did not fail.
    fn status(&self, outcome: &Outcome) -> Status {
        let should_trigger = match self.task {
            Task::Query { should_trigger, .. } => should_trigger,
            Task::Eval(case) => case.should_trigger,
        };
        let has_skill = self.id.configuration != Configuration::WithoutSkill;
        let is_unmet = |grade: &Grade| !grade.skipped && !grade.ungraded && !grade.passed;
        if has_skill && should_trigger && !outcome.triggered {
            Status::NotActivated
        } else if has_skill && !should_trigger && outcome.triggered
            || !outcome.outside.is_empty()
            || outcome.grades.iter().any(is_unmet)
        {
            Status::Failed
        } else if outcome.grades.iter().any(|grade| grade.ungraded && !grade.skipped) {
            Status::Ungraded
        } else {
            Status::Passed
        }
    }

    /// Returns the files outside of the run's directory that the agent reports as changed, sorted.
    fn outside(transcript: &Transcript, directory: &Path) -> Vec<String> {
        let mut outside = Vec::new();
        for tool in transcript.tools() {
            if tool.status == "completed" && matches!(tool.kind.as_str(), "edit" | "delete" | "move") {
                let call =
                    json!({ "locations": tool.locations, "content": tool.content, "rawInput": tool.input });
                let files = CallPaths::of(&call).files.into_iter();
                let files = files.filter(|file| !permission::is_below(file, directory));
                outside.extend(files.map(|file| file.to_string_lossy().into_owned()));
            }
        }
        order::sort(&mut outside);
        outside.dedup();
        outside
    }

    /// Writes the files from which viewers of other tools take the prompt and the answer. They show the files in `outputs`, so
    /// the answer is one of them, unless the agent made a file with its name.
    fn write_for_viewers(&self, case: &OutputCase, answer: &str) -> Result<(), EvaluationError> {
        let metadata = files::metadata(self.evaluation, case);
        self.write_json(files::METADATA, &metadata)?;
        // Each run of the task writes the same file.
        let of_case = self.place.parent().and_then(Path::parent).unwrap_or(&self.place);
        workspace::write_json(&of_case.join(files::METADATA), &metadata)?;
        let shown = Path::new("outputs").join("answer.md");
        if !answer.is_empty() && !self.place.join(&shown).exists() {
            self.write(&shown.to_string_lossy(), answer)?;
        }
        Ok(())
    }

    fn write(&self, name: &str, text: &str) -> Result<(), EvaluationError> {
        workspace::write(&self.place.join(name), text)
    }

    fn write_json(&self, name: &str, value: &Value) -> Result<(), EvaluationError> {
        self.write(name, &format!("{value:#}\n"))
    }
}

/// Returns the instruction file of a skill with the skill's name, or `None` for a skill without files.
fn instructions(skill: &Arc<Skill>) -> Option<(PathBuf, String)> {
    match &skill.source {
        Source::Stored(stored) => Some((stored.file(), skill.name.to_string())),
        _ => None,
    }
}

/// Returns the conversation of a run that could not start.
fn failed(why: String) -> Conversation {
    let mut conversation = Conversation::new(End::NotStarted { why: why.clone() });
    conversation.transcript.note(why);
    conversation
}

/// Returns a failed grade for each assertion of a case.
fn unmet(case: &OutputCase, why: &str) -> Vec<Grade> {
    case.assertions.iter().map(|assertion| Grade::unmet(assertion.text(), why)).collect()
}
