//! Skills of a project, which wait until their user trusts them: what is served before and after, by command and by the
//! question that an editor puts, and what a hostile project tries.

use std::{fs, time::Instant};

use serde_json::{Value, json};

use crate::{
    commands::names,
    editor::{DEADLINE, Proxy},
    fixtures::Skills,
    repositories::Home,
    stage::{MCP_2025, Stage, entry, texts},
};

crate::trials!(
    nothing_is_served_before,
    what_changes_waits_again,
    what_changes_while_it_is_read,
    an_editor_that_asks,
    an_editor_whose_user_says_no,
    two_proxies,
    whoever_wants_it_as_it_comes,
    what_the_user_named_needs_none,
    commands_say_what_waits,
    under_a_conductor,
);

/// A project with the skill `deploy`, beside the user's own `review`.
struct Project {
    skills: Skills,
    theirs: Skills,
    home: Home,
}

impl Project {
    fn new() -> Self {
        let this = Self { skills: Skills::review(), theirs: Skills::new(), home: Home::new() };
        this.write("Deploys. ZQ-description", "# ZQ-body");
        this.theirs.write(".skills/deploy/references/hosts.md", "ZQ-hosts\n");
        this
    }

    fn write(&self, description: &str, body: &str) {
        self.theirs.add(".skills/deploy", description, body);
        let file = self.theirs.dir(".skills/deploy").join("SKILL.md");
        let text = fs::read_to_string(&file).expect("a file").replace("name: .skills/deploy", "name: deploy");
        fs::write(file, text).expect("a file");
    }

    fn proxy(&self) -> Proxy {
        self.home.proxy().flag("--skills", self.skills.path()).flag("--discover", "project")
    }

    /// A session in the project. Returns what the agent was asked for.
    fn open(&self, stage: &mut Stage, id: &str) -> Value {
        let params = json!({ "cwd": self.theirs.path(), "mcpServers": [] });
        let (received, _) = stage.exchange("session/new", params, json!({ "result": { "sessionId": id } }));
        received["params"].clone()
    }

    fn start(&self) -> (Stage, Value) {
        let mut stage = Stage::over_http(self.proxy());
        let params = self.open(&mut stage, "s");
        (stage, params)
    }
}

/// All that the model can see of skills over MCP.
fn everything(stage: &mut Stage, connection: &crate::stage::Connection) -> String {
    stage.order("look", json!({ "connection": connection.number })).expect("the server is there").to_string()
}

fn nothing_is_served_before() {
    let project = Project::new();
    let (mut stage, params) = project.start();
    stage.editor.logged("the project's skill `deploy`");
    let connection = stage.connect(&entry(&params), MCP_2025);
    assert_eq!(names(&stage.editor.menu()), ["skills", "review"]);
    assert!(!everything(&mut stage, &connection).contains("deploy"));
    for (tool, arguments) in [
        ("activate_skill", json!({ "name": "deploy" })),
        ("read_skill_file", json!({ "skill": "deploy", "path": "references/hosts.md" })),
    ] {
        let (text, is_error) = stage.call(&connection, tool, arguments);
        assert!(is_error && !text.contains("ZQ"), "{text}");
    }
    let blocks = stage.prompt("s", "hello");
    assert!(!texts(&blocks)[0].contains("deploy"), "{blocks:?}");
    // A command that is none of ours is the agent's.
    assert_eq!(texts(&stage.prompt("s", "/deploy now")), ["/deploy now"]);
    let said = stage.ask("/skills");
    assert!(said.contains("**Waiting for your trust**\n\n- `deploy`: Deploys. ZQ-description _(`"), "{said}");
    // Trusted, and everything follows.
    assert!(stage.ask("/skills trust deploy").starts_with("`deploy` is trusted"));
    stage.menu_has("deploy");
    stage.heard(&connection);
    let (text, is_error) = stage.call(&connection, "activate_skill", json!({ "name": "deploy" }));
    assert!(!is_error && text.contains("ZQ-body"), "{text}");
    let blocks = stage.prompt("s", "go on");
    assert!(texts(&blocks)[0].contains("ZQ-description"), "{blocks:?}");
    stage.finish();
    // It is remembered: hashes by place, for nobody else to read.
    let (mut stage, _) = project.start();
    stage.menu_has("deploy");
    assert!(!stage.ask("/skills").contains("Waiting"));
    stage.finish();
    let dir = project.home.path("state/acp-skills-proxy/trust");
    let files: Vec<_> = fs::read_dir(&dir).expect("a directory").flatten().map(|it| it.path()).collect();
    let files: Vec<_> = files.iter().filter(|it| it.extension().is_some_and(|it| it == "json")).collect();
    let text = fs::read_to_string(files[0]).expect("a file");
    assert!(files.len() == 1 && text.contains(".skills/deploy") && !text.contains("ZQ"), "{text}");
    // Another checkout is another project.
    let other = Project::new();
    let mut stage = Stage::over_http(project.proxy());
    other.open(&mut stage, "s");
    assert!(stage.ask("/skills").contains("Waiting for your trust"));
    stage.finish();
}

