//! Finds and removes the proxy's text in a line.

use acp_skills_wire::Node;
use serde_json::Value;

/// Texts that must never reach the client.
pub(super) const OURS: [&str; 2] = ["acp-skills-proxy", "available_skills"];

pub(super) fn is_ours(tool: &Value) -> bool {
    tool.as_str().is_some_and(|tool| tool.starts_with("mcp__acp-skills__"))
}

/// Returns true if the client's line `received` is a list of commands and the agent's line `sent` is not.
pub(super) fn is_menu_of_ours(received: &str, sent: &str) -> bool {
    let is_menu = |line: &str| line.contains("\"available_commands_update\"");
    is_menu(received) && !is_menu(sent)
}

/// Removes our marked texts from all strings, even if their end is cut off, and collapses white space to single spaces.
pub(super) fn without_ours(value: &mut Value) {
    match value {
        Value::String(text) => {
            let mut clean = String::new();
            let mut rest = text.as_str();
            while let Some((before, ours)) = rest.split_once("<acp-skills-proxy:") {
                clean += before;
                rest = ours
                    .split_once("</acp-skills-proxy:")
                    .and_then(|(_, end)| end.split_once('>'))
                    .map_or("", |(_, after)| after);
            }
            clean += rest;
            *text = clean.split_whitespace().collect::<Vec<_>>().join(" ");
        }
        Value::Array(items) => items.iter_mut().for_each(without_ours),
        Value::Object(members) => members.values_mut().for_each(without_ours),
        _ => {}
    }
}

/// Removes `piece` from `text`, with the comma before it if `comma` is true. Panics unless `piece` occurs exactly once.
pub(super) fn without(text: &str, piece: &str, comma: bool) -> String {
    let piece = if comma { format!(",{piece}") } else { piece.to_owned() };
    assert_eq!(text.matches(&piece).count(), 1, "{piece} in {text}");
    text.replacen(&piece, "", 1)
}

/// Removes the commands that the proxy adds before those of the agent from the line `received`, and the prefix of the agent's
/// commands. `sent` is the agent's line.
pub(super) fn without_our_commands(sent: &str, received: &str) -> String {
    let list = |line| {
        let message = Node::parse(line)?;
        let update = message.at(&["params", "update", "availableCommands"]);
        update.or_else(|| message.at(&["result", "availableCommands"]))
    };
    let (theirs, all) = match (list(sent.as_bytes()), list(received.as_bytes())) {
        (Some(theirs), Some(all)) => (theirs, all),
        // The agent didn't send a list, so we can just remove all of it.
        (None, Some(all)) => {
            let list = String::from_utf8_lossy(all.raw());
            let result = Node::parse(sent.as_bytes()).and_then(|message| message.get("result"));
            let comma = result.is_some_and(|result| result.members().next().is_some());
            return without(received, &format!("\"availableCommands\":{list}"), comma);
        }
        _ => return received.to_owned(),
    };
    let count = all.elements().count() - theirs.elements().count();
    let Some(last) = all.elements().take(count).last() else { return received.to_owned() };
    assert!(all.elements().take(count).all(|ours| ours.str("name").is_some()), "{received}");
    // Our commands come first, so remove everything from the start of the list up to the comma after the last one.
    let comma = usize::from(theirs.elements().next().is_some());
    let left = format!("{}{}", &received[..=all.span().start], &received[last.span().end + comma..]);
    theirs.elements().fold(left, |left, entry| without_prefix(&left, entry))
}

/// Restores a command of the agent whose name is given to a skill. `entry` is the command as the agent sent it.
fn without_prefix(received: &str, entry: Node<'_>) -> String {
    let raw = |key| Some(String::from_utf8_lossy(entry.get(key)?.raw()).into_owned());
    let (Some(name), Some(description)) = (raw("name"), raw("description")) else {
        return received.to_owned();
    };
    let renamed = name.replacen('"', "\"agent:", 1);
    if !received.contains(&renamed) {
        return received.to_owned();
    }
    let described = description.replacen('"', "\"Agent: ", 1);
    assert_eq!(
        (received.matches(&renamed).count(), received.matches(&described).count()),
        (1, 1),
        "{received}"
    );
    received.replacen(&renamed, &name, 1).replacen(&described, &description, 1)
}
