//! Telling the agent's streaming updates from the rest: the one look that every line gets.
//!
//! Streaming updates are nearly all of what passes. The first one is read as far as it takes to know what it is, some
//! hundred bytes however long it is; and because an agent writes all of them in the same way, those that follow are only
//! compared with it. Which kinds of update do not stream past is the caller's to say.

use crate::{bytes::starts_with, json};

/// What the front of a line tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// No JSON-RPC: not an object or array, or one that breaks at its first member.
    NotAMessage,
    /// A notification `session/update` of a kind that nobody reads.
    Streaming,
    /// Anything else.
    Other,
}

/// How much of a line is remembered at most, in bytes.
const MAX_SHAPE_BYTES: usize = 1024;

/// Classifies the lines of one agent.
#[derive(Debug)]
pub struct Classifier {
    /// The kinds of update that somebody reads.
    read: &'static [&'static [u8]],
    /// How the last streaming update was written that was read.
    shape: Option<Shape>,
    /// The front of a line for the same session as the last one, and where in it the kind begins; empty while no more is
    /// known of the shape than the caller said.
    last: (Vec<u8>, usize),
    /// Where in the last line its kind begins, when it is a streaming update.
    kind: usize,
    /// How much of the last line is known.
    known: usize,
}

/// All that the front of a streaming update says, but for which session it is.
#[derive(Debug, PartialEq, Eq)]
struct Shape {
    /// Up to the opening quote of the session's id; empty where the id does not come before the kind.
    head: Vec<u8>,
    /// From the closing quote of the id, or from the beginning, to the kind; or to where [`Classifier::extend`] said.
    front: Vec<u8>,
    /// Where in `front` the kind begins, or at its end.
    kind: usize,
}

impl Shape {
    /// Where `front` begins in a line that is written in this way.
    fn start(&self, line: &[u8]) -> Option<usize> {
        if self.head.is_empty() {
            return Some(0);
        }
        if !starts_with(line, &self.head) {
            return None;
        }
        // With an escape in it, the id may not end where it seems to.
        Some(self.head.len() + memchr::memchr2(b'"', b'\\', &line[self.head.len()..])?)
    }
}

/// Where the parts of a `session/update` begin, in bytes.
struct Offsets {
    /// The id of the session, when it comes before the kind.
    session: Option<usize>,
    /// The kind of the update.
    kind: usize,
}

impl Offsets {
    fn shape(&self, line: &[u8]) -> Option<Shape> {
        if self.kind > MAX_SHAPE_BYTES {
            return None;
        }
        let shape = |head: usize, front: usize| Shape {
            head: line[..head].into(),
            front: line[front..self.kind].into(),
            kind: self.kind - front,
        };
        let id = self.session.filter(|&at| line[at] == b'"').map(|at| at + 1);
        let Some(start) = id else { return Some(shape(0, 0)) };
        let end = start + memchr::memchr2(b'"', b'\\', &line[start..])?;
        let is_plain = line[end] == b'"' && end < self.kind;
        is_plain.then(|| shape(start, end))
    }
}

