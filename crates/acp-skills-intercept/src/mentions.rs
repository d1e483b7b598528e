//! The files that a prompt or a tool call names.

use std::borrow::Cow;

use acp_skills_wire::{Message, Node};

use crate::tool_paths::MAX_PATH_BYTES;

/// The maximum number of files in one message. Further ones are ignored.
const MAX_FILES: usize = 1_000;

/// The maximum length of the text of a prompt that is searched, in bytes.
const MAX_TEXT_BYTES: usize = 64 * 1024;

/// The maximum length of a file extension, in characters.
const MAX_EXTENSION: usize = 10;

/// The maximum length of all paths of a message, in bytes. Further ones are left out.
const MAX_ALL_BYTES: usize = 4 * 1024;

/// Returns the paths in the `locations` of a tool call.
pub(crate) fn in_call(call: Node<'_>) -> Vec<String> {
    let Some(locations) = call.get("locations") else { return Vec::new() };
    let paths = locations.elements().filter_map(|location| Some(path(&location.str("path")?).into_owned()));
    within_limits(paths)
}

fn within_limits(paths: impl Iterator<Item = String>) -> Vec<String> {
    let mut left = MAX_ALL_BYTES;
    let short = paths.filter(|path| path.len() <= MAX_PATH_BYTES);
    let within = short.take_while(|path| {
        let is_within = path.len() <= left;
        left = left.saturating_sub(path.len());
        is_within
    });
    within.take(MAX_FILES).collect()
}

/// Returns the paths in a prompt: resources, links to files, and words that look like a path, such as `@src/main.rs`.
pub(crate) fn in_prompt(message: &Message<'_>) -> Vec<String> {
    let Some(blocks) = message.param(&["prompt"]) else { return Vec::new() };
    let mut paths = Vec::new();
    let mut left = MAX_TEXT_BYTES;
    for block in blocks.elements() {
        let uri = block.str("uri").or_else(|| block.at(&["resource", "uri"])?.as_str());
        if let Some(uri) = uri.filter(|uri| is_file(uri)) {
            paths.push(path(&uri).into_owned());
        } else if let Some(text) = block.text("text") {
            let text = &text[..text.floor_char_boundary(left)];
            left -= text.len();
            paths.extend(in_text(text).map(Cow::into_owned));
        }
        if paths.len() >= MAX_FILES {
            break;
        }
    }
    within_limits(paths.into_iter())
}

fn in_text(text: &str) -> impl Iterator<Item = Cow<'_, str>> {
    const AROUND: [char; 13] = ['"', '\'', '`', '(', ')', '[', ']', '<', '>', ',', ';', '{', '}'];
    let words = text.split(|c: char| c.is_whitespace() || AROUND.contains(&c));
    let words = words.map(|word| word.trim_start_matches('@').trim_end_matches(['.', ':', '!', '?']));
    words.filter(|word| is_file(word) && looks_like_path(word)).map(path)
}

/// Returns false for the address of something other than a file.
fn is_file(uri: &str) -> bool {
    !uri.contains("://") || uri.starts_with("file://")
}

/// Returns true for a word with a separator of directories, or with a file extension.
fn looks_like_path(word: &str) -> bool {
    let extension = word.rsplit_once('.').map(|(_, extension)| without_place(extension));
    let is_extension = |extension: &str| {
        (1..=MAX_EXTENSION).contains(&extension.len()) && extension.chars().all(|c| c.is_ascii_alphanumeric())
    };
    word.contains(['/', '\\']) || extension.is_some_and(is_extension)
}

/// Returns a word without the line numbers after a path: `a.rs:12:3`, `a.rs#L12`.
fn without_place(word: &str) -> &str {
    let word = word.split('#').next().unwrap_or(word);
    let mut end = word;
    while let Some((before, number)) = end.rsplit_once(':')
        && before.len() > 1
        && number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-')
    {
        end = before;
    }
    end
}

