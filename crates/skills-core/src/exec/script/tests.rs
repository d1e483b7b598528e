//! Runs real scripts with real interpreters. A test prints a message if it skips an interpreter that isn't installed.

use std::{
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    time::Duration,
};

use serde_json::{Map, Value, json};

use super::*;
use crate::{
    exec::{find_program, tests::some_variable},
    name::SkillName,
    skill::{Source, Stored},
    tool::{ToolError, Variables},
    toolbox::{Toolbox, ToolboxOptions},
};

/// A skill called `kit` with some scripts, and a working directory.
struct Fixture {
    dir: tempfile::TempDir,
    options: ScriptOptions,
}

impl Fixture {
    fn new(scripts: &[(&str, &str)]) -> Self {
        let fixture = Self { dir: tempfile::tempdir().unwrap(), options: ScriptOptions::default() };
        fs::create_dir_all(fixture.skill_dir().join("scripts")).unwrap();
        fs::create_dir(fixture.cwd()).unwrap();
        fs::write(fixture.skill_dir().join("SKILL.md"), "---\nname: kit\ndescription: x\n---\nBody.\n")
            .unwrap();
        for (name, text) in scripts {
            fs::write(fixture.skill_dir().join("scripts").join(name), text).unwrap();
        }
        fixture
    }

    fn skill_dir(&self) -> PathBuf {
        self.dir.path().canonicalize().unwrap().join("kit")
    }

    fn cwd(&self) -> PathBuf {
        self.dir.path().canonicalize().unwrap().join("work")
    }

    fn toolbox(&self) -> Toolbox {
        let source = Source::Stored(Stored::new(self.skill_dir(), "SKILL.md"));
        let stored = Skill::new(SkillName::new("kit").unwrap(), "x", source);
        let inline = Skill::builder("inline", "x").body("x").build().unwrap();
        let options = ToolboxOptions { scripts: Some(self.options.clone()), ..ToolboxOptions::default() };
        Toolbox::with_options([stored, inline].into_iter().collect(), options)
    }

    async fn call(&self, arguments: Value) -> Value {
        let context = CallContext::in_directory(self.cwd());
        let arguments: Map<_, _> = arguments.as_object().unwrap().clone();
        let output = self.toolbox().call("run_skill_script", arguments, &context).await;
        let result = output.structured.clone().unwrap_or_else(|| output.to_text().into());
        if output.structured.is_some() {
            assert_eq!(serde_json::from_str::<Value>(&output.to_text()).unwrap(), result);
            assert_eq!(result["success"], json!(!output.is_error));
            assert!(result["durationMs"].is_u64());
        }
        result
    }

    async fn run(&self, script: &str) -> Value {
        self.call(json!({"skill": "kit", "script": format!("scripts/{script}")})).await
    }
}

#[expect(clippy::print_stderr, reason = "a skipped test must say so")]
fn is_installed(program: &str) -> bool {
    let found = find_program(Path::new(program), None).is_some();
    if !found {
        eprintln!("skipped: `{program}` is not installed");
    }
    found
}

#[tokio::test]
async fn installed_interpreters_run_their_scripts() {
    let fixture = Fixture::new(&[
        ("a.py", "import sys; print('python', sys.argv[1:], sys.stdin.read())"),
        ("a.sh", "echo sh \"$@\"; cat"),
        ("a.bash", "a=(1 2); echo bash ${#a[@]}"),
        ("a.js", "console.log('node', process.argv.slice(2).join())"),
        ("a.mjs", "import fs from 'fs'; console.log('module', typeof fs)"),
        ("a.cjs", "console.log('common', typeof require)"),
        ("a.ts", "const a: string = 'typescript'; console.log(a)"),
        ("a.pl", "print \"perl @ARGV\\n\""),
        ("a.rb", "puts 'ruby'"),
        ("no-extension", "#!/usr/bin/env -S perl -w\nprint \"env\\n\""),
    ]);
    for (program, script, expected) in [
        ("python3", "a.py", "python ['a b', '$HOME'] in\n"),
        ("sh", "a.sh", "sh a b $HOME\nin"),
        ("bash", "a.bash", "bash 2\n"),
        ("node", "a.js", "node a b,$HOME\n"),
        ("node", "a.mjs", "module object\n"),
        ("node", "a.cjs", "common function\n"),
        ("bun", "a.ts", "typescript\n"),
        ("perl", "a.pl", "perl a b $HOME\n"),
        ("ruby", "a.rb", "ruby\n"),
        ("perl", "no-extension", "env\n"),
    ] {
        if !is_installed(program) {
            continue;
        }
        let script = format!("scripts/{script}");
        let arguments = json!({"skill": "KIT", "script": script, "args": ["a b", "$HOME"], "stdin": "in"});
        let result = fixture.call(arguments).await;
        assert_eq!(result["stdout"], expected, "{script}: {result}");
        assert_eq!(result["success"], json!(true), "{script}: {result}");
        assert_eq!(result["exitCode"], json!(0), "{script}: {result}");
        assert_eq!(result.get("error"), None);
    }
}

