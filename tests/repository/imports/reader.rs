//! Finds the paths in a file of Rust, as text: `use` declarations, and paths that begin with `crate`, `self` or `super`.
//!
//! The reader skips comments, strings and test modules at the end of a file. It doesn't expand macros.

/// A path with the number of its line.
#[derive(Debug)]
pub(super) struct Path {
    pub(super) line: usize,
    pub(super) segments: Vec<String>,
    /// True if the path is part of a `use` declaration.
    pub(super) is_use: bool,
    is_glob: bool,
    alias: Option<String>,
}

impl Path {
    /// Returns the name that the path brings into scope, or `None` if it brings in all names of a module.
    pub(super) fn name(&self) -> Option<&str> {
        if self.is_glob {
            return None;
        }
        self.alias.as_deref().or_else(|| self.segments.last().map(String::as_str))
    }
}

/// Returns all paths of a file.
pub(super) fn paths(text: &str) -> Vec<Path> {
    let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    let tokens = tokens(code);
    let mut reader = Reader { tokens: &tokens, next: 0, found: Vec::new() };
    while reader.next < tokens.len() {
        let is_after_path = reader.next > 0 && tokens[reader.next - 1].1 == "::";
        match tokens[reader.next].1 {
            "use" => {
                reader.next += 1;
                reader.tree(&[], true);
            }
            "crate" | "self" | "super" if !is_after_path && reader.peek(1) == Some("::") => {
                reader.tree(&[], false);
            }
            _ => reader.next += 1,
        }
    }
    reader.found
}

/// A token with the number of its line: a word, `::`, or a single character.
type Token<'a> = (usize, &'a str);

struct Reader<'a> {
    tokens: &'a [Token<'a>],
    next: usize,
    found: Vec<Path>,
}

impl<'a> Reader<'a> {
    fn peek(&self, ahead: usize) -> Option<&'a str> {
        self.tokens.get(self.next + ahead).map(|(_, token)| *token)
    }

    /// Reads a path, or a tree of paths in braces, after the segments `before`.
    fn tree(&mut self, before: &[String], is_use: bool) {
        let mut segments = before.to_vec();
        let line = self.tokens.get(self.next).map_or(0, |(line, _)| *line);
        loop {
            match self.peek(0) {
                Some("{") if is_use => {
                    self.next += 1;
                    while let Some(token) = self.peek(0).filter(|token| *token != "}") {
                        if token == "{" || is_word(token) {
                            self.tree(&segments, is_use);
                        } else {
                            self.next += 1;
                        }
                    }
                    self.next += 1;
                    return;
                }
                Some(word) if is_word(word) => {
                    // If `self` is at the end of a tree, it's the module itself.
                    if word != "self" || segments.is_empty() {
                        segments.push(word.to_owned());
                    }
                    self.next += 1;
                }
                _ => break,
            }
            if self.peek(0) != Some("::") {
                break;
            }
            self.next += 1;
        }
        let mut alias = None;
        if is_use && self.peek(0) == Some("as") {
            alias = self.peek(1).map(str::to_owned);
            self.next += 2;
        }
        if !segments.is_empty() {
            let is_glob = is_use && self.peek(0) == Some("*");
            self.found.push(Path { line, segments, is_use, is_glob, alias });
        }
    }
}

fn is_word(token: &str) -> bool {
    token.starts_with(|letter: char| letter.is_alphabetic() || letter == '_')
}