/// Returns the path in a URI or a word.
fn path(uri: &str) -> Cow<'_, str> {
    let Some(path) = uri.strip_prefix("file://") else { return Cow::Borrowed(without_place(uri)) };
    // A URI can name this machine as the host.
    let path = path.strip_prefix("localhost").unwrap_or(path);
    let path = decoded(path.split(['#', '?']).next().unwrap_or(path));
    // On Windows, the drive comes after a slash.
    let bytes = path.as_bytes();
    if bytes.first() == Some(&b'/') && bytes.get(2) == Some(&b':') {
        path[1..].to_owned().into()
    } else {
        path.into()
    }
}

/// Decodes `%20` and other encoded bytes.
fn decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        let digits = after.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
        let byte = digits.filter(|_| first == b'%').and_then(|digits| u8::from_str_radix(digits, 16).ok());
        bytes.push(byte.unwrap_or(first));
        rest = if byte.is_some() { &after[2..] } else { after };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_in_a_prompt() {
        for (blocks, expected) in [
            (r#"[{"type":"text","text":"fix @src/main.rs, please"}]"#, &["src/main.rs"][..]),
            (
                r#"[{"type":"text","text":"See `a/b.ts:12:3` and \"c d\" and styles.css."}]"#,
                &["a/b.ts", "styles.css"],
            ),
            (
                r#"[{"type":"text","text":"[@x](file:///w/a%20b.rs#L3) <main.tf#L1-2>"}]"#,
                &["/w/a b.rs", "main.tf"],
            ),
            (
                r#"[{"type":"text","text":"C:\\w\\a.rs and file:///C:/w/b.rs"}]"#,
                &["C:\\w\\a.rs", "C:/w/b.rs"],
            ),
            (
                r#"[{"type":"text","text":"Why? See https://example.org/a.rs e.g. now... 3.14159265358979"}]"#,
                &["e.g"],
            ),
            (r#"[{"type":"text","text":"/review @"}]"#, &["/review"]),
            (r#"[{"type":"resource_link","uri":"file:///w/a.rs","name":"a.rs"}]"#, &["/w/a.rs"]),
            (r#"[{"type":"resource_link","uri":"https://example.org/a.rs","name":"a.rs"}]"#, &[]),
            (
                r#"[{"type":"resource","resource":{"uri":"file://localhost/w/a.rs?x#L1:2","text":"use b/c.rs"}}]"#,
                &["/w/a.rs"],
            ),
            (r#"[{"type":"image","data":"a/b.c"}]"#, &[]),
            (r#"[{"type":"text","text":"%zz/%/%2"}]"#, &["%zz/%/%2"]),
        ] {
            let line = format!(
                r#"{{"jsonrpc":"2.0","id":1,"method":"session/prompt","params":{{"prompt":{blocks}}}}}"#
            );
            assert_eq!(in_prompt(&Message::parse(line.as_bytes()).unwrap()), expected, "{blocks}");
        }
    }

    #[test]
    fn long_prompts_are_searched_up_to_a_limit() {
        for text in ["é".repeat(MAX_TEXT_BYTES) + " a/b", "a/b ".repeat(100_000)] {
            let line = serde_json::json!({ "jsonrpc": "2.0", "id": 1, "method": "session/prompt",
                "params": { "prompt": [{ "type": "text", "text": text }, { "type": "text", "text": "c/d" }] } });
            let paths = in_prompt(&Message::parse(line.to_string().as_bytes()).unwrap());
            assert!(paths.len() <= MAX_FILES && !paths.contains(&"c/d".to_owned()));
        }
    }

    #[test]
    fn locations_of_a_call() {
        let call = Node::parse(br#"{"locations":[{"path":"/w/a.rs","line":3},{"line":1},7,{"path":"b"}]}"#);
        assert_eq!(in_call(call.unwrap()), ["/w/a.rs", "b"]);
        assert!(in_call(Node::parse(br#"{"locations":null}"#).unwrap()).is_empty());
    }
}
