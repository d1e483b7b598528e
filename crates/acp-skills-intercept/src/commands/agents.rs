//! The agent's commands with our prefix.
//!
//! If a skill gets the name of a command of the agent, the user types `/agent:NAME` for the command. The agent receives `/NAME`.
//! When the agent repeats it live or in a title, the prefix is added again. A later run doesn't know what the user typed, so
//! there the history shows what the agent received.

use acp_skills_wire::{Edit, Message, Node};

use crate::{menu::names::AGENT_PREFIX, session::Session, slash_command::SlashCommand};

/// Returns the line of a prompt without the prefix of the agent's command, and remembers the command.
pub(super) fn without_prefix(
    session: &mut Session,
    message: &Message<'_>,
    command: &SlashCommand,
    agents: &str,
) -> Option<Vec<u8>> {
    let node = message.param(&["prompt"])?.elements().nth(command.index)?.get("text")?;
    let text = node.as_text()?;
    let note = command.note.len();
    let prefix = note + text.get(note..)?.find(AGENT_PREFIX)?;
    let text = format!("{}{}", &text[..prefix], &text[prefix + AGENT_PREFIX.len()..]);
    session.menu.sent_without_prefix(agents);
    let mut edit = Edit::new();
    edit.set(node, &text.into());
    Some(edit.apply(message.line))
}

/// Returns a text that the agent repeats with the prefix that the user typed, or `None` if there was no prefix.
pub(crate) fn with_prefix(session: &Session, text: &str) -> Option<String> {
    let start = text.len() - text.trim_start().len();
    let (head, command) = text.split_at_checked(start + 1).filter(|(head, _)| head.ends_with('/'))?;
    let word = command.split(char::is_whitespace).next()?;
    session.menu.was_sent_without_prefix(word).then(|| format!("{head}{AGENT_PREFIX}{command}"))
}

/// The place of the text in a chunk of a user's message.
pub(crate) const IN_CHUNK: &[&str] = &["params", "update", "content", "text"];

/// The place of the text in a block of a user's message.
pub(crate) const IN_BLOCK: &[&str] = &["text"];

/// Returns `json`, a part of a user's message, with the prefix that the user typed. `place` is the path of its text.
pub(crate) fn part_with_prefix(session: &Session, json: &[u8], place: &[&str]) -> Option<Vec<u8>> {
    let node = Node::parse(json)?.at(place)?;
    let text = with_prefix(session, &node.as_text()?)?;
    let mut edit = Edit::new();
    edit.set(node, &text.into());
    Some(edit.apply(json))
}
