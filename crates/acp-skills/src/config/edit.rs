//! Adds sources to the text of a configuration file and removes them. Comments, order and quotes are kept.
//!
//! The lines are edited, and the result is parsed again. If it differs from the old configuration in anything but the source, the
//! functions return an [`EditError`] with the lines that the user has to edit.

use std::path::Path;

use super::{Config, SourceEntry, Verify};

/// The first line of a new file. It tells editors where the schema is.
pub const HEADER: &str = "# yaml-language-server: $schema=https://raw.githubusercontent.com/acp-skills/acp-skills-proxy/main/crates/acp-skills-proxy/skills.schema.json\n";

const KEY: &str = "sources:";

/// The error for a text that can't be edited.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("file format cannot be edited automatically")]
pub struct EditError {
    /// The lines that the user has to add or remove.
    pub lines: String,
}

/// Adds a source to the text of a file and returns the new text.
///
/// # Errors
/// Returns [`EditError`] if the text is not a configuration, or has a form that can't be edited.
pub fn add_source(text: &str, entry: &SourceEntry) -> Result<String, EditError> {
    let mut expected = sources(text).unwrap_or_default();
    expected.push(entry.clone());
    let written = written(entry);
    let edited = match place(text) {
        None if text.trim().is_empty() => format!("{HEADER}\n{KEY}\n  - {written}\n"),
        None => format!("{}{KEY}\n  - {written}\n", ended(text)),
        Some(Place::Block { items, end, indent }) => {
            let at = if items.is_empty() { end } else { items.last().map_or(end, |item| item.1) };
            let indent = if items.is_empty() { 2 } else { indent };
            insert(text, at, &format!("{}- {written}\n", " ".repeat(indent)))
        }
        Some(Place::Flow { open, close }) => {
            let comma = if text[open..close].trim().is_empty() { "" } else { ", " };
            format!("{}{comma}{written}{}", text[..close].trim_end(), &text[close..])
        }
    };
    check(text, edited, &expected, &format!("{KEY}\n  - {written}"))
}

/// Removes the source with the index `number` from the text of a file and returns the new text.
///
/// # Errors
/// Returns [`EditError`] if there is no such source, or if the text has a form that can't be edited.
pub fn remove_source(text: &str, number: usize) -> Result<String, EditError> {
    let mut expected = sources(text).unwrap_or_default();
    let wrong = || EditError { lines: String::new() };
    if number >= expected.len() {
        return Err(wrong());
    }
    let gone = expected.remove(number);
    let edited = match place(text) {
        Some(Place::Block { items, .. }) if items.len() == 1 => {
            // This is the only item, so remove the key as well.
            let start = text[..items[0].0].rfind(KEY).ok_or_else(wrong)?;
            format!("{}{}", &text[..start], &text[items[0].1..])
        }
        Some(Place::Block { items, .. }) => {
            let (start, end) = *items.get(number).ok_or_else(wrong)?;
            format!("{}{}", &text[..start], &text[end..])
        }
        Some(Place::Flow { open, close }) => {
            let left: Vec<_> = expected.iter().map(written).collect();
            format!("{}{}{}", &text[..open], left.join(", "), &text[close..])
        }
        None => return Err(wrong()),
    };
    check(text, edited, &expected, &written(&gone))
}

/// Replaces the address of the source with the index `number` in the text of a file and returns the new text.
///
/// # Errors
/// Returns [`EditError`] if there is no such source, or if the address is written in a form that can't be edited.
pub fn replace_source(text: &str, number: usize, address: &str) -> Result<String, EditError> {
    let mut expected = sources(text).unwrap_or_default();
    let Some(entry) = expected.get_mut(number) else { return Err(EditError { lines: String::new() }) };
    let old = std::mem::replace(&mut entry.source, address.to_owned());
    let lines = written(entry);
    // The address can also be in a comment or in another entry, so try each position.
    let places: Vec<_> = text.match_indices(&old).map(|(at, _)| at).collect();
    let edit = |at: usize| format!("{}{address}{}", &text[..at], &text[at + old.len()..]);
    let edited = places.into_iter().find_map(|at| check(text, edit(at), &expected, &lines).ok());
    edited.ok_or(EditError { lines })
}

