//! The subcommands of `eval` and their flags.

use std::{ffi::OsString, path::PathBuf};

use clap::{Args, Subcommand};

use super::{ResultArgs, RunArgs, share};
use crate::args::LogArgs;

/// The subcommands of `eval`.
#[derive(Debug, Subcommand)]
pub(in super::super) enum Action {
    /// Show how the results of a skill change over its iterations.
    History(HistoryArgs),
    /// Merge the results of the parts that were made with --shard.
    Merge(MergeArgs),
    /// Propose a better description, with an agent as the writer.
    Improve(Box<ImproveArgs>),
    /// Draft cases for a skill, with an agent as the writer.
    Cases(CasesArgs),
}

/// The flags of `eval history`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  acp-skills-proxy eval history ./code-review
  acp-skills-proxy eval history ./code-review --html history.html")]
pub(in super::super) struct HistoryArgs {
    /// The skill. Its results are in the directory SKILL-workspace next to it.
    #[arg(value_name = "SKILL", required_unless_present = "workspace")]
    pub(in super::super) skill: Option<PathBuf>,
    /// The directory with the results, with a subdirectory for each iteration.
    #[arg(long, value_name = "DIR")]
    pub(in super::super) workspace: Option<PathBuf>,
    /// Also write the trend as an HTML page, in one file that loads nothing.
    #[arg(long, value_name = "FILE")]
    pub(in super::super) html: Option<PathBuf>,
    /// Print the trend as JSON.
    #[arg(long)]
    pub(in super::super) json: bool,
}

/// The flags of `eval merge`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  acp-skills-proxy eval merge parts/* --workspace results --html report.html

Exit codes: the same as for `eval`.")]
pub(in super::super) struct MergeArgs {
    /// The results of the parts: the directories of their workspaces or iterations, or a directory that contains these.
    #[arg(value_name = "DIR", required = true)]
    pub(in super::super) parts: Vec<PathBuf>,
    #[command(flatten)]
    pub(in super::super) results: ResultArgs,
}

/// The flags of `eval improve`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  acp-skills-proxy eval improve ./code-review -- claude-agent-acp
  acp-skills-proxy eval improve ./code-review --rounds 5 --max-turns 500 --jobs 4 -- claude-agent-acp

Exit codes: 0 if it ended normally, 1 if an agent failed, 130 if interrupted, 2 if an argument, the skill or a case is invalid.")]
pub(in super::super) struct ImproveArgs {
    /// The skill: a directory with a SKILL.md, and queries in evals/eval_queries.json.
    #[arg(value_name = "SKILL")]
    pub(in super::super) skill: PathBuf,
    /// The maximum number of descriptions to try.
    #[arg(long, value_name = "NUMBER", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=50))]
    pub(in super::super) rounds: u32,
    /// Stop before a round that could exceed this number of turns in all.
    #[arg(long, value_name = "NUMBER")]
    pub(in super::super) max_turns: Option<usize>,
    /// Stop after a round if the agents report costs of at least this amount.
    #[arg(long, value_name = "AMOUNT")]
    pub(in super::super) max_cost: Option<f64>,
    /// The command of the agent that writes descriptions. The default is the first evaluated agent.
    #[arg(long, value_name = "COMMAND")]
    pub(in super::super) writer: Option<String>,
    /// Write the best description to the skill without asking.
    #[arg(long)]
    pub(in super::super) yes: bool,
    /// Print the result as JSON. The skill is only changed with --yes.
    #[arg(long)]
    pub(in super::super) json: bool,
    /// An agent by its identifier, or a name and a command. Can be given more than once.
    #[arg(long, value_name = "ID|NAME=COMMAND")]
    pub(in super::super) agent: Vec<String>,
    /// Run on each of these models, as for `eval`.
    #[arg(long, value_name = "[AGENT=]MODEL,…")]
    pub(in super::super) models: Vec<String>,
    /// Give each agent process a home directory of its own, as for `eval`.
    #[arg(long)]
    pub(in super::super) isolate: bool,
    /// Use the queries in this file instead of the skill's own.
    #[arg(long, value_name = "FILE")]
    pub(in super::super) queries: Option<PathBuf>,
    /// Other skills to offer: a skill, or a directory to search for skills. Can be given more than once.
    #[arg(long, value_name = "DIR")]
    pub(in super::super) among: Vec<PathBuf>,
    /// The share of queries whose failures the writer receives. The others decide which description is best.
    #[arg(long, value_name = "SHARE", default_value = "0.6", value_parser = share)]
    pub(in super::super) split: f64,
    /// The seed of the split. The same seed gives the same split.
    #[arg(long, value_name = "NUMBER", default_value_t = 0)]
    pub(in super::super) seed: u64,
    #[command(flatten)]
    pub(in super::super) runs: RunArgs,
    /// The directory for results, with a subdirectory for each description [default: SKILL-workspace next to the skill].
    #[arg(long, value_name = "DIR")]
    pub(in super::super) workspace: Option<PathBuf>,
    #[command(flatten)]
    pub(in super::super) log: LogArgs,
    /// The command of the agent. The default is a built-in scripted agent without a model.
    #[arg(last = true, value_name = "AGENT", conflicts_with = "agent")]
    pub(in super::super) command: Vec<OsString>,
}

/// The flags of `eval cases`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  acp-skills-proxy eval cases ./code-review -- claude-agent-acp")]
pub(in super::super) struct CasesArgs {
    /// The skill. Files of cases that exist are kept.
    #[arg(value_name = "SKILL")]
    pub(in super::super) skill: PathBuf,
    /// The number of queries of each kind: those that should load the skill, and those that should not.
    #[arg(long, value_name = "NUMBER", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub(in super::super) queries: u32,
    /// The number of tasks.
    #[arg(long, value_name = "NUMBER", default_value_t = 3, value_parser = clap::value_parser!(u32).range(0..=50))]
    pub(in super::super) tasks: u32,
    /// The agent by its identifier, or a name and a command.
    #[arg(long, value_name = "ID|NAME=COMMAND")]
    pub(in super::super) agent: Option<String>,
    #[command(flatten)]
    pub(in super::super) log: LogArgs,
    /// The command of the agent. The default is a built-in scripted agent without a model.
    #[arg(last = true, value_name = "AGENT", conflicts_with = "agent")]
    pub(in super::super) command: Vec<OsString>,
}
