//! [`Sessions`]: turns the steps of sessions and the events of the record into spans, log records and metrics.
//!
//! A session span is the parent of its turn spans, and a turn span is the parent of each call made during the turn. When a request
//! contains a [trace context](TraceContext), the sender's span will be used as the parent instead.

use std::sync::Arc;

use acp_skills_intercept::SessionKey;
use prost::Message;
use skills_core::toolbox::{ACTIVATE_SKILL, READ_SKILL_FILE, RUN_SKILL_SCRIPT, SEARCH_SKILLS};

use super::{
    attributes::{
        ACTIVATED_BY, AGENT, Attributes, CONVERSATION, DECISION, ERROR, EVENT, OPERATION, ORIGIN, OUTCOME,
        RULE, SKILL, TOKENS, TOOL, session_id,
    },
    messages::{
        KIND_CLIENT, KIND_INTERNAL, LogRecord, SEVERITY_INFO, SEVERITY_WARN, STATUS_ERROR, Span, Status,
    },
    metrics::{self, Metrics},
};
use crate::{
    activity::SessionStep,
    events::{ActivatedBy, End, Event, EventKind, Outcome, TraceContext},
};

/// The maximum number of open sessions. When this is exceeded, the span of the oldest session ends.
const MAX_SESSIONS: usize = 256;
/// The operation name for a turn.
const INVOKE_AGENT: &str = "invoke_agent";
/// The operation name for a tool call.
const EXECUTE_TOOL: &str = "execute_tool";
/// The operation name for an activation that is not a tool call.
const LOAD_SKILL: &str = "load_skill";
/// The flag that must be set for [`PARENT_IS_REMOTE`] to be valid.
const PARENT_IS_KNOWN: u32 = 0x100;
/// The flag for a parent span from another process.
const PARENT_IS_REMOTE: u32 = 0x200;

/// The open sessions.
#[derive(Default)]
pub(super) struct Sessions(Vec<Session>);

/// The buffers for encoded spans and log records, and the current metrics.
pub(super) struct Collected {
    pub(super) spans: Vec<Vec<u8>>,
    pub(super) logs: Vec<Vec<u8>>,
    pub(super) metrics: Metrics,
    /// True if spans are also collected if their trace is not sampled.
    pub(super) takes_unsampled: bool,
}

struct Session {
    key: SessionKey,
    /// The session id from the agent. `None` until the session is opened.
    id: Option<String>,
    agent: Option<String>,
    span: OpenSpan,
    turn: Option<OpenSpan>,
}

/// A span that is still open.
#[derive(Debug, Clone)]
struct OpenSpan {
    trace: [u8; 16],
    id: [u8; 8],
    parent: Option<[u8; 8]>,
    state: String,
    is_sampled: bool,
    has_remote_parent: bool,
    start: u64,
}

impl Sessions {
    /// Handles a step of a session. `time` is in nanoseconds since the Unix epoch.
    pub(super) fn step(&mut self, key: SessionKey, step: &SessionStep, time: u64, into: &mut Collected) {
        match step {
            SessionStep::Requested(trace) => {
                self.open(key, trace.as_deref(), time, into);
            }
            SessionStep::Opened(id) => self.open(key, None, time, into).id = Some(id.clone()),
            SessionStep::TurnStarted(trace) => {
                let session = self.open(key, None, time, into);
                session.end_turn(time, into);
                let span = OpenSpan::new(trace.as_deref(), Some(&session.span), time);
                session.turn = Some(span);
            }
            SessionStep::TurnEnded => {
                if let Some(session) = self.0.iter_mut().find(|session| session.key == key) {
                    session.end_turn(time, into);
                }
            }
            SessionStep::Closed => {
                if let Some(place) = self.0.iter().position(|session| session.key == key) {
                    self.0.remove(place).end(time, into);
                }
            }
        }
    }

    /// Handles an event from the record.
    pub(super) fn record(&mut self, record: &Arc<Event>, time: u64, into: &mut Collected) {
        let of_record = |session: &&mut Session| session.id.is_some() && session.id == record.session;
        let mut session = self.0.iter_mut().rev().find(of_record);
        let mut attributes = Attributes::of(record);
        if let (Some(session), EventKind::SessionStarted { .. }) = (&mut session, &record.what) {
            session.agent = attributes.get(AGENT).map(str::to_owned);
        }
        let session = session.as_deref();
        let agent = session.and_then(|session| session.agent.as_deref());
        attributes = attributes
            .without(AGENT)
            .optional(AGENT, agent)
            .optional(CONVERSATION, record.session.as_deref().and_then(session_id));
        let around = session.map(|session| session.turn.as_ref().unwrap_or(&session.span));
        let span = match record.what.end() {
            Some(end) => {
                attributes = described(&record.what, end, attributes);
                let start = time.saturating_sub(nanoseconds(end));
                let span = OpenSpan::new(end.trace.as_deref(), around, start);
                let name = name(&attributes);
                span.end(
                    name,
                    KIND_INTERNAL,
                    attributes.0.clone(),
                    end.outcome == Outcome::Error,
                    time,
                    into,
                );
                Some(span)
            }
            None => around.cloned(),
        };
        count(record, &attributes, &mut into.metrics);
        into.logs.push(log(record, attributes, span.as_ref(), time).encode_to_vec());
    }