/// Splits code into tokens, without comments, strings and characters.
fn tokens(code: &str) -> Vec<Token<'_>> {
    let mut found = Vec::new();
    let mut line = 1;
    let mut rest = code;
    while let Some(first) = rest.chars().next() {
        let length = match first {
            '/' if rest.starts_with("//") => rest.find('\n').unwrap_or(rest.len()),
            '/' if rest.starts_with("/*") => rest.find("*/").map_or(rest.len(), |end| end + 2),
            '"' => string_length(rest),
            '\'' => character_length(rest),
            ':' if rest.starts_with("::") => {
                found.push((line, "::"));
                2
            }
            _ if first.is_alphanumeric() || first == '_' => {
                let end = rest
                    .find(|letter: char| !letter.is_alphanumeric() && letter != '_')
                    .unwrap_or(rest.len());
                let after = &rest[end..];
                let is_raw_name = &rest[..end] == "r"
                    && after
                        .strip_prefix('#')
                        .is_some_and(|name| name.starts_with(|letter: char| letter.is_alphabetic()));
                let is_prefix = matches!(&rest[..end], "r" | "br" | "b" | "c" | "cr");
                if is_prefix
                    && (after.starts_with('"') || after.starts_with("#\"") || after.starts_with("##"))
                {
                    end + if rest[..end].contains('r') { raw_length(after) } else { string_length(after) }
                } else if is_raw_name {
                    end + 1
                } else {
                    found.push((line, &rest[..end]));
                    end
                }
            }
            _ => {
                if !first.is_whitespace() {
                    found.push((line, &rest[..first.len_utf8()]));
                }
                first.len_utf8()
            }
        };
        line += rest[..length].matches('\n').count();
        rest = &rest[length..];
    }
    found
}

/// Returns the length of the string literal at the start of `text`.
fn string_length(text: &str) -> usize {
    let mut is_escaped = false;
    for (at, letter) in text.char_indices().skip(1) {
        match letter {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            '"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// Returns the length of the raw string literal at the start of `text`, which begins with `#` or `"`.
fn raw_length(text: &str) -> usize {
    let hashes = text.len() - text.trim_start_matches('#').len();
    let end = format!("\"{}", "#".repeat(hashes));
    text[hashes + 1..].find(&end).map_or(text.len(), |at| hashes + 1 + at + end.len())
}

/// Returns the length of the character literal at the start of `text`, or 1 if it is a lifetime.
fn character_length(text: &str) -> usize {
    let mut letters = text.char_indices().skip(1);
    match letters.next() {
        Some((_, '\\')) => {
            text[2..].char_indices().skip(1).find(|(_, letter)| *letter == '\'').map_or(1, |(at, _)| at + 3)
        }
        Some(_) => letters.next().filter(|(_, letter)| *letter == '\'').map_or(1, |(at, _)| at + 1),
        None => 1,
    }
}

#[test]
fn paths_of_a_file() {
    let cases: &[(&str, &[&str])] = &[
        ("use crate::a::B;", &["crate::a::B"]),
        (
            "pub(super) use super::{a, b::{C, self}, d::*};",
            &["super::a", "super::b::C", "super::b", "super::d"],
        ),
        ("use self::a::B as C;", &["self::a::B as C"]),
        ("use {crate::a, std::fs,};", &["crate::a", "std::fs"]),
        ("fn f() -> crate::a::B { super::super::c::<D>(self.e) }", &["crate::a::B", "super::super::c"]),
        ("match crate::A { _ => {} }", &["crate::A"]),
        // Ignore comments, strings and characters.
        ("// use crate::a;\n/* crate::b */ \"crate::c \\\" crate::d\"", &[]),
        (r###"r#"crate::a " crate::b"# br"crate::c" crate::d"###, &["crate::d"]),
        (r"'\'' 'a' '\\' crate::a '\u{1F600}' crate::b", &["crate::a", "crate::b"]),
        ("fn f<'a>(_: &'a str) { crate::a }", &["crate::a"]),
        // Ignore the tests at the end of a file.
        ("use crate::a;\n\n#[cfg(test)]\nmod tests {\n    use super::*;\n}\n", &["crate::a"]),
        ("pub(crate) fn f() {} pub(in crate::a) fn g() {}", &["crate::a"]),
        ("use r#type::X; crate::r#mod::Y", &["type::X", "crate::mod::Y"]),
    ];
    for (text, expected) in cases {
        let found: Vec<_> = paths(text)
            .into_iter()
            .map(|path| match &path.alias {
                Some(alias) => format!("{} as {alias}", path.segments.join("::")),
                None => path.segments.join("::"),
            })
            .collect();
        assert_eq!(found, *expected, "{text}");
    }
}

#[test]
fn lines_count_from_one() {
    let lines: Vec<_> =
        paths("\n\"a\nb\"\nuse crate::{\n    a,\n    b,\n};").iter().map(|path| path.line).collect();
    assert_eq!(lines, [5, 6]);
}
