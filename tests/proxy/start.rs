//! The start of the proxy, and the reasons to refuse it.

use acp_skills::intercept::NOT_STARTED;
use serde_json::json;

use crate::{
    agent,
    editor::{Editor, Ended, Proxy},
    fixture::Fixture,
    skills::Skills,
};

crate::trials!(
    an_agent_that_is_not_installed,
    an_agent_that_is_not_executable,
    no_agent_is_given,
    a_client_that_does_not_speak_acp,
    an_agent_that_exits_before_it_answers,
    a_broken_skill,
    a_skill_that_does_not_exist,
    reasons_come_before_paths,
    a_broken_configuration,
    an_agent_from_the_configuration,
    arguments_reach_the_agent_verbatim,
);

/// Runs a proxy that exits by itself, and asserts that the client gets the same reason as the log.
fn refused(mut editor: Editor, code: i32) -> Ended {
    editor.notify("_hello", json!({}));
    let id = editor.request("initialize", json!({ "protocolVersion": 1 }));
    let mut ended = editor.ended();
    assert_eq!(ended.code(), Some(code), "{:#?}", ended.log);
    let error = &ended.answer(&id)["error"];
    assert_eq!(error["code"], NOT_STARTED);
    let text = error["message"].as_str().expect("text");
    for line in text.lines() {
        assert!(ended.log.join("\n").contains(line), "{line:?} is not in {:#?}", ended.log);
    }
    ended.messages.clear();
    ended
}

fn assert_says(ended: &Ended, words: &[&str]) {
    let log = ended.log.join("\n");
    for words in words {
        assert!(log.contains(words), "{words:?} is not in {log}");
    }
}

fn an_agent_that_is_not_installed() {
    let ended = refused(Proxy::new().arg("--").arg("no-such-agent-anywhere").start(), 127);
    assert_says(&ended, &["error: ", "agent not found: no-such-agent-anywhere", "hint: "]);
}

fn an_agent_that_is_not_executable() {
    let skills = Skills::new();
    let file = skills.write("agent.txt", "no program");
    let ended = refused(Proxy::new().arg("--").arg(&file).start(), if cfg!(unix) { 126 } else { 125 });
    assert_says(&ended, &["error: ", "agent.txt"]);
}

fn no_agent_is_given() {
    let mut editor = Proxy::new().start();
    editor.close();
    let ended = editor.ended();
    assert_eq!((ended.code(), ended.messages.len()), (Some(2), 0), "{:#?}", ended.log);
    assert_says(&ended, &["error: ", "no agent to run", "hint: ", "-- "]);
    refused(Proxy::new().arg("--no-such-flag").start(), 2);
}

/// A client that does not speak ACP gets no answer, and the proxy does not wait for it.
fn a_client_that_does_not_speak_acp() {
    let skills = Skills::new();
    for said in ["", "hello\n", "{\"jsonrpc\":\"2.0\",\"method\":\"x\"}\n"] {
        let mut editor = Proxy::new().skill(&skills.dir("nowhere")).start();
        editor.write(said.as_bytes());
        editor.close();
        let ended = editor.ended();
        assert_eq!((ended.code(), ended.messages.len()), (Some(2), 0), "{said:?}: {:#?}", ended.log);
    }
}

fn an_agent_that_exits_before_it_answers() {
    for is_first in [true, false] {
        let skills = Skills::review();
        let mut editor = skills.proxy().agent("no-part-has-this-name");
        if !is_first {
            editor.wait_for_log("no role is called");
        }
        let id = editor.request("initialize", json!({ "protocolVersion": 1 }));
        let ended = editor.ended();
        assert_eq!(ended.code(), Some(101), "{:#?}", ended.log);
        let error = &ended.answer(&id)["error"];
        assert_eq!(error["code"], NOT_STARTED);
        assert_eq!(
            error["message"],
            "the agent exited with code 101 before answering `initialize`\n\
             hint: run the agent command in a terminal to show error messages"
        );
    }
}

/// Starts the proxy with an agent that would leave a trace in the log if it ran.
fn with_agent(proxy: Proxy) -> Editor {
    proxy.agent("no-part-has-this-name")
}

/// The error names the reason, the file, the line and the remedy, and the agent does not start.
fn a_broken_skill() {
    let skills = Skills::new();
    for (name, front, flag, place, words) in [
        (
            "empty",
            "name: empty\ndescription: ''\n",
            "--strict",
            ":3:",
            &["error: skill has no description: ", "help: "] as &[_],
        ),
        ("none", "name: none\n", "--strict", ":1", &["error: skill has no description: ", "help: "]),
        ("none", "name: none\n", "--log=off", ":1", &["error: skill has no description: ", "help: "]),
        ("other", "name: another\ndescription: Other.\n", "--strict", ":2:", &["error: name ", "help: "]),
    ] {
        let file = skills.write(&format!("{name}/SKILL.md"), &format!("---\n{front}---\nBody.\n"));
        let ended = refused(with_agent(Proxy::new().skill(&skills.dir(name)).arg(flag)), 2);
        assert_says(&ended, &[&format!("{}{place}", file.display())]);
        assert_says(&ended, words);
        assert!(
            !ended.log.join("\n").contains("no-part-has-this-name"),
            "the agent was started: {:?}",
            ended.log
        );
    }
}

