//! How a command is written for the agent, and what of it the user sees again.
//!
//! The agent gets a block of ours with the instructions of the skill, then the user's arguments as the user's own text,
//! then the user's other blocks. Our block begins with what the user typed:
//!
//! ```text
//! <acp-skills-proxy>
//! <typed>/review <rest>src/main.rs</rest></typed>
//! The user invoked the skill `review` …
//! </acp-skills-proxy>
//! ```
//!
//! When history or a title comes back, `strip` takes our block out and puts the command in its place; the arguments
//! are still there behind it. `rest` serves where the text was cut off before them.

use acp_skills_wire::{Edit, Message, Node};
use serde_json::Value;
use skills_core::SkillName;

use crate::{
    agent_facts::AgentFacts, briefing::Occasion, commands::Typed, outputs::Pass, placement, policy::Policy,
    prompt, session::Session,
};

const TYPED: &str = "<typed>";
const TYPED_END: &str = "</typed>";
const REST: &str = "<rest>";
const REST_END: &str = "</rest>";

/// How much of the arguments is repeated for a title that is cut off, in characters.
const MAX_REST_CHARS: usize = 200;
/// How much of our text can be needed to read what was typed, in bytes.
pub(crate) const MAX_TYPED_BYTES: usize = 4 * 1024;
/// Longer space around a command is not kept.
const MAX_HEAD_CHARS: usize = 300;

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
    if let Some(words) = prompt::words(message) {
        session.first_words.begin_with(&words);
    }
    let mut written: Vec<Vec<u8>> = Vec::new();
    let mut ours = |text: &str| written.push(placement::block(text).to_string().into_bytes());
    if let Some(news) = news {
        ours(&news);
    }
    ours(&placement::wrap(&instructions(&typed, skill, text)));
    for (index, block) in blocks.elements().enumerate() {
        if index != typed.index {
            continue;
        }
        if let Some(node) = block.get("text").filter(|_| !typed.rest.is_empty()) {
            let start = block.span().start;
            let mut edit = Edit::new();
            edit.replace(
                node.span().start - start..node.span().end - start,
                arguments(&typed.rest).to_string(),
            );
            written.push(edit.apply(block.raw()));
        }
    }
    let others = blocks.elements().enumerate().filter(|(index, _)| *index != typed.index);
    written.extend(others.map(|(_, block)| block.raw().to_vec()));
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
    format!("{}\nThe user invoked the skill `{skill}` by command. {how}", element(typed))
}

/// The arguments as the user's text. Agents look for commands of their own at the start of any block, so one that
/// looks like a command gets some words of ours in front.
fn arguments(rest: &str) -> Value {
    if rest.starts_with(['/', '$']) {
        return format!("{}{rest}", placement::wrap("The user wrote:")).into();
    }
    rest.into()
}

/// What the user typed, for later.
fn element(typed: &Typed) -> String {
    let mut text = format!("{TYPED}{}", escape(&typed.head.chars().take(MAX_HEAD_CHARS).collect::<String>()));
    if !typed.rest.is_empty() {
        let rest: String = typed.rest.chars().take(MAX_REST_CHARS).collect();
        text += REST;
        text += &escape(&rest);
        text += REST_END;
    }
    text + TYPED_END
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

fn unescape(text: &str) -> String {
    text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
}

/// What was typed, from the beginning of our text; it may be cut off anywhere.
fn typed(ours: &str) -> Option<&str> {
    let typed = ours.trim_start().strip_prefix(TYPED)?;
    Some(typed.split_once(TYPED_END).map_or(typed, |(typed, _)| typed))
}

/// The command that a text of ours stands for, when what the user wrote behind it follows by itself; empty for a text
/// that stands for none.
pub(crate) fn command(ours: &str) -> String {
    typed(ours)
        .map(|typed| unescape(typed.split_once(REST).map_or(typed, |(head, _)| head)))
        .unwrap_or_default()
}

/// Whether a text of ours stands for a command with arguments.
pub(crate) fn has_arguments(ours: &str) -> bool {
    typed(ours).is_some_and(|typed| typed.contains(REST))
}

/// The command that a text of ours stands for, when nothing follows because it is cut off.
pub(crate) fn cut_off(ours: &str) -> String {
    let Some(typed) = typed(ours) else { return String::new() };
    let text = typed.replacen(REST, "", 1).replacen(REST_END, "", 1);
    // Whatever is left of a mark or an entity was cut in the middle.
    let text = text.split_once('<').map_or(text.as_str(), |(whole, _)| whole);
    let text = match text.rsplit_once('&') {
        Some((whole, entity)) if !entity.contains(';') => whole,
        _ => text,
    };
    unescape(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_survive_cuts() {
        let blocks = br#"[{"text":"/a <b> & \"c\""}]"#;
        let typed = Typed::read(Node::parse(blocks).unwrap()).unwrap();
        let text = element(&typed);
        assert_eq!(text, "<typed>/a <rest>&lt;b&gt; &amp; \"c\"</rest></typed>");
        assert_eq!((command(&text).as_str(), cut_off(&text).as_str()), ("/a ", "/a <b> & \"c\""));
        for end in 0..text.len() {
            let whole = cut_off(&text[..end]);
            assert!("/a <b> & \"c\"".starts_with(&whole), "{whole}");
        }
        assert_eq!(cut_off(" <typed>/a <rest>&lt;b…"), "/a <b…");
        assert_eq!(command("\n<available_skills>"), "");
    }
}
