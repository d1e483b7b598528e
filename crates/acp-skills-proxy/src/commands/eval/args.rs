//! The flags of `eval`. Its subcommands are in `actions`.

mod actions;

use std::{ffi::OsString, path::PathBuf, time::Duration};

use acp_skills_eval::{Allow, Shard};
use clap::{Args, ValueEnum, builder::TypedValueParser};

pub(super) use self::actions::{Action, CasesArgs, HistoryArgs, ImproveArgs, MergeArgs};
use crate::args::{self, CatalogArgs, LogArgs, ServerArgs};

/// Flags of `eval`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
#[command(after_help = "\
Examples:
  acp-skills-proxy eval ./code-review -- claude-agent-acp
  acp-skills-proxy eval ./code-review --agent claude=claude-agent-acp --agent gemini='gemini --acp' --jobs 2 --html report.html
  acp-skills-proxy eval ./code-review --dry-run -- claude-agent-acp
      Show the number of turns without running anything.
  acp-skills-proxy eval ./code-review --queries tune.json --split 0.6 --among ~/.agents/skills -- claude-agent-acp
      Tune the description on one part of the queries, and validate it on the other part.
  acp-skills-proxy eval ./code-review --models opus,haiku -- claude-agent-acp
      Compare the models of an agent.
  acp-skills-proxy eval ./code-review --shard 2/8 --workspace part -- claude-agent-acp
      Make a part of the runs. `eval merge` adds the parts up.

Exit codes: 0 if everything passed (or reached --fail-under), 1 if something failed, 130 if interrupted, 2 if an argument, the \
skill or a case is invalid, 125 if the program failed.")]
pub(crate) struct EvalArgs {
    /// The skill: a directory with a SKILL.md, and cases in evals/evals.json or evals/eval_queries.json.
    #[arg(value_name = "SKILL", required = true)]
    pub(super) skill: Option<PathBuf>,
    #[command(flatten)]
    pub(super) agents: AgentArgs,
    #[command(flatten)]
    pub(super) cases: CaseArgs,
    #[command(flatten)]
    pub(super) runs: RunArgs,
    #[command(flatten)]
    pub(super) results: ResultArgs,
    #[command(flatten)]
    pub(super) catalog: CatalogArgs,
    #[command(flatten)]
    pub(super) server: ServerArgs,
    /// Allow the model to run scripts of skills through the proxy, outside of the agent's sandbox.
    #[arg(long)]
    pub(super) allow_scripts: bool,
    #[command(flatten)]
    pub(super) log: LogArgs,
    /// The command of the agent. The default is a built-in scripted agent without a model, which shows how an evaluation works
    /// but does not rate the skill.
    #[arg(last = true, value_name = "AGENT", conflicts_with = "agent")]
    pub(super) command: Vec<OsString>,
    #[command(subcommand)]
    pub(super) action: Option<Action>,
}

/// The flags that select agents and their permissions.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Agents")]
pub(super) struct AgentArgs {
    /// An agent by its identifier (`gemini`; `acp-skills-proxy setup --agents` lists them), or a name and a command, such as
    /// `gemini='gemini --acp'`. Quotes group words, but no shell is used. Can be given more than once.
    #[arg(long, value_name = "ID|NAME=COMMAND")]
    pub(super) agent: Vec<String>,
    /// Run on each of these models, which are set by the agent's own options: an identifier, a name, or a part of one that fits
    /// no other model. `AGENT=a,b` is for one of several agents. Can be given more than once.
    #[arg(long, value_name = "[AGENT=]MODEL,…")]
    pub(super) models: Vec<String>,
    /// Run each agent with each style of the catalog (`--catalog-style`), as if they were several agents.
    #[arg(long, conflicts_with = "catalog_style")]
    pub(super) compare_styles: bool,
    /// The command of the agent that grades assertions in prose. The default is the evaluated agent itself, in a new session
    /// without skills.
    #[arg(long, value_name = "COMMAND", conflicts_with = "no_grader")]
    pub(super) grader: Option<String>,
    /// The command of a second agent that grades the same assertions. Its verdicts don't count: they only show how far two
    /// graders agree.
    #[arg(long, value_name = "COMMAND", conflicts_with = "no_grader")]
    pub(super) second_grader: Option<String>,
    /// Don't grade assertions in prose. Other assertions are still checked.
    #[arg(long)]
    pub(super) no_grader: bool,
    /// The permissions to grant: editing files in the directory of the run (`edits`), running commands (`commands`), running
    /// the commands of assertions (`checks`), copying files of tasks that could be settings of the agent (`settings`), or everything
    /// (`all`). Requests to edit files outside of the directory are always
    /// refused. Only a sandbox restricts actions for which an agent does not ask.
    #[arg(long, value_name = "WHAT", value_delimiter = ',')]
    pub(super) allow: Vec<AllowArg>,
    /// Give each agent process a home directory of its own, with the files of the agent's login, but without installed skills.
    #[arg(long, conflicts_with = "sandbox")]
    pub(super) isolate: bool,
    /// Run agents in a sandbox: with bubblewrap, in which only the run's directory and your home directory are writable.
    #[arg(long, value_name = "KIND")]
    pub(super) sandbox: Option<SandboxArg>,
}