impl Classifier {
    /// A classifier for which updates of all kinds but `read` stream past. Each kind is a JSON string with its quotes.
    pub fn new(read: &'static [&'static [u8]]) -> Self {
        Self { read, shape: None, last: (Vec::new(), 0), kind: 0, known: 0 }
    }

    /// Reads the front of a line, as far as it takes to tell a streaming update from the rest.
    pub fn classify(&mut self, line: &[u8]) -> Class {
        let (last, kind) = &self.last;
        if !last.is_empty() && starts_with(line, last) {
            (self.kind, self.known) = (*kind, last.len());
            return Class::Streaming;
        }
        if let Some(class) = self.compare(line) {
            return class;
        }
        match read(line) {
            Ok(offsets) => {
                (self.kind, self.known) = (offsets.kind, 0);
                let class = self.class_of_kind(line, offsets.kind);
                if class == Class::Streaming {
                    self.shape = offsets.shape(line);
                    self.last.0.clear();
                }
                class
            }
            Err(class) => class,
        }
    }

    /// Remembers that lines like the last one are alike up to `to`, behind the kind of the update: those that are stream
    /// past without a look at what they are. Only after [`Class::Streaming`], with the same line. Not for less than the whole
    /// kind: another one may begin in the same way.
    pub fn extend(&mut self, line: &[u8], to: usize) {
        if !line.get(self.kind + 1..to).is_some_and(|kind| kind.contains(&b'"')) {
            return;
        }
        let Some(shape) = self.shape.as_mut().filter(|_| to <= MAX_SHAPE_BYTES) else { return };
        let Some(start) = shape.start(line).filter(|start| start + shape.kind == self.kind) else { return };
        if let Some(front) = line.get(start..to).filter(|front| front.len() > shape.kind) {
            shape.front = front.into();
            self.last = (line[..to].into(), self.kind);
        }
    }

    /// Where in the last line the kind of the update begins. Only after [`Class::Streaming`].
    pub fn kind(&self) -> usize {
        self.kind
    }

    /// How much of the front of the last line is the same in all lines of this agent, but for the id of the session: 0, or
    /// up to the kind, or as far as [`extend`](Self::extend) said. Only after [`Class::Streaming`].
    pub fn known(&self) -> usize {
        self.known
    }

    /// What a line is that is written as the last ones were.
    fn compare(&mut self, line: &[u8]) -> Option<Class> {
        let shape = self.shape.as_ref()?;
        let start = shape.start(line)?;
        let (kind, to) = (start + shape.kind, start + shape.front.len());
        if kind < to && starts_with(&line[start..], &shape.front) {
            self.last.0.clear();
            self.last.0.extend_from_slice(&line[..to]);
            self.last.1 = kind;
            (self.kind, self.known) = (kind, to);
            return Some(Class::Streaming);
        }
        // Where a space stands in front of the kind, the line is written in another way.
        let is_alike = line[start..].starts_with(&shape.front[..shape.kind]) && line.get(kind) == Some(&b'"');
        is_alike.then(|| {
            (self.kind, self.known) = (kind, kind);
            self.class_of_kind(line, kind)
        })
    }

    fn class_of_kind(&self, line: &[u8], kind: usize) -> Class {
        let kind = &line[kind..];
        let streams = kind.first() == Some(&b'"') && !self.read.iter().any(|read| kind.starts_with(read));
        if streams { Class::Streaming } else { Class::Other }
    }
}

/// Reads the front of a line: the offsets in a `session/update`, or what else it is.
fn read(line: &[u8]) -> Result<Offsets, Class> {
    let start = json::skip_space(line, 0);
    match line.get(start) {
        Some(b'[') => return Err(Class::Other),
        Some(b'{') => {}
        _ => return Err(Class::NotAMessage),
    }
    let mut members = json::lazy_members(line).ok_or(Class::NotAMessage)?;
    let mut first = true;
    let mut update = false;
    loop {
        let Some(at) = members.peek() else {
            return Err(if first && !is_empty_object(line, start) {
                Class::NotAMessage
            } else {
                Class::Other
            });
        };
        let Some((name, value)) = json::member_start(line, at) else {
            return Err(if first { Class::NotAMessage } else { Class::Other });
        };
        first = false;
        match name.raw() {
            br#""method""# => {
                if !line[value..].starts_with(br#""session/update""#) {
                    return Err(Class::Other);
                }
                update = true;
            }
            br#""params""# if update => return offsets(line, value).ok_or(Class::Other),
            br#""id""# => return Err(Class::Other),
            _ => {}
        }
        members.next().ok_or(Class::Other)?;
    }
}

fn is_empty_object(line: &[u8], start: usize) -> bool {
    line.get(json::skip_space(line, start + 1)) == Some(&b'}')
}

/// The offsets in the params of a `session/update` that begin at `at`.
fn offsets(line: &[u8], at: usize) -> Option<Offsets> {
    let mut session = None;
    let update = find_member(line, at, |name, value| {
        if name == br#""sessionId""# {
            session = Some(value);
        }
        name == br#""update""#
    })?;
    let kind = find_member(line, update, |name, _| name == br#""sessionUpdate""#)?;
    Some(Offsets { session, kind })
}

