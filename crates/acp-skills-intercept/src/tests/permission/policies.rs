//! Tests of `allowed-tools`, which decide about calls that are not ours, and of the chosen option.

use std::path::Path;

use serde_json::json;
use skills_core::{Scope, Source, skill::FileGuard};

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
    // The skills that were activated by the user and by the model, the call, and the outcome for each policy.
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
        // The patterns of all active skills are used, except for those that the model has activated by itself.
        (Some("git"), Some("notes"), &note, ["asked", "asked", "asked"]),
        (Some("notes"), Some("git"), &note, ["asked", "proceed_once", "asked"]),
        (Some("git"), None, &note, ["asked", "asked", "no"]),
        // For programs that can run other programs, the name is not enough.
        (Some("vague"), None, &git, ["asked", "asked", "asked"]),
        // The path matches, but it's a link to a path that doesn't.
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

/// Claude keeps the directory of its shell between commands, and doesn't ask before `cd`. In another directory, git reads other settings.
#[test]
fn commands_are_asked_about_if_the_shell_has_moved() {
    let git = call("Bash", &json!({ "command": "git status" }));
    let here = call("Bash", &json!({ "command": "git status", "cwd": "/project" }));
    let read = call("Read", &json!({ "file_path": "/project/a" }));
    for (skill, call, moved) in
        [("git", &git, "asked"), ("git", &here, "proceed_once"), ("git", &read, "proceed_once")]
    {
        let mut fixture = fixture(CLAUDE, Policy { tool_policy: ToolPolicy::Approval, ..policy() });
        invoke(&mut fixture, skill);
        for (command, expected) in [("ls", "proceed_once"), ("cd vendor", moved), ("cd /project", moved)] {
            let update = json!({
                "sessionUpdate": "tool_call_update", "toolCallId": "shell", "rawInput": { "command": command },
            });
            fixture.update("s", &update);
            let found = ask(&mut fixture, call, None);
            assert_eq!(outcome(&found), expected, "{command} {call}");
        }
    }
}

/// Claude enters a worktree without asking, and names the subagent of a call only in its announcement.
#[test]
fn commands_are_asked_about_in_worktrees_and_subagents() {
    let git = call("Bash", &json!({ "command": "git status" }));
    let here = call("Bash", &json!({ "command": "git status", "cwd": "/project" }));
    let claude = |id: &str, tool: &str, input: Value, parent: Value| {
        json!({
            "sessionUpdate": "tool_call", "toolCallId": id, "title": "x", "rawInput": input,
            "_meta": { "claudeCode": { "toolName": tool, "parentToolUseId": parent } },
        })
    };
    let none = Value::Null;
    for (update, expected) in [
        (claude("0", "EnterWorktree", json!({ "name": "x" }), none.clone()), ["asked", "proceed_once"]),
        (claude("0", "Agent", json!({ "isolation": "worktree" }), none.clone()), ["asked", "proceed_once"]),
        (claude("1", "Bash", json!({ "command": "git status" }), json!("p")), ["asked", "proceed_once"]),
        (
            claude("0", "Bash", json!({ "command": "git status" }), json!("p")),
            ["proceed_once", "proceed_once"],
        ),
        (claude("1", "Bash", json!({ "command": "git status" }), none), ["proceed_once", "proceed_once"]),
    ] {
        let mut fixture = fixture(CLAUDE, Policy { tool_policy: ToolPolicy::Approval, ..policy() });
        invoke(&mut fixture, "git");
        fixture.update("s", &update);
        for (call, expected) in [&git, &here].into_iter().zip(expected) {
            assert_eq!(outcome(&ask(&mut fixture, call, None)), expected, "{update} {call}");
        }
    }
}

/// An agent can resume a session in another directory. In another directory of the session, the user has invoked no skill.
#[test]
fn a_session_that_is_opened_again_or_copied_has_fewer_rights() {
    let git = call("Bash", &json!({ "command": "git status" }));
    let here = |cwd: &str| call("Bash", &json!({ "command": "git status", "cwd": cwd }));
    let write = call("Write", &json!({ "content": "x" }));
    for (method, cwd, expected) in [
        ("session/load", "/project", ["asked", "proceed_once", "proceed_once"]),
        ("session/resume", "/project", ["asked", "proceed_once", "proceed_once"]),
        ("session/fork", "/project", ["asked", "proceed_once", "proceed_once"]),
        ("session/load", "/other", ["asked"; 3]),
        ("session/resume", "/other", ["asked"; 3]),
        ("session/fork", "/other", ["asked"; 3]),
    ] {
        let mut properties = Properties::default();
        properties.allowed_tools = ["Bash(git status:*)", "Write"].map(str::to_owned).to_vec();
        let skill = Skill::builder("git", "x").body("x").properties(properties).build().unwrap();
        let policy = Policy { tool_policy: ToolPolicy::Approval, ..policy() };
        let mut fixture = Fixture::with_skills(policy, [skill].into_iter().collect())
            .initialized(CLAUDE, &json!({ "loadSession": true }));
        fixture.request(1, "session/new", &json!({ "sessionId": "s", "cwd": "/project", "mcpServers": [] }));
        fixture.respond(1, &json!({ "sessionId": "s" }));
        invoke(&mut fixture, "git");
        fixture.respond(2, &json!({ "stopReason": "end_turn" }));
        assert_eq!(outcome(&ask(&mut fixture, &git, None)), "proceed_once");
        fixture.request(3, method, &json!({ "sessionId": "s", "cwd": cwd, "mcpServers": [] }));
        // The copy takes the place of the session, so that the same requests are about it.
        fixture.respond(3, &json!({ "sessionId": "s" }));
        for (call, expected) in [&git, &here(cwd), &write].into_iter().zip(expected) {
            assert_eq!(outcome(&ask(&mut fixture, call, None)), expected, "{method} {cwd} {call}");
        }
    }
}