#[tokio::test]
async fn a_script_gets_its_directory_and_environment() {
    let ours = some_variable();
    let script = format!("pwd -P; echo \"$SKILL_DIR\"; echo \"$SKILL_NAME\"; echo ${{{ours}+inherited}}");
    let mut fixture = Fixture::new(&[("env.sh", &script)]);
    let skill_dir = fixture.skill_dir().display().to_string();
    let cwd = fixture.cwd().display().to_string();
    let result = fixture.run("env.sh").await;
    assert_eq!(result["stdout"], format!("{cwd}\n{skill_dir}\nkit\ninherited\n"));
    fixture.options.cwd = ScriptCwd::Skill;
    fixture.options.environment = Environment::Clean;
    let result = fixture.run("env.sh").await;
    assert_eq!(result["stdout"], format!("{skill_dir}\n{skill_dir}\nkit\n\n"));
    fixture.options.cwd = ScriptCwd::Session;
    fs::remove_dir(fixture.cwd()).unwrap();
    let result = fixture.run("env.sh").await;
    assert_eq!(result["error"], "ExecutionFailed");
    assert_eq!(result["message"], format!("working directory {cwd} does not exist"));
}

#[tokio::test]
async fn each_failure_has_a_kind_and_a_message() {
    let mut fixture = Fixture::new(&[
        ("fail.sh", "echo out; echo err >&2; exit 7"),
        ("kill.sh", "kill -9 $$"),
        ("slow.sh", "echo begun; exec sleep 600"),
        ("notes.md", "# Notes"),
    ]);
    fixture.options.limits.timeout = Duration::from_secs(1);
    fs::write(fixture.dir.path().join("secret.sh"), "echo secret").unwrap();
    symlink(fixture.dir.path().join("secret.sh"), fixture.skill_dir().join("scripts/link.sh")).unwrap();
    symlink("../../secret.sh", fixture.skill_dir().join("scripts/relative.sh")).unwrap();

    let result = fixture.run("fail.sh").await;
    assert_eq!(
        (&result["exitCode"], &result["stdout"], &result["stderr"], &result["error"], &result["message"]),
        (
            &json!(7),
            &json!("out\n"),
            &json!("err\n"),
            &json!("ExecutionFailed"),
            &json!("script failed with exit code 7; check `stdout` and `stderr` for details"),
        ),
    );
    let result = fixture.run("kill.sh").await;
    assert_eq!((&result["exitCode"], &result["error"]), (&Value::Null, &json!("ExecutionFailed")));
    let result = fixture.run("slow.sh").await;
    assert_eq!((&result["stdout"], &result["error"]), (&json!("begun\n"), &json!("ExecutionTimeout")));
    let message = "script timed out after 1 s; retry with less work, or ask the user to increase the timeout";
    assert_eq!(result["message"], message);

    for (script, error, expected) in [
        ("scripts/fial.sh", "ScriptNotFound", "did you mean `scripts/fail.sh`"),
        ("scripts", "ScriptNotFound", "is a directory"),
        ("../secret.sh", "ScriptNotAllowed", "outside"),
        ("/bin/ls", "ScriptNotAllowed", "absolute"),
        ("scripts/link.sh", "ScriptNotAllowed", "outside"),
        ("scripts/relative.sh", "ScriptNotAllowed", "outside"),
        ("scripts/notes.md", "ExecutionFailed", "could not find a program to run `scripts/notes.md`"),
    ] {
        let result = fixture.call(json!({"skill": "kit", "script": script})).await;
        assert_eq!(result["error"], error, "{script}: {result}");
        assert!(result["message"].as_str().unwrap().contains(expected), "{script}: {result}");
        assert_eq!(result["stdout"], "");
    }
    let result = fixture.call(json!({"skill": "kti", "script": "a"})).await;
    assert_eq!(result["error"], "SkillNotFound");
    assert!(result["message"].as_str().unwrap().contains("Did you mean \"kit\"?"), "{result}");
    let result = fixture.call(json!({"skill": "inline", "script": "a"})).await;
    assert_eq!(result["error"], "ScriptNotFound");
    assert!(result["message"].as_str().unwrap().contains("has no files"), "{result}");
    for (arguments, message) in [
        (json!({"skill": "kit"}), "InvalidArguments: missing `script`: expected a string"),
        (
            json!({"skill": "kit", "script": "a", "args": "b"}),
            "InvalidArguments: expected a list of strings for `args`, but got a string",
        ),
        (
            json!({"skill": "kit", "script": "a", "args": [1]}),
            "InvalidArguments: expected a list of strings for `args`, but got a list",
        ),
    ] {
        assert_eq!(fixture.call(arguments).await, message);
    }
}

