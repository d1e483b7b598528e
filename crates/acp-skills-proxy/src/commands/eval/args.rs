//! The flags of `eval`.

use std::{ffi::OsString, path::PathBuf, time::Duration};

use acp_skills_eval::Allow;
use clap::{Args, ValueEnum};

use crate::args::{CatalogArgs, LogArgs, ServerArgs};

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

Exit codes: 0 everything passed (or reached --fail-under), 1 something fell short or was interrupted, 2 a wrong command line, \
skill or case, 125 the program failed.")]
pub(crate) struct EvalArgs {
    /// The skill: a directory with a SKILL.md, and cases in evals/evals.json and evals/eval_queries.json.
    #[arg(value_name = "SKILL")]
    pub(super) skill: PathBuf,
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
    /// Let the model run the scripts of skills through the proxy, outside of the agent's sandbox.
    #[arg(long)]
    pub(super) allow_scripts: bool,
    #[command(flatten)]
    pub(super) log: LogArgs,
    /// The agent; without one a built-in scripted agent answers, which has no model: it shows what happens, and says
    /// nothing of the skill.
    #[arg(last = true, value_name = "AGENT", conflicts_with = "agent")]
    pub(super) command: Vec<OsString>,
}

/// On which agents.
#[derive(Debug, Args)]
#[command(next_help_heading = "Agents")]
pub(super) struct AgentArgs {
    /// An agent by its identifier (`gemini`; `acp-skills-proxy setup --agents` lists them), or by a name of your own and its
    /// command, as in `gemini='gemini --acp'`. Repeatable. Quotes hold words together; there is no shell.
    #[arg(long, value_name = "ID|NAME=COMMAND")]
    pub(super) agent: Vec<String>,
    /// Who judges sentences: an agent's command. By default the agent whose work it is, in a fresh session without skills.
    #[arg(long, value_name = "COMMAND", conflicts_with = "no_grader")]
    pub(super) grader: Option<String>,
    /// Leave sentences ungraded; what the program can check is checked.
    #[arg(long)]
    pub(super) no_grader: bool,
    /// What agents may do without asking you: edit files in the directory of the run (`edits`), run commands
    /// (`commands`), or anything (`all`); and whether commands in assertions are run (`checks`). Edits that an agent asks
    /// for outside of the directory are always refused. What an agent does without asking only a sandbox prevents.
    #[arg(long, value_name = "WHAT", value_delimiter = ',')]
    pub(super) allow: Vec<AllowArg>,
    /// Run agents in a sandbox: with bubblewrap, where the run's directory and your home directory are writable and the
    /// rest is not.
    #[arg(long, value_name = "KIND")]
    pub(super) sandbox: Option<SandboxArg>,
}

/// Which cases.
#[derive(Debug, Args)]
#[command(next_help_heading = "Cases")]
pub(super) struct CaseArgs {
    /// Queries in place of the skill's own: `[{"query", "should_trigger"}]`.
    #[arg(long, value_name = "FILE")]
    pub(super) queries: Option<PathBuf>,
    /// Other skills that compete for the model's attention when queries are run: a skill, or a directory to look for some
    /// in. Repeatable.
    #[arg(long, value_name = "DIR")]
    pub(super) among: Vec<PathBuf>,
    /// An older version of the skill to compare with, in place of no skill.
    #[arg(long, value_name = "DIR")]
    pub(super) baseline: Option<PathBuf>,
    /// Only queries, or only tasks.
    #[arg(long, value_name = "KIND")]
    pub(super) only: Option<Only>,
    /// Which share of the queries is to tune the description with; the rest is to judge it by.
    #[arg(long, value_name = "SHARE", value_parser = share)]
    pub(super) split: Option<f64>,
    /// Which queries those are; the same number gives the same ones.
    #[arg(long, value_name = "NUMBER", default_value_t = 0)]
    pub(super) seed: u64,
}

/// How they are run.
#[derive(Debug, Args)]
#[command(next_help_heading = "Runs")]
pub(super) struct RunArgs {
    /// How often each case is run in each configuration.
    #[arg(long, value_name = "NUMBER", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(super) runs: u32,
    /// How many runs at the same time.
    #[arg(long, value_name = "NUMBER", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=256))]
    pub(super) jobs: u16,
    /// How many seconds one run may take.
    #[arg(long, value_name = "SECONDS", default_value = "300", value_parser = seconds)]
    pub(super) timeout: Duration,
    /// From which share of its runs on a query counts as loading the skill.
    #[arg(long, value_name = "RATE", default_value = "0.5", value_parser = share)]
    pub(super) threshold: f64,
    /// Say how many turns it takes with which agents, and do nothing.
    #[arg(long)]
    pub(super) dry_run: bool,
    /// Go on with the last iteration: runs that are done are not made again.
    #[arg(long)]
    pub(super) resume: bool,
}

/// What becomes of the results.
#[derive(Debug, Args)]
#[command(next_help_heading = "Results")]
pub(super) struct ResultArgs {
    /// Where results are kept, in a directory for each iteration [default: SKILL-workspace beside the skill].
    #[arg(long, value_name = "DIR")]
    pub(super) workspace: Option<PathBuf>,
    /// Write a page to look at: one file that needs no network.
    #[arg(long, value_name = "FILE")]
    pub(super) html: Option<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    pub(super) json: bool,
    /// Fail when the share of queries that pass or of assertions that hold with the skill is below this on any agent,
    /// instead of when anything falls short.
    #[arg(long, value_name = "RATE", value_parser = share)]
    pub(super) fail_under: Option<f64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum AllowArg {
    Edits,
    Commands,
    Checks,
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

/// What the words of `--allow` come to.
pub(super) fn allow(said: &[AllowArg]) -> Allow {
    let is = |what| said.contains(&what) || said.contains(&AllowArg::All);
    Allow {
        edits: is(AllowArg::Edits),
        commands: is(AllowArg::Commands),
        checks: is(AllowArg::Checks),
        others: said.contains(&AllowArg::All),
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
