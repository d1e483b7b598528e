//! `eval`: does a skill work, on any agent? Queries tell whether it is loaded when it should be, tasks whether results are
//! better with it than without. The library does all of that; here are the flags, and what people see.
//!
//! | file | owns |
//! |---|---|
//! | `mod` | the flags, and the flow |
//! | `progress` | what is told while it goes on |
//! | `summary` | what is told at the end |
//! | `page` | the same as a page |

mod page;
mod progress;
mod summary;

use std::{ffi::OsString, fmt::Write as _, io::IsTerminal, path::PathBuf, process::ExitCode, time::Duration};

use acp_skills::{
    agent::{self, Signal},
    config::{LogLevel, Settings},
    evaluation::{
        Allow, EMBEDDED, Evaluation, EvaluationError, Grader, Options, Plan, Report, Sandbox, Workspace,
    },
};
use clap::{Args, ValueEnum};

use self::progress::Bar;
use crate::{
    args::{CatalogArgs, LogArgs, ProxyArgs, ScriptArgs, ServerArgs},
    error::UsageError,
    log,
};

/// Something fell short.
const EXIT_FELL_SHORT: u8 = 1;

/// Flags of `eval`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  acp-skills-proxy eval ./code-review -- claude-agent-acp
  acp-skills-proxy eval ./code-review --agent claude=claude-agent-acp --agent gemini='gemini --acp' --jobs 2 --html report.html
  acp-skills-proxy eval ./code-review --dry-run -- claude-agent-acp
      How many turns that takes, and nothing more.
  acp-skills-proxy eval ./code-review --queries tune.json --split 0.6 --among ~/.agents/skills -- claude-agent-acp
      Tune the description on one part of the queries, and judge it by the other.

Exit codes: 0 everything passed (or reached --fail-under), 1 something fell short or was interrupted, 2 a wrong command line,
skill or case, 125 the program failed.")]
pub(crate) struct EvalArgs {
    /// The skill: a directory with a SKILL.md, and cases in evals/evals.json and evals/eval_queries.json.
    #[arg(value_name = "SKILL")]
    skill: PathBuf,
    #[command(flatten)]
    agents: AgentArgs,
    #[command(flatten)]
    cases: CaseArgs,
    #[command(flatten)]
    runs: RunArgs,
    #[command(flatten)]
    results: ResultArgs,
    #[command(flatten)]
    catalog: CatalogArgs,
    #[command(flatten)]
    server: ServerArgs,
    /// Scripts and sandboxes of the proxy itself; the agent's own sandbox is `--sandbox`.
    #[arg(long)]
    allow_scripts: bool,
    #[command(flatten)]
    log: LogArgs,
    /// The agent; without one a built-in scripted agent answers, which has no model: it shows what happens, and says
    /// nothing of the skill.
    #[arg(last = true, value_name = "AGENT", conflicts_with = "agent")]
    command: Vec<OsString>,
}

/// On which agents.
#[derive(Debug, Args)]
#[command(next_help_heading = "Agents")]
struct AgentArgs {
    /// An agent by a name of your own and its command, as in `gemini='gemini --acp'`. Repeatable. Quotes hold words
    /// together; there is no shell.
    #[arg(long, value_name = "NAME=COMMAND")]
    agent: Vec<String>,
    /// Who judges sentences: an agent's command. By default the agent whose work it is, in a fresh session without skills.
    #[arg(long, value_name = "COMMAND", conflicts_with = "no_grader")]
    grader: Option<String>,
    /// Leave sentences ungraded; what the program can check is checked.
    #[arg(long)]
    no_grader: bool,
    /// What agents may do without asking you: edit files in the directory of the run (`edits`), run commands
    /// (`commands`), or anything (`all`); and whether commands in assertions are run (`checks`). Edits that an agent asks
    /// for outside of the directory are always refused. What an agent does without asking only a sandbox prevents.
    #[arg(long, value_name = "WHAT", value_delimiter = ',')]
    allow: Vec<AllowArg>,
    /// Run agents in a sandbox: with bubblewrap, where the run's directory and your home directory are writable and the
    /// rest is not.
    #[arg(long, value_name = "KIND")]
    sandbox: Option<SandboxArg>,
}

