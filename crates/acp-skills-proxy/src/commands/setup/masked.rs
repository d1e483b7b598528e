//! Masks the values of other entries in a diff of settings, because they can be secrets.
//!
//! Keys stay, and so do the words of the command that `setup` writes or changes.

/// The maximum length of an unchanged part of a line, in characters.
const MAX_UNCHANGED: usize = 80;
/// The maximum length of a number that is shown, because long ones can be secrets.
const MAX_NUMBER: usize = 4;

/// The kinds of servers and agents in settings, which are no secrets.
const KINDS: [&str; 3] = ["stdio", "custom", "local"];

/// Masks values in parts of two versions of settings.
pub(super) struct Mask<'a> {
    pub(super) before: &'a str,
    pub(super) after: &'a str,
    /// The words that are not masked.
    pub(super) words: &'a [String],
}

impl Mask<'_> {
    /// Masks the values of unchanged text.
    pub(super) fn unchanged(&self, text: &str) -> String {
        let tokens = tokens(text);
        let text: String = (0..tokens.len()).map(|at| self.unchanged_token(&tokens, at)).collect();
        shortened(&text, false)
    }

    /// Masks the values of lines that a change replaces, and of the lines that replace them. The number of lines stays.
    pub(super) fn changed(&self, removed: &str, added: &str) -> [String; 2] {
        let [removed, added] = [tokens(removed), tokens(added)];
        let is_same = |(removed, added): &(&&str, &&str)| removed == added;
        let start = removed.iter().zip(&added).take_while(is_same).count();
        let left = removed.len().min(added.len()) - start;
        let end = removed.iter().rev().zip(added.iter().rev()).take(left).take_while(is_same).count();
        let side = |tokens: &[&str], other: &str| {
            let text = |from: usize, to: usize| {
                (from..to).map(|at| self.unchanged_token(tokens, at)).collect::<String>()
            };
            let stop = tokens.len() - end;
            let between = (start..stop).map(|at| {
                // A line can contain several entries, and a new entry can have the values of another one.
                if other.contains(tokens[at]) { self.unchanged_token(tokens, at) } else { tokens[at] }
            });
            let between: String = between.collect();
            shortened(&text(0, start), true) + &between + &shortened(&text(stop, tokens.len()), false)
        };
        [side(&removed, self.after), side(&added, self.before)]
    }

    /// Returns a token of unchanged text: `…` for a value.
    fn unchanged_token<'t>(&self, tokens: &[&'t str], at: usize) -> &'t str {
        let token = tokens[at];
        let is_string = token.starts_with(['"', '\'']);
        let is_short = token.len() <= MAX_NUMBER && token.bytes().all(|byte| byte.is_ascii_digit());
        let is_constant = is_short || matches!(token, "true" | "false" | "null");
        let has_value = is_string || token.contains(char::is_alphanumeric) && !is_constant;
        if !has_value
            || is_key(tokens, at, is_string)
            || is_heading(tokens, at)
            || self.words.iter().map(String::as_str).chain(KINDS).any(|word| is_word(token, word))
        {
            return token;
        }
        match token.as_bytes()[0] {
            b'"' => "\"…\"",
            b'\'' => "'…'",
            _ => "…",
        }
    }
}

/// Returns true if a token is a word, with or without quotes.
fn is_word(token: &str, word: &str) -> bool {
    token == word
        || token.trim_matches('\'') == word
        || serde_json::from_str::<String>(token).is_ok_and(|text| text == word)
}

