//! Finds the user's message in a prompt to which the client adds text of its own, or earlier messages.
//!
//! avante repeats the user's latest messages in each prompt, although the agent already has them. Each message, including the new
//! one, is in its own `<previous_user_message>` block. The block after the messages contains their number. The new message comes
//! first. If avante also repeats the agent's answers, it comes last. Our own answers are among them: those to `/skills` are removed,
//! because they describe skills that the user has not approved.
//!
//! Jupyter AI puts a note about notebooks before the first message of a session, in the same block. CodeCompanion names each file
//! that the user shares in a block before the message.

use acp_skills_wire::{Edit, Message, Node};

use crate::client_facts::ClientFacts;

const MESSAGE: (&str, &str) = ("<previous_user_message>", "</previous_user_message>");
const ANSWER: (&str, &str) = ("<previous_assistant_message>", "</previous_assistant_message>");

/// The block after the messages: its parts around the number of messages.
const NEWEST_FIRST: (&str, &str) =
    ("<system_context>Continuing from previous session with ", " recent user messages</system_context>");
const NEWEST_LAST: (&str, &str) = (
    "<system_context>Continuing from previous ACP session with ",
    " recent messages preserved for context</system_context>",
);

/// The start of the note of Jupyter AI, which ends with an empty line.
const NOTE: &str = "System note: When creating or editing Jupyter notebooks";
const NOTE_END: &str = "\n\n";

/// The start of the block in which CodeCompanion names a file. The block does not contain the file's text.
const SHARED_FILE: &str = "Sharing the following file as context: ";

/// The user's message in such a prompt.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct NewMessage {
    /// The index of its block.
    pub(crate) index: usize,
    /// The client's note before the message in the same block. It is empty if there is none.
    pub(crate) note: String,
    /// The text without the note, and without the tags around it.
    pub(crate) text: String,
}

impl NewMessage {
    /// Reads the blocks of a prompt. Returns `None` for a prompt with nothing but the user's text and files.
    pub(crate) fn read(blocks: Node<'_>) -> Option<Self> {
        Self::repeated(blocks).or_else(|| Self::with_note(blocks))
    }

    /// Returns true if all text of a prompt is the user's message, and what this client adds to it. Other text may come from a file.
    pub(crate) fn is_alone(blocks: Node<'_>, client: ClientFacts) -> bool {
        let texts = blocks.elements().filter_map(|block| block.text("text"));
        let is_name = |text: &str| client.names_files() && text.starts_with(SHARED_FILE);
        let texts: Vec<_> = texts.filter(|text| !text.trim().is_empty() && !is_name(text)).collect();
        match texts.as_slice() {
            [text] => client.adds_note() || !text.starts_with(NOTE),
            [messages @ .., count] => {
                let is_message =
                    |text: &str| [MESSAGE, ANSWER].iter().any(|tags| inside(text, *tags).is_some());
                let is_recap = messages.iter().all(|text| is_message(text)) && Newest::read(count).is_some();
                client.may_repeat_messages() && is_recap
            }
            [] => false,
        }
    }

    fn with_note(blocks: Node<'_>) -> Option<Self> {
        blocks.elements().enumerate().find_map(|(index, block)| {
            let text = block.text("text").filter(|text| text.starts_with(NOTE))?;
            let (note, text) = text.split_once(NOTE_END)?;
            Some(Self { index, note: note.to_owned(), text: text.to_owned() })
        })
    }

    fn repeated(blocks: Node<'_>) -> Option<Self> {
        let mut texts =
            blocks.elements().enumerate().filter_map(|(index, block)| Some((index, block.text("text")?)));
        let mut messages = Vec::new();
        // Other blocks may follow, because another proxy in the chain may add its text.
        let newest = texts.find_map(|(index, text)| {
            let message = inside(&text, MESSAGE);
            messages.extend(message.map(|text| Self { index, note: String::new(), text: text.to_owned() }));
            Newest::read(&text)
        })?;
        match newest {
            Newest::First => messages.into_iter().next(),
            Newest::Last => messages.pop(),
        }
    }
}

