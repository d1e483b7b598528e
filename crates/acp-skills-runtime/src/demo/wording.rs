//! The fixed parts of prompts for graders and writers. The scripted agent recognizes such a prompt by them.

/// The beginning of a prompt for a grader.
pub const OPENING: &str = "You are grading the work of an agent.";
/// The text before the number of each assertion.
pub const ASSERTION: &str = "Assertion ";
/// The text before the transcript.
pub const WORK: &str = "What the agent said and did:";
/// The beginning of a prompt for the writer of a description.
pub const IMPROVE: &str = "You are improving the description of a skill.";
/// The beginning of a prompt for the writer of cases.
pub const DRAFT: &str = "You are drafting test cases for a skill.";
/// The line before the current description.
pub const NOW: &str = "The description now:";
/// The line before the queries that should have loaded the skill.
pub const MISSED: &str = "Requests for which agents should load the skill, but did not:";
/// The line before the queries that should not have loaded the skill.
pub const EXTRA: &str = "Requests for which agents should not load the skill, but did:";