/// Editors show errors in narrow places, so the reason comes first, and the path once and last.
fn reasons_come_before_paths() {
    if cfg!(windows) {
        // `~` stands for the home directory on Unix only, and the texts of the system differ.
        return;
    }
    let skills = Skills::review();
    skills.write("bad/SKILL.md", "---\nname: bad\n---\nBody.\n");
    skills.write("keys.yaml", "skils: []\n");
    skills.write("program", "");
    let own = format!("{}/", skills.path().display());
    for (arguments, code, expected) in [
        (&["--skill", "~/code-review", "--", "cat"][..], 2, "no such skill directory: ~/code-review"),
        (&["--skill", "~/bad", "--", "cat"], 2, "skill has no description: ~/bad/SKILL.md:1"),
        (&["--skills", "~/none", "--", "cat"], 2, "no such directory of skills: ~/none"),
        (&["--config", "~/none.yaml"], 2, "no such file or directory: ~/none.yaml"),
        (&["--config", "~/keys.yaml"], 2, "unknown key `skils`: ~/keys.yaml:1:1"),
        (
            &["--skill", "~/review", "--events", "~/program/x", "--", "cat"],
            2,
            "cannot write events: not a directory: ~/program/x",
        ),
        (
            &["--skill", "~/review", "--log-file", "~/program/x", "--", "cat"],
            2,
            "cannot write log: not a directory: ~/program/x",
        ),
        (&["--skill", "~/review", "--", "~/none"], 127, "agent not found: ~/none"),
        (&["--skill", "~/review", "--", "~/program"], 126, "agent is not executable: ~/program"),
        (&["--skill", "~/review", "--", ""], 127, "agent command is empty"),
    ] {
        let proxy = arguments.iter().fold(Proxy::new(), Proxy::arg);
        let mut editor = proxy.env("HOME", skills.path()).start();
        let id = editor.request("initialize", json!({ "protocolVersion": 1 }));
        let ended = editor.ended();
        let message = ended.answer(&id)["error"]["message"].as_str().expect("text").to_owned();
        assert_eq!(ended.code(), Some(code), "{arguments:?}: {message}");
        let first = message.lines().next().expect("a line");
        assert_eq!(first, expected, "{arguments:?}: {message}");
        // A hint may have the path in a command to copy, but not in full.
        assert!(!message.contains(&own), "{arguments:?}: {message}");
    }
}

fn a_skill_that_does_not_exist() {
    let skills = Skills::review();
    let ended = refused(with_agent(skills.proxy().skill(&skills.dir("nowhere"))), 2);
    assert_says(&ended, &["error: ", "nowhere"]);
    let ended = refused(with_agent(Proxy::new().skill(skills.path())), 2);
    assert_says(&ended, &["error: ", "SKILL.md"]);
}

fn a_broken_configuration() {
    let skills = Skills::new();
    for (text, words) in [
        ("skills: []\nskill: x\n", &["skills.yaml", "skill", "2"] as &[_]),
        ("agent: [a\n", &["skills.yaml"]),
        ("skills:\n  - name: x\n    description: y\n    bdoy: z\n", &["skills.yaml", "bdoy", "4"]),
        ("skills: [nowhere]\n", &["nowhere"]),
    ] {
        let file = skills.write("skills.yaml", text);
        assert_says(&refused(with_agent(Proxy::new().flag("--config", file)), 2), words);
    }
    refused(with_agent(Proxy::new().flag("--config", skills.path().join("no.yaml"))), 2);
}

fn an_agent_from_the_configuration() {
    let skills = Skills::review();
    let this = std::env::current_exe().expect("this program has a path");
    let config = json!({ "agent": [this], "skills": ["review"] });
    let file = skills.write("skills.yaml", &config.to_string());
    let editor = Proxy::new().flag("--config", file).env(agent::SCRIPT, "scripted").start();
    let mut fixture = Fixture::of(editor);
    assert_eq!(fixture.received().len(), 0);
    fixture.finish();
}

fn arguments_reach_the_agent_verbatim() {
    let arguments = ["--skill", "a b", "$HOME", "*", "'", "\"", "--", "-", "", "\\", "é"];
    let this = std::env::current_exe().expect("this program has a path");
    let mut proxy = Proxy::new().env(agent::SCRIPT, "arguments").arg("--").arg(this);
    for argument in arguments {
        proxy = proxy.arg(argument);
    }
    let ended = proxy.start().ended();
    assert_eq!(ended.code(), Some(0), "{:#?}", ended.log);
    assert_eq!(ended.messages[0]["params"], json!(arguments));
}