/// Where the value begins of the first member of the object at `at` that `is_it`, by name and place.
fn find_member(line: &[u8], at: usize, mut is_it: impl FnMut(&[u8], usize) -> bool) -> Option<usize> {
    let mut members = json::lazy_members(&line[at..])?;
    loop {
        let start = members.peek()?;
        let (name, value) = json::member_start(&line[at..], start)?;
        if is_it(name.raw(), at + value) {
            return Some(at + value);
        }
        members.next()?;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The kinds of update that are read in these tests.
    const READ: [&[u8]; 3] = [br#""user_message_chunk""#, br#""session_info_update""#, br#""state_update""#];

    fn classifier() -> Classifier {
        Classifier::new(&READ)
    }

    fn class(line: &[u8]) -> Class {
        classifier().classify(line)
    }

    #[test]
    fn classes() {
        for (line, expected) in [
            (
                r#"{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","content":{}}}}"#,
                Class::Streaming,
            ),
            (
                r#" { "method" : "session/update" , "params" : { "update" : { "x":[{}], "sessionUpdate" : "plan" } } }"#,
                Class::Streaming,
            ),
            (
                r#"{"jsonrpc":"2.0","method":"session/update","params":{"update":{"sessionUpdate":"user_message_chunk"}}}"#,
                Class::Other,
            ),
            (
                r#"{"method":"session/update","params":{"update":{"messageId":"m","content":[],"sessionUpdate":"state_update"}}}"#,
                Class::Other,
            ),
            (
                r#"{"method":"session/update","params":{"update":{"sessionUpdate":"state_update","state":"idle"}}}"#,
                Class::Other,
            ),
            (
                r#"{"method":"session/update","params":{"update":{"title":"\"sessionUpdate\":\"plan\"","sessionUpdate":"session_info_update"}}}"#,
                Class::Other,
            ),
            (r#"{"params":{"update":{"sessionUpdate":"plan"}},"method":"session/update"}"#, Class::Other),
            (
                r#"{"id":1,"method":"session/update","params":{"update":{"sessionUpdate":"plan"}}}"#,
                Class::Other,
            ),
            (
                r#"{"method":"session/update_later","params":{"update":{"sessionUpdate":"plan"}}}"#,
                Class::Other,
            ),
            (r#"{"jsonrpc":"2.0","id":1,"result":{}}"#, Class::Other),
            (r#"{"method":"session/update","params":{"update":{"sessionUpdate":7}}}"#, Class::Other),
            (r#"{"method":"session/update","params":{"update":{}}}"#, Class::Other),
            (r#"{"method":"session/update","par"#, Class::Other),
            ("[]", Class::Other),
            ("{}", Class::Other),
            ("{ }", Class::Other),
            ("", Class::NotAMessage),
            ("\n", Class::NotAMessage),
            ("Listening on port 3000", Class::NotAMessage),
            ("{junk}", Class::NotAMessage),
            ("{\"a\"}", Class::NotAMessage),
            ("12", Class::NotAMessage),
        ] {
            assert_eq!(class(line.as_bytes()), expected, "{line}");
        }
    }

    const UPDATE: &str = r#"{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"plan"}}}"#;

    #[test]
    fn learns_how_an_agent_writes() {
        for (line, head, front) in [
            (
                UPDATE,
                r#"{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":""#,
                r#"","update":{"sessionUpdate":"#,
            ),
            (
                r#"{"method":"session/update","params":{"update":{"sessionUpdate":"plan"},"sessionId":"s"}}"#,
                "",
                r#"{"method":"session/update","params":{"update":{"sessionUpdate":"#,
            ),
            (
                r#"{"method":"session/update","params":{"sessionId":7,"update":{"sessionUpdate":"plan"}}}"#,
                "",
                r#"{"method":"session/update","params":{"sessionId":7,"update":{"sessionUpdate":"#,
            ),
        ] {
            let mut learned = classifier();
            assert_eq!(learned.classify(line.as_bytes()), Class::Streaming, "{line}");
            let expected = Shape { head: head.into(), front: front.into(), kind: front.len() };
            assert_eq!(learned.shape, Some(expected), "{line}");
        }
        let mut learned = classifier();
        for known in [0, 95, 95] {
            learned.classify(UPDATE.as_bytes());
            assert_eq!((learned.kind(), learned.known()), (95, known));
        }
        // What looks like what was learned, and is not: the quote behind the backslash does not end the id.
        let escaped = UPDATE.replace(r#""s""#, r#""s\""#);
        let mut learned = classifier();
        learned.classify(UPDATE.as_bytes());
        assert_eq!(learned.classify(escaped.as_bytes()), Class::Other);
        // A space that was not there before changes nothing.
        let spaced = UPDATE.replace(":\"plan", ": \"plan");
        let mut learned = classifier();
        learned.classify(UPDATE.as_bytes());
        assert_eq!(learned.classify(spaced.as_bytes()), Class::Streaming);
        // An id that does not end at its first quote is nothing to learn from.
        let mut learned = classifier();
        learned.classify(UPDATE.replace(r#""s""#, r#""\"""#).as_bytes());
        assert_eq!(learned.shape, None);
    }

    #[test]
    fn what_the_caller_said_is_known() {
        let chunk = UPDATE.replace(r#""plan""#, r#""chunk","text":"x""#);
        let text = chunk.find("x\"").unwrap();
        let mut learned = classifier();
        learned.classify(chunk.as_bytes());
        learned.extend(chunk.as_bytes(), text);
        for (line, expected) in [
            (chunk.clone(), (Class::Streaming, text)),
            (chunk.replace("\"s\"", "\"other\""), (Class::Streaming, text + 4)),
            (chunk.replace("chunk", "state_update"), (Class::Other, 95)),
            (chunk.replace("text", "data"), (Class::Streaming, 95)),
            (chunk.clone(), (Class::Streaming, text)),
            (chunk.replace("{\"jsonrpc", "{ \"jsonrpc"), (Class::Streaming, 0)),
            (chunk.clone(), (Class::Streaming, 0)),
            (chunk.clone(), (Class::Streaming, 95)),
        ] {
            assert_eq!((learned.classify(line.as_bytes()), learned.known()), expected, "{line}");
        }
    }

    #[test]
    fn a_piece_of_a_kind_is_none() {
        let chunk = UPDATE.replace("plan", "user_thought");
        let kind = chunk.find("\"user_thought").unwrap();
        for to in 0..=kind + "\"user_thought".len() {
            let mut learned = classifier();
            learned.classify(chunk.as_bytes());
            learned.extend(chunk.as_bytes(), to);
            let read = UPDATE.replace("plan", "user_message_chunk");
            assert_eq!(learned.classify(read.as_bytes()), Class::Other, "{to}");
        }
    }

    proptest! {
        /// What was learned never changes what is seen.
        #[test]
        fn a_second_look_is_a_first_look(
            changes in proptest::collection::vec((0..UPDATE.len(), 0_usize..8, "[a-z\"\\\\{}:, ]{0,12}"), 0..3),
            kind in "(plan|user_message_chunk|user_message|user_messages|state_update|agent_message_chunk)",
            to in 0..UPDATE.len(),
        ) {
            let mut line = UPDATE.replace("plan", &kind);
            for (at, length, with) in changes {
                let at = at.min(line.len());
                let end = (at + length).min(line.len());
                line.replace_range(at..end, &with);
            }
            let mut learned = classifier();
            learned.classify(UPDATE.as_bytes());
            prop_assert_eq!(learned.classify(line.as_bytes()), class(line.as_bytes()), "{}", line);
            let mut learned = classifier();
            learned.classify(UPDATE.as_bytes());
            learned.extend(UPDATE.as_bytes(), to);
            prop_assert_eq!(learned.classify(line.as_bytes()), class(line.as_bytes()), "{}", line);
        }
    }
}
