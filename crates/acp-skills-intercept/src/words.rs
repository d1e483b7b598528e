//! What a prompt says, as far as it matters to us.

use acp_skills_wire::{Message, Node};

use crate::strip;

/// Whether the prompt is a command of the agent's, which must stay as it is: agents look for it in the first block, in
/// the last one, or in all of them joined.
pub(crate) fn is_command(blocks: Node<'_>) -> bool {
    let mut texts = blocks.elements().filter_map(|block| block.text("text"));
    texts.any(|text| text.trim_start().starts_with(['/', '$']))
}

/// The user's words on one line, without what a proxy before us has added; `None` when there are none.
pub(crate) fn words(message: &Message<'_>) -> Option<String> {
    let blocks = message.param(&["prompt"])?;
    let texts: Vec<_> = blocks.elements().filter_map(|block| block.text("text")).collect();
    let text = texts.join(" ");
    let words =
        strip::title(&text, None).unwrap_or_else(|| text.split_whitespace().collect::<Vec<_>>().join(" "));
    (!words.is_empty()).then_some(words)
}
