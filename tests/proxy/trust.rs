//! Skills of a project, which are not served until the user trusts them. Tests what is served before and after, trust by
//! command and by a form in the editor, and the tricks of a hostile project.

use std::{fs, time::Instant};

use serde_json::{Value, json};

use crate::{
    commands::names,
    editor::{DEADLINE, Proxy},
    fixture::{Fixture, MCP_2025, entry, texts},
    repositories::Home,
    skills::Skills,
};

crate::trials!(
    untrusted_skills_are_not_served,
    descriptions_hide_nothing,
    changed_skills_need_trust_again,
    a_list_shows_the_present_version,
    a_version_that_was_not_listed_is_not_trusted,
    changes_are_noticed_when_files_are_read,
    #[cfg(unix)]
    a_script_reads_only_what_was_trusted,
    trust_is_shared_between_proxies,
    #[cfg(unix)]
    a_new_name_needs_trust_again,
    skills_named_by_flag_need_no_trust,
    commands_list_untrusted_skills,
);

/// A project with the skill `deploy`. The user's own skill is `review`.
pub(crate) struct Project {
    pub(crate) skills: Skills,
    pub(crate) checkout: Skills,
    home: Home,
}

impl Project {
    pub(crate) fn new() -> Self {
        let this = Self { skills: Skills::review(), checkout: Skills::new(), home: Home::new() };
        this.write("Deploys. ZQ-description", "# ZQ-body");
        this.checkout.write(".skills/deploy/references/hosts.md", "ZQ-hosts\n");
        this
    }

    pub(crate) fn write(&self, description: &str, body: &str) {
        self.checkout.add(".skills/deploy", description, body);
        let file = self.checkout.dir(".skills/deploy").join("SKILL.md");
        let text = fs::read_to_string(&file).expect("a file").replace("name: .skills/deploy", "name: deploy");
        fs::write(file, text).expect("a file");
    }

    pub(crate) fn home(&self) -> &Home {
        &self.home
    }

    pub(crate) fn proxy(&self) -> Proxy {
        self.home.proxy().flag("--skills", self.skills.path()).flag("--discover", "project")
    }

    /// Opens a session in the project and returns the params that the agent received.
    pub(crate) fn open(&self, fixture: &mut Fixture, id: &str) -> Value {
        let params = json!({ "cwd": self.checkout.path(), "mcpServers": [] });
        let (received, _) = fixture.exchange("session/new", params, json!({ "result": { "sessionId": id } }));
        received["params"].clone()
    }

    pub(crate) fn start(&self) -> (Fixture, Value) {
        let mut fixture = Fixture::over_http(self.proxy());
        let params = self.open(&mut fixture, "s");
        (fixture, params)
    }
}

/// Returns what the model can see of skills over MCP.
fn visible_skills(fixture: &mut Fixture, connection: &crate::fixture::Connection) -> String {
    fixture
        .order("look", json!({ "connection": connection.number }))
        .expect("the server is running")
        .to_string()
}

/// Lists the skills of the project, and trusts all of them.
pub(crate) fn trust_all(fixture: &mut Fixture) {
    assert!(fixture.ask("/skills").contains("Waiting for your trust"));
    assert!(fixture.ask("/skills trust").contains("trusted until the next change."));
}

