//! Edits a line in place: use [`Edit`] to replace spans of the line and keep all other bytes.

use std::ops::Range;

use serde_json::Value;

use crate::json::Node;

/// Replacements in one line. They can be added in any order and must not overlap.
#[derive(Debug, Default)]
pub struct Edit {
    changes: Vec<(Range<usize>, Vec<u8>)>,
    /// Offsets of arrays and objects that were empty before an edit added the first element or member.
    filled: Vec<usize>,
}

impl Edit {
    /// Returns an edit without changes.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns true if there are no changes.
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    /// Replaces `span` by `with`.
    pub fn replace(&mut self, span: Range<usize>, with: impl Into<Vec<u8>>) {
        self.changes.push((span, with.into()));
    }

    /// Replaces `node` by `value`.
    pub fn set(&mut self, node: Node<'_>, value: &Value) {
        self.replace(node.span(), value.to_string());
    }

    /// Appends `raw`, one JSON value, to the array `array`.
    pub fn push(&mut self, array: Node<'_>, raw: &str) {
        let (before, _) = self.commas(array);
        let end = array.span().end - 1;
        self.replace(end..end, format!("{before}{raw}"));
    }

    /// Inserts `raw`, one JSON value, before the elements of the array `array`. Several values keep the order of the calls.
    pub fn unshift(&mut self, array: Node<'_>, raw: &str) {
        let (before, after) = self.commas(array);
        // If the array is empty, we only need a comma before the second value.
        let before = if after.is_empty() { before } else { "" };
        let start = array.span().start + 1;
        self.replace(start..start, format!("{before}{raw}{after}"));
    }

    /// Appends the member `key` with the JSON value `raw` to `object`, which must not have a member of this name.
    pub fn insert(&mut self, object: Node<'_>, key: &str, raw: &str) {
        let (before, _) = self.commas(object);
        let end = object.span().end - 1;
        self.replace(end..end, format!("{before}{}:{raw}", Value::from(key)));
    }

    /// Returns the commas for a new value: the one before a value at the end, and the one after a value at the beginning.
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

    /// Removes the member `key` and the comma from `object`. Does nothing if this member is not found.
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

    /// Returns `line` with all changes applied.
    ///
    /// # Panics
    /// If a span is outside of `line`, or if spans overlap.
    pub fn apply(mut self, line: &[u8]) -> Vec<u8> {
        // Use a stable sort to make sure that insertions at the same place stay in the order of the calls.
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
    fn several_values_can_be_added_to_an_empty_container() {
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
    fn keeps_all_other_bytes() {
        let line = " {\"n\":1e400,\"x\":\"\\u00e9\\/\",\"list\":[ 1 ]}\r\n";
        let after = edited(line, |node, edit| edit.push(node.get("list").unwrap(), "2"));
        assert_eq!(after, " {\"n\":1e400,\"x\":\"\\u00e9\\/\",\"list\":[ 1 ,2]}\r\n");
    }
}
