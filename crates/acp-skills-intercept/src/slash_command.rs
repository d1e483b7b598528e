//! Parses a command as the user typed it.

use acp_skills_wire::{Message, Node};

use crate::{client_facts::ClientFacts, recap::NewMessage};

/// A command as the user typed it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct SlashCommand {
    /// The index of the block that begins with the command.
    pub(crate) index: usize,
    /// The client's note before the command in the same block. It is empty if there is none.
    pub(crate) note: String,
    /// The first character: `/` or `$`.
    pub(crate) sigil: char,
    /// The word after that character.
    pub(crate) word: String,
    /// The command, including the white space around it.
    pub(crate) head: String,
    /// The rest of the user's text, unchanged.
    pub(crate) rest: String,
}

impl SlashCommand {
    /// Finds the command at the start of the first text block, or of the last one, because clients can add context before the text
    /// that the user typed.
    pub(crate) fn read(blocks: Node<'_>) -> Option<Self> {
        if let Some(message) = NewMessage::read(blocks) {
            let command = Self::of(message.index, &message.text)?;
            return Some(Self { note: message.note, ..command });
        }
        let texts = || {
            let texts = blocks.elements().enumerate();
            texts.filter_map(|(at, block)| Some((at, block.text("text")?)))
        };
        let mut written = texts().filter(|(_, text)| !text.trim().is_empty());
        let (first, text) = written.next()?;
        if let Some(command) = Self::of(first, &text) {
            return Some(command);
        }
        // If the text starts with white space, the user typed it after a mention, as in `compare @a.rs /review`.
        let (last, text) = written.last().filter(|(_, text)| !text.starts_with(char::is_whitespace))?;
        Self::of(last, &text)
    }

    /// Returns true if nothing but the user can have written the command in a prompt: the prompt has no other text, for example no
    /// attached file.
    pub(crate) fn is_alone(prompt: &Message<'_>, client: ClientFacts) -> bool {
        prompt.param(&["prompt"]).is_some_and(|blocks| NewMessage::is_alone(blocks, client))
    }

    /// Returns true if `text` is the command `/word`, with or without arguments.
    pub(crate) fn is(text: &str, word: &str) -> bool {
        Self::of(0, text).is_some_and(|command| command.sigil == '/' && command.word == word)
    }

    fn of(index: usize, text: &str) -> Option<Self> {
        let command = text.trim_start();
        let sigil = command.chars().next().filter(|sigil| matches!(sigil, '/' | '$'))?;
        let (word, rest) = match command.split_once(char::is_whitespace) {
            Some((word, rest)) => (&word[1..], rest.trim_start()),
            None => (&command[1..], ""),
        };
        // If the word contains a slash, it's a path.
        if word.is_empty() || word.contains('/') {
            return None;
        }
        let head = text[..text.len() - rest.len()].to_owned();
        Some(Self { index, note: String::new(), sigil, word: word.to_owned(), head, rest: rest.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_commands() {
        for (blocks, expected) in [
            (r#"[{"type":"text","text":"/a b c"}]"#, Some((0, "/a ", "b c"))),
            (r#"[{"type":"text","text":"/a"}]"#, Some((0, "/a", ""))),
            (r#"[{"type":"text","text":" \n/a\tb\n"}]"#, Some((0, " \n/a\t", "b\n"))),
            (r#"[{"type":"text","text":"/a  \n "}]"#, Some((0, "/a  \n ", ""))),
            (
                r#"[{"type":"image","data":""},{"type":"text","text":" "},{"type":"text","text":"/ä é"}]"#,
                Some((2, "/ä ", "é")),
            ),
            (r#"[{"type":"text","text":"$a b"}]"#, Some((0, "$a ", "b"))),
            (r#"[{"type":"text","text":"say /a"}]"#, None),
            // The client adds some context, and then the user's text.
            (
                r#"[{"type":"text","text":"Sharing a file"},{"type":"text","text":"/a b"}]"#,
                Some((1, "/a ", "b")),
            ),
            (
                r#"[{"type":"text","text":"a"},{"type":"resource"},{"type":"text","text":"/a"},{"type":"text","text":" "}]"#,
                Some((2, "/a", "")),
            ),
            (r#"[{"type":"text","text":"/src/a.rs: 1"},{"type":"text","text":"/a"}]"#, Some((1, "/a", ""))),
            (r#"[{"type":"text","text":"/a"},{"type":"text","text":"/b"}]"#, Some((0, "/a", ""))),
            // The text continues after a mention, or the command is in the middle.
            (r#"[{"type":"text","text":"see"},{"type":"resource"},{"type":"text","text":" /a"}]"#, None),
            (r#"[{"type":"text","text":"a"},{"type":"text","text":"/a"},{"type":"text","text":"b"}]"#, None),
            (r#"[{"type":"text","text":"a"},{"type":"text","text":"/etc/hosts"}]"#, None),
            (r#"[{"type":"text","text":"/ a"}]"#, None),
            // The client repeats the user's messages.
            (
                r#"[{"type":"text","text":"<previous_user_message>/a b</previous_user_message>"},{"type":"text","text":"<previous_user_message>/c</previous_user_message>"},{"type":"text","text":"<system_context>Continuing from previous session with 2 recent user messages</system_context>"}]"#,
                Some((0, "/a ", "b")),
            ),
            (
                r#"[{"type":"text","text":"<previous_user_message>a</previous_user_message>"},{"type":"text","text":"<previous_user_message>/c</previous_user_message>"},{"type":"text","text":"<system_context>Continuing from previous session with 2 recent user messages</system_context>"}]"#,
                None,
            ),
            (
                r#"[{"type":"text","text":"System note: When creating or editing Jupyter notebooks (.ipynb), use tools.\n\n/a b"}]"#,
                Some((0, "/a ", "b")),
            ),
            ("[]", None),
        ] {
            let command = SlashCommand::read(Node::parse(blocks.as_bytes()).unwrap());
            let found =
                command.as_ref().map(|command| (command.index, command.head.as_str(), command.rest.as_str()));
            assert_eq!(found, expected, "{blocks}");
        }
    }
}
