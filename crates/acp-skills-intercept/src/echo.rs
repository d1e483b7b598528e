//! Removes our blocks from a user's message that the agent sends back as a whole.
//!
//! In version 2 of the protocol, the agent repeats each prompt, both live and in replayed history: in a `user_message` with all
//! of its blocks, or in chunks (see `strip`). Blocks are processed like chunks. A command, which the agent received as two
//! blocks, becomes one block again. The same is done with messages between sessions.

use acp_skills_wire::{Edit, Message, Node};

use crate::{Interceptor, commands::agents, outputs::Pass, strip::Stream, updates::ChunkKind};

/// The maximum number of blocks of a message. A message with more blocks is forwarded as it is, because each block needs many times its
/// size in memory.
const MAX_BLOCKS: usize = 65_536;

/// A message without the injected text.
#[derive(Debug, Default, PartialEq, Eq)]
struct Restored {
    /// The blocks, each as JSON.
    blocks: Vec<Vec<u8>>,
    /// The concatenated texts of the blocks, without the injected text.
    clean: String,
    /// Injected texts.
    ours: Vec<String>,
}

impl Restored {
    fn read(content: Node<'_>) -> Self {
        let mut restored = Self::default();
        let mut stream = Stream::default();
        // If a command's arguments are in the next block, we keep the start of the command here until we get to them.
        let mut command = String::new();
        for block in content.elements() {
            let Some(text) = block.text("text") else {
                restored.end_of_text(&mut stream, &mut command);
                restored.blocks.push(block.raw().to_vec());
                continue;
            };
            let line = as_line(block.raw());
            let mut passed = stream.chunk(&text, &line);
            restored.ours.append(&mut passed.ours);
            let mut lines = passed.lines.unwrap_or_else(|| vec![line]);
            let begins = passed.awaits_arguments.then(|| lines.pop()).flatten();
            restored.push_lines(lines, &mut command);
            if let Some(line) = begins {
                command.push_str(&text_of(&line));
            }
        }
        restored.end_of_text(&mut stream, &mut command);
        restored
    }

    /// Adds everything that was held back. This is called where no further text can follow: at the end, or before a
    /// block that is not text.
    fn end_of_text(&mut self, stream: &mut Stream, command: &mut String) {
        self.push_lines(stream.flush(), command);
        if !command.is_empty() {
            let text = serde_json::json!({ "type": "text", "text": command });
            self.clean.push_str(command);
            self.blocks.push(text.to_string().into_bytes());
            command.clear();
        }
    }

    /// Adds decided blocks. The first one is appended to the pending command.
    fn push_lines(&mut self, lines: Vec<Vec<u8>>, command: &mut String) {
        for line in lines {
            let message = Message::parse(&line);
            let Some(block) = message.and_then(|message| message.param(&["update", "content"])) else {
                continue;
            };
            let Some((node, text)) = block.get("text").and_then(|node| Some((node, node.as_text()?))) else {
                continue;
            };
            let clean = std::mem::take(command) + &text;
            self.clean.push_str(&clean);
            self.blocks.push(with_text(block, node, &clean));
        }
    }
}

fn text_of(line: &[u8]) -> String {
    let message = Message::parse(line);
    let text = message.and_then(|message| message.param(&["update", "content", "text"])?.as_text());
    text.unwrap_or_default().into_owned()
}

/// Wraps a block in the line of a chunk.
fn as_line(block: &[u8]) -> Vec<u8> {
    [br#"{"params":{"update":{"content":"#.as_slice(), block, b"}}}\n"].concat()
}

fn with_text(block: Node<'_>, node: Node<'_>, text: &str) -> Vec<u8> {
    if node.as_text().is_some_and(|current| current == text) {
        return block.raw().to_vec();
    }
    let start = block.span().start;
    let mut edit = Edit::new();
    let text = serde_json::Value::from(text).to_string();
    edit.replace(node.span().start - start..node.span().end - start, text);
    edit.apply(block.raw())
}

impl Interceptor {
    /// Removes the injected text from a whole message of the user that the agent repeats, or of another session.
    pub(crate) fn whole_message(&mut self, message: &Message<'_>, update: Node<'_>, kind: ChunkKind) -> Pass {
        let Some(content) = update.get("content").filter(Node::is_array) else { return Pass::Untouched };
        if content.elements().nth(MAX_BLOCKS).is_some() {
            return Pass::Untouched;
        }
        let mut restored = Restored::read(content);
        if let Some(id) = message.session_id().filter(|_| kind == ChunkKind::User) {
            self.replayed(&id, &restored.ours, &restored.clean);
            let session = self.sessions.find(&id);
            for block in &mut restored.blocks {
                if let Some(typed) = session
                    .as_deref()
                    .and_then(|session| agents::part_with_prefix(session, block, agents::IN_BLOCK))
                {
                    *block = typed;
                }
            }
        }
        if content.elements().map(|block| block.raw()).eq(restored.blocks.iter()) {
            return Pass::Untouched;
        }
        let mut edit = Edit::new();
        edit.replace(content.span(), [b"[".as_slice(), &restored.blocks.join(&b','), b"]"].concat());
        Pass::Edited(edit.apply(message.line))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::marks::Mark;

    #[test]
    fn messages_are_restored() {
        let text = |text: &str| json!({ "text": text, "type": "text" });
        let mark = Mark::new(1);
        let ours = |words: &str| text(&mark.wrap(words));
        let command = || ours("<typed>/review <rest>src</rest></typed>\nDo it.");
        let whole = mark.wrap("skills\nmore");
        let front = whole[..40].to_owned();
        let back = &whole[40..];
        let image = || json!({ "type": "image", "data": "", "mimeType": "image/png" });
        for (content, expected) in [
            (json!([]), json!([])),
            (json!([text("hello"), image()]), json!([text("hello"), image()])),
            (json!([ours("skills"), text("hello"), image()]), json!([text("hello"), image()])),
            (json!([ours("skills"), image()]), json!([image()])),
            // The agent has merged the blocks.
            (json!([text(&format!("{}hello", mark.wrap("skills")))]), json!([text("hello")])),
            // A command should be put back into one block, but the rest should not change.
            (json!([ours("skills"), command(), text("src"), image()]), json!([text("/review src"), image()])),
            (json!([command(), image()]), json!([text("/review "), image()])),
            (
                json!([ours("<typed>/review</typed>\nDo it."), text("another block")]),
                json!([text("/review"), text("another block")]),
            ),
            // The agent has split our block.
            (json!([text(&front), text(&format!("{back}hello"))]), json!([text("hello")])),
            // The mark isn't closed, or the text isn't ours.
            (json!([text(&front), text("hello")]), json!([text(&front), text("hello")])),
            (json!([text("I say <acp-skills"), image()]), json!([text("I say <acp-skills"), image()])),
            (json!([text("<acp-skills-proxy>"), text("x")]), json!([text("<acp-skills-proxy>"), text("x")])),
        ] {
            let line = content.to_string();
            let restored = Restored::read(Node::parse(line.as_bytes()).unwrap());
            let blocks: Vec<Value> =
                restored.blocks.iter().map(|block| serde_json::from_slice(block).unwrap()).collect();
            assert_eq!(Value::from(blocks), expected, "{line}");
        }
    }
}
