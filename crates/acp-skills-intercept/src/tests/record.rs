//! What is recorded and remembered, where the order of things decides.

use std::time::Duration;

use serde_json::json;

use super::*;
use crate::{
    events::{ActivatedBy, End, Outcome},
    keys::SessionKey,
};

const KEY: SessionKey = SessionKey(1);

pub(super) fn activation(by: ActivatedBy) -> EventKind {
    let end = End { outcome: Outcome::Ok, error: None, bytes: 4, ms: Duration::from_millis(1).into() };
    EventKind::SkillActivated { skill: Some("review".to_owned()), path: None, by, tokens: 1, end }
}

fn fetched(ticket: Ticket, by: ActivatedBy) -> Input {
    Input::Fetched {
        session: KEY,
        ticket,
        fetched: Fetched { text: Some("BODY".to_owned()), activations: vec![activation(by)] },
    }
}

fn names(out: &Out) -> Vec<&str> {
    out.records.iter().map(|(_, what)| what.name()).collect()
}

fn remembered(out: &Out) -> Vec<(&str, Vec<ActivatedBy>)> {
    let by = |active: &ActiveSkills| active.iter().map(|(_, by)| *by).collect();
    out.remembered.iter().map(|(id, active)| (id.as_str(), by(active))).collect()
}

fn waiting(activation: Activation) -> World {
    let policy = Policy { mcp_wait: Duration::from_secs(2), activation, ..Policy::default() };
    let mut world = World::new(policy).initialized("x", &json!({ "mcpCapabilities": { "http": true } }));
    world.new_session(1, "s");
    world
}

/// A text that is fetched again, because the tools did not come, is one activation.
#[test]
fn fetched_twice_is_activated_once() {
    for is_early in [true, false] {
        let mut world = waiting(Activation::Model);
        let old = world.prompt(2, "s", &["/review"]).ticket();
        let mut first = Out::default();
        if is_early {
            first = world.handle(fetched(old, ActivatedBy::User));
        }
        let out = world.timer_ends(KEY);
        assert_eq!(names(&out), ["fallback"]);
        let new = out.ticket();
        if !is_early {
            first = world.handle(fetched(old, ActivatedBy::User));
        }
        assert_eq!(names(&first), [""; 0]);
        let out = world.handle(fetched(new, ActivatedBy::User));
        assert_eq!(out.records, [(Some("s".to_owned()), activation(ActivatedBy::User))]);
    }
}

/// Nobody activated what nobody got.
#[test]
fn a_prompt_that_is_cancelled_activates_nothing() {
    let mut world = waiting(Activation::Model);
    let ticket = world.prompt(2, "s", &["/review"]).ticket();
    world.client(&json!({ "jsonrpc": "2.0", "method": "session/cancel", "params": { "sessionId": "s" } }));
    let out = world.handle(fetched(ticket, ActivatedBy::User));
    assert!(out.records.is_empty() && out.remembered.is_empty(), "{out:?}");
}

#[test]
fn only_what_is_new_is_remembered() {
    let mut world = waiting(Activation::Prompt);
    world.handle(Input::ToolsListed(KEY));
    let ticket = world.prompt(2, "s", &["please review"]).ticket();
    assert_eq!(
        remembered(&world.handle(fetched(ticket, ActivatedBy::Prompt))),
        [("s", vec![ActivatedBy::Prompt])]
    );
    let review = || Input::Activated(KEY, SkillName::new("review").unwrap());
    assert_eq!(remembered(&world.handle(review())), []);
    let ticket = world.prompt(3, "s", &["/review"]).ticket();
    assert_eq!(
        remembered(&world.handle(fetched(ticket, ActivatedBy::User))),
        [("s", vec![ActivatedBy::User])]
    );
    // A fork begins with it, and what is deleted is forgotten; what is closed is not.
    world.request(4, "session/fork", &json!({ "sessionId": "s", "cwd": "/", "mcpServers": [] }));
    let out = world.respond(4, &json!({ "sessionId": "t" }));
    assert_eq!(
        (names(&out), remembered(&out)),
        (vec!["session_started"], vec![("t", vec![ActivatedBy::User])])
    );
    world.request(5, "session/close", &json!({ "sessionId": "s" }));
    assert_eq!(remembered(&world.respond(5, &json!({}))), []);
    world.request(6, "session/delete", &json!({ "sessionId": "t" }));
    assert_eq!(remembered(&world.respond(6, &json!({}))), [("t", vec![])]);
}
