//! The processes of agents and their home directories.

use std::fs;

use libtest_mimic::Trial;
use serde_json::{Value, json};

use super::{
    agent,
    fixture::{Fixture, Run, program, this},
    trial,
};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        #[cfg(target_os = "linux")]
        trial("processes::children_that_left_the_group_are_ended", children_that_left_the_group_are_ended),
        trial("processes::installed_skills_are_noted", installed_skills_are_noted),
        trial("processes::an_isolated_agent_has_only_its_login", an_isolated_agent_has_only_its_login),
    ]
}

/// The child of a session of its own and its child are ended while the evaluation goes on, and its child without variables at the end.
#[cfg(target_os = "linux")]
fn children_that_left_the_group_are_ended() {
    let files = tempfile::tempdir().unwrap();
    let query = |number: u32| json!({ "query": format!("daemon {}; say a", files.path().join(number.to_string()).display()), "should_trigger": false });
    let queries: Vec<_> = (0..3).map(query).collect();
    let fixture = Fixture::new(&json!(queries), &json!([]));
    let run = fixture.eval(&["--runs", "1", "--jobs", "3", "--json"], "pass");
    assert_eq!(run.code, Some(0), "{} {}", run.stdout, run.stderr);
    for number in 0..3 {
        let ids = fs::read_to_string(files.path().join(number.to_string())).unwrap();
        assert_eq!(ids.split_whitespace().count(), 3, "{ids}");
        for id in ids.split_whitespace() {
            let command = fs::read_to_string(format!("/proc/{id}/cmdline")).unwrap_or_default();
            assert!(!command.contains("sleep"), "{id} is running: {command}");
        }
    }
}

/// Returns a home directory with an installed skill and a login, and a program with the name of a known agent.
fn home(fixture: &Fixture) {
    fixture.write_skill("home/.claude/skills/demo", "Installed.");
    fixture.write_skill("home/.claude/skills/other", "Installed.");
    fixture.write("home/.claude/.credentials.json", "old");
    fs::create_dir_all(fixture.path("bin")).unwrap();
    std::os::unix::fs::symlink(this(), fixture.path("bin/claude-agent-acp")).unwrap();
}

fn run(fixture: &Fixture, flags: &[&str]) -> Run {
    let mut command = program();
    command
        .arg("eval")
        .arg(fixture.path("demo"))
        .args(["--runs", "1", "--workspace"])
        .arg(fixture.path("results"));
    command.args(flags).env("HOME", fixture.path("home")).env_remove("CLAUDE_CONFIG_DIR");
    Run::of(command.arg("--").arg(fixture.path("bin/claude-agent-acp")).args([agent::ARGUMENT, "pass"]))
}

fn installed_skills_are_noted() {
    let fixture = Fixture::new(&json!([{ "query": "say a", "should_trigger": false }]), &json!([]));
    home(&fixture);
    let plain = run(&fixture, &[]);
    assert_eq!(plain.code, Some(0), "{}", plain.stderr);
    for part in
        ["loads a skill of the same name itself", ".claude/skills/demo", "loads 1 installed skill itself"]
    {
        assert!(plain.stderr.contains(part), "{part} is not in {}", plain.stderr);
    }
    let isolated = run(&fixture, &["--isolate"]);
    assert!(!isolated.stderr.contains("note"), "{}", isolated.stderr);
    // The login of this agent is not known.
    let unknown = fixture.eval(&["--runs", "1", "--isolate"], "pass");
    assert!(
        unknown.stderr.contains("login of eval-") || unknown.stderr.contains("are not known"),
        "{}",
        unknown.stderr
    );
}

fn an_isolated_agent_has_only_its_login() {
    let task = |prompt: &str, matches: Value| json!([{ "id": 1, "name": "it", "prompt": prompt, "assertions": matches }]);
    let prompt = "with load demo; home .claude/skills/demo/SKILL.md; home .claude/.credentials.json; renew .claude/.credentials.json renewed";
    let assertions = json!([
        { "answer_matches": "SKILL.md: absent" },
        { "answer_matches": "credentials.json: (old|renewed)" },
    ]);
    let fixture = Fixture::new(&json!([]), &task(prompt, assertions));
    home(&fixture);
    let isolated = run(&fixture, &["--isolate", "--json"]);
    assert_eq!(isolated.code, Some(0), "{} {}", isolated.stdout, isolated.stderr);
    let login = fs::read_to_string(fixture.path("home/.claude/.credentials.json")).unwrap();
    assert_eq!(login, "renewed");
    let plain = run(&fixture, &["--json"]);
    assert_eq!(plain.code, Some(1), "{}", plain.stdout);
}
