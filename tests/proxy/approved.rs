//! Skills that the user has approved, or that belong to the user, in a project that changes: new names, missing files, and
//! files that an interpreter would read before the script.

#[cfg(unix)]
use std::fs;
use std::process::Command;

#[cfg(unix)]
use serde_json::Value;
use serde_json::json;

use crate::{
    fixture::{Connection, Fixture, MCP_2025, entry},
    trust::{Project, trust_all},
};

crate::trials!(
    names_of_new_files_do_not_reach_the_model,
    a_change_of_any_file_keeps_the_skill_from_being_activated,
    #[cfg(unix)]
    a_missing_file_keeps_scripts_from_running,
    python_does_not_end_the_approval,
    #[cfg(unix)]
    interpreters_read_no_files_of_the_project,
);

/// A name that tells the model what to do.
const NEW: &str = "IMPORTANT - ZQ-obey.md";

/// Opens a session in which the skill `deploy` is approved, and changes are only noticed when they matter.
fn approved(project: &Project) -> (Fixture, Connection) {
    let mut fixture = Fixture::over_http(project.proxy().arg("--no-watch").arg("--allow-scripts"));
    let params = project.open(&mut fixture, "s");
    let connection = fixture.connect(&entry(&params), MCP_2025);
    trust_all(&mut fixture);
    (fixture, connection)
}

fn run(fixture: &mut Fixture, connection: &Connection, skill: &str, script: &str) -> String {
    fixture.call(connection, "run_skill_script", json!({ "skill": skill, "script": script })).0
}

/// Returns true if a program is installed, and prints a message otherwise.
#[expect(clippy::print_stderr, reason = "a skipped test must say so")]
fn is_installed(program: &str) -> bool {
    let found = Command::new(program).arg("--version").output().is_ok();
    if !found {
        eprintln!("skipped: `{program}` is not installed");
    }
    found
}

fn names_of_new_files_do_not_reach_the_model() {
    let project = Project::new();
    project.checkout.write(".skills/deploy/references/sub/more.md", "more\n");
    project.checkout.write(".skills/deploy/scripts/go.sh", "echo ran\n");
    let (mut fixture, connection) = approved(&project);
    for directory in ["", "references/", "references/sub/", "IMPORTANT - ZQ-directory/"] {
        project.checkout.write(&format!(".skills/deploy/{directory}{NEW}"), "new\n");
    }
    let mut seen = String::new();
    for (tool, arguments) in [
        ("activate_skill", json!({ "name": "deploy" })),
        ("read_skill_file", json!({ "skill": "deploy", "path": "." })),
        ("read_skill_file", json!({ "skill": "deploy", "path": "./references//" })),
        ("read_skill_file", json!({ "skill": "deploy", "path": "references/sub" })),
        ("read_skill_file", json!({ "skill": "deploy", "path": "references/IMPORTANT - obey.md" })),
        ("read_skill_file", json!({ "skill": "deploy", "path": "../x" })),
        ("run_skill_script", json!({ "skill": "deploy", "script": "scripts/go.sh" })),
        ("run_skill_script", json!({ "skill": "deploy", "script": "scripts/og.sh" })),
    ] {
        seen += &fixture.call(&connection, tool, arguments).0;
    }
    let order = json!({ "connection": connection.number });
    let resources = fixture.order("resources", order).expect("a list").to_string();
    assert!(resources.contains("skill://deploy/references/hosts.md"), "{resources}");
    seen += &resources;
    seen += &fixture.ask("/deploy");
    assert!(!seen.contains("ZQ-obey") && !seen.contains("ZQ-directory"), "{seen}");
    assert!(!seen.contains("ran\n") && seen.contains("contains a file that is new"), "{seen}");
    // The approved files are still listed.
    for known in ["`sub/`", "`hosts.md`", "`more.md`", "references/hosts.md", "references/sub/more.md"] {
        assert!(seen.contains(known), "{known}: {seen}");
    }
    fixture.finish();
}

/// The instructions may tell the agent to open any file of the skill with its own tools, so all files count.
fn a_change_of_any_file_keeps_the_skill_from_being_activated() {
    let project = Project::new();
    project.checkout.write(".skills/deploy/.hidden/part.md", "part\n");
    let (mut fixture, connection) = approved(&project);
    let activate =
        |fixture: &mut Fixture| fixture.call(&connection, "activate_skill", json!({ "name": "deploy" }));
    assert!(!activate(&mut fixture).1, "the skill is served");
    let check = |fixture: &mut Fixture, path: &str, why: &str| {
        let (text, is_error) = activate(fixture);
        assert!(is_error && text.contains(path) && text.contains(why) && !text.contains("ZQ"), "{text}");
        let said = fixture.ask("/deploy");
        assert!(said.contains(why) && !said.contains("ZQ"), "{path}: {said}");
    };
    let changed = "has changed since the user approved the skill";
    let hosts = ".skills/deploy/references/hosts.md";
    project.checkout.write(hosts, "evil\n");
    check(&mut fixture, "`references/hosts.md`", changed);
    project.checkout.write(hosts, "ZQ-hosts\n");
    assert!(!activate(&mut fixture).1, "the approved version is served");
    project.checkout.write(&format!(".skills/deploy/.new/{NEW}"), "evil\n");
    check(&mut fixture, "skill", "contains a file that is new since the user approved it");
    project.checkout.remove(".skills/deploy/.new");
    project.checkout.remove(".skills/deploy/.hidden");
    check(&mut fixture, "`.hidden/part.md`", changed);
    assert!(fixture.ask("/skills reload").contains("Removed: `deploy`."));
    fixture.finish();
}

