//! Reads the text of a prompt.

use acp_skills_wire::{Message, Node};

use crate::{recap::NewMessage, strip};

/// Returns true if the prompt may be one of the agent's commands. Such a prompt must not change, because agents look for a
/// command in the first block, in the last one, or in all of them joined.
pub(crate) fn is_command(blocks: Node<'_>) -> bool {
    let mut texts = blocks.elements().filter_map(|block| block.text("text"));
    texts.any(|text| text.trim_start().starts_with(['/', '$']))
}

/// Returns the user's words on one line, without the additions of other proxies in the chain. Returns `None` if there are none.
pub(crate) fn words(message: &Message<'_>) -> Option<String> {
    let blocks = message.param(&["prompt"])?;
    let text = match NewMessage::read(blocks) {
        Some(message) => message.text,
        None => blocks.elements().filter_map(|block| block.text("text")).collect::<Vec<_>>().join(" "),
    };
    let words =
        strip::title(&text, None).unwrap_or_else(|| text.split_whitespace().collect::<Vec<_>>().join(" "));
    (!words.is_empty()).then_some(words)
}
