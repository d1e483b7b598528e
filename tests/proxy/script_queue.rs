//! Scripts that have to wait, because the maximum number of scripts runs already: their order, and calls that are dropped or whose
//! files change before they start.

use std::{net::TcpStream, path::PathBuf, sync::mpsc::Receiver};

use serde_json::{Value, json};

use crate::{
    agent::scripts,
    editor::Editor,
    fixture::{Fixture, entry},
    progress::{HELD, expect, http_session, listen_for_processes},
    scripts::{bridge, bridge_in, bridge_to, cancelled, kit, request, with_long_timeout},
    skills::Skills,
    trust::{Project, trust_all},
};

crate::trials!(
    waiting_calls_are_dropped_with_their_turn,
    waiting_calls_are_dropped_with_their_connection,
    a_waiting_script_runs_only_if_it_is_still_approved,
    sessions_start_scripts_in_turn,
    a_script_ends_with_its_bridge,
);

/// The number of scripts that run at the same time.
const RUNNING: u64 = 4;

/// Starts as many scripts as can run, with the ids from 100. Each receiver yields a line when its script has ended.
fn fill(mut send: impl FnMut(Value)) -> Vec<Receiver<String>> {
    (0..RUNNING)
        .map(|id| {
            let (address, seen) = listen_for_processes();
            send(request(100 + id, "hold", &[&address], None));
            expect(&seen, HELD);
            seen
        })
        .collect()
}

/// Ends a script that [`fill`] has started.
fn release(client: &mut Editor, running: &[Receiver<String>], id: usize) {
    client.send(&cancelled(100 + id as u64));
    expect(&running[id], "gone");
}

/// Returns a file that the script `mark` creates.
fn mark(skills: &Skills) -> PathBuf {
    skills.path().join("mark")
}

fn waiting_calls_are_dropped_with_their_turn() {
    let skills = kit();
    let mut fixture = Fixture::over_http(with_long_timeout(&skills).flag("--mcp", "stdio"));
    let mut client = bridge(&mut fixture);
    let running = fill(|call| client.send(&call));
    let mark = mark(&skills);
    for id in 1..=3 {
        client.send(&request(id, "mark", &[mark.to_str().expect("text")], None));
    }
    // The answer shows that the calls before it have been received.
    client.send(&json!({ "jsonrpc": "2.0", "id": 9, "method": "ping" }));
    client.answer(&json!(9));
    fixture.editor.notify("session/cancel", json!({ "sessionId": "s" }));
    for id in 1..=3 {
        let result = &client.answer(&json!(id))["result"]["structuredContent"];
        assert_eq!(
            (&result["success"], &result["error"]),
            (&json!(false), &json!("ExecutionFailed")),
            "{result}"
        );
        assert!(result["message"].as_str().expect("text").contains("call was cancelled"), "{result}");
    }
    // Calls that arrive later are not affected.
    client.send(&request(4, "much", &[], None));
    for id in 0..running.len() {
        release(&mut client, &running, id);
    }
    assert_eq!(client.answer(&json!(4))["result"]["structuredContent"]["success"], true);
    assert!(!mark.exists());
    client.finish();
    fixture.agent_receives();
    fixture.finish();
}

