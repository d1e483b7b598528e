//! Reads JSON in place: a [`Node`] is the span of a value in a line. We don't need to build a tree to find it.
//!
//! The relay reads a few members of each message and edits even fewer. All other bytes must stay unchanged. So this reader
//! finds spans and skips the rest. It doesn't validate the skipped parts (numbers, literals, escapes), because the receiver of
//! the line does that. It never recurses, so deep nesting can't overflow the stack.

mod skip;

use std::{borrow::Cow, ops::Range, str::FromStr};

use self::skip::skip_string;
pub use self::skip::{next_item, skip_space, skip_value};
use crate::text;

/// One JSON value, as a span of its line.
#[derive(Clone, Copy)]
pub struct Node<'a> {
    line: &'a [u8],
    start: usize,
    end: usize,
}

impl<'a> Node<'a> {
    /// Finds the first value in `line`. Returns `None` if this value is missing or incomplete.
    pub fn parse(line: &'a [u8]) -> Option<Self> {
        let start = skip_space(line, 0);
        let end = skip_value(line, start)?;
        Some(Self { line, start, end })
    }

    /// Finds the object in `line` and calls `see` with the name and the value of each member. Returns `None` if the line doesn't
    /// begin with an object, or if the object is incomplete; `see` may have been called even then.
    pub fn object(line: &'a [u8], mut see: impl FnMut(Self, Self)) -> Option<Self> {
        let mut members = lazy_members(line)?;
        let start = members.at - 1;
        for (name, value) in &mut members {
            see(name, value);
        }
        Some(Self { line, start, end: members.close()? })
    }

    /// Returns the byte range of the value in its line.
    pub fn span(&self) -> Range<usize> {
        self.start..self.end
    }

    /// Returns the bytes of the value.
    pub fn raw(&self) -> &'a [u8] {
        &self.line[self.start..self.end]
    }

    /// Returns true if the value is an object.
    pub fn is_object(&self) -> bool {
        self.line[self.start] == b'{'
    }

    /// Returns true if the value is an array.
    pub fn is_array(&self) -> bool {
        self.line[self.start] == b'['
    }

    /// Returns true if the value is a string.
    pub fn is_string(&self) -> bool {
        self.line[self.start] == b'"'
    }

    /// Returns true if the value is `null`.
    pub fn is_null(&self) -> bool {
        self.raw() == b"null"
    }

    /// Returns the value of a boolean, or `None` if this is not a boolean.
    pub fn as_bool(&self) -> Option<bool> {
        match self.raw() {
            b"true" => Some(true),
            b"false" => Some(false),
            _ => None,
        }
    }

    /// Returns the value of a number. Returns `None` if this is not a number, or not one of the type `T`.
    pub fn as_number<T: FromStr>(&self) -> Option<T> {
        std::str::from_utf8(self.raw()).ok()?.parse().ok()
    }

    /// Decodes a string. Returns `None` if this is not a string, or not valid Unicode.
    pub fn as_str(&self) -> Option<Cow<'a, str>> {
        text::exact(self.raw())
    }

    /// Decodes a string, using U+FFFD for invalid characters. Returns `None` if this is not a string.
    pub fn as_text(&self) -> Option<Cow<'a, str>> {
        text::lossy(self.raw())
    }

    /// Returns true if the value is the string `text`.
    pub fn is_str(&self, text: &str) -> bool {
        let inner = self.raw().strip_prefix(b"\"").and_then(|rest| rest.strip_suffix(b"\""));
        // Most strings don't contain any escapes, so we can compare them directly.
        inner.is_some_and(|inner| match memchr::memchr(b'\\', inner) {
            None => inner == text.as_bytes(),
            Some(_) => self.as_str().is_some_and(|found| found == text),
        })
    }

    /// Iterates over the members of an object in order. For any other value, the iterator is empty.
    pub fn members(&self) -> Members<'a> {
        Members {
            line: self.line,
            at: if self.is_object() { self.start + 1 } else { self.end },
            end: self.end,
        }
    }

    /// Iterates over the elements of an array in order. For any other value, the iterator is empty.
    pub fn elements(&self) -> Elements<'a> {
        Elements {
            line: self.line,
            at: if self.is_array() { self.start + 1 } else { self.end },
            end: self.end,
        }
    }

    /// Returns the value of the member `key`. If this member is repeated, the last value is used, like in most JSON parsers. This
    /// should be the same value that is used by the receiver of the line.
    pub fn get(&self, key: &str) -> Option<Self> {
        self.members().filter(|(name, _)| name.is_str(key)).last().map(|(_, value)| value)
    }

    /// Returns the value at the end of a path of member names.
    pub fn at(&self, path: &[&str]) -> Option<Self> {
        path.iter().try_fold(*self, |node, key| node.get(key))
    }

    /// Returns the text of the string member `key`, decoded by [`as_str`](Self::as_str).
    pub fn str(&self, key: &str) -> Option<Cow<'a, str>> {
        self.get(key)?.as_str()
    }

    /// Returns the text of the string member `key`, decoded by [`as_text`](Self::as_text).
    pub fn text(&self, key: &str) -> Option<Cow<'a, str>> {
        self.get(key)?.as_text()
    }
}

