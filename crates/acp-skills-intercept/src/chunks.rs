//! Removes our text from messages that arrive in chunks, both the user's and the agent's.
//!
//! We hold a chunk back if our text may continue in the next chunk of the same message. The chunk is sent before any other
//! message of its session.

use std::{borrow::Cow, collections::HashMap};

use acp_skills_wire::{Classifier, Kind, Message, Node};

use crate::{
    Interceptor,
    commands::agents,
    mark_scanner::MarkScanner,
    outputs::{Actions, Pass},
    requests::{OpenRequest, Purpose, Setup, SetupKind},
    strip::Stream,
    updates::{self, ChunkKind},
    usage_scanner::UsageScanner,
    version::Turn,
};

/// The maximum number of sessions with chunks that are held back, if one of them is not known here.
const MAX_HELD: usize = 64;

/// The state of reading the agent's lines.
pub(crate) struct AgentReader {
    pub(crate) classifier: Classifier,
    pub(crate) mark_scanner: MarkScanner,
    pub(crate) usage_scanner: UsageScanner,
    /// Messages that may have our text in them, by the agent's id of their session.
    chunks: HashMap<String, (ChunkKind, Stream)>,
}

impl AgentReader {
    /// Creates a reader that has read nothing.
    pub(crate) fn new() -> Self {
        Self {
            classifier: Classifier::new(updates::READ),
            mark_scanner: MarkScanner::default(),
            usage_scanner: UsageScanner::default(),
            chunks: HashMap::new(),
        }
    }

    /// Returns true if chunks are held back.
    pub(crate) fn has_held(&self) -> bool {
        !self.chunks.is_empty()
    }

    /// Removes and returns the chunks of a session that are held back.
    pub(crate) fn flush(&mut self, session: &str) -> Vec<Vec<u8>> {
        self.chunks.remove(session).map(|(_, mut stream)| stream.flush()).unwrap_or_default()
    }

    /// Removes and returns all chunks that are held back.
    pub(crate) fn flush_all(&mut self) -> Vec<Vec<u8>> {
        self.chunks.drain().flat_map(|(_, (_, mut stream))| stream.flush()).collect()
    }
}

impl Interceptor {
    /// Removes injected text from a chunk of a message.
    pub(crate) fn message_chunk(
        &mut self,
        message: &Message<'_>,
        update: Node<'_>,
        kind: ChunkKind,
        actions: &mut Actions,
    ) -> Pass {
        let session = message.session_id().unwrap_or_default().into_owned();
        let Some(text) = update.at(&["content", "text"]).and_then(|node| node.as_text()) else {
            // If there is other content in between, such as an image, the text can't continue after it.
            actions.to_client.append(&mut self.reader.flush(&session));
            return Pass::Untouched;
        };
        self.limit_unknown_sessions(&session, actions);
        let (_, stream) =
            self.reader.chunks.entry(session.clone()).or_insert_with(|| (kind, Stream::default()));
        let passed = stream.chunk(&text, message.line);
        if stream.is_idle() {
            self.reader.chunks.remove(&session);
        }
        if kind == ChunkKind::User {
            self.replayed(&session, &passed.ours, &passed.clean);
        }
        let users = self.sessions.find(&session).filter(|_| kind == ChunkKind::User);
        let with_prefix = |line: &[u8]| agents::part_with_prefix(users.as_deref()?, line, agents::IN_CHUNK);
        let Some(mut lines) = passed.lines else {
            return with_prefix(message.line).map_or(Pass::Untouched, Pass::Edited);
        };
        for line in &mut lines {
            if let Some(typed) = with_prefix(line) {
                *line = typed;
            }
        }
        // If there is no session id, we can't match this chunk to the next one, so we flush it now.
        if message.session_id().is_none() {
            lines.append(&mut self.reader.flush(&session));
        }
        let Some(last) = lines.pop() else { return Pass::Consumed };
        actions.to_client.append(&mut lines);
        if last == message.line { Pass::Untouched } else { Pass::Edited(last) }
    }

    /// Flushes the chunks of sessions that are not known here, if there are too many: an agent may use any number of ids.
    fn limit_unknown_sessions(&mut self, session: &str, actions: &mut Actions) {
        let chunks = &self.reader.chunks;
        let is_known = chunks.contains_key(session) || self.sessions.key_of(session).is_some();
        if chunks.len() >= MAX_HELD && !is_known {
            self.flush_unknown_sessions(actions);
        }
    }

    /// Flushes the chunks of all sessions that are not known here.
    fn flush_unknown_sessions(&mut self, actions: &mut Actions) {
        let unknown = self.reader.chunks.extract_if(|id, _| self.sessions.key_of(id).is_none());
        actions.to_client.extend(unknown.flat_map(|(_, (_, mut stream))| stream.flush()));
    }

    /// Flushes the chunks that have to be forwarded before `message`.
    pub(crate) fn flush_chunks(&mut self, message: &Message<'_>, actions: &mut Actions) {
        if !self.reader.has_held() {
            return;
        }
        let chunk = ChunkKind::of_message(message);
        let session = match message.kind() {
            Kind::Response => match message.id().and_then(|id| self.requests.get(&id)) {
                // This response only accepts the prompt, and the turn is still running.
                Some(OpenRequest { method, .. })
                    if method == "session/prompt" && self.agent.version.turn(message) == Turn::Accepted =>
                {
                    None
                }
                // This response ends a turn, or the replay of a session that is opened again.
                Some(OpenRequest {
                    purpose:
                        Purpose::Prompt(key)
                        | Purpose::SetUp(Setup { session: key, kind: SetupKind::Reopen { .. }, .. }),
                    ..
                }) => {
                    let key = *key;
                    // The turn of a session that the agent has started for this one may have no end that we see.
                    self.flush_unknown_sessions(actions);
                    self.sessions.get(key).and_then(|session| Some(session.id()?.to_owned()))
                }
                // This response ends a turn, but we don't know the session, so we flush everything.
                Some(open) if open.method == "session/prompt" => {
                    return actions.to_client.append(&mut self.reader.flush_all());
                }
                _ => None,
            },
            Kind::Request | Kind::Notification => message.session_id().map(Cow::into_owned),
        };
        // Messages from a different session, or from no session at all, don't end this message.
        let Some(id) = session else { return };
        let held = self.reader.chunks.get(&id);
        // Don't flush yet, since this chunk may continue the message.
        if chunk.is_some_and(|chunk| held.is_some_and(|(kind, _)| *kind == chunk)) {
            return;
        }
        // Some updates can arrive in the middle of our text. For example, agents report token counts while the model is writing. If an
        // agent repeats a message of the user, it mostly contains our text, so we wait even if only a `<` of a mark has arrived.
        let continues = |(kind, stream): &(ChunkKind, Stream)| *kind == ChunkKind::User || stream.is_inside();
        if updates::is_aside(message) && held.is_some_and(continues) {
            return;
        }
        actions.to_client.append(&mut self.reader.flush(&id));
    }
}