    /// Ends all sessions.
    pub(super) fn end_all(&mut self, time: u64, into: &mut Collected) {
        for session in self.0.drain(..) {
            session.end(time, into);
        }
    }

    /// Returns the session for a key, or adds a new session.
    fn open(
        &mut self,
        key: SessionKey,
        trace: Option<&TraceContext>,
        time: u64,
        into: &mut Collected,
    ) -> &mut Session {
        let found = self.0.iter().position(|session| session.key == key);
        let place = found.unwrap_or_else(|| {
            if self.0.len() >= MAX_SESSIONS {
                self.0.remove(0).end(time, into);
            }
            let span = OpenSpan::new(trace, None, time);
            self.0.push(Session { key, id: None, agent: None, span, turn: None });
            self.0.len() - 1
        });
        &mut self.0[place]
    }
}

impl Session {
    fn attributes(&self) -> Attributes {
        let id = self.id.as_deref().and_then(session_id);
        Attributes::default().optional(AGENT, self.agent.as_deref()).optional(CONVERSATION, id)
    }

    /// Ends the current turn, if there is one.
    fn end_turn(&mut self, time: u64, into: &mut Collected) {
        let Some(turn) = self.turn.take() else { return };
        let attributes = self.attributes().text(OPERATION, INVOKE_AGENT);
        into.metrics.add(&metrics::TURNS, attributes.only(&[OPERATION, AGENT]), seconds(turn.start, time));
        let name = with(INVOKE_AGENT, self.agent.as_deref());
        turn.end(name, KIND_CLIENT, attributes.0, false, time, into);
    }

    /// Ends the session, if the agent has opened it.
    fn end(mut self, time: u64, into: &mut Collected) {
        self.end_turn(time, into);
        if self.id.is_some() {
            let name = with("session", self.agent.as_deref());
            self.span.end(name, KIND_INTERNAL, self.attributes().0, false, time, into);
        }
    }
}

impl OpenSpan {
    /// Starts a span. The parent is `remote` if provided, and `within` otherwise. When both are `None`, this starts a new trace.
    fn new(remote: Option<&TraceContext>, within: Option<&Self>, start: u64) -> Self {
        let mut span = Self {
            trace: [0; 16],
            id: [0; 8],
            parent: None,
            state: String::new(),
            is_sampled: true,
            has_remote_parent: remote.is_some(),
            start,
        };
        // Without random numbers, the ids are invalid, and collectors ignore the span.
        let _ = getrandom::fill(&mut span.id);
        match (remote, within) {
            (Some(remote), _) => Self {
                trace: remote.trace,
                parent: Some(remote.parent),
                state: remote.state.clone(),
                is_sampled: remote.is_sampled,
                ..span
            },
            (None, Some(within)) => Self {
                trace: within.trace,
                parent: Some(within.id),
                state: within.state.clone(),
                is_sampled: within.is_sampled,
                ..span
            },
            (None, None) => {
                let _ = getrandom::fill(&mut span.trace);
                span
            }
        }
    }

    /// Ends the span and adds it to the buffer. Does nothing if the trace is not sampled, unless all spans are collected.
    fn end(
        &self,
        name: String,
        kind: i32,
        attributes: Vec<super::messages::KeyValue>,
        is_error: bool,
        end: u64,
        into: &mut Collected,
    ) {
        if !self.is_sampled && !into.takes_unsampled {
            return;
        }
        let remote = if self.has_remote_parent { PARENT_IS_REMOTE } else { 0 };
        let span = Span {
            trace: self.trace.to_vec(),
            id: self.id.to_vec(),
            state: self.state.clone(),
            parent: self.parent.map(|parent| parent.to_vec()).unwrap_or_default(),
            name,
            kind,
            start: self.start.min(end),
            end,
            attributes,
            status: is_error.then_some(Status { code: STATUS_ERROR }),
            flags: u32::from(self.is_sampled) | PARENT_IS_KNOWN | remote,
        };
        into.spans.push(span.encode_to_vec());
    }
}

