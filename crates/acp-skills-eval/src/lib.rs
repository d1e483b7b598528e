//! Evaluates Agent Skills on ACP agents.
//!
//! An evaluation answers two questions: does the model load the skill when it should, and are the results better with the skill
//! than without it? The command `acp-skills-proxy eval` is built on this crate.
//!
//! 1. [`Evaluation::new`] reads a skill with its cases. **Queries** ([`TriggerCase`]) are prompts that should load the skill or
//!    should not. **Tasks** ([`OutputCase`]) have assertions about the result.
//! 2. [`Evaluation::run`] makes all runs, stores them in a [`Workspace`] and reports the [`Progress`]. Each run has its own agent
//!    process, session and empty directory. It ends with an [`Outcome`].
//! 3. The [`Report`] summarizes the outcomes: [`Triggers`] for the queries and [`Benchmark`] for the tasks of each agent.
//!
//! The agent receives the skill through the proxy only, so every load of the skill is recorded. Runs without the skill don't use
//! the proxy. This crate doesn't print anything.
//!
//! ```
//! use acp_skills_eval::{Evaluation, Workspace};
//!
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let root = tempfile::tempdir()?;
//! # let dir = root.path().join("greet");
//! # std::fs::create_dir_all(dir.join("evals"))?;
//! # std::fs::write(dir.join("SKILL.md"), "---\nname: greet\ndescription: Greets people.\n---\n\nSay hello.\n")?;
//! # std::fs::write(dir.join("evals/eval_queries.json"), r#"[{ "query": "Greet these people", "should_trigger": true }]"#)?;
//! // Without an agent, the built-in scripted agent answers.
//! let evaluation = Evaluation::new(&dir)?;
//! let workspace = Workspace::create(&root.path().join("greet-workspace"), &evaluation)?;
//! let report = evaluation.run(&workspace, |_progress| {}, std::future::pending()).await?;
//! assert!(report.agents[0].triggers.as_ref().unwrap().queries[0].pass);
//! # Ok(()) }
//! ```
//!
//! # Modules
//!
//! All public items are exported at the root of the crate.
//!
//! | module | responsible for |
//! |---|---|
//! | `evaluation`, `options`, `plan`, `shard` | [`Evaluation`], its [`Options`], its [`Plan`] and the parts of it |
//! | `cases` | the queries and tasks of a skill |
//! | `runner` | running several runs at a time, and repeating failed ones |
//! | `run` | one run from start to end |
//! | `connection` | the agent of a run, with or without the proxy in front of it |
//! | `conversation` | the client's side of a run |
//! | `calls`, `models` | what the client needs to know about tool calls and models |
//! | `permission` | answers to permission requests |
//! | `directory` | the working directory of a run |
//! | `scratch` | temporary directories |
//! | `transcript`, `usage` | the messages of a run, and the tokens and costs in them |
//! | `installed`, `isolation` | skills that agents load themselves, and a home directory without them |
//! | `orphans` | processes that have left the process group of their agent |
//! | `asking` | asking an agent one question |
//! | `improve`, `variant`, `description` | a better description of the skill |
//! | `drafts` | cases that an agent drafts |
//! | `grading` | performing checks and asking the grader |
//! | `end`, `grade`, `outcome` | the results of one run |
//! | `statistics` | means, rates, and intervals of independent runs |
//! | `intervals` | intervals over several cases |
//! | `benchmark`, `agreement`, `triggers`, `report` | the results of all runs |
//! | `stored`, `history` | the results of earlier evaluations: merging parts, and showing a trend |
//! | `workspace`, `files` | the files of an evaluation |
//! | `error` | errors that stop an evaluation |

mod agreement;
mod asking;
mod benchmark;
mod calls;
mod cases;
mod connection;
mod conversation;
mod description;
mod directory;
mod drafts;
mod end;
mod error;
mod evaluation;
mod files;
mod grade;
mod grading;
mod history;
mod improve;
mod installed;
mod intervals;
mod isolation;
mod models;
mod options;
#[cfg_attr(not(target_os = "linux"), path = "no_orphans.rs")]
mod orphans;
mod outcome;
mod permission;
mod plan;
mod report;
mod run;
mod runner;
mod scratch;
mod settings;
mod shard;
mod statistics;
mod stored;
mod transcript;
mod triggers;
mod usage;
mod variant;
mod workspace;

pub use self::{
    agreement::Agreement,
    benchmark::{Benchmark, CaseSummary, ConfigurationSummary, Delta},
    cases::{
        Assertion, Check, OUTPUT_CASES, OutputCase, Pattern, Statement, TRIGGER_CASES, TriggerCase,
        read_queries,
    },
    drafts::Drafts,
    end::{End, Failure},
    error::{CaseError, EvaluationError, TaskError},
    evaluation::Evaluation,
    grade::Grade,
    history::{Entry, History},
    improve::{Improvement, Limits, Round, Stopped},
    installed::{Installed, installed_skills},
    intervals::{Effect, Pair, clustered, paired},
    options::{AgentCommand, EMBEDDED, Grader, Options},
    orphans::{AdoptedOrphans, adopt_orphans},
    outcome::{Case, Configuration, Outcome, RunId, Status},
    permission::{Allow, PermissionAnswer},
    plan::Plan,
    report::{AgentReport, Latency, Report},
    runner::Progress,
    shard::{InvalidShard, Shard},
    statistics::{Confusion, Part, Spread, pass_all, pass_at, split, wilson},
    stored::{kept_skill, merge},
    transcript::Metrics,
    triggers::{QueryResult, Rates, Triggers},
    usage::{Cost, Tokens},
    workspace::Workspace,
};
