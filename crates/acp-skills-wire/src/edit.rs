//! Changing a line in place: [`Edit`] collects replacements by span and leaves every other byte as it was.

use std::ops::Range;

use serde_json::Value;

use crate::json::Node;

/// Replacements in one line. They may be added in any order and must not overlap.
#[derive(Debug, Default)]
pub struct Edit {
    changes: Vec<(Range<usize>, Vec<u8>)>,
    /// Where the arrays and objects begin that were empty and are not any more.
    filled: Vec<usize>,
}

impl Edit {
    /// No change yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether nothing changes.
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    /// Puts `with` where `span` is.
    pub fn replace(&mut self, span: Range<usize>, with: impl Into<Vec<u8>>) {
        self.changes.push((span, with.into()));
    }

    /// Puts the JSON of `value` where `node` is.
    pub fn set(&mut self, node: Node<'_>, value: &Value) {
        self.replace(node.span(), value.to_string());
    }

    /// Adds `raw`, one JSON value, behind the elements of the array `array`.
    pub fn push(&mut self, array: Node<'_>, raw: &str) {
        let (before, _) = self.commas(array);
        let end = array.span().end - 1;
        self.replace(end..end, format!("{before}{raw}"));
    }

    /// Adds `raw`, one JSON value, before the elements of the array `array` and behind what was added there already.
    pub fn unshift(&mut self, array: Node<'_>, raw: &str) {
        let (before, after) = self.commas(array);
        // The second one in an empty array needs its comma in front.
        let before = if after.is_empty() { before } else { "" };
        let start = array.span().start + 1;
        self.replace(start..start, format!("{before}{raw}{after}"));
    }

    /// Adds the member `key` with the JSON value `raw` behind the members of `object`, which has none of that name.
    pub fn insert(&mut self, object: Node<'_>, key: &str, raw: &str) {
        let (before, _) = self.commas(object);
        let end = object.span().end - 1;
        self.replace(end..end, format!("{before}{}:{raw}", Value::from(key)));
    }

    /// The commas around something new: in front of what goes to the end, behind what goes to the beginning.
    fn commas(&mut self, container: Node<'_>) -> (&'static str, &'static str) {
        let is_empty = container.members().next().is_none() && container.elements().next().is_none();
        if !is_empty {
            return (",", ",");
        }
        let start = container.span().start;
        let before = if self.filled.contains(&start) { "," } else { "" };
        self.filled.push(start);
        (before, "")
    }

    /// Takes the member whose value is `value` out of `object`, with the comma that goes with it.
    pub fn remove(&mut self, object: Node<'_>, key: &str) {
        let members: Vec<_> = object.members().collect();
        let Some(index) = members.iter().position(|(name, _)| name.is_str(key)) else {
            return;
        };
        let (name, value) = members[index];
        let span = match (index.checked_sub(1).map(|before| members[before]), members.get(index + 1)) {
            (_, Some((next, _))) => name.span().start..next.span().start,
            (Some((_, before)), None) => before.span().end..value.span().end,
            (None, None) => name.span().start..value.span().end,
        };
        self.replace(span, "");
    }

    /// `line` with the changes.
    pub fn apply(mut self, line: &[u8]) -> Vec<u8> {
        // Stable: two insertions at one place stay in the order in which they were made.
        self.changes.sort_by_key(|(span, _)| (span.start, span.end));
        let added: usize = self.changes.iter().map(|(_, with)| with.len()).sum();
        let mut out = Vec::with_capacity(line.len() + added);
        let mut at = 0;
        for (span, with) in self.changes {
            debug_assert!(span.start >= at, "overlapping edits");
            out.extend_from_slice(&line[at..span.start]);
            out.extend_from_slice(&with);
            at = span.end;
        }
        out.extend_from_slice(&line[at..]);
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edited(line: &str, change: impl FnOnce(Node<'_>, &mut Edit)) -> String {
        let mut edit = Edit::new();
        change(Node::parse(line.as_bytes()).unwrap(), &mut edit);
        String::from_utf8(edit.apply(line.as_bytes())).unwrap()
    }

    #[test]
    fn pushes_and_unshifts() {
        for (before, pushed, unshifted) in
            [("[]", "[0]", "[0]"), ("[ ]", "[ 0]", "[0 ]"), ("[1.0, 2]", "[1.0, 2,0]", "[0,1.0, 2]")]
        {
            assert_eq!(edited(before, |node, edit| edit.push(node, "0")), pushed);
            assert_eq!(edited(before, |node, edit| edit.unshift(node, "0")), unshifted);
        }
    }

    #[test]
    fn inserts_and_removes_members() {
        assert_eq!(edited("{}", |node, edit| edit.insert(node, "k", "1")), r#"{"k":1}"#);
        assert_eq!(edited(r#"{ "a":1 }"#, |node, edit| edit.insert(node, "k", "1")), r#"{ "a":1 ,"k":1}"#);
        let line = r#"{"a":1, "b":2 ,"c":3}"#;
        for (key, after) in
            [("a", r#"{"b":2 ,"c":3}"#), ("b", r#"{"a":1, "c":3}"#), ("c", r#"{"a":1, "b":2}"#), ("d", line)]
        {
            assert_eq!(edited(line, |node, edit| edit.remove(node, key)), after);
        }
        assert_eq!(edited(r#"{"a":1}"#, |node, edit| edit.remove(node, "a")), "{}");
    }

    #[test]
    fn adds_more_than_once_to_what_was_empty() {
        for (line, once, twice) in [("[]", "[1]", "[1,2]"), ("[0]", "[0,1]", "[0,1,2]")] {
            assert_eq!(edited(line, |node, edit| edit.push(node, "1")), once);
            let both = edited(line, |node, edit| {
                edit.push(node, "1");
                edit.push(node, "2");
            });
            assert_eq!(both, twice);
        }
        for (line, both) in [("[]", "[1,2]"), ("[0]", "[1,2,0]")] {
            let added = edited(line, |node, edit| {
                edit.unshift(node, "1");
                edit.unshift(node, "2");
            });
            assert_eq!(added, both);
        }
        let both = edited("{ }", |node, edit| {
            edit.insert(node, "a", "1");
            edit.insert(node, "b", "2");
        });
        assert_eq!(both, r#"{ "a":1,"b":2}"#);
    }

    #[test]
    fn leaves_every_other_byte() {
        let line = " {\"n\":1e400,\"x\":\"\\u00e9\\/\",\"list\":[ 1 ]}\r\n";
        let after = edited(line, |node, edit| edit.push(node.get("list").unwrap(), "2"));
        assert_eq!(after, " {\"n\":1e400,\"x\":\"\\u00e9\\/\",\"list\":[ 1 ,2]}\r\n");
    }
}
