//! Calls of our own tools are granted one by one.

use serde_json::{Value, json};

use super::*;

/// Builds the agent's request to read a file of the skill `git`. Its id and the id of the call are the number of the file.
fn reads(number: usize) -> Value {
    let name = "mcp__acp-skills__read_skill_file";
    let call = json!({
        "toolCallId": number.to_string(), "title": name, "name": name, "rawInput": input(number),
    });
    let options = json!([{ "optionId": "once", "name": "Allow", "kind": "allow_once" }]);
    let params = json!({ "sessionId": "s", "toolCall": call, "options": options });
    json!({ "jsonrpc": "2.0", "id": number, "method": "session/request_permission", "params": params })
}

fn input(number: usize) -> Value {
    json!({ "skill": "git", "path": format!("{number}.md") })
}

/// The ids of the requests that were granted, and of those that the user was asked about.
#[derive(Debug, Default, PartialEq)]
struct Decided {
    granted: Vec<u64>,
    asked: Vec<u64>,
}

impl Decided {
    fn read(out: &Out) -> Self {
        let ids =
            |lines: &[Value]| -> Vec<u64> { lines.iter().filter_map(|line| line["id"].as_u64()).collect() };
        Self { granted: ids(&out.to_agent), asked: ids(&out.to_client) }
    }

    fn of(granted: impl IntoIterator<Item = u64>, asked: impl IntoIterator<Item = u64>) -> Self {
        Self { granted: granted.into_iter().collect(), asked: asked.into_iter().collect() }
    }
}

/// Ends the timer that was started.
fn timer_ends(fixture: &mut Fixture, out: &Out) -> Out {
    let timer = out.tasks.iter().find_map(|task| match task {
        Task::CallTimer { session, timer, .. } => Some((*session, *timer)),
        _ => None,
    });
    let (session, timer) = timer.expect("a timer");
    fixture.handle(Input::CallTimerEnded { session, timer })
}

#[test]
fn requests_without_a_call_are_not_granted() {
    let mut fixture = fixture(CLAUDE, policy());
    fixture.prompt(1000, "s", &["hello"]);
    let mut decided = Decided::default();
    let mut timers = Vec::new();
    for number in 0..200 {
        let out = fixture.agent(&reads(number));
        let Decided { granted, asked } = Decided::read(&out);
        decided.granted.extend(granted);
        decided.asked.extend(asked);
        timers.extend(out.tasks);
    }
    assert_eq!(timers.len(), 1, "{timers:?}");
    // Some requests wait for the first call, and the user is asked about the others immediately.
    assert_eq!(decided, Decided::of([0], 17..200));
    let out = timer_ends(&mut fixture, &Out { tasks: timers, ..Out::default() });
    assert_eq!(Decided::read(&out), Decided::of([], 1..17));
    assert_eq!(Decided::read(&fixture.agent(&reads(200))), Decided::of([], [200]));
    // If the call arrives late, but in the same turn, further requests are granted. After the turn, it is too late.
    arrives(&mut fixture, "read_skill_file", &input(0));
    assert_eq!(Decided::read(&fixture.agent(&reads(201))), Decided::of([201], []));
    fixture.respond(1000, &json!({ "stopReason": "end_turn" }));
    assert_eq!(Decided::read(&fixture.agent(&reads(202))), Decided::of([], [202]));
    assert_eq!(Decided::read(&arrives(&mut fixture, "read_skill_file", &input(201))), Decided::default());
    assert_eq!(Decided::read(&fixture.agent(&reads(203))), Decided::of([], [203]));
}