fn untrusted_skills_are_not_served() {
    let project = Project::new();
    let (mut fixture, params) = project.start();
    fixture.editor.wait_for_log("project skill `deploy`");
    let connection = fixture.connect(&entry(&params), MCP_2025);
    assert_eq!(names(&fixture.editor.menu()), ["skills", "review"]);
    assert!(!visible_skills(&mut fixture, &connection).contains("deploy"));
    for (tool, arguments) in [
        ("activate_skill", json!({ "name": "deploy" })),
        ("read_skill_file", json!({ "skill": "deploy", "path": "references/hosts.md" })),
    ] {
        let (text, is_error) = fixture.call(&connection, tool, arguments);
        assert!(is_error && !text.contains("ZQ"), "{text}");
    }
    let blocks = fixture.prompt("s", "hello");
    assert!(!texts(&blocks)[0].contains("deploy"), "{blocks:?}");
    // We don't know this command, so it should be passed to the agent.
    assert_eq!(texts(&fixture.prompt("s", "/deploy now")), ["/deploy now"]);
    let said = fixture.ask("/skills");
    assert!(said.contains("**Waiting for your trust**\n\n- `deploy`: Deploys. ZQ-description _(`"), "{said}");
    // When the user trusts the skill, we should see it in the menu, in the tools and in the catalog.
    assert!(fixture.ask("/skills trust deploy").starts_with("`deploy` is trusted"));
    fixture.wait_for_command("deploy");
    fixture.list_changed(&connection);
    let (text, is_error) = fixture.call(&connection, "activate_skill", json!({ "name": "deploy" }));
    assert!(!is_error && text.contains("ZQ-body"), "{text}");
    let blocks = fixture.prompt("s", "go on");
    assert!(texts(&blocks)[0].contains("ZQ-description"), "{blocks:?}");
    fixture.finish();
    // We should remember this decision. To do this, we only store the path and the hashes, but not the text of the skill.
    let (mut fixture, _) = project.start();
    fixture.wait_for_command("deploy");
    assert!(!fixture.ask("/skills").contains("Waiting"));
    fixture.finish();
    let dir = project.home.path("state/acp-skills-proxy/trust");
    let files: Vec<_> = fs::read_dir(&dir).expect("a directory").flatten().map(|file| file.path()).collect();
    let files: Vec<_> =
        files.iter().filter(|file| file.extension().is_some_and(|extension| extension == "json")).collect();
    let text = fs::read_to_string(files[0]).expect("a file");
    assert!(files.len() == 1 && text.contains(".skills/deploy") && !text.contains("ZQ"), "{text}");
    // Another checkout is a different project, so we have to ask for that as well.
    let other = Project::new();
    let mut fixture = Fixture::over_http(project.proxy());
    other.open(&mut fixture, "s");
    assert!(fixture.ask("/skills").contains("Waiting for your trust"));
    fixture.finish();
}

/// The description of a skill that waits cannot hide text or load an image, and neither can that of one in the menu.
fn descriptions_hide_nothing() {
    let project = Project::new();
    let description = "a\u{202e}b\u{200b}\u{e0041} ![i](https://a.example/i)";
    project.write(description, "# ZQ-body");
    let (mut fixture, _) = project.start();
    let escaped = r"a\u{202e}b\u{200b}\u{e0041} ";
    let said = fixture.ask("/skills");
    assert!(said.contains(&format!(r"- `deploy`: {escaped}!\[i](https://a.example/i) _(")), "{said}");
    fixture.ask("/skills trust deploy");
    let menu = loop {
        let menu = fixture.editor.menu();
        if names(&menu).contains(&"deploy") {
            break menu;
        }
    };
    let commands = menu["params"]["update"]["availableCommands"].as_array().expect("commands");
    let command = commands.iter().find(|command| command["name"] == "deploy").expect("the command");
    assert_eq!(command["description"], format!("{escaped}![i](https://a.example/i)"));
    fixture.finish();
}

fn changed_skills_need_trust_again() {
    let project = Project::new();
    let (mut fixture, params) = project.start();
    let connection = fixture.connect(&entry(&params), MCP_2025);
    trust_all(&mut fixture);
    fixture.wait_for_command("deploy");
    project.write("Deploys. ZQ-description", "# Obey the project");
    // Wait for a menu without the skill, because this means that we've noticed the change.
    while names(&fixture.editor.menu()) != ["skills", "review"] {}
    let (text, is_error) = fixture.call(&connection, "activate_skill", json!({ "name": "deploy" }));
    assert!(is_error && !text.contains("Obey") && !text.contains("ZQ-body"), "{text}");
    // If a scan was running when we wrote the file, it will just leave out the skill, so we may have to wait for the next one.
    let deadline = Instant::now() + DEADLINE;
    loop {
        let said = fixture.ask("/skills");
        if said.contains("- `deploy` (changed since last trusted): ") {
            break;
        }
        assert!(said.contains("changed while reading") && Instant::now() < deadline, "{said}");
    }
    // Going back to the trusted version should work without asking.
    project.write("Deploys. ZQ-description", "# ZQ-body");
    fixture.wait_for_command("deploy");
    fixture.finish();
}

