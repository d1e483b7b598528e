//! Recorded events and saved activations that depend on the order of events.

use std::time::Duration;

use serde_json::json;

use super::*;
use crate::{
    events::{ActivatedBy, End, Outcome},
    keys::SessionKey,
};

const KEY: SessionKey = SessionKey(1);

pub(super) fn activation(by: ActivatedBy) -> EventKind {
    let end =
        End { outcome: Outcome::Ok, error: None, bytes: 4, ms: Duration::from_millis(1).into(), trace: None };
    EventKind::SkillActivated { skill: Some("review".to_owned()), path: None, root: None, by, tokens: 1, end }
}

fn fetched(ticket: Ticket, by: ActivatedBy) -> Input {
    Input::Fetched {
        session: KEY,
        ticket,
        fetched: Fetched {
            text: Some("BODY".to_owned()),
            activations: vec![activation(by)],
            ..Fetched::default()
        },
    }
}

fn names(out: &Out) -> Vec<&str> {
    out.records.iter().map(|(_, what)| what.name()).collect()
}

fn remembered(out: &Out) -> Vec<(&str, Vec<ActivatedBy>)> {
    let by = |active: &ActiveSkills| active.iter().map(|active| active.by).collect();
    out.remembered.iter().map(|(id, active)| (id.as_str(), by(active))).collect()
}

fn waiting(activation: Activation) -> Fixture {
    let policy = Policy { mcp_wait: Duration::from_secs(2), activation, ..Policy::default() };
    let mut fixture = Fixture::new(policy).initialized("x", &json!({ "mcpCapabilities": { "http": true } }));
    fixture.new_session(1, "s");
    fixture
}

/// A text is fetched again if the agent does not list the tools in time. That is one activation.
#[test]
fn a_text_that_is_fetched_twice_is_activated_once() {
    for is_early in [true, false] {
        let mut fixture = waiting(Activation::Model);
        let old = fixture.prompt(2, "s", &["/review"]).ticket();
        let mut first = Out::default();
        if is_early {
            first = fixture.handle(fetched(old, ActivatedBy::User));
        }
        let out = fixture.timer_ends(KEY);
        assert_eq!(names(&out), ["fallback"]);
        let new = out.ticket();
        if !is_early {
            first = fixture.handle(fetched(old, ActivatedBy::User));
        }
        assert_eq!(names(&first), [""; 0]);
        let out = fixture.handle(fetched(new, ActivatedBy::User));
        assert_eq!(out.records, [(Some("s".to_owned()), activation(ActivatedBy::User))]);
    }
}

/// A skill is not active if its text was never sent.
#[test]
fn a_prompt_that_is_cancelled_activates_nothing() {
    let mut fixture = waiting(Activation::Model);
    let ticket = fixture.prompt(2, "s", &["/review"]).ticket();
    fixture.client(&json!({ "jsonrpc": "2.0", "method": "session/cancel", "params": { "sessionId": "s" } }));
    let out = fixture.handle(fetched(ticket, ActivatedBy::User));
    assert!(out.records.is_empty() && out.remembered.is_empty(), "{out:?}");
}

#[test]
fn only_new_activations_are_saved() {
    let mut fixture = waiting(Activation::Prompt);
    fixture.handle(Input::ToolsListed(KEY));
    let ticket = fixture.prompt(2, "s", &["please review"]).ticket();
    assert_eq!(
        remembered(&fixture.handle(fetched(ticket, ActivatedBy::Prompt))),
        [("s", vec![ActivatedBy::Prompt])]
    );
    let review = || Input::Activated(KEY, SkillName::new("review").unwrap());
    assert_eq!(remembered(&fixture.handle(review())), []);
    let ticket = fixture.prompt(3, "s", &["/review"]).ticket();
    assert_eq!(
        remembered(&fixture.handle(fetched(ticket, ActivatedBy::User))),
        [("s", vec![ActivatedBy::User])]
    );
    // A copy starts with this activation. Deleting the session also deletes what we saved, but closing it does not.
    fixture.request(4, "session/fork", &json!({ "sessionId": "s", "cwd": "/", "mcpServers": [] }));
    let out = fixture.respond(4, &json!({ "sessionId": "t" }));
    assert_eq!(
        (names(&out), remembered(&out)),
        (vec!["session_started"], vec![("t", vec![ActivatedBy::User])])
    );
    fixture.request(5, "session/close", &json!({ "sessionId": "s" }));
    assert_eq!(remembered(&fixture.respond(5, &json!({}))), []);
    fixture.request(6, "session/delete", &json!({ "sessionId": "t" }));
    assert_eq!(remembered(&fixture.respond(6, &json!({}))), [("t", vec![])]);
}

/// OpenCode uses the server of the session that was opened last for all sessions of a directory.
#[test]
fn a_call_belongs_to_the_session_that_works() {
    for (working, expected) in [(&["s"][..], "s"), (&["t"], "t"), (&["s", "t"], "t"), (&[], "t")] {
        let mut fixture = Fixture::new(policy()).initialized("OpenCode", &json!({}));
        fixture.new_session(1, "s");
        fixture.new_session(2, "t");
        for (request, session) in (3..).zip(working) {
            fixture.prompt(request, session, &["hello"]);
        }
        let out = fixture.handle(Input::Activated(SessionKey(2), SkillName::new("review").unwrap()));
        assert_eq!(remembered(&out), [(expected, vec![ActivatedBy::Model])], "{working:?}");
        let out = fixture.handle(Input::Recorded(SessionKey(2), activation(ActivatedBy::Model)));
        assert_eq!(out.records[0].0.as_deref(), Some(expected), "{working:?}");
    }
}

/// A source that is fetched in the background, or a new directory, can be refused after the start of a session.
#[test]
fn refusals_are_recorded_once() {
    use skills_core::{
        Diagnostic,
        set::{REFUSED_BY_POLICY, Skipped},
    };

    let set = |reasons: &[&str]| {
        let mut builder = SkillSet::builder();
        for reason in reasons {
            let why = Diagnostic::error(REFUSED_BY_POLICY, *reason);
            builder.skip(Skipped::new(std::path::PathBuf::from("/x"), vec![why]));
        }
        builder.build()
    };
    let refused = |reason: &str| EventKind::Refused { reason: reason.to_owned() };
    for (before, after, expected) in [
        (&[][..], &["a"][..], vec![refused("a")]),
        (&["a"], &["a", "b"], vec![refused("b")]),
        (&["a"], &["a"], vec![]),
        (&["a"], &[], vec![]),
    ] {
        assert_eq!(EventKind::new_refusals(&set(before), &set(after)), expected, "{before:?}");
    }
}
