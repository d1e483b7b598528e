//! [`Skim`]: finds the id and the kind of a message that is too long to be kept, while its bytes pass by.

use memchr::memchr2;

use crate::message::{Id, Kind, Message};

/// The maximum number of bytes of a member that is kept. The ids and methods of real programs are much shorter.
const MAX_KEPT_BYTES: usize = 1024;

/// Reads a message in pieces and keeps only its `id` and its `method`. The memory doesn't depend on the length of the message.
#[derive(Debug, Default)]
pub struct Skim {
    /// The number of objects and arrays that are open.
    depth: u64,
    is_in_string: bool,
    /// True after a backslash in a string.
    is_escaped: bool,
    /// The name of the current member of the outermost object, once its colon was read.
    name: Option<Vec<u8>>,
    /// The bytes of the current name or value of the outermost object, without nested values.
    token: Vec<u8>,
    id: Option<Vec<u8>>,
    method: Option<Vec<u8>>,
    end: End,
}

/// Specifies how far the outermost object was read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum End {
    /// Only white space was read.
    #[default]
    NotBegun,
    Open,
    Closed,
    /// The line is not an object.
    Invalid,
}

impl Skim {
    /// Reads the next bytes of the message.
    pub fn read(&mut self, mut bytes: &[u8]) {
        while let Some((&byte, rest)) = bytes.split_first() {
            if self.is_in_string && !self.is_escaped && self.depth > 1 {
                // Most bytes of a long message are in a nested string.
                bytes = memchr2(b'"', b'\\', bytes).map_or(&[], |at| &bytes[at..]);
                let Some((&byte, rest)) = bytes.split_first() else { return };
                self.in_string(byte);
                bytes = rest;
                continue;
            }
            if self.is_in_string {
                self.in_string(byte);
            } else {
                self.outside(byte);
            }
            bytes = rest;
        }
    }

    fn in_string(&mut self, byte: u8) {
        self.keep(byte);
        if self.is_escaped {
            self.is_escaped = false;
        } else if byte == b'\\' {
            self.is_escaped = true;
        } else if byte == b'"' {
            self.is_in_string = false;
        }
    }

    fn outside(&mut self, byte: u8) {
        match (self.end, byte) {
            (_, b' ' | b'\t' | b'\r' | b'\n') | (End::Invalid, _) => return,
            (End::NotBegun, b'{') => {
                self.end = End::Open;
                self.depth = 1;
                return;
            }
            (End::NotBegun | End::Closed, _) => {
                self.end = End::Invalid;
                return;
            }
            (End::Open, _) => {}
        }
        match byte {
            b'{' | b'[' => self.depth += 1,
            b'}' | b']' if self.depth > 1 => self.depth -= 1,
            b'}' | b']' => {
                self.depth = 0;
                self.member();
                self.end = End::Closed;
            }
            b',' if self.depth == 1 => self.member(),
            b':' if self.depth == 1 => self.name = Some(std::mem::take(&mut self.token)),
            _ => {
                self.is_in_string = byte == b'"';
                self.keep(byte);
            }
        }
    }

    /// Keeps a byte of a member of the outermost object.
    fn keep(&mut self, byte: u8) {
        // One byte more than the maximum shows that the member is too long.
        if self.depth == 1 && self.token.len() <= MAX_KEPT_BYTES {
            self.token.push(byte);
        }
    }

    /// Ends a member of the outermost object. If there are several members with the same name, the last one is used.
    fn member(&mut self) {
        let value = std::mem::take(&mut self.token);
        let slot = match self.name.take().as_deref() {
            Some(br#""id""#) => &mut self.id,
            Some(br#""method""#) => &mut self.method,
            _ => return,
        };
        *slot = (value.len() <= MAX_KEPT_BYTES).then_some(value);
    }

    /// Returns the id and the kind of the message. Returns `None` if the message has no id that can be read, or if the kind can't
    /// be told because the message is incomplete or not an object.
    pub fn addressee(&self) -> Option<(Id, Kind)> {
        if self.end == End::Invalid || (self.end == End::Open && self.method.is_none()) {
            return None;
        }
        let mut line = br#"{"id":"#.to_vec();
        line.extend_from_slice(self.id.as_deref()?);
        if let Some(method) = &self.method {
            line.extend_from_slice(br#","method":"#);
            line.extend_from_slice(method);
        }
        line.push(b'}');
        let message = Message::parse(&line)?;
        Some((message.id()?, message.kind()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads `line` in pieces of every size up to 7 bytes, and at once.
    fn check(line: &str, expected: Option<(&str, Kind)>) {
        for size in (1..8).chain([line.len().max(1)]) {
            let mut skim = Skim::default();
            line.as_bytes().chunks(size).for_each(|piece| skim.read(piece));
            let found = skim.addressee();
            let found = found.as_ref().map(|(id, kind)| (id.to_json(), *kind));
            let expected = expected.map(|(id, kind)| (id.into(), kind));
            assert_eq!(found, expected, "{line} in pieces of {size}");
        }
    }

    #[test]
    fn finds_the_id_and_the_kind() {
        use Kind::{Request, Response};
        for (line, expected) in [
            (
                r#"{"jsonrpc":"2.0","id":1,"method":"x","params":{"a":[{"id":2}],"id":3}}"#,
                Some(("1", Request)),
            ),
            // Members may be in any order, with space around them.
            (
                "{ \"params\" : [ 1 , \"}\\\"\" ] , \"method\" : \"x\" , \"id\" : \"a b\" }\n",
                Some((r#""a b""#, Request)),
            ),
            (r#"{"params":"\\","id":-1.50,"method":"\"}"}"#, Some(("-1.50", Request))),
            (r#"{"id":1,"result":{"method":"x","id":2}}"#, Some(("1", Response))),
            (r#"{"id":1,"method":null,"error":{}}"#, Some(("1", Response))),
            (r#"{"id":1,"id":2,"result":"\"id\":3,"}"#, Some(("2", Response))),
            (r#"{"method":"x","params":{"id":1}}"#, None),
            (r#"{"id":null,"method":"x"}"#, None),
            (r#"{"id":{"a":1},"method":"x"}"#, None),
            // If the line is incomplete, a method may still follow.
            (r#"{"id":1,"result":""#, None),
            (r#"{"id":1,"method":"x","params":"\"#, Some(("1", Request))),
            (r#"{"method":"x","id":1"#, None),
            (r#"[{"id":1,"method":"x"}]"#, None),
            (r#"{"id":1,"method":"x"}}"#, None),
            (r#"{"id":1,"method":"x"},"id":2"#, None),
            (r#""id":1"#, None),
            ("", None),
            ("]]]]", None),
        ] {
            check(line, expected);
        }
    }

    #[test]
    fn an_id_that_is_too_long_is_not_kept() {
        let long = "x".repeat(5000);
        for (line, expected) in [
            (format!(r#"{{"id":"{long}","method":"x"}}"#), None),
            (format!(r#"{{"{long}":1,"id":1,"method":"x"}}"#), Some(("1", Kind::Request))),
            (format!(r#"{{"id":1,"method":"x","{long}":"{long}"}}"#), Some(("1", Kind::Request))),
        ] {
            let mut skim = Skim::default();
            skim.read(line.as_bytes());
            assert!(skim.token.capacity() < 4096 && skim.name.is_none());
            check(&line, expected);
        }
    }
}
