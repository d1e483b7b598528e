//! Writes a command for the agent.
//!
//! The block with the command is replaced by a new block with the skill's instructions, followed by the user's arguments as
//! the user's own text. If the client has put a note before the command, the note becomes a block of its own. All other blocks stay
//! where they are. The new block begins with the text that the user typed:
//!
//! ```text
//! <acp-skills-proxy:0123abcd07757998>
//! <typed>/review <rest>src/main.rs</rest></typed>
//! The user invoked the skill `review` …
//! </acp-skills-proxy:0123abcd07757998>
//! ```
//!
//! When the agent sends the text back in history or in a title, `strip` replaces our block by the command. The arguments follow
//! in the user's own text. If the text was truncated before the arguments, `rest` supplies them.

use acp_skills_wire::{Edit, Message, Node};
use serde_json::{Value, json};
use skills_core::SkillName;

use crate::{
    agent_facts::AgentFacts,
    briefing::Occasion,
    marks::{self, MarkKey},
    outputs::Pass,
    policy::Policy,
    session::Session,
    slash_command::SlashCommand,
};

/// Writes the prompt for the agent. `text` is the text of the skill; if it is `None`, the prompt tells the model to load it.
pub(crate) fn write(
    session: &mut Session,
    message: &Message<'_>,
    skill: &SkillName,
    text: Option<&str>,
    agent: &AgentFacts,
    policy: &Policy,
) -> Pass {
    let Some(blocks) = message.param(&["prompt"]).filter(Node::is_array) else { return Pass::Untouched };
    let Some(command) = SlashCommand::read(blocks) else { return Pass::Untouched };
    let news = session.brief_in_prompt(message, agent, policy, Occasion::Command);
    let key = session.marks;
    let mut written: Vec<Vec<u8>> = Vec::new();
    let ours = |text: &str| marks::block(text).to_string().into_bytes();
    let mut news = news.as_deref().map(ours);
    if !agent.quirks.words_first {
        written.extend(news.take());
    }
    for (index, block) in blocks.elements().enumerate() {
        if index != command.index {
            written.push(block.raw().to_vec());
            continue;
        }
        if !command.note.is_empty() {
            written.push(json!({ "type": "text", "text": command.note }).to_string().into_bytes());
        }
        written.push(ours(&key.wrap(&instructions(&command, skill, text))));
        if let Some(node) = block.get("text").filter(|_| !command.rest.is_empty()) {
            let start = block.span().start;
            let mut edit = Edit::new();
            edit.replace(
                node.span().start - start..node.span().end - start,
                arguments(&command.rest, key).to_string(),
            );
            written.push(edit.apply(block.raw()));
        }
    }
    written.extend(news);
    let mut edit = Edit::new();
    edit.replace(blocks.span(), [b"[".as_slice(), &written.join(&b','), b"]"].concat());
    Pass::Edited(edit.apply(message.line))
}

fn instructions(command: &SlashCommand, skill: &SkillName, text: Option<&str>) -> String {
    let task = if command.rest.is_empty() {
        "Follow them now."
    } else {
        "Follow them now for the text after the command, which is at the end of this message."
    };
    let how = match text {
        Some(text) => format!("Its instructions are here. {task}\n\n{text}"),
        None => format!("Get its instructions first. {task}"),
    };
    format!("{}\nThe user invoked the skill `{skill}` by command. {how}", marks::element(command))
}

/// Returns the arguments as the user's text. Agents look for their own commands at the start of every block, so arguments that
/// look like a command get an injected text before them.
fn arguments(rest: &str, key: MarkKey) -> Value {
    if rest.starts_with(['/', '$']) {
        return format!("{}{rest}", key.wrap("The user wrote:")).into();
    }
    rest.into()
}