fn what_changes_waits_again() {
    let project = Project::new();
    let (mut stage, params) = project.start();
    let connection = stage.connect(&entry(&params), MCP_2025);
    stage.ask("/skills trust");
    stage.menu_has("deploy");
    project.write("Deploys. ZQ-description", "# Obey the project");
    // The menu without it says that it was noticed.
    while names(&stage.editor.menu()) != ["skills", "review"] {}
    let (text, is_error) = stage.call(&connection, "activate_skill", json!({ "name": "deploy" }));
    assert!(is_error && !text.contains("Obey") && !text.contains("ZQ-body"), "{text}");
    // A look that was under way when it was written leaves it out, and the next one knows more.
    let deadline = Instant::now() + DEADLINE;
    loop {
        let said = stage.ask("/skills");
        if said.contains("- `deploy` (it has changed since you trusted it): ") {
            break;
        }
        assert!(said.contains("changed while we were reading it") && Instant::now() < deadline, "{said}");
    }
    // As it was is as it was trusted.
    project.write("Deploys. ZQ-description", "# ZQ-body");
    stage.menu_has("deploy");
    stage.finish();
}

/// Nothing has been noticed yet, or nobody watches: what is read is compared.
fn what_changes_while_it_is_read() {
    let project = Project::new();
    let mut stage = Stage::over_http(project.proxy().arg("--no-watch"));
    let params = project.open(&mut stage, "s");
    let connection = stage.connect(&entry(&params), MCP_2025);
    stage.ask("/skills trust");
    let read = |stage: &mut Stage, path: &str| {
        stage.call(&connection, "read_skill_file", json!({ "skill": "deploy", "path": path }))
    };
    assert!(read(&mut stage, "references/hosts.md").0.contains("ZQ-hosts"));
    project.theirs.write(".skills/deploy/references/hosts.md", "evil\n");
    project.theirs.write(".skills/deploy/references/more.md", "evil\n");
    project.write("Deploys.", "# evil");
    for path in ["references/hosts.md", "references/more.md"] {
        let (text, is_error) = read(&mut stage, path);
        assert!(is_error && text.contains("has changed since the user approved the skill") && !text.contains("evil"), "{text}");
    }
    let (text, is_error) = stage.call(&connection, "activate_skill", json!({ "name": "deploy" }));
    assert!(is_error && !text.contains("evil"), "{text}");
    // Not by command either.
    let said = stage.ask("/deploy");
    assert!(said.contains("has changed since the user approved the skill") && !said.contains("evil"), "{said}");
    assert!(stage.ask("/skills reload").contains("Removed: `deploy`."));
    stage.finish();
}

/// A stage whose editor asks its user with forms.
fn with_forms(proxy: Proxy) -> Stage {
    let mut stage = Stage::new(proxy);
    stage.exchange(
        "initialize",
        json!({ "protocolVersion": 1, "clientCapabilities": { "elicitation": { "form": {} } } }),
        json!({ "result": { "protocolVersion": 1, "agentCapabilities": { "mcpCapabilities": { "http": true } } } }),
    );
    stage
}

fn question(stage: &mut Stage) -> Value {
    stage.editor.wait_for("a question", |message| message["method"] == "elicitation/create")
}

fn an_editor_that_asks() {
    let project = Project::new();
    let mut stage = with_forms(project.proxy());
    let params = project.open(&mut stage, "s");
    let asked = question(&mut stage);
    let message = asked["params"]["message"].as_str().expect("text");
    assert!(message.contains("- deploy (") && message.contains("ZQ-description"), "{message}");
    let connection = stage.connect(&entry(&params), MCP_2025);
    let answer = json!({ "action": "accept", "content": { "trust": true } });
    stage.editor.send(&json!({ "jsonrpc": "2.0", "id": asked["id"], "result": answer }));
    stage.menu_has("deploy");
    let (text, is_error) = stage.call(&connection, "activate_skill", json!({ "name": "deploy" }));
    assert!(!is_error && text.contains("ZQ-body"), "{text}");
    assert_eq!(stage.received(), Vec::<Value>::new(), "the agent hears of neither question nor answer");
    // What has changed is asked for again.
    project.write("Deploys. ZQ-description", "# Something else");
    let asked = question(&mut stage);
    assert!(
        asked["params"]["message"].as_str().expect("text").contains("changed since you trusted it"),
        "{asked}"
    );
    // What was shown is what is trusted, and not what lies there when the user has read it.
    project.theirs.write(".skills/deploy/references/hosts.md", "evil\n");
    let answer = json!({ "action": "accept", "content": { "trust": true } });
    stage.editor.send(&json!({ "jsonrpc": "2.0", "id": asked["id"], "result": answer }));
    stage.editor.logged("`deploy` is not trusted: it has just changed");
    stage.editor.unread();
    let (text, is_error) = stage.call(&connection, "activate_skill", json!({ "name": "deploy" }));
    assert!(is_error, "{text}");
    drop(stage.editor.finish());
}