/// Returns `edited` if it has the expected sources and doesn't differ from `text` in anything else.
fn check(text: &str, edited: String, expected: &[SourceEntry], lines: &str) -> Result<String, EditError> {
    let rest = |text: &str| {
        let mut config = Config::parse(text, Path::new("")).ok()?;
        let sources = std::mem::take(&mut config.sources);
        Some((format!("{config:?}"), sources))
    };
    match (rest(text), rest(&edited)) {
        (Some((before, _)), Some((after, sources))) if before == after && sources == expected => Ok(edited),
        _ => Err(EditError { lines: lines.to_owned() }),
    }
}

/// Returns the sources in the text of a file, or `None` if it is not a configuration.
pub fn sources(text: &str) -> Option<Vec<SourceEntry>> {
    Some(Config::parse(text, Path::new("")).ok()?.sources)
}

/// Returns an entry as YAML.
fn written(entry: &SourceEntry) -> String {
    let SourceEntry { source, include, exclude, nested, verify, .. } = entry;
    if include.is_empty() && exclude.is_empty() && !nested && verify.is_none() {
        return scalar(source);
    }
    let list = |name: &str, globs: &[String]| {
        let globs: Vec<_> = globs.iter().map(|glob| quoted(glob)).collect();
        if globs.is_empty() { String::new() } else { format!(", {name}: [{}]", globs.join(", ")) }
    };
    let nested = if *nested { ", nested: true" } else { "" };
    let verify = match verify {
        Some(Verify::Git) => ", verify: git",
        None => "",
    };
    format!(
        "{{ source: {}{}{}{nested}{verify} }}",
        quoted(source),
        list("include", include),
        list("exclude", exclude)
    )
}

/// Returns a string as YAML, without quotes if it is unambiguous.
fn scalar(text: &str) -> String {
    let is_plain = text.starts_with(|c: char| c.is_ascii_alphabetic())
        && !text.ends_with(':')
        && text.chars().all(|c| c.is_ascii_alphanumeric() || "-_./:@#+~%".contains(c));
    if is_plain { text.to_owned() } else { quoted(text) }
}

/// Returns a quoted string. Strings of JSON are valid in YAML.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// The position of the list in the file. All numbers are offsets into the text.
enum Place {
    /// A list with an item per line: the start and end of each item, including comments at its end, and the end of the list.
    Block { items: Vec<(usize, usize)>, end: usize, indent: usize },
    /// A list in brackets on one line: the position after the opening bracket, and the position of the closing bracket.
    Flow { open: usize, close: usize },
}

fn place(text: &str) -> Option<Place> {
    let mut lines = offsets(text).skip_while(|(_, line)| !line.starts_with(KEY));
    let (start, line) = lines.next()?;
    let value = &line[KEY.len()..];
    if let Some(open) = value.find('[') {
        let open = start + KEY.len() + open + 1;
        let close = text[open..].find(['\n', '#']).map_or(text.len(), |end| open + end);
        let close = open + text[open..close].rfind(']')?;
        return Some(Place::Flow { open, close });
    }
    let mut items: Vec<(usize, usize)> = Vec::new();
    let mut end = start + line.len();
    let mut item_indent = 0;
    for (start, line) in lines {
        let content = line.trim_start_matches(' ');
        let indent = line.len() - content.len();
        if content.trim().is_empty() || content.starts_with('#') {
            continue;
        }
        let is_item = content.starts_with("- ") && (items.is_empty() || indent == item_indent);
        if !is_item && (indent == 0 || items.is_empty()) {
            break;
        }
        if is_item {
            item_indent = indent;
            items.push((start, start));
        }
        end = start + line.len();
        if let Some(item) = items.last_mut() {
            item.1 = end;
        }
    }
    Some(Place::Block { items, end, indent: item_indent })
}

/// Returns the lines of a text with their line breaks, each with its offset.
fn offsets(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.split_inclusive('\n').scan(0, |at, line| {
        let start = *at;
        *at += line.len();
        Some((start, line))
    })
}

fn insert(text: &str, at: usize, line: &str) -> String {
    format!("{}{line}{}", ended(&text[..at]), &text[at..])
}

