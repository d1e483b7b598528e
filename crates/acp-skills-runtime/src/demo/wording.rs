//! Words by which a prompt for a grader is known, also to the embedded agent.

/// How a prompt for a grader begins.
pub const OPENING: &str = "You are grading the work of an agent.";
/// What stands in front of each assertion for the grader, with its number behind.
pub const ASSERTION: &str = "Assertion ";
/// What stands in front of the transcript for the grader.
pub const WORK: &str = "What the agent said and did:";