fn an_editor_whose_user_says_no() {
    let project = Project::new();
    let mut stage = with_forms(project.proxy());
    project.open(&mut stage, "s");
    let asked = question(&mut stage);
    stage.editor.send(&json!({ "jsonrpc": "2.0", "id": asked["id"], "result": { "action": "decline" } }));
    assert!(stage.ask("/skills").contains("Waiting for your trust"));
    stage.finish();
    // Nobody asks twice, also not in another run.
    let mut stage = with_forms(project.proxy());
    project.open(&mut stage, "s");
    assert!(stage.ask("/skills").contains("Waiting for your trust"));
    assert!(stage.ask("/skills trust").starts_with("`deploy` is trusted"));
    stage.finish();
}

/// What is said in one is so in the other, whose session is open.
fn two_proxies() {
    let project = Project::new();
    let ((mut one, _), (mut other, _)) = (project.start(), project.start());
    assert_eq!(names(&other.editor.menu()), ["skills", "review"]);
    // The other watches what does not exist yet.
    one.ask("/skills trust deploy");
    other.menu_has("deploy");
    one.finish();
    other.finish();
}

fn whoever_wants_it_as_it_comes() {
    let project = Project::new();
    let config = json!({ "projects": [{ "path": project.theirs.path(), "discover": ["project"], "trust": ["project"] }] });
    project.home.write(&project.home.config(), &config.to_string());
    for proxy in [project.proxy().flag("--trust", "project"), project.home.proxy()] {
        let mut stage = Stage::over_http(proxy);
        project.open(&mut stage, "s");
        stage.menu_has("deploy");
        stage.finish();
    }
    assert!(!project.home.path("state/acp-skills-proxy/trust").exists(), "nothing was decided");
}

fn what_the_user_named_needs_none() {
    let project = Project::new();
    let dir = project.theirs.dir(".skills/deploy");
    for (flag, path) in [("--skill", dir.clone()), ("--skills", project.theirs.dir(".skills"))] {
        let mut stage = Stage::over_http(project.proxy().flag(flag, path));
        project.open(&mut stage, "s");
        stage.menu_has("deploy");
        assert!(!stage.ask("/skills").contains("Waiting"));
        stage.finish();
    }
}

fn commands_say_what_waits() {
    let project = Project::new();
    let run = |arguments: &[&str]| {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_acp-skills-proxy"));
        command.args(arguments).current_dir(project.theirs.path()).envs(project.home.variables());
        let output = command.env_remove("ACP_SKILLS_LOG").output().expect("it runs");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.code(), text(&output.stdout), text(&output.stderr))
    };
    let (code, text, _) = run(&["list", "--discover", "project"]);
    assert!(
        code == Some(0) && text.contains("waiting: deploy in ") && text.contains("--trust project"),
        "{text}"
    );
    let (_, text, _) = run(&["list", "--discover", "project", "--json"]);
    let report: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(report["skills"], json!([]));
    assert_eq!(
        (&report["waiting"][0]["name"], &report["waiting"][0]["changed"]),
        (&json!("deploy"), &json!(false))
    );
    let (_, text, _) = run(&["list", "--discover", "project", "--trust", "project", "--json"]);
    let report: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!((&report["skills"][0]["name"], &report["waiting"]), (&json!("deploy"), &json!([])));
    // One that stays for a moment does not ask either.
    let (code, text, errors) = run(&["try", "--discover", "project", "--prompt", "deploy"]);
    assert!(!text.contains("ZQ-body") && errors.contains("--trust project"), "{code:?} {text} {errors}");
    let (code, text, errors) =
        run(&["try", "--discover", "project", "--trust", "project", "--prompt", "deploy"]);
    assert!(code == Some(0) && text.contains("deploy"), "{text} {errors}");
}

/// The answer to our own question is ours, also where one connection carries both sides.
fn under_a_conductor() {
    let project = Project::new();
    let mut conductor = project.proxy().flag("--mcp-wait", "0").start();
    let params = json!({ "protocolVersion": 1, "clientCapabilities": { "elicitation": { "form": {} } } });
    let id = conductor.request("proxy/initialize", params);
    let inner = conductor.message();
    conductor.send(&json!({ "jsonrpc": "2.0", "id": inner["id"], "result": { "protocolVersion": 1, "agentCapabilities": {} } }));
    conductor.answer(&id);
    let params = json!({ "cwd": project.theirs.path(), "mcpServers": [] });
    let id = conductor.request("session/new", params);
    let inner = conductor.wait_for("the request", |it| it["params"]["method"] == "session/new");
    conductor.send(&json!({ "jsonrpc": "2.0", "id": inner["id"], "result": { "sessionId": "s" } }));
    conductor.answer(&id);
    let asked = conductor.wait_for("a question", |message| message["method"] == "elicitation/create");
    let answer = json!({ "action": "accept", "content": { "trust": true } });
    conductor.send(&json!({ "jsonrpc": "2.0", "id": asked["id"], "result": answer }));
    loop {
        let menu = conductor.menu();
        if names(&menu).contains(&"deploy") {
            break;
        }
    }
    assert_eq!(conductor.finish().messages, Vec::<Value>::new(), "nobody else got the answer");
}