/// The user lists a skill and reads its files. Then the skill changes, and the proxy notices it.
fn a_version_that_was_not_listed_is_not_trusted() {
    let project = Project::new();
    let (mut fixture, params) = project.start();
    let connection = fixture.connect(&entry(&params), MCP_2025);
    let activate =
        |fixture: &mut Fixture| fixture.call(&connection, "activate_skill", json!({ "name": "deploy" })).1;
    // The list in another session doesn't count, because it may be another window.
    project.open(&mut fixture, "t");
    let prompt = json!({ "sessionId": "t", "prompt": [{ "type": "text", "text": "/skills" }] });
    let id = fixture.editor.request("session/prompt", prompt);
    fixture.editor.answer(&id);
    fixture.editor.unread();
    assert!(fixture.ask("/skills trust deploy").starts_with("Not trusted yet."));
    for (command, body) in [("/skills trust deploy", "# Evil"), ("/skills trust", "# More evil")] {
        // The list is the same as before, because only the instructions change.
        project.write("Deploys. ZQ-description", body);
        fixture.ask("/skills reload");
        let said = fixture.ask(command);
        let list = "- `deploy` (changed since last listed): Deploys. ZQ-description";
        assert!(said.starts_with("Not trusted yet.") && said.contains(list), "{said}");
        assert!(activate(&mut fixture), "the skill is not served");
    }
    // A change that we haven't noticed yet is found before the decision is saved.
    project.checkout.write(".skills/deploy/references/hosts.md", "evil\n");
    let said = fixture.ask("/skills trust deploy");
    assert!(!said.starts_with("`deploy` is trusted") && activate(&mut fixture), "{said}");
    fixture.ask("/skills reload");
    fixture.ask("/skills");
    assert!(fixture.ask("/skills trust deploy").starts_with("`deploy` is trusted"));
    assert!(!activate(&mut fixture), "the skill is served");
    fixture.editor.finish();
}

/// The proxy reads the files again before it lists skills that wait, so the next command approves what is listed.
fn a_list_shows_the_present_version() {
    for command in ["/skills", "/skills trust deploy"] {
        let project = Project::new();
        let mut fixture = Fixture::over_http(project.proxy().arg("--no-watch"));
        project.open(&mut fixture, "s");
        project.write("Deploys anew.", "# ZQ-body");
        let said = fixture.ask(command);
        assert!(said.contains("Deploys anew."), "{said}");
        let said = fixture.ask("/skills trust deploy");
        assert!(said.starts_with("`deploy` is trusted"), "{said}");
        fixture.finish();
    }
}

/// Every read is checked, even if the change has not been noticed or watching is off.
fn changes_are_noticed_when_files_are_read() {
    let project = Project::new();
    let mut fixture = Fixture::over_http(project.proxy().arg("--no-watch"));
    let params = project.open(&mut fixture, "s");
    let connection = fixture.connect(&entry(&params), MCP_2025);
    trust_all(&mut fixture);
    let read = |fixture: &mut Fixture, path: &str| {
        fixture.call(&connection, "read_skill_file", json!({ "skill": "deploy", "path": path }))
    };
    assert!(read(&mut fixture, "references/hosts.md").0.contains("ZQ-hosts"));
    project.checkout.write(".skills/deploy/references/hosts.md", "evil\n");
    project.checkout.write(".skills/deploy/references/more.md", "evil\n");
    project.write("Deploys.", "# evil");
    for path in ["references/hosts.md", "references/more.md"] {
        let (text, is_error) = read(&mut fixture, path);
        assert!(
            is_error && text.contains("has changed since the user approved") && !text.contains("evil"),
            "{text}"
        );
    }
    let (text, is_error) = fixture.call(&connection, "activate_skill", json!({ "name": "deploy" }));
    assert!(is_error && !text.contains("evil"), "{text}");
    // The command must not work either.
    let said = fixture.ask("/deploy");
    assert!(said.contains("has changed since the user approved") && !said.contains("evil"), "{said}");
    assert!(fixture.ask("/skills reload").contains("Removed: `deploy`."));
    fixture.finish();
}

/// Files that a script reads by itself count as well, even if agents would never read them.
#[cfg(unix)]
fn a_script_reads_only_what_was_trusted() {
    use std::os::unix::fs::symlink;
    let project = Project::new();
    project.checkout.write(".skills/deploy/scripts/go.sh", "#!/bin/sh\n. \"$SKILL_DIR/.git/part\"\n");
    project.checkout.write(".skills/deploy/.git/part", "echo as trusted\n");
    let mut fixture = Fixture::over_http(project.proxy().arg("--no-watch").arg("--allow-scripts"));
    let params = project.open(&mut fixture, "s");
    let connection = fixture.connect(&entry(&params), MCP_2025);
    trust_all(&mut fixture);
    let run = |fixture: &mut Fixture| {
        let arguments = json!({ "skill": "deploy", "script": "scripts/go.sh" });
        fixture.call(&connection, "run_skill_script", arguments).0
    };
    assert!(run(&mut fixture).contains("as trusted"));
    project.checkout.write(".skills/deploy/.git/part", "echo obey\n");
    let text = run(&mut fixture);
    assert!(!text.contains("obey") && text.contains("has changed since the user approved"), "{text}");
    // This link could lead to anything at any time, so trusting the skill can't cover its target.
    let part = project.checkout.dir(".skills/deploy").join(".git/part");
    fs::remove_file(&part).expect("the path exists");
    symlink(project.checkout.write("elsewhere.sh", "echo obey\n"), part).expect("a link");
    fixture.ask("/skills reload");
    fixture.ask("/skills");
    fixture.ask("/skills trust");
    let text = run(&mut fixture);
    assert!(!text.contains("obey") && text.contains("content that the user has not approved"), "{text}");
    fixture.finish();
}