fn ended(text: &str) -> String {
    if text.is_empty() || text.ends_with('\n') { text.to_owned() } else { format!("{text}\n") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn add(text: &str) -> String {
        add_source(text, &SourceEntry::new("github:a/b@v1"))
            .unwrap_or_else(|error| format!("wants {}", error.lines))
    }

    #[test]
    fn an_address_is_replaced() {
        let replace = |text: &str, number| replace_source(text, number, "github:a/b@^3.0").ok();
        for (text, number, expected) in [
            ("sources: [github:a/b@^2.1]\n", 0, Some("sources: [github:a/b@^3.0]\n")),
            (
                "# github:a/b@^2.1\nsources:\n  - { source: \"github:a/b@^2.1\", include: [x] } # y\n",
                0,
                Some("# github:a/b@^2.1\nsources:\n  - { source: \"github:a/b@^3.0\", include: [x] } # y\n"),
            ),
            (
                "sources:\n  - github:a/b@^2.10\n  - github:a/b@^2.1\n",
                1,
                Some("sources:\n  - github:a/b@^2.10\n  - github:a/b@^3.0\n"),
            ),
            ("sources: [\"github:a/b\\u0040^2.1\"]\n", 0, None),
            ("roots: []\n", 0, None),
        ] {
            assert_eq!(replace(text, number).as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn a_source_is_added() {
        for (text, expected) in [
            ("roots: [x]", "roots: [x]\nsources:\n  - github:a/b@v1\n"),
            ("sources: []\nroots: [x]\n", "sources: [github:a/b@v1]\nroots: [x]\n"),
            ("sources: [https://a.b] # mine\n", "sources: [https://a.b, github:a/b@v1] # mine\n"),
            (
                "# ours\nsources:\n  # first\n  - https://a.b # site\n\n# then\nroots: [x]\n",
                "# ours\nsources:\n  # first\n  - https://a.b # site\n  - github:a/b@v1\n\n# then\nroots: [x]\n",
            ),
            (
                "sources:\n- source: https://a.b\n  include: [x]\nroots:\n- x\n",
                "sources:\n- source: https://a.b\n  include: [x]\n- github:a/b@v1\nroots:\n- x\n",
            ),
            ("sources:\n  - 'https://a.b'", "sources:\n  - 'https://a.b'\n  - github:a/b@v1\n"),
            // JSON on a single line.
            ("{\"sources\":[\"https://a.b\"]}", "wants sources:\n  - github:a/b@v1"),
            // We can't edit a list that has an anchor, because this would also change its alias.
            ("sources: &x [https://a.b]\nagent: *x\n", "wants sources:\n  - github:a/b@v1"),
            ("sources:\n  - [\n", "wants sources:\n  - github:a/b@v1"),
        ] {
            assert_eq!(add(text), expected, "{text}");
        }
        let new = add("");
        assert!(new.starts_with("# yaml-language-server: $schema=https://"), "{new}");
        let mut entry = SourceEntry::new("github:a/b");
        entry.include = vec!["pdf-*".to_owned()];
        let text = add_source("sources: []\n", &entry).unwrap();
        assert_eq!(text, "sources: [{ source: \"github:a/b\", include: [\"pdf-*\"] }]\n");
    }

    #[test]
    fn a_source_is_removed() {
        let three = "a: x\n";
        assert!(remove_source(three, 0).is_err());
        for (text, number, expected) in [
            ("sources: [https://a.b, github:a/b]\n", 0, "sources: [github:a/b]\n"),
            ("sources: [https://a.b]\n", 0, "sources: []\n"),
            ("roots: [x]\nsources:\n  - https://a.b\nstrict: true\n", 0, "roots: [x]\nstrict: true\n"),
            (
                "sources:\n  - https://a.b\n  - source: github:a/b\n    include: [x]\n  - https://c.d\n",
                1,
                "sources:\n  - https://a.b\n  - https://c.d\n",
            ),
        ] {
            assert_eq!(remove_source(text, number).unwrap(), expected, "{text}");
        }
    }

    proptest::proptest! {
        /// An edited file differs from the original in one source only, and removing the source restores the configuration.
        #[test]
        fn nothing_else_changes(text in "((sources:|roots:|  - |- |\\[|\\]|, |a|https://a\\.b|#|'|\"|:| |\n)){0,14}") {
            if let Ok(edited) = add_source(&text, &SourceEntry::new("github:a/b")) {
                let before = Config::parse(&text, Path::new("")).unwrap();
                let number = before.sources.len();
                if let Ok(back) = remove_source(&edited, number) {
                    let after = Config::parse(&back, Path::new("")).unwrap();
                    proptest::prop_assert_eq!(format!("{:?}", before), format!("{:?}", after));
                }
            }
        }
    }
}
