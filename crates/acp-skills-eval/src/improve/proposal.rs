//! [`Proposal`]: the description that a writer proposes, and the reasons to refuse it.

use acp_skills::structured_output;
use schemars::JsonSchema;
use serde::Deserialize;
use skills_core::frontmatter::MAX_DESCRIPTION_CHARS;

use super::Round;

/// The answer of the writer.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct Proposal {
    /// The new description.
    description: String,
}

/// The reason that a proposed description is not valid.
#[derive(Debug, thiserror::Error)]
pub(super) enum InvalidProposal {
    #[error("{0}")]
    Unreadable(String),
    #[error("the description is empty")]
    Empty,
    #[error("the description has {0} characters; the limit is {MAX_DESCRIPTION_CHARS}")]
    Long(usize),
    #[error("the description contains `<`, `>` or a control character")]
    Characters,
    #[error("the description was already tried")]
    Repeated,
}

/// Reads the proposal in a writer's answer. Returns its description in one line. `rounds` are those that were made.
pub(super) fn read(answer: &str, rounds: &[Round]) -> Result<String, InvalidProposal> {
    let proposal = structured_output::parse::<Proposal>(answer)
        .map_err(|error| InvalidProposal::Unreadable(error.problem))?;
    checked(&proposal.description, rounds)
}

/// Returns a proposal in one line.
fn checked(text: &str, rounds: &[Round]) -> Result<String, InvalidProposal> {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let length = line.chars().count();
    if line.is_empty() {
        return Err(InvalidProposal::Empty);
    }
    if length > MAX_DESCRIPTION_CHARS {
        return Err(InvalidProposal::Long(length));
    }
    if line.contains(['<', '>']) || line.chars().any(char::is_control) {
        return Err(InvalidProposal::Characters);
    }
    if rounds.iter().any(|round| round.description == line) {
        return Err(InvalidProposal::Repeated);
    }
    Ok(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proposals_are_checked() {
        assert_eq!(checked(" Reviews\n code. ", &[]).unwrap(), "Reviews code.");
        for text in ["", " ", "a <b> c", "a\u{1b}[0m", &"x".repeat(MAX_DESCRIPTION_CHARS + 1)] {
            assert!(checked(text, &[]).is_err(), "{text}");
        }
    }
}
