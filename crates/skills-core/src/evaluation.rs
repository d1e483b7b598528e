//! The names of the files of an evaluation, in the layout of the standard and its skill-creator. The cases are in the skill, and the
//! results are in a workspace beside it.

/// The directory with the cases, relative to the skill.
pub const CASES_DIR: &str = "evals/";
/// The file with the tasks, relative to the skill.
pub const OUTPUT_CASES: &str = "evals/evals.json";
/// The files with the queries, relative to the skill. The first file that exists is used.
pub const TRIGGER_CASES: [&str; 2] = ["evals/eval_queries.json", "evals/trigger-evals.json"];

/// The end of the name of a workspace, after the name of the skill.
pub const WORKSPACE_SUFFIX: &str = "-workspace";
/// The beginning of the name of an iteration in a workspace, before its number.
pub const ITERATION_PREFIX: &str = "iteration-";
/// The file with the setup of an evaluation, in an iteration.
pub const MANIFEST: &str = "evaluation.json";
/// The file with the results of all tasks, in an iteration.
pub const BENCHMARK: &str = "benchmark.json";
/// The file with the results of all queries, in an iteration.
pub const TRIGGERS: &str = "triggers.json";
