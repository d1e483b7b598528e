//! What `allowed-tools` of the active skills decide about calls that are not ours, and which option is chosen.

use serde_json::json;

use super::*;

#[test]
fn policies() {
    use ToolPolicy::{Approval, Permissive, Strict};
    let git = call("Bash", &json!({ "command": "git status" }));
    let rm = call("Bash", &json!({ "command": "rm -rf x" }));
    let both = call("Bash", &json!({ "command": "git status -s; rm -rf x" }));
    let read = call("Read", &json!({ "file_path": "/project/a" }));
    let note = call("Edit", &json!({ "file_path": "/project/notes/a.md" }));
    let linked = call("Edit", &json!({ "file_path": "notes/link/passwd" }));
    let nameless = json!({ "toolCallId": "1", "title": "Bash(rm)", "rawInput": { "command": "rm -rf x" } });
    let ours = call("mcp__acp-skills__call_skill_tool", &json!({}));
    // Active by the user, by the model; the call; and what each policy makes of it.
    for (by_user, by_model, call, [permissive, approval, strict]) in [
        (None, None, &rm, ["asked", "asked", "asked"]),
        (Some("free"), None, &rm, ["asked", "asked", "asked"]),
        (Some("git"), None, &git, ["asked", "proceed_once", "asked"]),
        (Some("git"), None, &read, ["asked", "proceed_once", "asked"]),
        (Some("git"), None, &rm, ["asked", "asked", "no"]),
        (Some("git"), None, &both, ["asked", "asked", "asked"]),
        (Some("git"), None, &nameless, ["asked", "asked", "asked"]),
        (Some("git"), None, &ours, ["asked", "asked", "asked"]),
        (None, Some("git"), &git, ["asked", "asked", "asked"]),
        (None, Some("git"), &rm, ["asked", "asked", "no"]),
        // The union; what the model activated grants nothing.
        (Some("git"), Some("notes"), &note, ["asked", "asked", "asked"]),
        (Some("notes"), Some("git"), &note, ["asked", "proceed_once", "asked"]),
        (Some("git"), None, &note, ["asked", "asked", "no"]),
        // The name of a program that runs others grants nothing.
        (Some("vague"), None, &git, ["asked", "asked", "asked"]),
        // Inside as it is written, and outside where it leads.
        (Some("notes"), None, &linked, ["asked", "asked", "asked"]),
    ] {
        for (tool_policy, expected) in [(Permissive, permissive), (Approval, approval), (Strict, strict)] {
            let mut fixture = fixture(CLAUDE, Policy { tool_policy, ..policy() });
            if let Some(skill) = by_user {
                invoke(&mut fixture, skill);
            }
            if let Some(skill) = by_model {
                activate(&mut fixture, skill);
            }
            let found = ask(&mut fixture, call, None);
            assert_eq!(outcome(&found), expected, "{tool_policy:?} {by_user:?} {by_model:?} {call}");
        }
    }
}

#[test]
fn only_once_and_only_what_is_offered() {
    let mut fixture = fixture(CLAUDE, policy());
    let name = "mcp__acp-skills__activate_skill";
    for (session, options, expected) in [
        ("s", json!([{ "optionId": "a", "kind": "allow_always" }]), "asked"),
        ("s", json!([]), "asked"),
        ("other", json!([{ "optionId": "a", "kind": "allow_once" }]), "asked"),
        ("s", json!([{ "optionId": "a", "kind": "allow_once" }]), "a"),
    ] {
        let params = json!({ "sessionId": session, "toolCall": { "name": name }, "options": options });
        let out = fixture.agent(
            &json!({ "jsonrpc": "2.0", "id": 7, "method": "session/request_permission", "params": params }),
        );
        assert_eq!(outcome(&out), expected, "{options}");
    }
}

/// Options that allow a call once may differ in what else they do: another mode, an answer to a question.
#[test]
fn of_several_ways_to_allow_the_user_chooses() {
    let options = json!([
        { "optionId": "auto", "kind": "allow_once", "name": "Yes, and accept all edits" },
        { "optionId": "yes", "kind": "allow_once", "name": "Yes" },
        { "optionId": "no", "kind": "reject_once", "name": "No" },
        { "optionId": "never", "kind": "reject_once", "name": "No, and say why" },
    ]);
    let read = call("Read", &json!({ "file_path": "/project/a" }));
    let rm = call("Bash", &json!({ "command": "rm x" }));
    let ours = call("mcp__acp-skills__activate_skill", &json!({ "name": "git" }));
    for (tool_policy, call, expected) in [
        (ToolPolicy::Approval, &read, "asked"),
        (ToolPolicy::Strict, &rm, "no"),
        // Ours changes nothing, whichever it is.
        (ToolPolicy::Approval, &ours, "auto"),
    ] {
        let mut fixture = fixture(CLAUDE, Policy { tool_policy, ..policy() });
        invoke(&mut fixture, "git");
        let params = json!({ "sessionId": "s", "toolCall": call, "options": options });
        let request =
            json!({ "jsonrpc": "2.0", "id": 7, "method": "session/request_permission", "params": params });
        let mut out = fixture.agent(&request);
        // A path is resolved first.
        out.tasks.clear();
        assert_eq!(outcome(&out), expected, "{call}");
    }
}

/// Some agents count their calls anew in each turn, and do not always name the tool.
#[test]
fn a_name_is_that_of_the_last_call_with_its_id() {
    let announce = |fixture: &mut Fixture, name: Option<&str>| {
        let mut update = json!({ "sessionUpdate": "tool_call", "toolCallId": "call_0", "title": "x" });
        if let Some(name) = name {
            update["name"] = name.into();
        }
        fixture.update("s", &update);
    };
    let nameless = json!({ "toolCallId": "call_0", "title": "x", "rawInput": { "command": "rm -rf ~" } });
    for (second, expected) in [(Some("Read"), "proceed_once"), (Some("Bash"), "asked"), (None, "asked")] {
        let mut fixture = fixture(CLAUDE, Policy { tool_policy: ToolPolicy::Approval, ..policy() });
        invoke(&mut fixture, "git");
        announce(&mut fixture, Some("Read"));
        announce(&mut fixture, second);
        assert_eq!(outcome(&ask(&mut fixture, &nameless, None)), expected, "{second:?}");
    }
}

#[test]
fn decisions_are_shown() {
    let mut fixture = fixture(CLAUDE, Policy { tool_policy: ToolPolicy::Strict, ..policy() });
    invoke(&mut fixture, "git");
    ask(&mut fixture, &call("Bash", &json!({ "command": "rm x" })), None);
    for _ in 0..2 {
        ask(&mut fixture, &call("mcp__acp-skills__activate_skill", &json!({})), None);
    }
    let out = fixture.prompt(9, "s", &["/skills"]);
    let text = out.to_client[0]["params"]["update"]["content"]["text"].as_str().unwrap();
    for line in [
        "**Permissions decided for you**",
        "- refused `Bash`: not in `allowed-tools` of the active skills",
        "- allowed `activate_skill`: a tool of the skills (2 times)\n",
    ] {
        assert!(text.contains(line), "{text}");
    }
}