/// Returns a prompt in which the repeated answers to our commands are empty. Returns `None` if there are none. `is_ours` returns true for
/// the text of such a command.
pub(crate) fn without_our_answers(prompt: &Message<'_>, is_ours: impl Fn(&str) -> bool) -> Option<Vec<u8>> {
    let blocks = prompt.param(&["prompt"])?;
    let texts = || blocks.elements().filter_map(|block| Some((block.get("text")?, block.text("text")?)));
    if !texts().any(|(_, text)| matches!(Newest::read(&text), Some(Newest::Last))) {
        return None;
    }
    let mut edit = Edit::new();
    let mut answers_ours = false;
    for (node, text) in texts() {
        if let Some(message) = inside(&text, MESSAGE) {
            answers_ours = is_ours(message);
        } else if answers_ours && inside(&text, ANSWER).is_some_and(|answer| !answer.is_empty()) {
            edit.set(node, &[ANSWER.0, ANSWER.1].concat().into());
        }
    }
    (!edit.is_empty()).then(|| edit.apply(prompt.line))
}

/// The place of the new message.
enum Newest {
    First,
    Last,
}

impl Newest {
    /// Reads the block after the messages.
    fn read(text: &str) -> Option<Self> {
        let is_count = |text: &str| !text.is_empty() && text.bytes().all(|digit| digit.is_ascii_digit());
        let is = |context| inside(text, context).is_some_and(is_count);
        if is(NEWEST_FIRST) { Some(Self::First) } else { is(NEWEST_LAST).then_some(Self::Last) }
    }
}

fn inside<'a>(text: &'a str, (start, end): (&str, &str)) -> Option<&'a str> {
    text.strip_prefix(start)?.strip_suffix(end)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn finds_the_new_message() {
        let text = |text: &str| json!({ "type": "text", "text": text });
        let user = |words: &str| text(&format!("<previous_user_message>{words}</previous_user_message>"));
        let agent =
            |words: &str| text(&format!("<previous_assistant_message>{words}</previous_assistant_message>"));
        let first = |count: &str| text(&[NEWEST_FIRST.0, count, NEWEST_FIRST.1].concat());
        let last = |count: &str| text(&[NEWEST_LAST.0, count, NEWEST_LAST.1].concat());
        let link = || json!({ "type": "resource_link", "uri": "file:///a", "name": "a" });
        let code = || text("<selected_code>\n<path>a</path>\n<snippet>/x</snippet>\n</selected_code>");
        let ours = || text(&crate::marks::Mark::new(1).wrap("skills"));
        for (blocks, expected) in [
            (json!([user("new"), first("1")]), Some((0, "new"))),
            (json!([link(), code(), user("new"), user("old"), first("2")]), Some((2, "new"))),
            (json!([user("old"), agent("answer"), user("new"), last("3")]), Some((2, "new"))),
            (json!([user(""), first("1")]), Some((0, ""))),
            // Tags in the message are the user's.
            (
                json!([user("a</previous_user_message> b"), first("1")]),
                Some((0, "a</previous_user_message> b")),
            ),
            (json!([ours(), user("new"), first("1"), ours()]), Some((1, "new"))),
            (
                json!([ours(), text(&format!("{NOTE} (.ipynb), use a tool.\n\n/new\n\nline"))]),
                Some((1, "/new\n\nline")),
            ),
            // These are ordinary prompts.
            (json!([text(NOTE)]), None),
            (json!([text(&format!("What is this? {NOTE}\n\nnew"))]), None),
            (json!([]), None),
            (json!([link()]), None),
            (json!([text("new")]), None),
            (json!([first("1")]), None),
            (json!([user("new")]), None),
            (json!([user("new"), first("")]), None),
            (json!([user("new"), first("x")]), None),
            (json!([first("1"), user("new")]), None),
            (json!([user("new"), text(&format!("{} and more", NEWEST_FIRST.0))]), None),
            (json!([text("What does <previous_user_message> mean?"), first("1")]), None),
        ] {
            let line = Value::to_string(&blocks);
            let found = NewMessage::read(Node::parse(line.as_bytes()).unwrap());
            let found = found.as_ref().map(|message| (message.index, message.text.as_str()));
            assert_eq!(found, expected, "{blocks}");
        }
    }
}
