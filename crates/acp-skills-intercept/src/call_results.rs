//! Shortens the result of an activation in the client: `Loaded the instructions (1,240 words)` instead of the whole text.
//!
//! The model receives its result from the skills server. The update is only for display, so nothing is lost for the model. Other
//! results stay as they are, for example an error, or a text that the agent has truncated.

use acp_skills_wire::{Edit, Node, json};
use skills_core::activation;

/// The members of a call that clients display as its result.
const SHOWN: [&str; 2] = ["content", "rawOutput"];

/// Shortens the result in `call`, a call that loads a skill.
pub(crate) fn shorten(edit: &mut Edit, call: Node<'_>) {
    for shown in SHOWN.iter().filter_map(|key| call.get(key)) {
        let start = shown.span().start;
        for text in json::string_values(shown.raw()) {
            if let Some(line) = text.as_str().and_then(|text| summary(&text)) {
                let span = text.span();
                edit.replace(start + span.start..start + span.end, serde_json::Value::from(line).to_string());
            }
        }
    }
}

/// Returns the line for the text of an activation, or `None` if this is another text.
fn summary(text: &str) -> Option<String> {
    let words = activation::parse(text)?.instructions?.split_whitespace().count();
    let s = if words == 1 { "" } else { "s" };
    Some(format!("Loaded the instructions ({} word{s})", with_separators(words)))
}

/// Returns a number with a comma after each group of three digits.
fn with_separators(number: usize) -> String {
    let digits = number.to_string();
    let groups: Vec<_> = digits.as_bytes().rchunks(3).rev().map(String::from_utf8_lossy).collect();
    groups.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_activations_become_one_line() {
        let long = format!("<skill_content name=\"a\">\n{}</skill_content>", "word ".repeat(1240));
        for (text, expected) in [
            (
                "<skill_content name=\"a\">\n# A\n\nDo it.\n</skill_content>",
                Some("Loaded the instructions (4 words)"),
            ),
            ("<skill_content name=\"a\">\nDo\n</skill_content>\n", Some("Loaded the instructions (1 word)")),
            ("<skill_content name=\"a\">\n</skill_content>", Some("Loaded the instructions (0 words)")),
            (&long, Some("Loaded the instructions (1,240 words)")),
            // Files and the directory are not instructions, but the instructions can mention them.
            (
                "<skill_content name=\"a\">\nSee\n\nSkill directory: x\n\nSkill directory: /p\nRelative paths …\n\n<skill_resources>\n</skill_resources>\n</skill_content>",
                Some("Loaded the instructions (4 words)"),
            ),
            (
                "<skill_content name=\"a\">\nDo it.\n\nSkill address: https://a.example\n</skill_content>",
                Some("Loaded the instructions (2 words)"),
            ),
            // These texts are shown as they are.
            ("", None),
            ("ProcessFailed: no such skill", None),
            ("<skill_content name=\"a\">\nDo it, and the agent cut th", None),
            ("Output: <skill_content name=\"a\">\nDo it.\n</skill_content>", None),
            ("<skill_content name=\"a\">\nDo it.\n</skill_content> Saved to /tmp/x", None),
            ("<skill_content name=\"</skill_content>", None),
        ] {
            assert_eq!(summary(text).as_deref(), expected, "{text}");
        }
        for (number, expected) in [(0, "0"), (999, "999"), (1000, "1,000"), (1_234_567, "1,234,567")] {
            assert_eq!(with_separators(number), expected);
        }
    }

    #[test]
    fn only_the_texts_are_replaced() {
        let text = r#""<skill_content name=\"a\">\n\u0044o it.\n</skill_content>""#;
        let line = r#""Loaded the instructions (2 words)""#;
        for call in [
            r#"{"content":[{"type":"content","content":{"type":"text","text":TEXT}} ],"x":1.0}"#,
            r#"{ "rawOutput" : TEXT }"#,
            r#"{"rawOutput":[{"type":"text","text":TEXT}],"content":[{"content":{"text":TEXT},"type":"content"}]}"#,
            r#"{"rawOutput":{"result":{"content":[{"text":TEXT}],"_meta":null},"error":null,"n":"other"}}"#,
        ] {
            let before = call.replace("TEXT", text);
            let mut edit = Edit::new();
            shorten(&mut edit, Node::parse(before.as_bytes()).unwrap());
            let after = String::from_utf8(edit.apply(before.as_bytes())).unwrap();
            assert_eq!(after, call.replace("TEXT", line));
        }
        for call in [
            r#"{"rawInput":TEXT,"_meta":{"x":TEXT},"title":TEXT}"#,
            r#"{"content":[],"rawOutput":null}"#,
            r#"{"content":{TEXT:1}}"#,
        ] {
            let mut edit = Edit::new();
            shorten(&mut edit, Node::parse(call.replace("TEXT", text).as_bytes()).unwrap());
            assert!(edit.is_empty(), "{call}");
        }
    }
}