#[test]
fn a_request_waits_for_the_call_before() {
    let mut fixture = fixture(CLAUDE, policy());
    fixture.prompt(1000, "s", &["hello"]);
    assert_eq!(Decided::read(&fixture.agent(&reads(0))), Decided::of([0], []));
    let waiting = fixture.agent(&reads(1));
    assert_eq!(Decided::read(&waiting), Decided::default());
    assert!(fixture.agent(&reads(2)).is_silence());
    // The request waits until the granted call arrives, which is a call of the same tool with the same input.
    for (tool, arguments) in [
        ("read_skill_file", input(1)),
        ("read_skill_file", json!({ "skill": "git" })),
        ("read_skill_file", json!({ "skill": 1, "path": "0.md" })),
        ("activate_skill", json!({ "name": "git" })),
        ("search_skills", input(0)),
    ] {
        assert!(arrives(&mut fixture, tool, &arguments).is_silence(), "{tool} {arguments}");
    }
    let mut arguments = input(0);
    arguments["limit"] = json!(10);
    let next = arrives(&mut fixture, "read_skill_file", &arguments);
    assert_eq!(Decided::read(&next), Decided::of([1], []));
    // The timer of the first call has no effect any more, but the timer of the second call does.
    assert!(timer_ends(&mut fixture, &waiting).is_nothing());
    assert_eq!(Decided::read(&timer_ends(&mut fixture, &next)), Decided::of([], [2]));
    // A request can be cancelled while it waits.
    arrives(&mut fixture, "read_skill_file", &input(1));
    assert_eq!(Decided::read(&fixture.agent(&reads(3))), Decided::of([3], []));
    assert!(fixture.agent(&reads(4)).is_nothing());
    let cancel = json!({ "jsonrpc": "2.0", "method": "session/cancel", "params": { "sessionId": "s" } });
    let out = fixture.client(&cancel);
    assert_eq!(out.to_agent[0]["result"]["outcome"]["outcome"], "cancelled", "{out:?}");
    assert!(arrives(&mut fixture, "read_skill_file", &input(3)).is_nothing());
}

/// Requests that would not be granted don't wait, and neither do requests for other tools.
#[test]
fn other_requests_do_not_wait() {
    let mut fixture = fixture(CLAUDE, policy());
    assert_eq!(Decided::read(&fixture.agent(&reads(0))), Decided::of([0], []));
    let mut without = reads(1);
    without["params"]["options"] =
        json!([{ "optionId": "always", "name": "Always", "kind": "allow_always" }]);
    let mut script = reads(2);
    script["params"]["toolCall"]["name"] = json!("mcp__acp-skills__run_skill_script");
    let mut other = reads(3);
    other["params"]["toolCall"]["name"] = json!("Bash");
    for (number, request) in (1..).zip([without, script, other]) {
        assert_eq!(Decided::read(&fixture.agent(&request)), Decided::of([], [number]));
    }
    // Sessions are independent of each other.
    fixture.new_session(9, "t");
    let mut elsewhere = reads(4);
    elsewhere["params"]["sessionId"] = json!("t");
    assert_eq!(Decided::read(&fixture.agent(&elsewhere)), Decided::of([4], []));
}

/// The agent asks again before it notices that the user has cancelled.
#[test]
fn a_call_that_is_granted_after_the_user_has_cancelled_is_not_expected() {
    for request in [false, true] {
        let mut fixture = fixture(CLAUDE, policy());
        fixture.prompt(1000, "s", &["hello"]);
        assert_eq!(Decided::read(&fixture.agent(&reads(0))), Decided::of([0], []));
        fixture.client(&if request {
            json!({ "jsonrpc": "2.0", "method": "$/cancel_request", "params": { "requestId": 1000 } })
        } else {
            json!({ "jsonrpc": "2.0", "method": "session/cancel", "params": { "sessionId": "s" } })
        });
        assert_eq!(Decided::read(&fixture.agent(&reads(1))), Decided::of([1], []));
        fixture.respond(1000, &json!({ "stopReason": "cancelled" }));
        fixture.prompt(1001, "s", &["hello"]);
        assert_eq!(Decided::read(&fixture.agent(&reads(2))), Decided::of([2], []), "request: {request}");
        // This is forgiven only once.
        fixture.respond(1001, &json!({ "stopReason": "end_turn" }));
        assert_eq!(Decided::read(&fixture.agent(&reads(3))), Decided::of([], [3]));
    }
}

/// The cancelled prompt was held here, so the agent goes on with its turn.
#[test]
fn a_prompt_that_the_agent_has_not_received_can_be_cancelled() {
    let mut fixture = fixture(CLAUDE, policy());
    fixture.prompt(1000, "s", &["hello"]);
    assert_eq!(Decided::read(&fixture.agent(&reads(0))), Decided::of([0], []));
    assert!(fixture.prompt(1001, "s", &["/git"]).is_nothing(), "its text is fetched");
    let params = json!({ "requestId": 1001 });
    fixture.client(&json!({ "jsonrpc": "2.0", "method": "$/cancel_request", "params": params }));
    assert_eq!(Decided::read(&fixture.agent(&reads(1))), Decided::default(), "it waits for the call");
    fixture.respond(1000, &json!({ "stopReason": "end_turn" }));
    fixture.prompt(1002, "s", &["hello"]);
    assert_eq!(Decided::read(&fixture.agent(&reads(2))), Decided::of([], [2]), "the claim was false");
}