/// The target of a path is not known if the agent runs on another machine, or if its shell has left the directory.
#[test]
fn paths_that_cannot_be_resolved_have_no_rights() {
    let edit = |path: &str| call("Edit", &json!({ "file_path": path }));
    let read = call("Read", &json!({ "file_path": "notes/a.md" }));
    let cd = call("Bash", &json!({ "command": "cd x" }));
    for (elsewhere, moves, expected) in [
        (false, false, ["proceed_once"; 3]),
        (true, false, ["asked", "asked", "proceed_once"]),
        (false, true, ["asked", "proceed_once", "proceed_once"]),
    ] {
        let policy = Policy { tool_policy: ToolPolicy::Approval, elsewhere, ..policy() };
        let mut fixture = fixture(CLAUDE, policy);
        invoke(&mut fixture, "notes");
        invoke(&mut fixture, "git");
        if moves {
            ask(&mut fixture, &cd, None);
        }
        let calls = [edit("notes/a.md"), edit("/project/notes/a.md"), read.clone()];
        for (call, expected) in calls.iter().zip(expected) {
            assert_eq!(outcome(&ask(&mut fixture, call, None)), expected, "{elsewhere} {moves} {call}");
        }
    }
}

#[test]
fn the_calls_of_an_agent_elsewhere_can_be_refused() {
    let policy = Policy { tool_policy: ToolPolicy::Strict, elsewhere: true, ..policy() };
    let mut fixture = fixture(CLAUDE, policy);
    invoke(&mut fixture, "notes");
    for (tool, path, expected) in
        [("Write", "notes/a.md", "no"), ("Edit", "/etc/passwd", "no"), ("Edit", "notes/a.md", "asked")]
    {
        let call = call(tool, &json!({ "file_path": path }));
        assert_eq!(outcome(&ask(&mut fixture, &call, None)), expected, "{tool} {path}");
    }
}

/// The active skills are saved, and the client loads the session after a restart.
#[test]
fn saved_rights_are_for_one_directory() {
    let read = call("Read", &json!({ "file_path": "a" }));
    for (cwd, expected) in [("/project", "proceed_once"), ("/other", "asked")] {
        let policy = || Policy { tool_policy: ToolPolicy::Approval, ..policy() };
        let saved = invoke_with(&mut fixture(CLAUDE, policy()), &["/git"]);
        let mut restarted =
            Fixture::with_skills(policy(), skills()).initialized(CLAUDE, &json!({ "loadSession": true }));
        restarted.host.recalled = saved;
        restarted.request(1, "session/load", &json!({ "sessionId": "s", "cwd": cwd, "mcpServers": [] }));
        restarted.respond(1, &json!({}));
        assert_eq!(outcome(&ask(&mut restarted, &read, None)), expected, "{cwd}");
    }
}

/// A file that the client attached as text can begin with the name of a skill. The user did not choose that skill.
#[test]
fn a_skill_that_a_file_may_have_invoked_has_no_rights() {
    let git = call("Bash", &json!({ "command": "git status" }));
    for (blocks, expected) in [
        (&["/git now"][..], "proceed_once"),
        (&["/git now", " "], "proceed_once"),
        (&["Review this file.", "/git is its first line"], "asked"),
        (&["/git now", "a file"], "asked"),
    ] {
        let mut fixture = fixture(CLAUDE, Policy { tool_policy: ToolPolicy::Approval, ..policy() });
        invoke_with(&mut fixture, blocks);
        assert_eq!(outcome(&ask(&mut fixture, &git, None)), expected, "{blocks:?}");
    }
}

