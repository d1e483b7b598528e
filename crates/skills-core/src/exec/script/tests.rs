//! Real scripts with real interpreters; those that are not installed are skipped, and said so.

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
    toolbox::{Toolbox, ToolboxOptions},
};

/// A skill called `kit` with these scripts, and a directory to work in.
struct Kit {
    dir: tempfile::TempDir,
    options: ScriptOptions,
}

impl Kit {
    fn new(scripts: &[(&str, &str)]) -> Self {
        let kit = Self { dir: tempfile::tempdir().unwrap(), options: ScriptOptions::default() };
        fs::create_dir_all(kit.skill_dir().join("scripts")).unwrap();
        fs::create_dir(kit.cwd()).unwrap();
        fs::write(kit.skill_dir().join("SKILL.md"), "---\nname: kit\ndescription: x\n---\nBody.\n").unwrap();
        for (name, text) in scripts {
            fs::write(kit.skill_dir().join("scripts").join(name), text).unwrap();
        }
        kit
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
fn installed(program: &str) -> bool {
    let found = find_program(Path::new(program), None).is_some();
    if !found {
        eprintln!("skipped: `{program}` is not installed");
    }
    found
}

#[tokio::test]
async fn every_interpreter_that_is_installed() {
    let kit = Kit::new(&[
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
        if !installed(program) {
            continue;
        }
        let script = format!("scripts/{script}");
        let arguments = json!({"skill": "KIT", "script": script, "args": ["a b", "$HOME"], "stdin": "in"});
        let result = kit.call(arguments).await;
        assert_eq!(result["stdout"], expected, "{script}: {result}");
        assert_eq!(result["success"], json!(true), "{script}: {result}");
        assert_eq!(result["exitCode"], json!(0), "{script}: {result}");
        assert_eq!(result.get("error"), None);
    }
}

#[tokio::test]
async fn directory_and_environment() {
    let ours = some_variable();
    let script = format!("pwd -P; echo \"$SKILL_DIR\"; echo \"$SKILL_NAME\"; echo ${{{ours}+inherited}}");
    let mut kit = Kit::new(&[("env.sh", &script)]);
    let (skill_dir, cwd) = (kit.skill_dir().display().to_string(), kit.cwd().display().to_string());
    let result = kit.run("env.sh").await;
    assert_eq!(result["stdout"], format!("{cwd}\n{skill_dir}\nkit\ninherited\n"));
    kit.options.cwd = ScriptCwd::Skill;
    kit.options.environment = Environment::Clean;
    let result = kit.run("env.sh").await;
    assert_eq!(result["stdout"], format!("{skill_dir}\n{skill_dir}\nkit\n\n"));
    kit.options.cwd = ScriptCwd::Session;
    fs::remove_dir(kit.cwd()).unwrap();
    let result = kit.run("env.sh").await;
    assert_eq!(result["error"], "ExecutionFailed");
    assert_eq!(result["message"], format!("the working directory {cwd} does not exist"));
}

#[tokio::test]
async fn failures_have_a_type() {
    let mut kit = Kit::new(&[
        ("fail.sh", "echo out; echo err >&2; exit 7"),
        ("kill.sh", "kill -9 $$"),
        ("slow.sh", "echo begun; exec sleep 600"),
        ("notes.md", "# Notes"),
    ]);
    kit.options.limits.timeout = Duration::from_secs(1);
    fs::write(kit.dir.path().join("secret.sh"), "echo secret").unwrap();
    symlink(kit.dir.path().join("secret.sh"), kit.skill_dir().join("scripts/link.sh")).unwrap();
    symlink("../../secret.sh", kit.skill_dir().join("scripts/relative.sh")).unwrap();

    let result = kit.run("fail.sh").await;
    assert_eq!(
        (&result["exitCode"], &result["stdout"], &result["stderr"], &result["error"], &result["message"]),
        (
            &json!(7),
            &json!("out\n"),
            &json!("err\n"),
            &json!("ExecutionFailed"),
            &json!("the script ended with exit code 7"),
        ),
    );
    let result = kit.run("kill.sh").await;
    assert_eq!((&result["exitCode"], &result["error"]), (&Value::Null, &json!("ExecutionFailed")));
    let result = kit.run("slow.sh").await;
    assert_eq!((&result["stdout"], &result["error"]), (&json!("begun\n"), &json!("ExecutionTimeout")));
    assert_eq!(result["message"], "the script was stopped after its time limit of 1 s");

    for (script, error, says) in [
        ("scripts/fial.sh", "ScriptNotFound", "did you mean `scripts/fail.sh`"),
        ("scripts", "ScriptNotFound", "is a directory"),
        ("../secret.sh", "ScriptNotAllowed", "outside"),
        ("/bin/ls", "ScriptNotAllowed", "absolute"),
        ("scripts/link.sh", "ScriptNotAllowed", "outside"),
        ("scripts/relative.sh", "ScriptNotAllowed", "outside"),
        ("scripts/notes.md", "ExecutionFailed", "cannot tell which program runs `scripts/notes.md`"),
    ] {
        let result = kit.call(json!({"skill": "kit", "script": script})).await;
        assert_eq!(result["error"], error, "{script}: {result}");
        assert!(result["message"].as_str().unwrap().contains(says), "{script}: {result}");
        assert_eq!(result["stdout"], "");
    }
    let result = kit.call(json!({"skill": "kti", "script": "a"})).await;
    assert_eq!(result["error"], "SkillNotFound");
    assert!(result["message"].as_str().unwrap().contains("Did you mean \"kit\"?"), "{result}");
    let result = kit.call(json!({"skill": "inline", "script": "a"})).await;
    assert_eq!(result["error"], "ScriptNotFound");
    assert!(result["message"].as_str().unwrap().contains("has no files"), "{result}");
    for (arguments, message) in [
        (json!({"skill": "kit"}), "InvalidArguments: `script` is missing; it must be a string"),
        (
            json!({"skill": "kit", "script": "a", "args": "b"}),
            "InvalidArguments: `args` must be a list of strings, not a string",
        ),
        (
            json!({"skill": "kit", "script": "a", "args": [1]}),
            "InvalidArguments: `args` must be a list of strings, not a list",
        ),
    ] {
        assert_eq!(kit.call(arguments).await, message);
    }
}

#[tokio::test]
async fn output_is_capped_between_characters() {
    let mut kit = Kit::new(&[("much.sh", "while [ ${i:=0} -lt 1000 ]; do echo 日本語; i=$((i+1)); done")]);
    kit.options.limits.max_output_bytes = 1000;
    let result = kit.run("much.sh").await;
    let text = result["stdout"].as_str().unwrap();
    let kept = text.strip_suffix("[output truncated]").unwrap();
    assert!((990..=1001).contains(&kept.len()), "{}", kept.len());
    assert!(kept.chars().all(|c| "日本語\n".contains(c)), "{kept}");
}

#[tokio::test]
async fn off_unless_allowed() {
    let kit = Kit::new(&[("a.sh", "echo ran")]);
    let toolbox = kit.toolbox();
    let names: Vec<_> = toolbox.definitions().into_iter().map(|it| it.name).collect();
    assert_eq!(names, ["activate_skill", "read_skill_file", "run_skill_script"]);
    let toolbox = Toolbox::new(toolbox.skills().clone());
    assert_eq!(toolbox.definitions().len(), 2);
    let arguments = json!({"skill": "kit", "script": "scripts/a.sh"}).as_object().unwrap().clone();
    let output = toolbox.call("run_skill_script", arguments, &CallContext::default()).await;
    assert!(output.is_error && output.to_text().starts_with("UnknownTool: "), "{output:?}");
}

#[tokio::test]
#[expect(clippy::print_stderr, reason = "a skipped test must say so")]
async fn in_a_sandbox() {
    let mut kit = Kit::new(&[(
        "probe.sh",
        "echo $# \"$(pwd -P)\"\n\
         echo x >here && echo cwd-writable\n\
         echo x 2>/dev/null >\"$SKILL_DIR/x\" || echo skill-read-only\n\
         echo x 2>/dev/null >\"$OUTSIDE/x\" || echo rest-read-only\n\
         (exec 3<>/dev/tcp/127.0.0.1/$PORT) 2>/dev/null && echo network || echo no-network\n",
    )]);
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    // The interpreter that has `/dev/tcp`, and what only we know, as the first lines of the script.
    let path = kit.skill_dir().join("scripts/probe.bash");
    let head = format!("PORT={port}\nOUTSIDE='{}'\n", env!("CARGO_MANIFEST_DIR"));
    fs::write(&path, head + &fs::read_to_string(kit.skill_dir().join("scripts/probe.sh")).unwrap()).unwrap();
    if !installed("bash") {
        return;
    }
    for (network, expected) in [(false, "no-network"), (true, "network")] {
        kit.options.sandbox = match Sandbox::bwrap(network) {
            Ok(sandbox) => Some(sandbox),
            Err(error) => {
                eprintln!("skipped: {error}");
                return;
            }
        };
        let result = kit.run("probe.bash").await;
        let expected =
            format!("0 {}\ncwd-writable\nskill-read-only\nrest-read-only\n{expected}\n", kit.cwd().display());
        assert_eq!(result["stdout"], expected, "{result}");
        assert!(kit.cwd().join("here").exists());
    }
    let slow = kit.skill_dir().join("scripts/slow.sh");
    fs::write(slow, "(sleep 600) & echo begun; sleep 600").unwrap();
    kit.options.limits.timeout = Duration::from_secs(1);
    let result = kit.run("slow.sh").await;
    assert_eq!((&result["stdout"], &result["error"]), (&json!("begun\n"), &json!("ExecutionTimeout")));
}