/// An iterator over the members of an object as (name, value).
pub struct Members<'a> {
    line: &'a [u8],
    at: usize,
    end: usize,
}

impl Members<'_> {
    /// Returns the offset of the next member's name.
    pub fn peek(&self) -> Option<usize> {
        next_item(self.line, self.at, self.end).filter(|&start| self.line[start] == b'"')
    }

    /// Returns the offset after the object, once all members were read; `None` if the object is incomplete.
    fn close(&self) -> Option<usize> {
        let mut at = skip_space(self.line, self.at);
        if self.line.get(at) == Some(&b',') {
            at = skip_space(self.line, at + 1);
        }
        (self.line.get(at) == Some(&b'}')).then_some(at + 1)
    }
}

impl<'a> Iterator for Members<'a> {
    type Item = (Node<'a>, Node<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        let start = self.peek()?;
        let found = member(self.line, start);
        // If there is a broken member, we stop here.
        self.at = found.map_or(self.end, |(_, value)| value.end);
        found
    }
}

/// An iterator over the elements of an array.
pub struct Elements<'a> {
    line: &'a [u8],
    at: usize,
    end: usize,
}

impl<'a> Iterator for Elements<'a> {
    type Item = Node<'a>;

    fn next(&mut self) -> Option<Self::Item> {
        let start = next_item(self.line, self.at, self.end)?;
        let Some(end) = skip_value(self.line, start) else {
            self.at = self.end;
            return None;
        };
        self.at = end;
        Some(Node { line: self.line, start, end })
    }
}

/// Iterates over the members of the object at the start of `line`, after optional white space. Unlike [`Node::members`], it finds
/// each member on demand, so the object may be incomplete.
pub fn lazy_members(line: &[u8]) -> Option<Members<'_>> {
    let start = skip_space(line, 0);
    (line.get(start) == Some(&b'{')).then_some(Members { line, at: start + 1, end: line.len() })
}

/// Iterates over all strings in `line`, at any depth, except for the names of members.
pub fn string_values(line: &[u8]) -> impl Iterator<Item = Node<'_>> {
    let mut at = 0;
    std::iter::from_fn(move || {
        loop {
            let start = at + memchr::memchr(b'"', line.get(at..)?)?;
            at = skip_string(line, start)?;
            if line.get(skip_space(line, at)) != Some(&b':') {
                return Some(Node { line, start, end: at });
            }
        }
    })
}

/// Returns the name of a member and the offset of its value, without skipping the value. `at` is the offset of the opening quote
/// of the name. Use it to read the front of a long object.
pub fn member_start(line: &[u8], at: usize) -> Option<(Node<'_>, usize)> {
    let name_end = skip_string(line, at)?;
    let colon = skip_space(line, name_end);
    if line.get(colon) != Some(&b':') {
        return None;
    }
    Some((Node { line, start: at, end: name_end }, skip_space(line, colon + 1)))
}