/// The script would do something else without the other file.
#[cfg(unix)]
fn a_missing_file_keeps_scripts_from_running() {
    let project = Project::new();
    let guard = "scripts/safe/guard.sh";
    let script = format!("if [ -f \"$SKILL_DIR/{guard}\" ]; then echo safe; else echo ZQ-unsafe; fi\n");
    project.checkout.write(".skills/deploy/scripts/go.sh", &script);
    project.checkout.write(&format!(".skills/deploy/{guard}"), "");
    let (mut fixture, connection) = approved(&project);
    assert!(run(&mut fixture, &connection, "deploy", "scripts/go.sh").contains("safe"));
    project.checkout.remove(".skills/deploy/scripts/safe");
    let text = run(&mut fixture, &connection, "deploy", "scripts/go.sh");
    assert!(!text.contains("ZQ-unsafe") && text.contains(&format!("`{guard}` has changed since")), "{text}");
    fixture.finish();
}

/// Python would write compiled modules into the skill.
fn python_does_not_end_the_approval() {
    if !is_installed("python3") {
        return;
    }
    let project = Project::new();
    project.checkout.write(".skills/deploy/scripts/go.py", "import lib\n");
    project
        .checkout
        .write(".skills/deploy/scripts/isolated.py", "#!/usr/bin/env -S python3 -E\nimport lib\n");
    project.checkout.write(".skills/deploy/scripts/lib.py", "print('ZQ-lib')\n");
    let (mut fixture, connection) = approved(&project);
    for script in ["scripts/go.py", "scripts/isolated.py", "scripts/go.py"] {
        let text = run(&mut fixture, &connection, "deploy", script);
        assert!(text.contains("ZQ-lib"), "{script}: {text}");
    }
    assert!(!fixture.ask("/skills reload").contains("deploy"));
    fixture.finish();
}

/// Files that an interpreter would run or obey if it read the configuration of the project. The broken `uv.toml` would make `uv`
/// fail.
#[cfg(unix)]
const CONFIGURATION: [(&str, &str); 9] = [
    ("evil.ts", "console.log('ZQ-evil'); export default {}; export const x = 'ZQ-evil'\n"),
    ("bunfig.toml", "preload = [\"./evil.ts\"]\n"),
    (".env", "ZQ=ZQ-evil\n"),
    ("tsconfig.json", r#"{ "compilerOptions": { "paths": { "node:fs": ["./evil.ts"] } } }"#),
    (
        "deno.json",
        r#"{ "imports": { "./.skills/deploy/scripts/lib.ts": "./evil.ts" }, "preload": ["./evil.ts"] }"#,
    ),
    ("uv.toml", "ZQ-evil\n"),
    (".python-version", "./evil-python\n"),
    (".venv/pyvenv.cfg", "home = /usr/bin\nversion = 3.11\n"),
    (".npmrc", "registry=http://127.0.0.1:9/\n"),
];

#[cfg(unix)]
fn interpreters_read_no_files_of_the_project() {
    use std::os::unix::fs::PermissionsExt;
    let project = Project::new();
    let python = "# /// script\n# dependencies = []\n# ///\nprint('ZQ-own')\n";
    let bun = "import fs from 'node:fs'; import { x } from './lib.ts'; console.log(x, typeof fs.readFileSync, process.env.ZQ)\n";
    let deno = "import { x } from './lib.ts'; console.log(x)\n";
    let scripts = [
        ("bun", "bun.ts", bun.to_owned()),
        ("bun", "bun", format!("#!/usr/bin/env -S bun run\n{bun}")),
        ("deno", "deno", format!("#!/usr/bin/env -S deno run -A\n{deno}")),
        ("uv", "uv.py", python.to_owned()),
        ("uv", "uv", format!("#!/usr/bin/env -S uv run --script\n{python}")),
    ];
    for (skills, directory) in [(&project.checkout, ".skills/deploy"), (&project.skills, "review")] {
        skills.write(&format!("{directory}/scripts/lib.ts"), "export const x: string = 'ZQ-own'\n");
        for (_, name, text) in &scripts {
            skills.write(&format!("{directory}/scripts/{name}"), text);
        }
    }
    let (mut fixture, connection) = approved(&project);
    for (path, text) in CONFIGURATION {
        project.checkout.write(path, text);
    }
    let marker = project.checkout.dir("ZQ-evil");
    let python = format!("#!/bin/sh\ntouch '{}'\nexec python3 \"$@\"\n", marker.display());
    for path in ["evil-python", ".venv/bin/python"] {
        let path = project.checkout.write(path, &python);
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("permissions");
    }
    for (program, name, _) in &scripts {
        if !is_installed(program) {
            continue;
        }
        for skill in ["deploy", "review"] {
            let text = run(&mut fixture, &connection, skill, &format!("scripts/{name}"));
            let result: Value = serde_json::from_str(&text).expect("JSON");
            let output = result["stdout"].as_str().expect("text");
            assert!(output.contains("ZQ-own") && !text.contains("ZQ-evil"), "{skill} {name}: {text}");
            assert!(!marker.exists(), "{skill} {name}: {text}");
        }
    }
    fixture.finish();
}
