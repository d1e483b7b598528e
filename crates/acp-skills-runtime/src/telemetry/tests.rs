use std::sync::Arc;

use acp_skills_intercept::SessionKey;
use prost::Message;

use super::{
    attributes::{Attributes, CONVERSATION, SKILL, TOOL},
    messages::{LogRecord, Span},
    metrics::Metrics,
    sessions::{Collected, Sessions},
};
use crate::{
    activity::SessionStep,
    events::{
        ActivatedBy, CompactionSignal, Decision, End, Event, EventKind, FallbackReason, Outcome,
        SessionOrigin, TraceContext,
    },
};

const SECRET: &str = "SECRET";

fn end() -> End {
    End {
        outcome: Outcome::Ok,
        error: None,
        bytes: 1,
        ms: std::time::Duration::from_millis(2).into(),
        trace: None,
    }
}

fn record(what: EventKind) -> Arc<Event> {
    Arc::new(Event::now(Some("s".to_owned()), what))
}

fn activation(by: ActivatedBy, end: End) -> EventKind {
    let secret = || Some(SECRET.to_owned());
    EventKind::SkillActivated {
        skill: Some("review".to_owned()),
        path: secret(),
        root: secret(),
        by,
        tokens: 7,
        end,
    }
}

/// Handles steps and events, one nanosecond after the other, and returns the spans and log records.
struct Run {
    sessions: Sessions,
    collected: Collected,
    time: u64,
}

impl Run {
    fn new() -> Self {
        let metrics = Metrics::new(false, 0);
        let collected = Collected { spans: Vec::new(), logs: Vec::new(), metrics, takes_unsampled: false };
        Self { sessions: Sessions::default(), collected, time: 1_000_000_000 }
    }

    fn step(&mut self, session: u64, step: &SessionStep) {
        self.time += 1;
        self.sessions.step(SessionKey(session), step, self.time, &mut self.collected);
    }

    fn record(&mut self, what: EventKind) {
        self.time += 1;
        self.sessions.record(&record(what), self.time, &mut self.collected);
    }

    fn spans(&self) -> Vec<Span> {
        self.collected.spans.iter().map(|span| Span::decode(&**span).expect("a span")).collect()
    }

    fn names(&self) -> Vec<String> {
        self.spans().into_iter().map(|span| span.name).collect()
    }
}

fn opened() -> Run {
    let mut run = Run::new();
    run.step(1, &SessionStep::Requested(None));
    run.step(1, &SessionStep::Opened("s".to_owned()));
    run
}

#[test]
fn private_fields_of_all_events_are_left_out() {
    let secret = || Some(SECRET.to_owned());
    let skills = || vec!["review".to_owned()];
    let events = [
        EventKind::SessionStarted {
            how: SessionOrigin::New,
            agent: Some("/home/SECRET".to_owned()),
            proxy: SECRET.to_owned(),
            skills: skills(),
            saved_tokens: None,
        },
        activation(ActivatedBy::User, end()),
        EventKind::FileRead { skill: None, file: secret(), end: end() },
        EventKind::ToolCalled { skill: None, tool: Some("run SECRET".to_owned()), end: end() },
        EventKind::ScriptRun { skill: None, script: secret(), exit_code: Some(1), end: end() },
        EventKind::Search { found: 1, end: end() },
        EventKind::Permission { tool: Some("./SECRET".to_owned()), decision: Decision::Asked, rule: None },
        EventKind::Reload {
            skills: 1,
            skipped: 0,
            added: skills(),
            removed: Vec::new(),
            changed: Vec::new(),
            ms: end().ms,
        },
        EventKind::Fallback { reason: FallbackReason::NoServer, ms: None },
        EventKind::SkillsJoined { skills: skills() },
        EventKind::Restored { skills: skills(), tokens: 1, signal: CompactionSignal::Usage },
        EventKind::Refused { reason: SECRET.to_owned() },
        EventKind::EventsDropped { count: 1 },
    ];
    for event in events {
        let sent = format!("{:?}", Attributes::of(&record(event.clone())));
        assert!(!sent.contains(SECRET), "{event:?}: {sent}");
        // Only a refusal has nothing else.
        assert_eq!(sent.contains("KeyValue"), event.name() != "refused", "{event:?}: {sent}");
    }
}

