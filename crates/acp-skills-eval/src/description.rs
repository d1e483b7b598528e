//! Replacing the description in a `SKILL.md`, without a change to anything else.

use skills_core::frontmatter::{self, ParseContext};

/// Returns the text with another description, or `None` if the result would not be the same skill. This can happen if the
/// frontmatter is unusual, for example in one line.
pub(super) fn replaced(text: &str, name: &str, description: &str) -> Option<String> {
    let (begin, end) = find(text)?;
    let ending = if text[..end].ends_with("\r\n") { "\r\n" } else { "\n" };
    let line = format!("description: {}{ending}", value(description));
    let new = format!("{}{line}{}", &text[..begin], &text[end..]);
    let skill = |text: &str| {
        let parsed = frontmatter::parse(text, &ParseContext::in_directory(name));
        let body = parsed.body(text).to_owned();
        let (skill, _diagnostics) = parsed.into_virtual(text);
        skill.map(|skill| (skill, body))
    };
    let (old_skill, old_body) = skill(text)?;
    let (new_skill, new_body) = skill(&new)?;
    let is_same = old_skill.name == new_skill.name && old_body == new_body;
    (is_same && new_skill.description == description).then_some(new)
}

/// Returns the place of the lines of `description` in the frontmatter.
fn find(text: &str) -> Option<(usize, usize)> {
    let mut at = 0;
    let mut begin = None;
    for (number, line) in text.split_inclusive('\n').enumerate() {
        let is_fence = line.trim_start_matches('\u{feff}').trim_end() == "---";
        match (number, is_fence, begin) {
            (0, false, _) | (1.., true, None) => return None,
            (1.., true, Some(begin)) => return Some((begin, at)),
            (1.., false, None) if line.starts_with("description:") => begin = Some(at),
            (1.., false, Some(begin)) if !line.starts_with([' ', '\t', '\r', '\n']) => {
                return Some((begin, at));
            }
            _ => {}
        }
        at += line.len();
    }
    None
}

/// Returns a text as a YAML value. It is quoted, unless no character in it can have a meaning.
fn value(text: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || " ,.;()/'-".contains(c);
    let is_word = text.starts_with(char::is_alphabetic) && text.contains(' ');
    if is_word && text.chars().all(is_plain) && text.trim() == text {
        return text.to_owned();
    }
    // A JSON string is also a YAML string.
    serde_json::Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_description_changes() {
        let new = "Does \"more\": a, b # c";
        let quoted = r#""Does \"more\": a, b # c""#;
        for (before, after) in [
            (
                "---\nname: demo\ndescription: Old.\nlicense: MIT # mine\n---\n\nBody.\n",
                format!("---\nname: demo\ndescription: {quoted}\nlicense: MIT # mine\n---\n\nBody.\n"),
            ),
            (
                "---\r\ndescription: >-\r\n  Old\r\n\r\n  text.\r\nname: demo\r\n---\r\nBody: x\r\n",
                format!("---\r\ndescription: {quoted}\r\nname: demo\r\n---\r\nBody: x\r\n"),
            ),
            (
                "---\nname: demo\nmetadata:\n  description: not this\ndescription: 'Old'\n---\ndescription: body\n",
                format!(
                    "---\nname: demo\nmetadata:\n  description: not this\ndescription: {quoted}\n---\ndescription: body\n"
                ),
            ),
        ] {
            assert_eq!(replaced(before, "demo", new).as_deref(), Some(after.as_str()), "{before}");
        }
        for text in
            ["", "no frontmatter", "---\nname: demo\n---\n", "---\n{name: demo, description: Old}\n---\n"]
        {
            assert_eq!(replaced(text, "demo", new), None, "{text}");
        }
        assert_eq!(value("Plain words, and more."), "Plain words, and more.");
        assert_eq!(value("- list"), "\"- list\"");
    }
}
