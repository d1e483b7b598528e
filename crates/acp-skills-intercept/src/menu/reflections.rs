//! Recognizes reflections: slash commands that the agent creates from MCP prompts of the skills server.

use acp_skills_wire::{Node, json};
use skills_core::text::shown_lines;

use super::spelling::Words;

/// The minimum length of a truncated description that identifies a skill, in characters.
const MIN_SHORTENED_CHARS: usize = 30;

/// Returns true if an entry from the agent's list is a reflection of a skill command. These commands are already in the menu.
/// `server` is the name of the skills server, and `words` are the words of the skills in the menu.
pub(super) fn is_reflection(entry: Node<'_>, server: Option<&str>, words: &Words) -> bool {
    let Some(server) = server else { return false };
    let Some(name) = entry.str("name") else { return false };
    let is_between = |start: &str, end: &str| {
        name.strip_prefix(start)
            .and_then(|name| name.strip_prefix(server))
            .is_some_and(|rest| rest.starts_with(end))
    };
    if is_between("mcp__", "__") || is_between("mcp:", ":") || is_between("", ":") {
        return true;
    }
    by_meta(entry, server).unwrap_or_else(|| by_words(entry, &name, words))
}

/// Returns true if the metadata names the skills server as source, or `None` if no source is given.
fn by_meta(entry: Node<'_>, server: &str) -> Option<bool> {
    let meta = entry.get("_meta")?;
    let mut is_mcp = false;
    let mut names_us = false;
    for text in json::string_values(meta.raw()).filter_map(|text| text.as_str()) {
        is_mcp |= text.to_ascii_lowercase().contains("mcp");
        let before = text.strip_suffix(server);
        names_us |= before.is_some_and(|before| before.is_empty() || before.ends_with([' ', ':', '/']));
    }
    if is_mcp && names_us {
        return Some(true);
    }
    meta.get("source").is_some().then_some(false)
}

/// Returns true if the entry uses the name and description of a prompt from the skills server.
fn by_words(entry: Node<'_>, name: &str, words: &Words) -> bool {
    let Some(skill) = words.skill(name.trim().trim_start_matches('/')) else { return false };
    let Some(theirs) = entry.str("description") else { return false };
    let theirs = one_line(&theirs);
    let ours = one_line(&shown_lines(&skill.description));
    let start = theirs.trim_end_matches(['…', '.']).trim_end();
    theirs.contains(&ours) || (start.chars().count() >= MIN_SHORTENED_CHARS && ours.starts_with(start))
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
