//! Sessions with several roots (`additionalDirectories`): the skills of each are found and watched, and follow the list.

use std::{
    fs,
    path::{Path, PathBuf},
};

use serde_json::{Value, json};

use crate::{
    commands::names,
    editor::Proxy,
    fixture::{Connection, Fixture, MCP_2025, entry, texts},
    repositories::Home,
};

crate::trials!(
    skills_of_all_roots_are_used,
    earlier_roots_take_precedence,
    trusting_one_skill_trusts_no_other_of_its_name,
    #[cfg(unix)]
    a_linked_skill_belongs_to_its_own_project,
    #[cfg(unix)]
    a_single_linked_skill_belongs_to_its_own_project,
    #[cfg(unix)]
    a_linked_skill_is_not_trusted_in_advance,
    the_list_changes_when_a_session_is_entered_again,
    a_copy_of_a_session_has_its_own_roots,
    roots_are_watched,
    unusual_roots,
    relative_roots_are_ignored,
    a_thousand_roots,
);

/// Directories with skills, and the home directory of the user.
pub(crate) struct Roots {
    directory: tempfile::TempDir,
    pub(crate) home: Home,
}

impl Roots {
    pub(crate) fn new() -> Self {
        Self { directory: tempfile::tempdir().expect("a directory"), home: Home::new() }
    }

    pub(crate) fn path(&self, path: &str) -> PathBuf {
        let directory = dunce::canonicalize(self.directory.path()).expect("a directory");
        directory.join(path.split('/').collect::<PathBuf>())
    }

    pub(crate) fn text(&self, path: &str) -> String {
        self.path(path).to_str().expect("text").to_owned()
    }

    pub(crate) fn write(&self, path: &str, text: &str) {
        write(&self.path(path), text);
    }

    /// Writes the skill in the directory `path`, which ends in its name.
    pub(crate) fn skill(&self, path: &str, description: &str) {
        write_skill(&self.path(path), description, "");
    }

    pub(crate) fn proxy(&self) -> Proxy {
        self.home.proxy().flag("--discover", "project")
    }

    pub(crate) fn trusting(&self) -> Proxy {
        self.proxy().flag("--trust", "project")
    }

    fn params(&self, cwd: &str, additional: &[&str]) -> Value {
        let additional: Vec<_> = additional.iter().map(|root| self.text(root)).collect();
        json!({ "cwd": self.text(cwd), "additionalDirectories": additional, "mcpServers": [] })
    }

    /// Opens the session `s`.
    pub(crate) fn open(&self, fixture: &mut Fixture, cwd: &str, additional: &[&str]) -> Value {
        self.open_as(fixture, "s", cwd, additional)
    }

    pub(crate) fn open_as(&self, fixture: &mut Fixture, id: &str, cwd: &str, additional: &[&str]) -> Value {
        let outcome = json!({ "result": { "sessionId": id } });
        let (received, _) = fixture.exchange("session/new", self.params(cwd, additional), outcome);
        received["params"].clone()
    }

    /// Loads or resumes the session `s`.
    fn enter(&self, fixture: &mut Fixture, method: &str, cwd: &str, additional: &[&str]) -> Value {
        let mut params = self.params(cwd, additional);
        params["sessionId"] = "s".into();
        let (received, _) = fixture.exchange(method, params, json!({ "result": {} }));
        received["params"].clone()
    }
}

fn write(file: &Path, text: &str) {
    fs::create_dir_all(file.parent().expect("a parent")).expect("a directory");
    fs::write(file, text).expect("a file");
}

pub(crate) fn write_skill(dir: &Path, description: &str, more: &str) {
    let name = dir.file_name().expect("a name").to_str().expect("text");
    let text = format!(
        "---\nname: {name}\ndescription: {description}\n{more}---\n# Body of {name}\n{description}\n"
    );
    write(&dir.join("SKILL.md"), &text);
}