/// Adds attributes for the operation, the tool and the error of a call.
fn described(what: &EventKind, end: &End, attributes: Attributes) -> Attributes {
    let tool = match what {
        EventKind::SkillActivated { by: ActivatedBy::Model, .. } => ACTIVATE_SKILL,
        EventKind::FileRead { .. } => READ_SKILL_FILE,
        EventKind::ScriptRun { .. } => RUN_SKILL_SCRIPT,
        EventKind::Search { .. } => SEARCH_SKILLS,
        // The name of the skill's own tool, which is missing if there is no such tool.
        EventKind::ToolCalled { tool, .. } => tool.as_deref().unwrap_or("call_skill_tool"),
        _ => "",
    };
    let attributes = if tool.is_empty() {
        attributes.text(OPERATION, LOAD_SKILL)
    } else {
        attributes.without(TOOL).text(TOOL, tool).text(OPERATION, EXECUTE_TOOL)
    };
    match (end.outcome, &end.error) {
        (Outcome::Error, None) => attributes.text(ERROR, "_OTHER"),
        (Outcome::Cancelled, None) => attributes.text(ERROR, "cancelled"),
        _ => attributes,
    }
}

/// Returns the span name for a call, for example `activate_skill review`, or `execute_tool search_skills` for a call without a skill.
fn name(attributes: &Attributes) -> String {
    match (attributes.get(TOOL), attributes.get(SKILL)) {
        (Some(tool), Some(skill)) => format!("{tool} {skill}"),
        (Some(tool), None) => with(EXECUTE_TOOL, Some(tool)),
        (None, skill) => with(LOAD_SKILL, skill),
    }
}

/// Returns a span name from an operation and an optional object.
fn with(operation: &str, object: Option<&str>) -> String {
    object.map_or_else(|| operation.to_owned(), |object| format!("{operation} {object}"))
}

/// Updates the metrics for an event.
fn count(record: &Event, attributes: &Attributes, metrics: &mut Metrics) {
    let event = Attributes::default().text(EVENT, record.what.name());
    metrics.add(&metrics::EVENTS, event, 1.0);
    match &record.what {
        EventKind::SessionStarted { .. } => {
            metrics.add(&metrics::SESSIONS, attributes.only(&[AGENT, ORIGIN]), 1.0);
        }
        EventKind::SkillActivated { .. } => {
            metrics.add(&metrics::ACTIVATIONS, attributes.only(&[SKILL, ACTIVATED_BY, OUTCOME]), 1.0);
            let tokens = attributes.number(TOKENS).unwrap_or_default();
            #[expect(clippy::cast_precision_loss, reason = "exact up to 2^53")]
            metrics.add(&metrics::TOKENS, attributes.only(&[SKILL]), tokens as f64);
        }
        EventKind::Permission { .. } => {
            metrics.add(&metrics::PERMISSIONS, attributes.only(&[DECISION, RULE]), 1.0);
        }
        _ => {}
    }
    if let Some(end) = record.what.end().filter(|_| attributes.get(TOOL).is_some()) {
        let kept = attributes.only(&[OPERATION, TOOL, SKILL, ERROR]);
        metrics.add(&metrics::CALLS, kept, end.ms.as_f64() / 1000.0);
    }
}

/// Creates a log record for an event.
fn log(record: &Event, attributes: Attributes, span: Option<&OpenSpan>, time: u64) -> LogRecord {
    let is_failure = matches!(
        record.what,
        EventKind::Fallback { .. } | EventKind::Refused { .. } | EventKind::EventsDropped { .. }
    ) || record.what.end().is_some_and(|end| end.outcome == Outcome::Error);
    LogRecord {
        time,
        severity: if is_failure { SEVERITY_WARN } else { SEVERITY_INFO },
        attributes: attributes.0,
        flags: span.map_or(0, |span| u32::from(span.is_sampled)),
        trace: span.map(|span| span.trace.to_vec()).unwrap_or_default(),
        span: span.map(|span| span.id.to_vec()).unwrap_or_default(),
        observed: time,
        event_name: format!("acp_skills.{}", record.what.name()),
    }
}

#[expect(clippy::cast_precision_loss, reason = "a duration needs no nanoseconds")]
fn seconds(start: u64, end: u64) -> f64 {
    end.saturating_sub(start) as f64 / 1e9
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "durations are positive")]
fn nanoseconds(end: &End) -> u64 {
    (end.ms.as_f64() * 1e6) as u64
}