/// Which cases.
#[derive(Debug, Args)]
#[command(next_help_heading = "Cases")]
struct CaseArgs {
    /// Queries in place of the skill's own: `[{"query", "should_trigger"}]`.
    #[arg(long, value_name = "FILE")]
    queries: Option<PathBuf>,
    /// Other skills that compete for the model's attention when queries are run: a skill, or a directory to look for some
    /// in. Repeatable.
    #[arg(long, value_name = "DIR")]
    among: Vec<PathBuf>,
    /// An older version of the skill to compare with, in place of no skill.
    #[arg(long, value_name = "DIR")]
    baseline: Option<PathBuf>,
    /// Only queries, or only tasks.
    #[arg(long, value_name = "KIND")]
    only: Option<Only>,
    /// Which share of the queries is to tune the description with; the rest is to judge it by.
    #[arg(long, value_name = "SHARE", value_parser = share)]
    split: Option<f64>,
    /// Which queries those are; the same number gives the same ones.
    #[arg(long, value_name = "NUMBER", default_value_t = 0)]
    seed: u64,
}

/// How they are run.
#[derive(Debug, Args)]
#[command(next_help_heading = "Runs")]
struct RunArgs {
    /// How often each case is run in each configuration.
    #[arg(long, value_name = "NUMBER", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1000))]
    runs: u32,
    /// How many runs at the same time.
    #[arg(long, value_name = "NUMBER", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=256))]
    jobs: u16,
    /// How many seconds one run may take.
    #[arg(long, value_name = "SECONDS", default_value = "300", value_parser = seconds)]
    timeout: Duration,
    /// From which share of its runs on a query counts as loading the skill.
    #[arg(long, value_name = "RATE", default_value = "0.5", value_parser = share)]
    threshold: f64,
    /// Say how many turns it takes with which agents, and do nothing.
    #[arg(long)]
    dry_run: bool,
    /// Go on with the last iteration: runs that are done are not made again.
    #[arg(long)]
    resume: bool,
}

