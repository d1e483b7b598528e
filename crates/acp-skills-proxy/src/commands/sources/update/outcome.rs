//! Describes the result of `update` for a source.

use skills_sources::{Answer, Rejected};

use super::Row;
use crate::words::count;

/// Describes the changes that are not offered, as the end of a line.
pub(super) fn rejected(row: &Row) -> String {
    let parts = [(Rejected::Pinned, "pinned"), (Rejected::Declined, "declined")].map(|(why, word)| {
        let number = row.rejected.values().filter(|other| **other == why).count();
        (number > 0).then(|| format!("{} {word}", count(number, "change")))
    });
    let parts: Vec<_> = parts.into_iter().flatten().collect();
    if parts.is_empty() { String::new() } else { format!(" ({})", parts.join(", ")) }
}

/// Describes the decisions.
pub(super) fn outcome(row: &Row) -> String {
    let number = |answer| row.decisions.values().filter(|other| **other == answer).count();
    let approved = number(Answer::Yes);
    if approved == row.changes.len() {
        return "Approved.\n".to_owned();
    }
    let mut parts = Vec::new();
    if approved > 0 {
        parts.push(format!("approved {}", count(approved, "change")));
    }
    if number(Answer::No) > 0 {
        parts.push(format!("declined {} until the skill changes again", count(number(Answer::No), "change")));
    }
    let later = row.changes.len() - approved - number(Answer::No);
    if later > 0 {
        parts.push(format!("{} left for later", count(later, "change")));
    }
    let text = parts.join(", ");
    format!("{}{}.\n", text[..1].to_uppercase(), &text[1..])
}