/// Shortens each line that is too long at its start or at its end.
fn shortened(text: &str, at_start: bool) -> String {
    let lines = text.split('\n').map(|line| {
        let count = line.chars().count();
        let left = count.saturating_sub(MAX_UNCHANGED);
        match (left, at_start) {
            (0, _) => line.to_owned(),
            (_, true) => format!("…{}", line.chars().skip(left).collect::<String>()),
            (_, false) => format!("{}…", line.chars().take(MAX_UNCHANGED).collect::<String>()),
        }
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Divides a text into strings, words and single characters.
fn tokens(text: &str) -> Vec<&str> {
    let mut tokens = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let end = match first {
            '"' | '\'' => end_of_string(rest, first),
            first if is_of_word(first) => rest.find(|other| !is_of_word(other)).unwrap_or(rest.len()),
            first => first.len_utf8(),
        };
        let (token, others) = rest.split_at(end);
        tokens.push(token);
        rest = others;
    }
    tokens
}

fn is_of_word(char: char) -> bool {
    !char.is_whitespace() && !"{}[](),:=\"'".contains(char)
}

/// Returns the length of the string at the start of a text. A string ends with its line.
fn end_of_string(text: &str, quote: char) -> usize {
    let mut is_escaped = false;
    for (at, char) in text.char_indices().skip(1) {
        match char {
            '\n' => return at,
            _ if is_escaped => is_escaped = false,
            '\\' if quote == '"' => is_escaped = true,
            _ if char == quote => return at + 1,
            _ => {}
        }
    }
    text.len()
}

fn is_blank(token: &str) -> bool {
    matches!(token, " " | "\t")
}

/// Returns true for the key in `"key": value`, `key: value` and `key = value`.
fn is_key(tokens: &[&str], at: usize, is_string: bool) -> bool {
    let mut next = tokens[at + 1..].iter().skip_while(|token| is_blank(token));
    match next.next() {
        Some(&"=") => true,
        // A word can be the start of an address.
        Some(&":") => {
            is_string || next.next().is_none_or(|token| token.starts_with([' ', '\n', '{', '[', '"']))
        }
        _ => false,
    }
}

/// Returns true for the name in a line such as `[servers.name]`.
fn is_heading(tokens: &[&str], at: usize) -> bool {
    let is_first = at == 1 || at > 1 && tokens[at - 2] == "\n";
    is_first && tokens[at - 1] == "[" && tokens.get(at + 1) == Some(&"]")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mask(words: &[String]) -> Mask<'_> {
        Mask { before: "", after: "", words }
    }

    #[test]
    fn unchanged_text_keeps_its_keys() {
        let words = ["npx", "C:\\p"].map(str::to_owned);
        let mask = mask(&words);
        for (text, expected) in [
            (r#"  "TOKEN": "s3cret","#, r#"  "TOKEN": "…","#),
            (
                r#"{"a":{"TOKEN":"s3\"cret","n":17,"m":12345},"b":["s3cret"]}"#,
                r#"{"a":{"TOKEN":"…","n":17,"m":…},"b":["…"]}"#,
            ),
            (r#"["npx", "C:\\p", "-y"]"#, r#"["npx", "C:\\p", "…"]"#),
            ("TOKEN = 's3cret' # s3cret", "TOKEN = '…' # …"),
            ("[servers.other]", "[servers.other]"),
            ("  TOKEN: s3cret", "  TOKEN: …"),
            ("  - https://s3cret:s3cret@host", "  - …:…:…"),
            ("  - TOKEN=s3cret", "  - TOKEN=…"),
            ("extensions:", "extensions:"),
            ("  },", "  },"),
            ("\"unclosed s3cret", "\"…\""),
            ("", ""),
        ] {
            assert_eq!(mask.unchanged(text), expected, "{text}");
        }
        let long = mask.unchanged(&format!("[{}]", "\"s3cret\", ".repeat(100)));
        assert_eq!((long.chars().count(), long.contains("s3cret")), (MAX_UNCHANGED + 1, false));
    }

    #[test]
    fn changed_lines_show_only_the_change() {
        for (removed, added, expected) in [
            (
                "\"T\": \"s3cret\"",
                "\"T\": \"s3cret\",\n\"n\": 1",
                ["\"T\": \"…\"", "\"T\": \"…\",\n\"n\": 1"],
            ),
            ("T: s3cret", "T: s3cret\nnew: a", ["T: …", "T: …\nnew: a"]),
            ("", "\"command\": \"new\"", ["", "\"command\": \"new\""]),
            // The words of an agent's command move.
            (
                r#"{"command": "npx", "env": {"T": "s3cret"}, "args": ["-y"]}"#,
                r#"{"command": "proxy", "env": {"T": "s3cret"}, "args": ["--", "npx", "-y"]}"#,
                [
                    r#"{"command": "npx", "env": {"T": "…"}, "args": ["…"]}"#,
                    r#"{"command": "proxy", "env": {"T": "…"}, "args": ["--", "npx", "…"]}"#,
                ],
            ),
        ] {
            let words = ["npx".to_owned()];
            let mask = Mask { before: removed, after: added, ..mask(&words) };
            assert_eq!(mask.changed(removed, added), expected, "{added}");
        }
        // A new entry can have the values of another one.
        let mask = Mask { before: "\"T\": \"s3cret\"", ..mask(&[]) };
        assert_eq!(mask.changed("", "\"T\": \"s3cret\"")[1], "\"T\": \"…\"");
    }

    #[test]
    fn settings_on_one_line() {
        let others = |name: &str| format!(r#""{name}":{{"args":["--token","s3cret"]}},"#).repeat(20);
        let before = format!(r#"{{{}"a":"x",{}"b":"x",{}"z":0}}"#, others("c"), others("d"), others("e"));
        let after = before.replace(r#""a":"x""#, r#""a":"new""#).replace(r#""b":"x""#, r#""b":"new""#);
        let mask = Mask { before: &before, after: &after, words: &[] };
        let [removed, added] = mask.changed(&before, &after);
        assert!(!removed.contains("s3cret") && !added.contains("s3cret"), "{added}");
        assert!(
            added.starts_with('…') && added.contains(r#""a":"new""#) && added.contains(r#""b":"new""#),
            "{added}"
        );
    }
}
