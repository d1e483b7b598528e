//! Our marks: how what we add for the model is told from what a person wrote, and what a text of ours says of the command
//! that it stands for.

use serde_json::{Value, json};

use crate::typed::Typed;

/// Opens everything that we add for the model; no user types it, and it is how we find our text again.
pub const OPEN: &str = "<acp-skills-proxy>";
/// Closes what [`OPEN`] opens.
pub const CLOSE: &str = "</acp-skills-proxy>";

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

/// `text` in our marks, ended by a newline: some agents join the blocks of a prompt with nothing in between.
pub(crate) fn wrap(text: &str) -> String {
    // Nothing inside may look like the end.
    format!("{OPEN}\n{}\n{CLOSE}\n", text.replace(CLOSE, "</acp-skills_proxy>"))
}

/// The content block for a prompt.
pub(crate) fn block(text: &str) -> Value {
    // Agents ignore the audience today; it is still what the block means.
    json!({ "type": "text", "text": text, "annotations": { "audience": ["assistant"] } })
}

/// What the user typed, for later.
pub(crate) fn element(typed: &Typed) -> String {
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
    use acp_skills_wire::Node;

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
