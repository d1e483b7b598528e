//! The fixed parts of a prompt for a grader. The scripted agent recognizes such a prompt by them.

/// The beginning of a prompt for a grader.
pub const OPENING: &str = "You are grading the work of an agent.";
/// The text before the number of each assertion.
pub const ASSERTION: &str = "Assertion ";
/// The text before the transcript.
pub const WORK: &str = "What the agent said and did:";
