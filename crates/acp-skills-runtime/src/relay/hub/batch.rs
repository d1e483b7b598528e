//! The output of a batch: the lines as they were decided, with the lines that are sent directly before and after them.

use acp_skills_intercept::{Actions, Pass};

use crate::relay::side::Side;

/// Returns true if lines have to be sent directly before or after a line from this side.
#[inline]
pub(super) fn has_lines(actions: &Actions, from: Side) -> bool {
    let before = match from {
        Side::Client => &actions.to_agent,
        Side::Agent => &actions.to_client,
    };
    !before.is_empty() || !actions.after.is_empty()
}

/// Appends a line as it was decided, and the lines that are sent directly before and after it.
#[cold]
pub(super) fn append(edited: &mut Vec<u8>, line: &[u8], pass: Pass, actions: &mut Actions, from: Side) {
    let before = match from {
        Side::Client => &mut actions.to_agent,
        Side::Agent => &mut actions.to_client,
    };
    before.drain(..).for_each(|ours| edited.extend_from_slice(&ours));
    match pass {
        Pass::Untouched => edited.extend_from_slice(line),
        Pass::Edited(line) => edited.extend_from_slice(&line),
        Pass::Consumed => {}
    }
    for ours in actions.after.drain(..) {
        if !edited.ends_with(b"\n") {
            edited.push(b'\n');
        }
        edited.extend_from_slice(&ours);
    }
}