/// What becomes of the results.
#[derive(Debug, Args)]
#[command(next_help_heading = "Results")]
struct ResultArgs {
    /// Where results are kept, in a directory for each iteration [default: SKILL-workspace beside the skill].
    #[arg(long, value_name = "DIR")]
    workspace: Option<PathBuf>,
    /// Write a page to look at: one file that needs no network.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    /// Fail when the share of queries that pass or of assertions that hold with the skill is below this on any agent,
    /// instead of when anything falls short.
    #[arg(long, value_name = "RATE", value_parser = share)]
    fail_under: Option<f64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum AllowArg {
    Edits,
    Commands,
    Checks,
    All,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum SandboxArg {
    Bwrap,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Only {
    Queries,
    Tasks,
}

/// Evaluates the skill.
///
/// # Errors
/// The command line, the skill or a case is wrong, or results cannot be written.
pub(crate) fn run(args: EvalArgs) -> anyhow::Result<ExitCode> {
    let (json, html, fail_under, dry_run, resume) = (
        args.results.json,
        args.results.html.clone(),
        args.results.fail_under,
        args.runs.dry_run,
        args.runs.resume,
    );
    let root = args.results.workspace.clone();
    let evaluation = evaluation(args)?;
    let plan = evaluation.plan().map_err(told)?;
    if !json || dry_run {
        announce(&evaluation, &plan, json)?;
    }
    if dry_run {
        return Ok(ExitCode::SUCCESS);
    }
    let root = root.unwrap_or_else(|| Workspace::beside(&evaluation));
    let workspace =
        if resume { Workspace::resume(&root, &evaluation) } else { Workspace::create(&root, &evaluation) };
    let workspace = workspace.map_err(told)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let (report, interrupted) = runtime.block_on(make(&evaluation, &workspace))?;
    runtime.shutdown_background();
    if let Some(path) = &html {
        let page = page::page(&evaluation, &workspace, &report);
        std::fs::write(path, page)
            .map_err(|error| UsageError::new(format!("cannot write {}: {error}", path.display())))?;
    }
    if json {
        super::print(&format!("{:#}\n", summary::json(&report, &workspace)))?;
    } else {
        super::print(&summary::text(&report))?;
        super::print(&format!("\nResults: {}\n", workspace.iteration().display()))?;
        if let Some(path) = &html {
            super::print(&format!("Page: {}\n", path.display()))?;
        }
    }
    if interrupted {
        eprintln!("interrupted; what is done is kept, and --resume goes on with it");
    }
    let fine = match fail_under {
        Some(rate) => report.complete && report.least_rate().is_some_and(|least| least >= rate),
        None => report.is_passed(),
    };
    Ok(if fine && !interrupted { ExitCode::SUCCESS } else { ExitCode::from(EXIT_FELL_SHORT) })
}

/// Makes the runs. Also says whether somebody ended it early.
async fn make(evaluation: &Evaluation, workspace: &Workspace) -> anyhow::Result<(Report, bool)> {
    let mut signals = agent::signals()?;
    let interrupted = std::cell::Cell::new(false);
    let stop = async {
        // Agents have groups of their own, so a terminal's Ctrl-C reaches us alone.
        let _: Option<Signal> = signals.recv().await;
        interrupted.set(true);
    };
    let mut bar = Bar::new(evaluation.options.jobs, std::io::stderr().is_terminal());
    let report = evaluation.run(workspace, |progress| bar.show(progress), stop).await.map_err(told)?;
    bar.finish();
    Ok((report, interrupted.get()))
}

/// What the flags come to.
fn evaluation(args: EvalArgs) -> anyhow::Result<Evaluation> {
    let EvalArgs { skill, agents, cases, runs, catalog, server, allow_scripts, log, command, .. } = args;
    let scripts = ScriptArgs { allow_scripts, ..ScriptArgs::default() };
    let mut config = ProxyArgs { catalog, server, scripts, log, ..ProxyArgs::default() }.config()?;
    // What goes wrong in a run is part of its outcome; and libraries complain when an agent is ended in the middle.
    config.log.get_or_insert(LogLevel::Off);
    log::start(&config)?;
    let settings = Settings::resolve(config)?;
    let mut options = Options::default();
    (options.runs, options.jobs) = (runs.runs, runs.jobs.into());
    (options.timeout, options.threshold) = (runs.timeout, runs.threshold);
    (options.split, options.seed) = (cases.split, cases.seed);
    options.policy = settings.policy;
    options.allow = allow(&agents.allow);
    options.grader = match agents.grader {
        _ if agents.no_grader => Grader::Nobody,
        Some(command) => Grader::Command(words(&command)?),
        None => Grader::Same,
    };
    options.sandbox = match agents.sandbox {
        Some(SandboxArg::Bwrap) => Some(Sandbox::bwrap().map_err(told)?),
        None => None,
    };
    let mut evaluation = Evaluation::new(&skill).map_err(told)?;
    evaluation = evaluation.on(named(&agents.agent, command)?).map_err(told)?;
    for dir in &cases.among {
        evaluation = evaluation.among(dir).map_err(told)?;
    }
    if let Some(dir) = &cases.baseline {
        evaluation = evaluation.baseline(dir).map_err(told)?;
    }
    if let Some(path) = &cases.queries {
        evaluation = evaluation.queries(path).map_err(told)?;
    }
    match cases.only {
        Some(Only::Queries) => evaluation.evals.clear(),
        Some(Only::Tasks) => evaluation.queries.clear(),
        None => {}
    }
    Ok(evaluation.options(options).toolbox(settings.toolbox).program(std::env::current_exe()?))
}

fn allow(said: &[AllowArg]) -> Allow {
    let is = |what| said.contains(&what) || said.contains(&AllowArg::All);
    Allow {
        edits: is(AllowArg::Edits),
        commands: is(AllowArg::Commands),
        checks: is(AllowArg::Checks),
        others: said.contains(&AllowArg::All),
    }
}

/// The agents by name.
fn named(said: &[String], command: Vec<OsString>) -> Result<Vec<(String, Vec<OsString>)>, UsageError> {
    if !command.is_empty() {
        let program = std::path::Path::new(&command[0]).file_stem().unwrap_or_default().to_string_lossy();
        let plain: String = program
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() || "-_".contains(c) { c } else { '-' })
            .collect();
        let plain = plain.trim_matches(['-', '_']);
        // Nobody chose this name, so it is never a wrong one.
        let is_taken = plain.is_empty() || plain.starts_with("eval-") || plain == "triggers";
        let name = if is_taken { "agent".to_owned() } else { plain.to_owned() };
        return Ok(vec![(name, command)]);
    }
    let mut agents = Vec::new();
    for text in said {
        let Some((name, command)) = text.split_once('=') else {
            return Err(
                UsageError::new(format!("`{text}` has no name")).hint("--agent claude=claude-agent-acp")
            );
        };
        agents.push((name.to_owned(), words(command)?));
    }
    Ok(agents)
}

/// The words of a command. Quotes hold words together, as in a shell; nothing else means anything.
fn words(command: &str) -> Result<Vec<OsString>, UsageError> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    for c in command.chars() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (None, '\'' | '"') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None, c) if c.is_whitespace() => words.extend(word.take().map(OsString::from)),
            (_, c) => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word.map(OsString::from));
    match (quote, words.is_empty()) {
        (Some(_), _) => Err(UsageError::new(format!("a quote is not closed in `{command}`"))),
        (None, true) => Err(UsageError::new("the command of an agent is empty")),
        (None, false) => Ok(words),
    }
}

