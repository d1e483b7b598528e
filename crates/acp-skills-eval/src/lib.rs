//! Does a skill work, on any agent: is it loaded when it should be, and is the result better with it than without?
//!
//! An [`Evaluation`] is a skill, its cases and some agents. [`Evaluation::plan`] says which runs that takes;
//! [`Evaluation::run`] makes them, keeps everything in a [`Workspace`] and tells each [`Outcome`] as it comes; a [`Report`]
//! adds outcomes up. Nothing is printed.
//!
//! Each run has an agent process, a session and an empty directory of its own. The skill reaches the agent through the proxy
//! alone, so every activation is seen where it is served, whoever in the agent asked for it; a run without the skill has no
//! proxy at all.
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
//! // Without an agent the embedded one answers, which has no model.
//! let evaluation = Evaluation::new(&dir)?;
//! let workspace = Workspace::create(&root.path().join("greet-workspace"), &evaluation)?;
//! let report = evaluation.run(&workspace, |_progress| {}, std::future::pending()).await?;
//! assert!(report.agents[0].triggers.as_ref().unwrap().queries[0].pass);
//! # Ok(()) }
//! ```
//!
//! | file | owns |
//! |---|---|
//! | `cases` | the cases of a skill, as files have them |
//! | `evaluation` | what is evaluated, how, and which runs that takes |
//! | `runner` | making the runs, some at a time |
//! | `outcome` | what is known of one run |
//! | `run` | one run, from its directory to its grades |
//! | `connection` | the agent of a run, and the proxy in front of it |
//! | `conversation` | the client's side of a run, and how it ended (`end`) |
//! | `permission` | what the agent may do |
//! | `directory` | where a run works, and what it made there |
//! | `transcript` | what was said |
//! | `grading` | whether assertions hold; `wording` has what graders are told by |
//! | `statistics` | means, rates, intervals |
//! | `report` | outcomes, added up; `benchmark` and `triggers` have the two kinds |
//! | `workspace` | the files |
//! | `error` | what keeps an evaluation from being made |

mod benchmark;
mod cases;
mod connection;
mod conversation;
mod directory;
mod end;
mod error;
#[expect(clippy::module_inception, reason = "the type that everything here is about")]
mod evaluation;
mod grading;
mod outcome;
mod permission;
mod report;
mod run;
mod runner;
mod statistics;
mod transcript;
mod triggers;
mod workspace;

pub use self::{
    benchmark::{Benchmark, CaseSummary, ConfigurationSummary},
    cases::{Assertion, Check, OUTPUT_CASES, OutputCase, TRIGGER_CASES, TriggerCase, read_queries},
    end::End,
    error::EvaluationError,
    evaluation::{AgentCommand, EMBEDDED, Evaluation, Grader, Options, Plan},
    grading::Grade,
    outcome::{Case, Configuration, Outcome, RunId, Status},
    permission::{Allow, PermissionAnswer},
    report::{AgentReport, Report},
    runner::Progress,
    statistics::{Confusion, Part, Spread, pass_all, pass_at, split, wilson},
    transcript::{Metrics, Tokens},
    triggers::{QueryResult, Rates, Triggers},
    workspace::Workspace,
};
