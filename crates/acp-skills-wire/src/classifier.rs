//! Classifies lines from the agent as streaming updates or other messages. This is the only check used for every line.
//!
//! Nearly all lines are streaming updates. Of the first one, we read only the front, up to the kind of the update: about a
//! hundred bytes, regardless of the length of the line. An agent writes all of its updates in the same way, so the following
//! lines are only compared with the first one. The caller chooses the kinds of update to read; all other kinds are streaming
//! updates.

#[cfg(test)]
mod tests;

use crate::{bytes::starts_with, json};

/// The class of a line. It is determined by the front of the line, up to the kind of the update.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// Not JSON-RPC: the line is not an object or array, or it breaks off at the first member.
    NotAMessage,
    /// A notification `session/update` of a kind that the caller doesn't read.
    Streaming,
    /// A line that should be parsed.
    Other,
}

/// The maximum length of a remembered shape, in bytes.
const MAX_SHAPE_BYTES: usize = 1024;

/// Classifies the lines of one agent.
#[derive(Debug)]
pub struct Classifier {
    /// The kinds of update that the caller reads.
    read: &'static [&'static [u8]],
    /// The shape of the streaming update that was last parsed.
    shape: Option<Shape>,
    /// The front of the last line that matched the whole shape, including its session id, and the offset of the kind in it. Empty
    /// if there is no such line.
    last: (Vec<u8>, usize),
    /// The offset of the kind in the last line, if it was a streaming update.
    kind: usize,
    /// The length of the known front of the last line; see [`Classifier::known`].
    known: usize,
}

/// The front of a streaming update without the session id.
#[derive(Debug, PartialEq, Eq)]
struct Shape {
    /// The bytes up to the opening quote of the session id. Empty if the id doesn't come before the kind.
    head: Vec<u8>,
    /// The bytes from the closing quote of the id, or from the start of the line, to the kind, or to the end that
    /// [`Classifier::extend`] set.
    front: Vec<u8>,
    /// The offset of the kind in `front`. It is the length of `front` if `extend` was not called.
    kind: usize,
}

impl Shape {
    /// Returns the offset of `front` in a line with this shape.
    fn start(&self, line: &[u8]) -> Option<usize> {
        if self.head.is_empty() {
            return Some(0);
        }
        if !starts_with(line, &self.head) {
            return None;
        }
        // We also stop at a backslash, because an escaped quote is not the end of the id. In this case, the comparison will fail.
        Some(self.head.len() + memchr::memchr2(b'"', b'\\', &line[self.head.len()..])?)
    }
}

/// Byte offsets in a `session/update`.
struct Offsets {
    /// The session id, if it comes before the kind.
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
    /// Returns a classifier for which updates of all kinds are streaming, except for those in `read`. Each kind is a JSON string
    /// with its quotes.
    pub fn new(read: &'static [&'static [u8]]) -> Self {
        Self { read, shape: None, last: (Vec::new(), 0), kind: 0, known: 0 }
    }

    /// Classifies a line by its front.
    pub fn classify(&mut self, line: &[u8]) -> Class {
        let (last, kind) = &self.last;
        if !last.is_empty() && starts_with(line, last) {
            self.kind = *kind;
            self.known = last.len();
            return Class::Streaming;
        }
        self.classify_by_content(line)
    }

    /// Classifies a line that doesn't begin like the last one. It is never inlined, so that other lines don't have to save its
    /// registers.
    #[inline(never)]
    fn classify_by_content(&mut self, line: &[u8]) -> Class {
        if let Some(class) = self.compare(line) {
            return class;
        }
        match read(line) {
            Ok(offsets) => {
                self.kind = offsets.kind;
                self.known = 0;
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

    /// Extends the shape to `to`, an offset in the last line after the kind of the update. Lines with the same bytes up to there
    /// are then streaming updates without a further check.
    ///
    /// Call it only after [`classify`](Self::classify) returned [`Class::Streaming`], with the same line. If `to` is within the
    /// kind, the call does nothing, because another kind may begin in the same way.
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

    /// Returns the offset of the kind in the last line. It is valid only after [`Class::Streaming`].
    pub fn kind(&self) -> usize {
        self.kind
    }

    /// Returns the length of the front of the last line that matches the shape, apart from the session id. It is 0 if the line
    /// was parsed, the offset of the kind, or the end that [`extend`](Self::extend) set. It is valid only after
    /// [`Class::Streaming`].
    pub fn known(&self) -> usize {
        self.known
    }

    /// Classifies a line with the shape of the previous lines. Returns `None` if the line has another shape.
    fn compare(&mut self, line: &[u8]) -> Option<Class> {
        let shape = self.shape.as_ref()?;
        let start = shape.start(line)?;
        let kind = start + shape.kind;
        let to = start + shape.front.len();
        if kind < to && starts_with(&line[start..], &shape.front) {
            self.last.0.clear();
            self.last.0.extend_from_slice(&line[..to]);
            self.last.1 = kind;
            self.kind = kind;
            self.known = to;
            return Some(Class::Streaming);
        }
        // If there is a space before the kind, this line doesn't have the same shape.
        let is_alike = line[start..].starts_with(&shape.front[..shape.kind]) && line.get(kind) == Some(&b'"');
        is_alike.then(|| {
            self.kind = kind;
            self.known = kind;
            self.class_of_kind(line, kind)
        })
    }

    fn class_of_kind(&self, line: &[u8], kind: usize) -> Class {
        let kind = &line[kind..];
        let streams = kind.first() == Some(&b'"') && !self.read.iter().any(|read| kind.starts_with(read));
        if streams { Class::Streaming } else { Class::Other }
    }
}

/// Parses the front of a line. Returns the offsets in a `session/update`, or the class of any other line.
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

/// Returns the offsets in a `session/update` whose params begin at `at`.
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

/// Finds the first member of the object at `at` for which `matches` returns true, and returns the offset of its value. `matches`
/// is called with the raw name and the offset of the value.
fn find_member(line: &[u8], at: usize, mut matches: impl FnMut(&[u8], usize) -> bool) -> Option<usize> {
    let mut members = json::lazy_members(&line[at..])?;
    loop {
        let start = members.peek()?;
        let (name, value) = json::member_start(&line[at..], start)?;
        if matches(name.raw(), at + value) {
            return Some(at + value);
        }
        members.next()?;
    }
}