fn waiting_calls_are_dropped_with_their_connection() {
    let skills = kit();
    let mut fixture = Fixture::over_http(with_long_timeout(&skills));
    let (endpoint, headers) = http_session(&mut fixture);
    let mut open: Vec<TcpStream> = Vec::new();
    let running = fill(|call| open.push(endpoint.post_without_reading(&headers, &call)));
    let mark = mark(&skills);
    for id in 1..=3 {
        drop(
            endpoint
                .post_without_reading(&headers, &request(id, "mark", &[mark.to_str().expect("text")], None)),
        );
    }
    assert_eq!(endpoint.post(&headers, &json!({ "jsonrpc": "2.0", "id": 4, "method": "ping" })).0, 200);
    for (id, seen) in running.iter().enumerate() {
        assert_eq!(endpoint.post(&headers, &cancelled(100 + id as u64)).0, 202);
        expect(seen, "gone");
    }
    let (status, answer) = endpoint.post(&headers, &request(5, "much", &[], None));
    assert!(status == 200 && answer.contains(r#""success":true"#), "{answer}");
    assert!(!mark.exists());
    fixture.finish();
}

fn a_waiting_script_runs_only_if_it_is_still_approved() {
    for (is_untrusted, expected) in [(false, "has changed since"), (true, "its skill was removed")] {
        let project = Project::new();
        let path = |name| {
            let (extension, text) = scripts::file(name);
            (format!(".skills/deploy/scripts/{name}.{extension}"), text)
        };
        for (path, text) in ["hold", "much"].map(path) {
            project.checkout.write(&path, &text);
        }
        let proxy = project.proxy().arg("--no-watch").arg("--allow-scripts");
        let mut fixture = Fixture::over_http(proxy.flag("--script-timeout", "600").flag("--mcp", "stdio"));
        let params = project.open(&mut fixture, "s");
        let mut client = bridge_to(&entry(&params));
        trust_all(&mut fixture);
        let deploy = |mut call: Value| {
            call["params"]["arguments"]["skill"] = json!("deploy");
            call
        };
        let running = fill(|call| client.send(&deploy(call)));
        client.send(&deploy(request(1, "much", &[], Some("t"))));
        // After a second, the call is certainly in the queue.
        client.wait_for("progress", |message| message["method"] == "notifications/progress");
        if is_untrusted {
            assert!(fixture.ask("/skills untrust deploy").contains("deploy"));
        } else {
            project.checkout.write(&path("much").0, "echo ZQ-changed\n");
            release(&mut client, &running, 0);
        }
        let result = &client.answer(&json!(1))["result"]["structuredContent"];
        assert!(result["message"].as_str().is_some_and(|text| text.contains(expected)), "{result}");
        assert_eq!((&result["success"], &result["stdout"]), (&json!(false), &json!("")), "{result}");
        for id in usize::from(!is_untrusted)..running.len() {
            release(&mut client, &running, id);
        }
        client.finish();
        fixture.finish();
    }
}

fn sessions_start_scripts_in_turn() {
    let skills = kit();
    let mut fixture = Fixture::over_http(with_long_timeout(&skills).flag("--mcp", "stdio"));
    let mut busy = bridge(&mut fixture);
    let running = fill(|call| busy.send(&call));
    let never = skills.path().join("never");
    for id in 1..=20 {
        busy.send(&request(id, "until", &[never.to_str().expect("text")], None));
    }
    // The answer shows that the calls before it have been received.
    busy.send(&json!({ "jsonrpc": "2.0", "id": 30, "method": "ping" }));
    busy.answer(&json!(30));
    let mut other = bridge_in(&mut fixture, "t");
    other.send(&request(1, "much", &[], Some("t")));
    // After a second, the call is certainly in the queue.
    other.wait_for("progress", |message| message["method"] == "notifications/progress");
    // At least every second script that starts is one of the other session.
    release(&mut busy, &running, 0);
    release(&mut busy, &running, 1);
    assert_eq!(other.answer(&json!(1))["result"]["structuredContent"]["success"], true);
    other.finish();
    busy.finish();
    fixture.finish();
}

/// The bridge is killed, so the agent cannot read the result.
fn a_script_ends_with_its_bridge() {
    let skills = kit();
    let mut fixture = Fixture::over_http(with_long_timeout(&skills).flag("--mcp", "stdio"));
    let mut client = bridge(&mut fixture);
    let running = fill(|call| client.send(&call));
    let mark = mark(&skills);
    client.send(&request(1, "mark", &[mark.to_str().expect("text")], None));
    client.send(&json!({ "jsonrpc": "2.0", "id": 2, "method": "ping" }));
    client.answer(&json!(2));
    client.kill();
    for seen in &running {
        expect(seen, "gone");
    }
    let mut other = bridge_in(&mut fixture, "t");
    other.send(&request(1, "much", &[], None));
    assert_eq!(other.answer(&json!(1))["result"]["structuredContent"]["success"], true);
    assert!(!mark.exists());
    other.finish();
    fixture.finish();
}
