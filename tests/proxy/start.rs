//! How the proxy starts, or refuses to.

use crate::{
    agent,
    editor::{Editor, Ended, Proxy},
    fixtures::Skills,
    stage::Stage,
};

crate::trials!(
    an_agent_that_is_not_there,
    an_agent_that_is_no_program,
    nothing_to_run,
    a_broken_skill,
    a_skill_that_is_not_there,
    a_broken_configuration,
    an_agent_from_the_configuration,
    arguments_reach_the_agent_verbatim,
);

/// Runs a proxy that ends by itself and says nothing on stdout.
fn refused(editor: Editor, code: i32) -> Ended {
    let ended = editor.ended();
    assert_eq!(ended.code(), Some(code), "{:#?}", ended.log);
    assert!(ended.messages.is_empty(), "{:?}", ended.messages);
    ended
}

fn assert_says(ended: &Ended, words: &[&str]) {
    let log = ended.log.join("\n");
    for words in words {
        assert!(log.contains(words), "{words:?} is not in {log}");
    }
}

fn an_agent_that_is_not_there() {
    let ended = refused(Proxy::new().arg("--").arg("no-such-agent-anywhere").start(), 127);
    assert_says(&ended, &["error: ", "`no-such-agent-anywhere`", "hint: "]);
}

fn an_agent_that_is_no_program() {
    let skills = Skills::new();
    let file = skills.write("agent.txt", "no program");
    let ended = refused(Proxy::new().arg("--").arg(&file).start(), if cfg!(unix) { 126 } else { 125 });
    assert_says(&ended, &["error: ", "agent.txt"]);
}

fn nothing_to_run() {
    let mut editor = Proxy::new().start();
    editor.close();
    let ended = refused(editor, 2);
    assert_says(&ended, &["error: ", "there is no agent", "hint: ", "-- "]);
    refused(Proxy::new().arg("--no-such-flag").start(), 2);
}

/// An agent that would be seen if it were started.
fn with_agent(proxy: Proxy) -> Editor {
    proxy.agent("no-part-has-this-name")
}

/// File, line, rule and remedy; and the agent has not been started.
fn a_broken_skill() {
    let skills = Skills::new();
    for (name, front, flag, place, words) in [
        (
            "empty",
            "name: empty\ndescription: ''\n",
            "--strict",
            ":3:",
            &["error[description-missing]", "help: "] as &[_],
        ),
        ("none", "name: none\n", "--strict", ":1: ", &["error[description-missing]", "help: "]),
        ("none", "name: none\n", "--log=off", ":1: ", &["error[description-missing]", "help: "]),
        ("other", "name: another\ndescription: Other.\n", "--strict", ":2:", &["error[name-", "help: "]),
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

fn a_skill_that_is_not_there() {
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
    let config = serde_json::json!({ "agent": [this], "skills": ["review"] });
    let file = skills.write("skills.yaml", &config.to_string());
    let editor = Proxy::new().flag("--config", file).env(agent::SCRIPT, "scripted").start();
    let mut stage = Stage::of(editor);
    assert_eq!(stage.received().len(), 0);
    stage.finish();
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
    assert_eq!(ended.messages[0]["params"], serde_json::json!(arguments));
}