#[tokio::test]
async fn output_is_truncated_between_characters() {
    let mut fixture =
        Fixture::new(&[("much.sh", "while [ ${i:=0} -lt 1000 ]; do echo 日本語; i=$((i+1)); done")]);
    fixture.options.limits.max_output_bytes = 1000;
    let result = fixture.run("much.sh").await;
    let text = result["stdout"].as_str().unwrap();
    let kept = text.strip_suffix("[output truncated]").unwrap();
    assert!((990..=1001).contains(&kept.len()), "{}", kept.len());
    assert!(kept.chars().all(|c| "日本語\n".contains(c)), "{kept}");
}

#[tokio::test]
async fn the_tool_does_not_exist_unless_scripts_are_allowed() {
    let fixture = Fixture::new(&[("a.sh", "echo ran")]);
    let toolbox = fixture.toolbox();
    let names: Vec<_> = toolbox.definitions().into_iter().map(|definition| definition.name).collect();
    assert_eq!(names, ["activate_skill", "read_skill_file", "run_skill_script"]);
    let toolbox = Toolbox::new(toolbox.skills().clone());
    assert_eq!(toolbox.definitions().len(), 2);
    let arguments = json!({"skill": "kit", "script": "scripts/a.sh"}).as_object().unwrap().clone();
    let output = toolbox.call("run_skill_script", arguments, &CallContext::default()).await;
    assert!(output.is_error && output.to_text().starts_with("UnknownTool: "), "{output:?}");
}

#[tokio::test]
#[expect(clippy::print_stderr, reason = "a skipped test must say so")]
async fn a_sandboxed_script_writes_only_its_working_directory() {
    let mut fixture = Fixture::new(&[(
        "probe.sh",
        "echo $# \"$(pwd -P)\"\n\
         echo x >here && echo cwd-writable\n\
         echo x 2>/dev/null >\"$SKILL_DIR/x\" || echo skill-read-only\n\
         echo x 2>/dev/null >\"$OUTSIDE/x\" || echo rest-read-only\n\
         (exec 3<>/dev/tcp/127.0.0.1/$PORT) 2>/dev/null && echo network || echo no-network\n",
    )]);
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    // Only Bash has `/dev/tcp`. The first lines of the script set the values that are only known here.
    let path = fixture.skill_dir().join("scripts/probe.bash");
    let head = format!("PORT={port}\nOUTSIDE='{}'\n", env!("CARGO_MANIFEST_DIR"));
    fs::write(&path, head + &fs::read_to_string(fixture.skill_dir().join("scripts/probe.sh")).unwrap())
        .unwrap();
    if !is_installed("bash") {
        return;
    }
    for (network, expected) in [(false, "no-network"), (true, "network")] {
        fixture.options.sandbox = match Sandbox::bwrap(network) {
            Ok(sandbox) => Some(sandbox),
            Err(error) => {
                eprintln!("skipped: {error}");
                return;
            }
        };
        let result = fixture.run("probe.bash").await;
        let expected = format!(
            "0 {}\ncwd-writable\nskill-read-only\nrest-read-only\n{expected}\n",
            fixture.cwd().display()
        );
        assert_eq!(result["stdout"], expected, "{result}");
        assert!(fixture.cwd().join("here").exists());
    }
    let slow = fixture.skill_dir().join("scripts/slow.sh");
    fs::write(slow, "(sleep 600) & echo begun; sleep 600").unwrap();
    fixture.options.limits.timeout = Duration::from_secs(1);
    let result = fixture.run("slow.sh").await;
    assert_eq!((&result["stdout"], &result["error"]), (&json!("begun\n"), &json!("ExecutionTimeout")));
}

/// Secrets that the user does not unlock.
#[derive(Debug, Default)]
struct Locked(Arc<tokio::sync::Notify>);

impl Variables for Locked {
    fn resolve(&self) -> futures::future::BoxFuture<'static, Result<Vec<(String, String)>, ToolError>> {
        self.0.notify_one();
        Box::pin(std::future::pending())
    }
}

#[tokio::test]
async fn scripts_do_not_wait_for_the_secrets_of_others() {
    let mut fixture = Fixture::new(&[("a.sh", "echo ran")]);
    fixture.options.executor = Executor::new(1);
    let source = Source::Stored(Stored::new(fixture.skill_dir(), "SKILL.md"));
    let mut skill = Skill::new(SkillName::new("kit").unwrap(), "x", source);
    let locked = Locked::default();
    let asked = Arc::clone(&locked.0);
    skill.variables = Some(Arc::new(locked));
    let skill = Arc::new(skill);
    let context = CallContext::in_directory(fixture.cwd());
    let call = ScriptCall { script: "scripts/a.sh".to_owned(), args: Vec::new(), stdin: None };
    let mut waiting = std::pin::pin!(run_script(&skill, call, &fixture.options, &context));
    tokio::select! {
        result = &mut waiting => panic!("{result:?}"),
        () = asked.notified() => {}
    }
    let result = tokio::select! {
        result = &mut waiting => panic!("{result:?}"),
        result = tokio::time::timeout(Duration::from_mins(1), fixture.run("a.sh")) => result.unwrap(),
    };
    assert_eq!(result["stdout"], "ran\n", "{result}");
}