/// Returns the names of the skills in the catalog of the first prompt, with their descriptions.
pub(crate) fn catalog(fixture: &mut Fixture) -> String {
    texts(&fixture.prompt("s", "hello"))[0].to_owned()
}

pub(crate) fn activate(fixture: &mut Fixture, connection: &Connection, name: &str) -> (String, bool) {
    fixture.call(connection, "activate_skill", json!({ "name": name }))
}

fn skills_of_all_roots_are_used() {
    let roots = Roots::new();
    roots.skill("api/.skills/deploy", "Deploys the API.");
    roots.skill("lib/.claude/skills/review", "Reviews the library.");
    roots.skill("docs/.agents/skills/write", "Writes.");
    let mut fixture = Fixture::over_http(roots.trusting().flag("--events", roots.path("events")));
    let params = roots.open(&mut fixture, "api", &["lib", "docs"]);
    // The agent receives the list unchanged.
    assert_eq!(params["additionalDirectories"], json!([roots.text("lib"), roots.text("docs")]));
    assert_eq!(names(&fixture.editor.menu()), ["skills", "deploy", "review", "write"]);
    let connection = fixture.connect(&entry(&params), MCP_2025);
    assert_eq!(fixture.skill_names(&connection), json!(["deploy", "review", "write"]));
    let (text, is_error) = activate(&mut fixture, &connection, "review");
    assert!(!is_error && text.contains("Body of review"), "{text}");
    let said = fixture.ask("/skills");
    for root in ["api", "lib", "docs"] {
        assert!(said.contains(&format!("of {}`", shown(&roots.path(root)))), "{root}: {said}");
    }
    // Without additional roots, there is no need to tell them apart.
    roots.open_as(&mut fixture, "t", "api", &[]);
    assert_eq!(names(&fixture.editor.menu()), ["skills", "deploy"]);
    fixture.finish();
    let events = fs::read_to_string(roots.path("events")).expect("a file");
    let activated = events.lines().find(|line| line.contains(r#""skill":"review""#)).expect("an event");
    let activated: Value = serde_json::from_str(activated).expect("JSON");
    assert_eq!(activated["root"], json!(roots.text("lib")));
}

/// Returns the end of a path as `/skills` shows it.
pub(crate) fn shown(path: &Path) -> String {
    format!("`{}", path.display())
}

fn earlier_roots_take_precedence() {
    let roots = Roots::new();
    for root in ["a", "b", "c"] {
        roots.skill(&format!("{root}/.skills/deploy"), &format!("Deploys {root}."));
    }
    roots.skill("b/.skills/review", "Reviews b.");
    roots.skill("c/.skills/review", "Reviews c.");
    for (cwd, additional, deploy, review) in
        [("a", ["c", "b"], "Deploys a.", "Reviews c."), ("c", ["a", "b"], "Deploys c.", "Reviews c.")]
    {
        let mut fixture = Fixture::over_http(roots.trusting());
        roots.open(&mut fixture, cwd, &additional);
        let text = catalog(&mut fixture);
        assert!(text.contains(deploy) && text.contains(review), "{text}");
        assert_eq!(text.matches("<name>").count(), 2, "{text}");
        assert!(fixture.ask("/skills").contains("is hidden by the skill from"));
        fixture.editor.menu();
        fixture.finish();
    }
}

fn trusting_one_skill_trusts_no_other_of_its_name() {
    let roots = Roots::new();
    for root in ["a", "b"] {
        roots.skill(&format!("{root}/.skills/review"), &format!("Reviews {root}."));
    }
    let mut fixture = Fixture::over_http(roots.proxy());
    roots.open(&mut fixture, "a", &["b"]);
    fixture.ask("/skills");
    let said = fixture.ask("/skills trust review");
    assert!(said.starts_with("Nothing was trusted, because several skills are called `review`."), "{said}");
    let command = |root: &str| format!("/skills trust \"{}\"", roots.text(&format!("{root}/.skills/review")));
    assert!(said.contains(&command("a")) && said.contains(&command("b")), "{said}");
    assert_eq!(fixture.ask(&command("b")), "`review` is trusted until the next change.");
    assert!(catalog(&mut fixture).contains("Reviews b."));
    assert_eq!(fixture.ask("/skills trust review"), "`review` is trusted until the next change.");
    fixture.editor.menu();
    // Both lose the trust, so that none takes the place of the other.
    assert!(fixture.ask("/skills untrust review").contains("no longer trusted"));
    let said = fixture.ask("/skills");
    assert_eq!(said.matches("Reviews ").count(), 2, "{said}");
    assert!(said.starts_with("No trusted skills in this session."), "{said}");
    fixture.finish();
}

/// A link in one directory of the session leads to the skills of another one.
#[cfg(unix)]
fn a_linked_skill_belongs_to_its_own_project() {
    let roots = Roots::new();
    roots.skill("b/.skills/review", "Reviews b.");
    fs::create_dir_all(roots.path("a/.agents")).expect("a directory");
    std::os::unix::fs::symlink(roots.path("b/.skills"), roots.path("a/.agents/skills")).expect("a link");
    for (cwd, additional) in [("a", "b"), ("b", "a")] {
        let mut fixture = Fixture::over_http(roots.proxy());
        roots.open(&mut fixture, cwd, &[additional]);
        let said = fixture.ask("/skills");
        assert!(said.contains(&format!("of {}`", shown(&roots.path("b")))), "{said}");
        assert_eq!(fixture.ask("/skills trust review"), "`review` is trusted until the next change.");
        fixture.editor.menu();
        fixture.finish();
        let dir = roots.text("b");
        assert_eq!(roots.home.printed(&["untrust", "--dir", &dir]), "No longer trusted: `review`.\n");
    }
}

/// A link leads to a single skill of another directory of the session.
#[cfg(unix)]
fn a_single_linked_skill_belongs_to_its_own_project() {
    for (place, is_searched) in [("b/.skills/review", true), ("b/1/2/3/4/5/6/review", false)] {
        let roots = Roots::new();
        roots.skill(place, "Reviews b.");
        fs::create_dir_all(roots.path("a/.agents/skills")).expect("a directory");
        std::os::unix::fs::symlink(roots.path(place), roots.path("a/.agents/skills/review")).expect("a link");
        for (cwd, additional) in [("a", "b"), ("b", "a")] {
            let mut fixture = Fixture::over_http(roots.proxy().arg("--no-watch"));
            roots.open(&mut fixture, cwd, &[additional]);
            let said = fixture.ask("/skills");
            assert!(said.contains(&format!("of {}`", shown(&roots.path("b")))), "{said}");
            assert_eq!(said.matches("Reviews b.").count(), 1, "{said}");
            // A directory above the skill is replaced and restored, so the user may have reviewed other files.
            if !is_searched {
                fs::rename(roots.path("b/1"), roots.path("b/away")).expect("the path exists");
                fs::create_dir(roots.path("b/1")).expect("a directory");
                fs::remove_dir(roots.path("b/1")).expect("the path exists");
                fs::rename(roots.path("b/away"), roots.path("b/1")).expect("the path exists");
                let said = fixture.ask("/skills trust review");
                assert!(said.starts_with("Could not trust `review`: skill has changed"), "{said}");
                fixture.ask("/skills reload");
                fixture.ask("/skills");
            }
            assert_eq!(fixture.ask("/skills trust review"), "`review` is trusted until the next change.");
            fixture.editor.menu();
            fixture.finish();
            let dir = roots.text("b");
            assert_eq!(roots.home.printed(&["untrust", "--dir", &dir]), "No longer trusted: `review`.\n");
        }
    }
}

/// The user trusts the skills of one directory in advance. A link in another directory leads to a skill in the trusted one that its own
/// search doesn't find, such as one of a dependency.
#[cfg(unix)]
fn a_linked_skill_is_not_trusted_in_advance() {
    for (place, is_searched) in [("a/.skills/review", true), ("a/node_modules/x/skills/review", false)] {
        let roots = Roots::new();
        roots.skill(place, "Reviews a.");
        fs::create_dir_all(roots.path("b/.skills")).expect("a directory");
        std::os::unix::fs::symlink(roots.path(place), roots.path("b/.skills/review")).expect("a link");
        let config = json!({ "projects": [{ "path": roots.text("a"), "discover": ["project"], "trust": ["project"] }] });
        roots.write("skills.yaml", &config.to_string());
        let mut fixture = Fixture::over_http(roots.proxy().flag("--config", roots.path("skills.yaml")));
        roots.open(&mut fixture, "a", &["b"]);
        let said = fixture.ask("/skills");
        assert_eq!(said.contains("Waiting for your trust"), !is_searched, "{place}: {said}");
        assert_eq!(said.starts_with("No trusted skills in this session."), !is_searched, "{place}: {said}");
        fixture.editor.unread();
        fixture.finish();
    }
}

fn the_list_changes_when_a_session_is_entered_again() {
    for method in ["session/load", "session/resume"] {
        let roots = Roots::new();
        roots.skill("a/.skills/deploy", "Deploys.");
        roots.skill("b/.skills/review", "Reviews.");
        roots.skill("c/.skills/write", "Writes.");
        let mut fixture = Fixture::over_http(roots.trusting());
        let params = roots.open(&mut fixture, "a", &["b"]);
        assert_eq!(names(&fixture.editor.menu()), ["skills", "deploy", "review"]);
        let connection = fixture.connect(&entry(&params), MCP_2025);
        assert!(catalog(&mut fixture).contains("Reviews."));
        // The request has the complete list.
        let params = roots.enter(&mut fixture, method, "a", &["c"]);
        assert_eq!(names(&fixture.editor.menu()), ["skills", "deploy", "write"]);
        // The session keeps its server, so that the agent can go on with its connection.
        assert_eq!(entry(&params)["url"], entry(&params)["url"]);
        let (text, is_error) = activate(&mut fixture, &connection, "write");
        assert!(!is_error, "{text}");
        assert!(activate(&mut fixture, &connection, "review").1);
        let line = catalog(&mut fixture);
        assert!(line.contains("New: `write`: Writes.") || line.contains("Writes."), "{line}");
        assert!(line.contains("Removed: `review`"), "{line}");
        // If the list is missing, there are no additional roots.
        let params = json!({ "sessionId": "s", "cwd": roots.text("a"), "mcpServers": [] });
        fixture.exchange(method, params, json!({ "result": {} }));
        assert_eq!(names(&fixture.editor.menu()), ["skills", "deploy"]);
        assert!(catalog(&mut fixture).contains("Removed: `write`"));
        // A change in a root that was left is no change of this session, and the same list changes nothing.
        roots.skill("c/.skills/write", "Writes more.");
        roots.enter(&mut fixture, method, "a", &[]);
        assert_eq!(names(&fixture.editor.menu()), ["skills", "deploy"]);
        assert_eq!(catalog(&mut fixture), "hello");
        fixture.finish();
    }
}

fn a_copy_of_a_session_has_its_own_roots() {
    let roots = Roots::new();
    roots.skill("a/.skills/deploy", "Deploys.");
    roots.skill("b/.skills/review", "Reviews.");
    let mut fixture = Fixture::over_http(roots.trusting());
    roots.open(&mut fixture, "a", &["b"]);
    assert_eq!(names(&fixture.editor.menu()), ["skills", "deploy", "review"]);
    for (id, additional, expected) in
        [("t", vec!["b"], vec!["skills", "deploy", "review"]), ("u", vec![], vec!["skills", "deploy"])]
    {
        let mut params = roots.params("a", &additional);
        params["sessionId"] = "s".into();
        fixture.exchange("session/fork", params, json!({ "result": { "sessionId": id } }));
        assert_eq!(names(&fixture.editor.menu()), expected, "{id}");
    }
    fixture.finish();
}

fn roots_are_watched() {
    let roots = Roots::new();
    roots.skill("a/.skills/deploy", "Deploys.");
    fs::create_dir_all(roots.path("b")).expect("a directory");
    let mut fixture = Fixture::over_http(roots.trusting());
    roots.open(&mut fixture, "a", &["b", "later/c"]);
    assert_eq!(names(&fixture.editor.menu()), ["skills", "deploy"]);
    roots.skill("b/.claude/skills/review", "Reviews.");
    fixture.wait_for_command("review");
    // This root did not exist when the session was opened.
    roots.skill("later/c/.skills/write", "Writes.");
    fixture.wait_for_command("write");
    assert_eq!(catalog(&mut fixture).matches("<name>").count(), 3);
    fixture.finish();
}

fn unusual_roots() {
    let roots = Roots::new();
    roots.skill("a/.skills/deploy", "Deploys.");
    roots.skill("a/sub/.skills/review", "Reviews.");
    roots.write("file", "not a directory");
    let mut expected = vec!["skills", "deploy", "review"];
    // A duplicate, the working directory, a directory in it, one above it, a missing one, a file, and another spelling.
    let mut list = vec!["a/sub", "a/sub/", "a", ".", "missing", "file", "a/sub/../sub"];
    if cfg!(unix) {
        #[cfg(unix)]
        std::os::unix::fs::symlink(roots.path("a/sub"), roots.path("link")).expect("a link");
        list.push("link");
    }
    let mut fixture = Fixture::over_http(roots.trusting());
    roots.open(&mut fixture, "a", &list);
    assert_eq!(names(&fixture.editor.menu()), expected);
    let said = fixture.ask("/skills");
    assert!(!said.contains("**Problems**"), "{said}");
    // If the link is the only root, the skills of its target are found.
    if cfg!(unix) {
        roots.open_as(&mut fixture, "t", "missing", &["link"]);
        expected.remove(1);
        assert_eq!(names(&fixture.editor.menu()), expected);
    }
    fixture.finish();
}

fn relative_roots_are_ignored() {
    let roots = Roots::new();
    roots.skill("a/.skills/deploy", "Deploys.");
    roots.skill("b/.skills/review", "Reviews.");
    let mut fixture = Fixture::over_http(roots.trusting());
    let mut params = roots.params("a", &[]);
    params["additionalDirectories"] = json!(["../b", "b", "", 7]);
    let outcome = json!({ "result": { "sessionId": "s" } });
    let (received, _) = fixture.exchange("session/new", params.clone(), outcome);
    // The specification requires absolute paths, so it is up to the agent to refuse these.
    assert_eq!(received["params"]["additionalDirectories"], params["additionalDirectories"]);
    fixture
        .editor
        .wait_for_log("ignoring additional directory `../b` of a session, because the path is not absolute");
    assert_eq!(names(&fixture.editor.menu()), ["skills", "deploy"]);
    fixture.finish();
}

fn a_thousand_roots() {
    let roots = Roots::new();
    fs::create_dir_all(roots.path("repo/.git")).expect("a directory");
    roots.skill("repo/.skills/common", "Common.");
    let list: Vec<_> = (0..1_000).map(|number| format!("repo/packages/p{number}")).collect();
    for (number, root) in list.iter().enumerate() {
        fs::create_dir_all(roots.path(root)).expect("a directory");
        if number % 100 == 0 {
            roots.skill(&format!("{root}/.skills/s{number}"), "Helps.");
        }
    }
    let list: Vec<_> = list.iter().map(String::as_str).collect();
    let mut fixture = Fixture::over_http(roots.trusting());
    let started = std::time::Instant::now();
    roots.open(&mut fixture, "repo", &list);
    let time = started.elapsed();
    assert_eq!(names(&fixture.editor.menu()).len(), 12);
    // Files are slow in Wine.
    let limit = if crate::is_wine() { 60 } else { 10 };
    assert!(time.as_secs() < limit, "{time:?}");
    roots.skill("repo/packages/p7/.skills/late", "Late.");
    fixture.wait_for_command("late");
    fixture.finish();
}