/// The flags that select cases.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Cases")]
pub(super) struct CaseArgs {
    /// Use the queries in this file instead of the skill's own: `[{"query", "should_trigger"}]`.
    #[arg(long, value_name = "FILE")]
    pub(super) queries: Option<PathBuf>,
    /// Other skills to offer while queries are run: a skill, or a directory to search for skills. Can be given more than once.
    #[arg(long, value_name = "DIR")]
    pub(super) among: Vec<PathBuf>,
    /// Compare with an older version of the skill instead of with no skill: its directory, or the number of the iteration that
    /// evaluated it.
    #[arg(long, value_name = "DIR|NUMBER")]
    pub(super) baseline: Option<PathBuf>,
    /// Run only the queries, or only the tasks.
    #[arg(long, value_name = "KIND")]
    pub(super) only: Option<Only>,
    /// The share of queries for tuning the description. The rest is for validating it, so only its rates are shown.
    #[arg(long, value_name = "SHARE", value_parser = share)]
    pub(super) split: Option<f64>,
    /// The seed of the split. The same seed gives the same split.
    #[arg(long, value_name = "NUMBER", default_value_t = 0)]
    pub(super) seed: u64,
}

/// The flags for running cases.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Runs")]
pub(super) struct RunArgs {
    /// The number of runs of each case in each configuration.
    #[arg(long, value_name = "NUMBER", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(super) runs: u32,
    /// The number of runs at the same time.
    #[arg(long, value_name = "NUMBER", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=256))]
    pub(super) jobs: u16,
    /// The number of times to repeat a run in which the agent fails: if it crashes, exceeds the timeout, answers with an error or
    /// refuses. The pause before the first repetition is one second, and it is doubled each time.
    #[arg(long, value_name = "NUMBER", default_value_t = 2, value_parser = clap::value_parser!(u32).range(0..=20))]
    pub(super) retries: u32,
    /// The timeout of a run in seconds.
    #[arg(long, value_name = "SECONDS", default_value = "300", value_parser = seconds())]
    pub(super) timeout: Duration,
    /// The share of a query's runs that must load the skill for the query to count as loading it.
    #[arg(long, value_name = "RATE", default_value = "0.5", value_parser = share)]
    pub(super) threshold: f64,
    /// Make only a part of the runs, such as the second of eight. `eval merge` adds the parts up.
    #[arg(long, value_name = "PART/PARTS")]
    pub(super) shard: Option<Shard>,
    /// Show the number of turns for each agent, without running anything.
    #[arg(long)]
    pub(super) dry_run: bool,
    /// Continue the last iteration without repeating finished runs.
    #[arg(long)]
    pub(super) resume: bool,
}

/// The flags for results.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Results")]
pub(super) struct ResultArgs {
    /// The directory for results, with a subdirectory for each iteration [default: SKILL-workspace next to the skill, or in the
    /// current directory for `eval merge`].
    #[arg(long, value_name = "DIR")]
    pub(super) workspace: Option<PathBuf>,
    /// Also write the results as an HTML page, in one file that loads nothing.
    #[arg(long, value_name = "FILE")]
    pub(super) html: Option<PathBuf>,
    /// Also write the results as JUnit XML, which CI systems show.
    #[arg(long, value_name = "FILE")]
    pub(super) junit: Option<PathBuf>,
    /// Also write a summary in Markdown. In GitHub Actions, it is also added to the summary of the job.
    #[arg(long, value_name = "FILE")]
    pub(super) summary: Option<PathBuf>,
    /// Print the results as JSON.
    #[arg(long)]
    pub(super) json: bool,
    /// Fail if the share of passed queries, or of assertions that hold with the skill, is below this rate on any agent. By
    /// default, any failed query or task counts.
    #[arg(long, value_name = "RATE", value_parser = share)]
    pub(super) fail_under: Option<f64>,
}

/// A value of `--allow`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum AllowArg {
    Edits,
    Commands,
    Checks,
    Settings,
    All,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum SandboxArg {
    Bwrap,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Only {
    Queries,
    Tasks,
}

/// Returns the permissions for the values of `--allow`.
pub(super) fn allow(values: &[AllowArg]) -> Allow {
    let is = |what| values.contains(&what) || values.contains(&AllowArg::All);
    Allow {
        edits: is(AllowArg::Edits),
        commands: is(AllowArg::Commands),
        checks: is(AllowArg::Checks),
        settings: is(AllowArg::Settings),
        others: values.contains(&AllowArg::All),
    }
}

/// Parses a share such as `0.6`.
pub(super) fn share(text: &str) -> Result<f64, &'static str> {
    let share = text.parse().ok().filter(|share| (0.0..=1.0).contains(share));
    share.ok_or("expected a number from 0 to 1, for example 0.6")
}

/// Parses a number of seconds above zero, such as `2` or `0.5`.
fn seconds() -> impl TypedValueParser<Value = Duration> {
    args::seconds().try_map(|time| {
        if time.is_zero() { Err("expected a number of seconds, for example 2 or 0.5") } else { Ok(time) }
    })
}