#[test]
fn spans_are_nested_and_end_once() {
    let mut run = opened();
    run.step(1, &SessionStep::TurnEnded);
    run.step(1, &SessionStep::TurnStarted(None));
    run.record(activation(ActivatedBy::Model, end()));
    run.step(1, &SessionStep::TurnStarted(None));
    run.record(activation(ActivatedBy::Prompt, end()));
    run.step(1, &SessionStep::TurnEnded);
    run.step(1, &SessionStep::TurnEnded);
    run.record(EventKind::Search { found: 1, end: end() });
    run.step(1, &SessionStep::Closed);
    run.step(1, &SessionStep::Closed);
    let expected = [
        "activate_skill review",
        "invoke_agent",
        "load_skill review",
        "invoke_agent",
        "execute_tool search_skills",
        "session",
    ];
    assert_eq!(run.names(), expected);
    let spans = run.spans();
    let parents = [(0, 1), (1, 5), (2, 3), (3, 5), (4, 5)];
    for (child, parent) in parents {
        assert_eq!(spans[child].parent, spans[parent].id, "{child}");
        assert_eq!(spans[child].trace, spans[5].trace);
    }
    assert_eq!(spans[0].end - spans[0].start, 2_000_000);
}

#[test]
fn sessions_that_were_not_opened_have_no_span() {
    let mut run = Run::new();
    run.step(1, &SessionStep::Requested(None));
    run.step(1, &SessionStep::Closed);
    run.step(2, &SessionStep::TurnEnded);
    run.record(activation(ActivatedBy::Model, end()));
    assert_eq!(run.names(), ["activate_skill review"]);
    run.sessions.end_all(run.time, &mut run.collected);
    assert_eq!(run.names().len(), 1);
}

#[test]
fn many_sessions_end_the_oldest() {
    let mut run = opened();
    for session in 2..400 {
        run.step(session, &SessionStep::Opened(session.to_string()));
    }
    assert_eq!(run.names().len(), 399 - 256);
    run.sessions.end_all(run.time, &mut run.collected);
    assert_eq!(run.names().len(), 399);
}

#[test]
fn calls_continue_the_trace_of_the_agent() {
    let parent = "00-80e1afed08e019fc1110464cfa66635c-7a085853722dc6d2-01";
    let trace = TraceContext::parse(parent, Some("a=1")).map(Box::new);
    let mut run = opened();
    run.record(activation(ActivatedBy::Model, End { trace, ..end() }));
    let unsampled = TraceContext::parse(&parent.replace("-01", "-00"), None).map(Box::new);
    run.record(activation(ActivatedBy::Model, End { trace: unsampled, ..end() }));
    let spans = run.spans();
    assert_eq!((spans.len(), spans[0].trace[0], spans[0].parent[0]), (1, 0x80, 0x7a));
    assert_eq!((&*spans[0].state, spans[0].flags), ("a=1", 0x301));
    let logs = run.collected.logs.iter().map(|log| LogRecord::decode(&**log).expect("a log record"));
    let flags: Vec<_> = logs.map(|log| (log.trace[0], log.flags)).collect();
    assert_eq!(flags, [(0x80, 1), (0x80, 0)]);
    // An administrator can require all spans.
    run.collected.takes_unsampled = true;
    let unsampled = TraceContext::parse(&parent.replace("-01", "-00"), None).map(Box::new);
    run.record(activation(ActivatedBy::Model, End { trace: unsampled, ..end() }));
    assert_eq!(run.spans().iter().map(|span| span.flags).collect::<Vec<_>>(), [0x301, 0x300]);
}

#[test]
fn ids_of_sessions_that_are_paths_are_not_sent() {
    let mut run = Run::new();
    run.step(1, &SessionStep::Opened("/home/SECRET.jsonl".to_owned()));
    run.time += 1;
    let what = EventKind::ToolCalled { skill: None, tool: None, end: end() };
    let event = Arc::new(Event::now(Some("/home/SECRET.jsonl".to_owned()), what));
    run.sessions.record(&event, run.time, &mut run.collected);
    run.sessions.end_all(run.time, &mut run.collected);
    let spans = run.spans();
    assert_eq!(run.names(), ["execute_tool call_skill_tool", "session"]);
    assert_eq!(spans[0].parent, spans[1].id);
    for span in spans {
        assert!(span.attributes.iter().all(|attribute| attribute.key != CONVERSATION));
        let found: Vec<_> = span.attributes.iter().filter(|one| [SKILL, TOOL].contains(&&*one.key)).collect();
        assert!(!format!("{found:?}").contains(SECRET));
    }
}
