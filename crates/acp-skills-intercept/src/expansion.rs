//! How a command is written for the agent, and what of it the user sees again.
//!
//! In place of the block with the command the agent gets a block of ours with the instructions of the skill, then the
//! user's arguments as the user's own text; the user's other blocks stay where they are. Our block begins with what the
//! user typed:
//!
//! ```text
//! <acp-skills-proxy:0123abcd07757998>
//! <typed>/review <rest>src/main.rs</rest></typed>
//! The user invoked the skill `review` …
//! </acp-skills-proxy:0123abcd07757998>
//! ```
//!
//! When history or a title comes back, `strip` takes our block out and puts the command in its place; the arguments
//! are still there behind it. `rest` serves where the text was cut off before them.

use acp_skills_wire::{Edit, Message, Node};
use serde_json::Value;
use skills_core::SkillName;

use crate::{
    agent_facts::AgentFacts,
    briefing::Occasion,
    marks::{self, Mark},
    outputs::Pass,
    policy::Policy,
    session::Session,
    typed::Typed,
};

/// Writes the prompt for the agent. `text` is what the skill says; without it the model has to get it for itself.
pub(crate) fn write(
    session: &mut Session,
    message: &Message<'_>,
    skill: &SkillName,
    text: Option<&str>,
    agent: &AgentFacts,
    policy: &Policy,
) -> Pass {
    let Some(blocks) = message.param(&["prompt"]).filter(Node::is_array) else { return Pass::Untouched };
    let Some(typed) = Typed::read(blocks) else { return Pass::Untouched };
    let news = session.brief_in_prompt(message, agent, policy, Occasion::Command);
    let mark = session.mark;
    let mut written: Vec<Vec<u8>> = Vec::new();
    let ours = |text: &str| marks::block(text).to_string().into_bytes();
    let (front, behind) = if agent.quirks.words_first { (None, news) } else { (news, None) };
    written.extend(front.as_deref().map(ours));
    for (index, block) in blocks.elements().enumerate() {
        if index != typed.index {
            written.push(block.raw().to_vec());
            continue;
        }
        written.push(ours(&mark.wrap(&instructions(&typed, skill, text))));
        if let Some(node) = block.get("text").filter(|_| !typed.rest.is_empty()) {
            let start = block.span().start;
            let mut edit = Edit::new();
            edit.replace(
                node.span().start - start..node.span().end - start,
                arguments(&typed.rest, session.mark).to_string(),
            );
            written.push(edit.apply(block.raw()));
        }
    }
    written.extend(behind.as_deref().map(ours));
    let mut edit = Edit::new();
    edit.replace(blocks.span(), [b"[".as_slice(), &written.join(&b','), b"]"].concat());
    Pass::Edited(edit.apply(message.line))
}

fn instructions(typed: &Typed, skill: &SkillName, text: Option<&str>) -> String {
    let task = if typed.rest.is_empty() {
        "Carry them out now."
    } else {
        "Carry them out now, for what the user wrote behind the command, which follows."
    };
    let how = match text {
        Some(text) => format!("Its instructions are here. {task}\n\n{text}"),
        None => format!("Get its instructions first. {task}"),
    };
    format!("{}\nThe user invoked the skill `{skill}` by command. {how}", marks::element(typed))
}

/// The arguments as the user's text. Agents look for commands of their own at the start of any block, so one that
/// looks like a command gets some words of ours in front.
fn arguments(rest: &str, mark: Mark) -> Value {
    if rest.starts_with(['/', '$']) {
        return format!("{}{rest}", mark.wrap("The user wrote:")).into();
    }
    rest.into()
}