/// A decision in one proxy applies to the open session of another.
fn trust_is_shared_between_proxies() {
    let project = Project::new();
    let (mut one, _) = project.start();
    let (mut other, _) = project.start();
    assert_eq!(names(&other.editor.menu()), ["skills", "review"]);
    // The file with this decision doesn't exist at this point, but the other proxy should notice when it's created.
    trust_all(&mut one);
    other.wait_for_command("deploy");
    one.finish();
    other.finish();
}

/// A skill without a `name` is named after the link that leads to it.
#[cfg(unix)]
fn a_new_name_needs_trust_again() {
    let project = Project::new();
    fs::create_dir_all(project.checkout.dir(".git")).expect("a directory");
    project.checkout.write("lib/helper/SKILL.md", "---\ndescription: Helps.\n---\nHelp.\n");
    let link = |name: &str| project.checkout.dir(".skills").join(name);
    std::os::unix::fs::symlink("../lib/helper", link("hello")).expect("a link");
    let (mut fixture, _) = project.start();
    trust_all(&mut fixture);
    fixture.wait_for_command("hello");
    fs::rename(link("hello"), link("polish")).expect("renamed");
    assert!(fixture.ask("/skills reload").contains("hello"));
    let said = fixture.ask("/skills");
    let waiting = said.split("Waiting for your trust").nth(1).unwrap_or_default();
    assert!(waiting.contains("`polish`"), "{said}");
    fixture.finish();
}

fn skills_named_by_flag_need_no_trust() {
    let project = Project::new();
    let dir = project.checkout.dir(".skills/deploy");
    for (flag, path) in [("--skill", dir.clone()), ("--skills", project.checkout.dir(".skills"))] {
        let mut fixture = Fixture::over_http(project.proxy().flag(flag, path));
        project.open(&mut fixture, "s");
        fixture.wait_for_command("deploy");
        assert!(!fixture.ask("/skills").contains("Waiting"));
        fixture.finish();
    }
}

fn commands_list_untrusted_skills() {
    let project = Project::new();
    let run = |arguments: &[&str]| {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_acp-skills-proxy"));
        command.args(arguments).current_dir(project.checkout.path()).envs(project.home.variables());
        let output = command.env_remove("ACP_SKILLS_LOG").output().expect("the program runs");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.code(), text(&output.stdout), text(&output.stderr))
    };
    let (code, text, _) = run(&["list", "--discover", "project"]);
    assert!(
        code == Some(0)
            && text.contains("unapproved: deploy in ")
            && text.contains("acp-skills-proxy trust deploy"),
        "{text}"
    );
    let (_, text, _) = run(&["list", "--discover", "project", "--json"]);
    let report: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(report["skills"], json!([]));
    assert_eq!(
        (&report["unapproved"][0]["name"], &report["unapproved"][0]["changed"]),
        (&json!("deploy"), &json!(false))
    );
    let (_, text, _) = run(&["list", "--discover", "project", "--trust", "project", "--json"]);
    let report: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!((&report["skills"][0]["name"], &report["unapproved"]), (&json!("deploy"), &json!([])));
    // We can't ask from a command that only runs for a short time, so print a hint instead.
    let (code, text, errors) = run(&["try", "--discover", "project", "--prompt", "deploy"]);
    assert!(
        !text.contains("ZQ-body") && errors.contains("`acp-skills-proxy trust`"),
        "{code:?} {text} {errors}"
    );
    let (code, text, errors) =
        run(&["try", "--discover", "project", "--trust", "project", "--prompt", "deploy"]);
    assert!(code == Some(0) && text.contains("deploy"), "{text} {errors}");
}
