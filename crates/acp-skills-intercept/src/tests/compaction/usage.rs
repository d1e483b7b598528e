//! Reports of the context usage: the ones that may be skipped, and the falls that don't count.

use super::*;

/// Sends a report. `S`, `N` and `Z` are placeholders for the session, the used tokens and the size.
fn report(fixture: &mut Fixture, form: &str, session: &str, used: u64, size: u64) {
    let line = form.replace('S', session).replace('N', &used.to_string()).replace('Z', &size.to_string());
    assert_eq!(fixture.agent_line(&format!("{line}\n")).client().to_string(), line);
}

const PLAIN: &str = r#"{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"S","update":{"sessionUpdate":"usage_update","used":N,"size":Z}}}"#;
const SIZE_FIRST: &str = r#"{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"S","update":{"sessionUpdate":"usage_update","size":Z,"used":N}}}"#;
const COST: &str = r#"{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"S","update":{"sessionUpdate":"usage_update","used":N,"size":Z,"cost":{"amount":0.1},"_meta":{"claudeCode":{}}}}}"#;
const SUBAGENT: &str = r#"{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"S","update":{"sessionUpdate":"usage_update","used":N,"size":Z,"cost":{"amount":0.1},"_meta":{"claudeCode":{"parentToolUseId":"p"}}}}}"#;
const SESSION_LAST: &str = r#"{"jsonrpc":"2.0","method":"session/update","params":{"update":{"sessionUpdate":"usage_update","used":N,"size":Z},"sessionId":"S"}}"#;

fn usage(fixture: &mut Fixture, used: u64) {
    report(fixture, PLAIN, "s", used, 200_000);
}

fn load(fixture: &mut Fixture, request: u64) {
    let params = json!({ "sessionId": "s", "cwd": "/project", "mcpServers": [] });
    fixture.request(request, "session/load", &params);
}

#[test]
fn a_session_that_is_opened_again_starts_with_new_reports() {
    for close in [false, true] {
        let mut fixture = session("x", &json!({ "loadSession": true }), &["review"]);
        fixture.host.recalled = vec![ActiveSkill::new(name("review"), ActivatedBy::Model)];
        usage(&mut fixture, 160_000);
        if close {
            fixture.request(3, "session/close", &json!({ "sessionId": "s" }));
            fixture.respond(3, &json!({}));
        }
        load(&mut fixture, 4);
        fixture.respond(4, &json!({}));
        prompt(&mut fixture, 5, "hello again");
        usage(&mut fixture, 170_000);
        end(&mut fixture, 5);
        usage(&mut fixture, 20_000);
        assert_eq!(restored(&mut fixture, 6), ["catalog", "review"], "closed: {close}");
    }
}

/// Two falls in a history that is replayed.
#[test]
fn a_fall_in_the_history_has_no_effect_later() {
    let mut fixture = session("x", &json!({ "loadSession": true }), &["review"]);
    load(&mut fixture, 3);
    for used in [150_000, 10_000, 150_000, 10_000] {
        usage(&mut fixture, used);
    }
    fixture.respond(3, &json!({}));
    assert_eq!(prompt(&mut fixture, 4, "go on"), ["go on"]);
    usage(&mut fixture, 60_000);
    completed(&mut fixture, "c");
    end(&mut fixture, 4);
    assert_eq!(restored(&mut fixture, 5), ["catalog", "review"]);
    // This fall belongs to the same compaction.
    usage(&mut fixture, 20_000);
    end(&mut fixture, 5);
    assert_eq!(prompt(&mut fixture, 6, "go on"), ["go on"]);
}

#[test]
fn a_fall_that_another_signal_confirms_is_not_taken_back() {
    for later in [&[150_000][..], &[160_000], &[160_000, 5_000, 160_000], &[30_000, 150_000, 5_000, 150_000]]
    {
        let mut fixture = session("x", &json!({}), &["review"]);
        usage(&mut fixture, 150_000);
        usage(&mut fixture, 20_000);
        completed(&mut fixture, "c");
        for used in later {
            usage(&mut fixture, *used);
        }
        assert_eq!(restored(&mut fixture, 3), ["catalog", "review"], "{later:?}");
    }
}

/// The prompt with the restoration is dropped, and then a subagent reports its usage.
#[test]
fn a_loss_whose_restoration_was_dropped_is_not_taken_back() {
    let mut fixture = session("x", &json!({}), &["review"]);
    usage(&mut fixture, 150_000);
    usage(&mut fixture, 60_000);
    assert_eq!(restored(&mut fixture, 3), ["catalog", "review"]);
    fixture.respond(3, &json!({ "stopReason": "cancelled" }));
    usage(&mut fixture, 5_000);
    usage(&mut fixture, 60_000);
    assert_eq!(restored(&mut fixture, 4), ["catalog", "review"]);
}

#[test]
fn reports_of_sessions_do_not_mix_if_the_session_comes_last() {
    let mut fixture = session("x", &json!({}), &["review"]);
    fixture.new_session(3, "t");
    fixture.prompt(4, "t", &["hello"]);
    fixture.handle(Input::Activated(SessionKey(2), name("pdf")));
    report(&mut fixture, SESSION_LAST, "s", 100_000, 200_000);
    report(&mut fixture, SESSION_LAST, "t", 150_000, 200_000);
    report(&mut fixture, SESSION_LAST, "s", 60_000, 200_000);
    assert_eq!(prompt(&mut fixture, 5, "go on"), ["go on"]);
    report(&mut fixture, SESSION_LAST, "t", 55_000, 200_000);
    let out = fixture.prompt(6, "t", &["go on"]);
    assert!(matches!(out.wanted(), Wanted::Active { names, .. } if *names == [name("pdf")]), "{out:?}");
}

#[test]
fn reports_of_a_subagent_do_not_count() {
    for (reports, expected) in [
        (&[(COST, 100_000), (SUBAGENT, 199_000), (COST, 95_000)][..], false),
        (&[(COST, 100_000), (SUBAGENT, 60_000), (COST, 40_000)], true),
        (&[(COST, 100_000), (SUBAGENT, 5_000), (COST, 101_000)], false),
        (&[(SUBAGENT, 100_000), (SUBAGENT, 5_000), (COST, 5_000)], false),
    ] {
        let mut fixture = session("x", &json!({}), &["review"]);
        for (form, used) in reports {
            report(&mut fixture, form, "s", *used, 200_000);
        }
        assert_eq!(!restored(&mut fixture, 3).is_empty(), expected, "{reports:?}");
    }
}

/// The user chooses a model with a smaller context, in which the conversation is no longer small.
#[test]
fn a_new_size_counts() {
    for form in [PLAIN, SIZE_FIRST, COST] {
        let mut fixture = session("x", &json!({}), &["review"]);
        for (used, size) in [(30_000, 1_000_000), (31_000, 1_000_000), (32_000, 100_000), (35_000, 100_000)] {
            report(&mut fixture, form, "s", used, size);
        }
        report(&mut fixture, form, "s", 10_000, 100_000);
        assert_eq!(restored(&mut fixture, 3), ["catalog", "review"], "{form}");
    }
}