fn member(line: &[u8], at: usize) -> Option<(Node<'_>, Node<'_>)> {
    let (name, start) = member_start(line, at)?;
    let end = skip_value(line, start)?;
    Some((name, Node { line, start, end }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(text: &str) -> Node<'_> {
        Node::parse(text.as_bytes()).expect("a value")
    }

    #[test]
    fn finds_members_in_any_order_and_spacing() {
        let value = node(r#" { "a" : [1, {"b":"}]"}] ,"\u0063":-1.5e3, "d":null }"#);
        assert_eq!(value.get("a").unwrap().raw(), br#"[1, {"b":"}]"}]"#);
        assert_eq!(value.get("c").unwrap().raw(), b"-1.5e3");
        assert!(value.get("d").unwrap().is_null());
        assert!(value.get("e").is_none());
        assert_eq!(value.at(&["a"]).unwrap().elements().count(), 2);
    }

    #[test]
    fn the_last_of_two_members_counts() {
        let object = node(r#"{"a":1,"b":{"c":2},"\u0061":3,"b":{"c":4}}"#);
        assert_eq!(object.get("a").unwrap().raw(), b"3");
        assert_eq!(object.at(&["b", "c"]).unwrap().raw(), b"4");
    }

    #[test]
    fn decodes_strings() {
        for (raw, text) in
            [(r#""plain""#, "plain"), (r#""q\"\\""#, "q\"\\"), (r#""\ud83d\ude00""#, "😀"), (r#""""#, "")]
        {
            assert_eq!(node(raw).as_str().unwrap(), text);
        }
        assert!(node("12").as_str().is_none());
        assert!(node(r#""\ud83d""#).as_str().is_none());
    }

    #[test]
    fn finds_all_strings() {
        for (line, expected) in [
            (r#" {"a":"b\"c","d" : ["e",{"f":"g:"}],"h":1} "#, vec![r#""b\"c""#, r#""e""#, r#""g:""#]),
            (r#""a""#, vec![r#""a""#]),
            (r#"["a","b"#, vec![r#""a""#]),
            ("{}", vec![]),
        ] {
            let found: Vec<_> = string_values(line.as_bytes()).map(|node| node.raw()).collect();
            let expected: Vec<_> = expected.iter().map(|raw| raw.as_bytes()).collect();
            assert_eq!(found, expected, "{line}");
        }
    }

    #[test]
    fn incomplete_text_is_not_a_value() {
        for text in ["", "{", "[1", r#"{"a":1"#, r#""open"#, r#""\"#, "}", r#"{"a":"\"}"#] {
            assert!(Node::parse(text.as_bytes()).is_none(), "{text}");
        }
        for text in ["{junk}", r#"{"a" 1}"#, r#"{"a":}"#] {
            assert_eq!(node(text).members().count(), 0, "{text}");
        }
    }

    #[test]
    fn compares_strings_with_and_without_escapes() {
        for (raw, text, expected) in [
            (r#""sessionId""#, "sessionId", true),
            (r#""session\u0049d""#, "sessionId", true),
            (r#""session""#, "sessionId", false),
            (r#""a\\""#, "a\\", true),
            (r#""a\\""#, "a\\\\", false),
            ("sessionId", "sessionId", false),
            (r#""""#, "", true),
            ("null", "", false),
        ] {
            let value = Node { line: raw.as_bytes(), start: 0, end: raw.len() };
            assert_eq!(value.is_str(text), expected, "{raw} and {text}");
        }
    }

    #[test]
    fn finds_an_object_and_its_members_in_one_pass() {
        for (line, expected) in [
            (r#" {"a":1,"b":{"c":[]}} "#, Some((1..21, vec!["\"a\"", "\"b\""]))),
            ("{}", Some((0..2, vec![]))),
            ("{ , }", Some((0..5, vec![]))),
            (r#"{"a":1"#, None),
            (r#"{"a" 1}"#, None),
            ("{junk}", None),
            ("[]", None),
            ("", None),
        ] {
            let mut names = Vec::new();
            let object = Node::object(line.as_bytes(), |name, _| names.push(name.raw().to_vec()));
            let found = object.map(|object| (object.span(), names));
            let expected = expected
                .map(|(span, names)| (span, names.iter().map(|name| name.as_bytes().to_vec()).collect()));
            assert_eq!(found, expected, "{line}");
        }
    }

    #[test]
    fn deep_nesting_needs_no_stack() {
        let deep = "[".repeat(1_000_000) + &"]".repeat(1_000_000);
        assert_eq!(node(&deep).span(), 0..2_000_000);
    }

    proptest::proptest! {
        #[test]
        fn agrees_with_a_full_parser(value in any_json()) {
            let text = value.to_string();
            let found = node(&text);
            proptest::prop_assert_eq!(found.span(), 0..text.len());
            if let Some(object) = value.as_object() {
                let members: Vec<_> = found.members()
                    .map(|(name, value)| (name.as_str().unwrap().into_owned(), value.raw().to_vec())).collect();
                let expected: Vec<_> = object.iter().map(|(name, value)| (name.clone(), value.to_string().into_bytes())).collect();
                proptest::prop_assert_eq!(members, expected);
            }
        }

        #[test]
        fn never_panics(bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..64)) {
            if let Some(node) = Node::parse(&bytes) {
                node.members().count();
                node.elements().count();
                node.as_str();
            }
        }
    }

    fn any_json() -> impl proptest::strategy::Strategy<Value = serde_json::Value> {
        use proptest::prelude::*;
        use serde_json::Value;
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<String>().prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 32, 6, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
                prop::collection::btree_map(any::<String>(), inner, 0..6)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }
}