/// The client can provide another skill of the same name when it opens a session again.
#[test]
fn another_skill_of_the_client_has_no_rights() {
    let skill = |tool: &str, body: &str| {
        let content = format!("---\nname: fmt\ndescription: x\nallowed-tools: {tool}\n---\n{body}\n");
        json!({ "name": "fmt", "description": "x", "content": content })
    };
    let read = call("Read", &json!({}));
    for (again, expected) in [
        (skill("Read", "Format."), "proceed_once"),
        (skill("Read", "Other."), "asked"),
        (skill("Write Read", "Format."), "asked"),
    ] {
        let policy = Policy { tool_policy: ToolPolicy::Approval, drafts: true, ..policy() };
        let capabilities = json!({ "loadSession": true });
        let mut fixture =
            Fixture::with_skills(policy, SkillSet::default()).initialized(CLAUDE, &capabilities);
        let before = skill("Read", "Format.");
        let params = |skill: &Value| json!({ "sessionId": "s", "cwd": "/p", "mcpServers": [], "agentSkills": [skill] });
        fixture.request(1, "session/new", &params(&before));
        fixture.respond(1, &json!({ "sessionId": "s" }));
        invoke(&mut fixture, "fmt");
        fixture.respond(2, &json!({ "stopReason": "end_turn" }));
        assert_eq!(outcome(&ask(&mut fixture, &read, None)), "proceed_once");
        fixture.request(3, "session/load", &params(&again));
        fixture.respond(3, &json!({}));
        assert_eq!(outcome(&ask(&mut fixture, &read, None)), expected, "{again}");
    }
}

#[test]
fn only_an_offered_option_for_one_call_is_chosen() {
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

/// Options that allow a call once may also switch the mode, or answer a question.
#[test]
fn the_user_chooses_between_several_options_that_allow() {
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
        // Since our tool doesn't change anything, it doesn't matter which option we use.
        (ToolPolicy::Approval, &ours, "auto"),
    ] {
        let mut fixture = fixture(CLAUDE, Policy { tool_policy, ..policy() });
        invoke(&mut fixture, "git");
        let params = json!({ "sessionId": "s", "toolCall": call, "options": options });
        let request =
            json!({ "jsonrpc": "2.0", "id": 7, "method": "session/request_permission", "params": params });
        let mut out = fixture.agent(&request);
        // The path has to be resolved first, so ignore the task for this.
        out.tasks.clear();
        assert_eq!(outcome(&out), expected, "{call}");
    }
}

/// Some agents number their calls from the start in each turn, and do not always name the tool.
#[test]
fn the_last_announced_call_with_an_id_counts() {
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
        arrives(&mut fixture, "activate_skill", &json!({}));
    }
    let out = fixture.prompt(9, "s", &["/skills"]);
    let text = out.to_client[0]["params"]["update"]["content"]["text"].as_str().unwrap();
    for line in [
        "**Permissions decided for you**",
        "- refused `Bash`: not in `allowed-tools` of any active skill",
        "- allowed `activate_skill`: read-only skill tool (2 times)\n",
    ] {
        assert!(text.contains(line), "{text}");
    }
}

/// The user's activation is of a skill, not of a name: another skill of this name has no rights, and neither has a version that was
/// approved later.
#[test]
fn only_the_activated_skill_has_rights() {
    let version = |scope: Scope, version: &str| {
        let mut properties = Properties::default();
        properties.allowed_tools = vec!["Bash".to_owned()];
        properties.disable_model_invocation = true;
        let stored = skills_core::skill::Stored::new(Path::new("/skills/git"), "SKILL.md");
        let mut skill = Skill::new(SkillName::new("git").unwrap(), "x", Source::Stored(stored));
        skill.properties = properties;
        skill.scope = scope;
        let guard = skills_core::skill::Guard::new(version, Everything);
        SkillSet::from_iter([if version.is_empty() { skill } else { skill.guarded(guard) }])
    };
    let call = call("Bash", &json!({ "command": "git status" }));
    for (before, after, is_same) in [
        (version(Scope::Project, "v1"), version(Scope::Project, "v1"), true),
        (version(Scope::Project, "v1"), version(Scope::Project, "v2"), false),
        (version(Scope::User, ""), version(Scope::User, ""), true),
        (version(Scope::User, ""), version(Scope::Project, "v1"), false),
    ] {
        let policy = Policy { tool_policy: ToolPolicy::Approval, ..policy() };
        let mut fixture = Fixture::with_skills(policy, before).initialized(CLAUDE, &json!({}));
        fixture.new_session(1, "s");
        invoke(&mut fixture, "git");
        assert_eq!(fixture.host.served.as_ref().unwrap().2, ["git"]);
        fixture.notices(SkillSet::default());
        fixture.notices(after.clone());
        let expected = if is_same { "proceed_once" } else { "asked" };
        assert_eq!(outcome(&ask(&mut fixture, &call, None)), expected);
        let unlocked: &[&str] = if is_same { &["git"] } else { &[] };
        assert_eq!(fixture.host.served.as_ref().unwrap().2, unlocked);
        // The user can activate the other skill.
        fixture.respond(2, &json!({ "stopReason": "end_turn" }));
        invoke(&mut fixture, "git");
        assert_eq!(outcome(&ask(&mut fixture, &call, None)), "proceed_once");
    }
}

struct Everything;

impl FileGuard for Everything {
    fn allows(&self, _: &str, _: Option<&mut dyn std::io::Read>) -> std::io::Result<bool> {
        Ok(true)
    }

    fn paths<'a>(&'a self, _: &str) -> Box<dyn Iterator<Item = &'a str> + 'a> {
        Box::new(std::iter::empty())
    }
}