/// What it takes, before anything is done.
fn announce(evaluation: &Evaluation, plan: &Plan, json: bool) -> anyhow::Result<()> {
    let turns: usize = plan.turns.values().sum();
    if json {
        let agents: Vec<_> = plan
            .turns
            .iter()
            .map(|(agent, turns)| serde_json::json!({ "agent": agent, "turns": turns }))
            .collect();
        let text = serde_json::json!({ "runs": plan.runs.len(), "turns": turns, "agents": agents });
        return Ok(super::print(&format!("{text:#}\n"))?);
    }
    let (queries, tasks, runs) = (evaluation.queries.len(), evaluation.evals.len(), evaluation.options.runs);
    let mut text = format!(
        "{}: {queries} queries and {tasks} tasks, {runs} times each: {} runs, at most {turns} turns\n",
        evaluation.skill.name,
        plan.runs.len()
    );
    for (agent, turns) in &plan.turns {
        let command = match agent {
            Some(name) if name == EMBEDDED => {
                "built in, without a model: it says nothing of the skill".to_owned()
            }
            Some(name) => {
                let found = evaluation.agents.iter().find(|agent| agent.name == *name);
                let words = found.into_iter().flat_map(|agent| &agent.command);
                words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
            }
            None => "judges sentences".to_owned(),
        };
        let name = agent.as_deref().unwrap_or("grader");
        let _ = writeln!(text, "  {name}: {turns} turns ({command})");
    }
    text.push('\n');
    super::print(&text)?;
    Ok(())
}

/// An error of the user's world, unless it is ours.
fn told(error: EvaluationError) -> anyhow::Error {
    if matches!(error, EvaluationError::Unwritable { .. }) {
        return error.into();
    }
    let hint = match &error {
        EvaluationError::NoCases(_) => Some(
            "cases are in evals/evals.json and evals/eval_queries.json of the skill; `acp-skills-proxy init NAME` makes a \
             skill with examples",
        ),
        EvaluationError::Resume { .. } => Some("leave out --resume to begin a new iteration"),
        _ => None,
    };
    let usage = UsageError::new(error.to_string());
    match hint {
        Some(hint) => usage.hint(hint).into(),
        None => usage.into(),
    }
}

/// Reads a share such as `0.6`.
fn share(text: &str) -> Result<f64, &'static str> {
    let share = text.parse().ok().filter(|share| (0.0..=1.0).contains(share));
    share.ok_or("a number from 0 to 1, such as 0.6")
}

/// Reads a number of seconds such as `2` or `0.5`.
fn seconds(text: &str) -> Result<Duration, &'static str> {
    let seconds = text.parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    seconds.filter(|time| !time.is_zero()).ok_or("a number of seconds, such as 2 or 0.5")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_words() {
        for (command, expected) in [
            ("gemini --acp", vec!["gemini", "--acp"]),
            ("  a\t'b c' \"d 'e'\" ''", vec!["a", "b c", "d 'e'", ""]),
            ("x=y$HOME;ls", vec!["x=y$HOME;ls"]),
        ] {
            assert_eq!(words(command).unwrap(), expected, "{command}");
        }
        for command in ["", "   ", "a 'b"] {
            assert!(words(command).is_err(), "{command}");
        }
    }
}
