//! `add`, `update`, `remove`, `sources`, and the default configuration: the commands that a team uses.

use std::{fs, thread};

use serde_json::json;

use crate::{
    fixture::{Fixture, MCP_2025, entry},
    repositories::{Home, Repository},
    skills::Skills,
};

crate::trials!(
    the_story_of_a_team,
    a_part_of_a_source,
    skills_that_will_not_be_used,
    add_without_a_terminal,
    sources_that_add_refuses,
    a_marketplace,
    the_default_configuration,
    projects_by_path,
    concurrent_commands_keep_each_others_changes,
);

/// A source is added, shown, served, updated and removed.
fn the_story_of_a_team() {
    let repository = Repository::review();
    let home = Home::new();
    repository.write("review/scripts/count.sh", "#!/bin/sh\nwc -l\n");
    let commit = repository.commit();
    let source = repository.source("#main");
    let shown = home.printed(&["add", &source, "--yes"]);
    for words in ["review (review; 2 files, 1 script", "Reviews code.", "script: scripts/count.sh", "1 skill"]
    {
        assert!(shown.contains(words), "{words}: {shown}");
    }
    let text = fs::read_to_string(home.config()).expect("a file");
    assert!(text.starts_with("# yaml-language-server: $schema=") && text.contains(&source), "{text}");
    let lock = home.config().with_file_name("skills.lock");
    assert_eq!(home.pinned(&lock, &source), Some(commit));
    // The editor starts the proxy without any flags, so all of this comes from the configuration file.
    let mut fixture = Fixture::over_http(home.proxy());
    let params = fixture.new_session("s");
    let connection = fixture.connect(&entry(&params), MCP_2025);
    let (text, failed) = fixture.call(&connection, "activate_skill", json!({ "name": "review" }));
    assert!(!failed && text.contains("# Review one"), "{text}");
    assert!(home.printed(&["sources"]).contains(&source));
    // Users know the source, but not the directory of the cache.
    let listed = home.printed(&["list"]);
    assert!(listed.contains(&source) && !listed.contains("/git/"), "{listed}");
    assert!(home.printed(&["update"]).contains("no changes"));
    // If the user approves a change in a terminal, we should see it in the session that is already open.
    repository.skill("greet", "Greets.", "Hello.");
    let commit = repository.commit();
    home.printed(&["update", "--yes"]);
    fixture.wait_for_command("greet");
    fixture.finish();
    let rows = home.json(&["sources", "--json"]);
    assert_eq!((&rows[0]["skills"], &rows[0]["pinned"]["commit"]), (&json!(2), &json!(commit)));
    let text = home.printed(&["remove", &source]);
    assert!(text.contains("skills.yaml") && text.contains("skills.lock"), "{text}");
    assert!(home.printed(&["sources"]).contains("No sources."));
    assert_eq!(home.json(&["list", "--json"])["skills"], json!([]));
}

/// Skills that a filter leaves out are neither shown nor approved.
fn a_part_of_a_source() {
    let repository = Repository::review();
    let home = Home::new();
    repository.skill("greet", "Greets.", "Hello.");
    repository.skill("draft-a", "Is a draft.", "x");
    repository.commit();
    let source = repository.source("");
    let lock = home.config().with_file_name("skills.lock");
    let errors = home.fails(&["add", &source, "--yes", "--include", "q*"], 2);
    assert!(
        errors.contains("select no skill of") && errors.contains("its skills are draft-a, greet, review"),
        "{errors}"
    );
    assert!(!lock.exists() && !home.config().exists());
    let shown = home.printed(&["add", &source, "--yes", "--exclude", "draft-*", "--include", "[dg]*"]);
    assert!(shown.contains("greet") && shown.contains("1 skill\n"), "{shown}");
    let locked = fs::read_to_string(&lock).expect("a file");
    for word in ["review", "draft-a"] {
        assert!(!shown.contains(word) && !locked.contains(&format!("\"{word}\"")), "{word}: {shown}{locked}");
    }
    assert!(locked.contains("\"greet\""), "{locked}");
    // `update` applies the filter as well.
    assert!(home.printed(&["update"]).contains("no changes"));
    repository.skill("greet", "Greets everyone.", "Hello.");
    repository.skill("review", "Obeys.", "# Evil");
    repository.commit();
    let shown = home.printed(&["update", "--yes"]);
    assert!(shown.contains("1 change since") && !shown.contains("Evil"), "{shown}");
    // If the user widens the filter later, the other skills still have to be approved.
    let text = fs::read_to_string(home.config()).expect("a file");
    fs::write(home.config(), text.replace("[dg]*", "*")).expect("a file");
    let list = home.json(&["list", "--json"]);
    assert_eq!(
        (list["skills"].as_array().map(Vec::len), &list["skills"][0]["name"]),
        (Some(1), &json!("greet"))
    );
    let shown = home.printed(&["update", "--yes"]);
    assert!(shown.contains("+ review") && !shown.contains("draft"), "{shown}");
    // The filter can also be set with a flag.
    let other = Home::new();
    let listed = other.json(&["list", "--json", "--include", "greet", "--source", &source]);
    let locked = fs::read_to_string(other.lock()).expect("a file");
    assert!(locked.contains("\"greet\"") && !locked.contains("\"review\""), "{listed}{locked}");
}

/// `add` says which skills will not be used, because others have their names.
fn skills_that_will_not_be_used() {
    let first = Repository::review();
    let second = Repository::review();
    let skills = Skills::new();
    let home = Home::new();
    skills.add("greet", "Greets.", "x");
    home.write(&home.config(), &format!("roots: [{}]\n", json!(skills.path())));
    first.skill("new", "Is new.", "x");
    second.skill("greet", "Greets as well.", "x");
    first.commit();
    second.commit();
    let shown = home.printed(&["add", "--yes", &first.source("")]);
    assert!(!shown.contains("not used"), "{shown}");
    let shown = home.printed(&["add", "--yes", &second.source("")]);
    let by_source = format!("not used, because {} has a skill with the same name", first.source(""));
    let by_path = "greet has a skill with the same name";
    assert!(shown.contains(&by_source) && shown.contains(by_path), "{shown}");
    home.printed(&["remove", &second.source("")]);
    let report = home.json(&["add", "--json", &second.source("")]);
    assert_eq!(report["shadowed"][1], json!({ "name": "review", "by": first.source("") }), "{report}");
}

fn add_without_a_terminal() {
    let repository = Repository::review();
    let home = Home::new();
    let errors = home.fails(&["add", &repository.source("")], 2);
    assert!(errors.contains("stdin is not a terminal") && errors.contains("--yes"), "{errors}");
    assert!(!home.config().exists(), "nothing is written");
    let report = home.json(&["add", "--json", &repository.source("")]);
    assert_eq!((&report["approved"], &report["skills"][0]["name"]), (&json!(false), &json!("review")));
    assert!(!home.config().exists(), "nothing is written");
}

fn sources_that_add_refuses() {
    let repository = Repository::review();
    let home = Home::new();
    let source = repository.source("");
    for (arguments, words) in [
        (vec!["add", "acme/skills"], "did you mean `github:acme/skills`?"),
        (vec!["add", &source, "--no-config"], "no configuration file"),
        (vec!["update"], "no sources to update"),
        (vec!["update", "github:a/b"], "unknown source `github:a/b`"),
        (vec!["remove", "github:a/b"], "unknown source `github:a/b`"),
    ] {
        let errors = home.fails(&arguments, 2);
        assert!(errors.contains(words) && errors.contains("hint: "), "{arguments:?}: {errors}");
    }
    // We can't edit a file that is written like this, so leave it as it is and print the lines to be added instead.
    let text = "{\"sources\": [\"https://example.com\"]}";
    home.write(&home.config(), text);
    let errors = home.fails(&["add", "--yes", &source], 2);
    assert!(errors.contains("add these lines to the file") && errors.contains(&source), "{errors}");
    assert_eq!(fs::read_to_string(home.config()).expect("a file"), text);
    // Adding the same source twice is an error.
    fs::remove_file(home.config()).expect("the path exists");
    home.printed(&["add", "--yes", &source, "--exclude", "draft-*"]);
    assert!(home.fails(&["add", "--yes", &source], 2).contains("already"));
    // Remove all of the skills, so that the repository is empty.
    fs::remove_dir_all(repository.path().join("review")).expect("the path exists");
    repository.write("README.md", "Nothing.\n");
    repository.commit();
    let errors = home.fails(&["add", "--yes", &repository.source("#main")], 2);
    assert!(errors.contains("already") || errors.contains("no skills found in"), "{errors}");
}

/// A repository lists where its skills are, and the user chooses among them.
fn a_marketplace() {
    let repository = Repository::review();
    let home = Home::new();
    let deep = "a/b/c/d/e/f/g/h/deep";
    repository.write(&format!("{deep}/SKILL.md"), "---\nname: deep\ndescription: Is far down.\n---\nx\n");
    repository.commit();
    let source = repository.source("");
    let list = home.json(&["list", "--json", "--source", &source]);
    assert_eq!(list["skills"].as_array().map(Vec::len), Some(1), "too far down to be found: {list}");
    let plugins =
        json!({ "name": "m", "plugins": [{ "name": "p", "source": "./", "skills": [format!("./{deep}")] }] });
    repository.write(".claude-plugin/marketplace.json", &plugins.to_string());
    repository.commit();
    let home = Home::new();
    let list = home.json(&["list", "--json", "--source", &source]);
    assert_eq!(list["skills"].as_array().map(Vec::len), Some(2), "{list}");
    let config = json!({ "sources": [{ "source": source, "include": ["d*"] }], "exclude": ["deeper"] });
    home.write(&home.config(), &config.to_string());
    // The configuration doesn't approve the source, even if a flag has approved it before.
    let output = home.run(&["list", "--json"]);
    let warnings = String::from_utf8_lossy(&output.stderr);
    assert!(
        warnings.contains("is not approved") && warnings.contains("acp-skills-proxy update"),
        "{warnings}"
    );
    let shown = home.printed(&["update", "--yes", &source]);
    assert!(shown.contains("deep") && shown.contains("1 change, not approved yet"), "{shown}");
    let list = home.json(&["list", "--json"]);
    assert_eq!(
        (list["skills"].as_array().map(Vec::len), &list["skills"][0]["name"]),
        (Some(1), &json!("deep"))
    );
}

fn the_default_configuration() {
    let skills = Skills::review();
    let home = Home::new();
    let root = skills.path().to_str().expect("text");
    home.write(&home.config(), &json!({ "roots": [root] }).to_string());
    let names =
        |arguments: &[&str]| home.json(&[&["list", "--json"], arguments].concat())["skills"].to_string();
    assert!(names(&[]).contains("review"));
    assert_eq!(names(&["--no-config"]), "[]");
    let other = home.path("other.yaml");
    home.write(&other, "# nothing\n");
    assert_eq!(names(&["--config", other.to_str().expect("text")]), "[]");
    // If there is an error in the configuration, the message must contain the path of the file.
    home.write(&home.config(), "root: x\n");
    let errors = home.fails(&["list"], 2);
    assert!(errors.contains("unknown key `root`: ") && errors.contains("skills.yaml:1:1"), "{errors}");
}

/// A single configuration gives each session the skills of its directory.
fn projects_by_path() {
    let skills = Skills::new();
    let home = Home::new();
    for name in ["common/review", "common/secret", "api/openapi", "web/css"] {
        skills.add(name, "d", "x");
    }
    for name in ["openapi", "css", "review", "secret"] {
        for place in ["common", "api", "web"] {
            let file = skills.path().join(place).join(name).join("SKILL.md");
            if file.exists() {
                fs::write(&file, format!("---\nname: {name}\ndescription: d\n---\nx\n")).expect("a file");
            }
        }
    }
    skills.write("work/api/deep/x.txt", "");
    skills.write("work/web/x.txt", "");
    skills.write("work/other/.skills/mine/SKILL.md", "---\nname: mine\ndescription: d\n---\nx\n");
    let config = json!({ "roots": ["common"], "projects": [
        { "path": "work/api", "roots": ["api"], "exclude": ["secret"] },
        { "path": ["work/w*", "nowhere"], "skills": ["web/css", { "name": "virtual", "description": "d", "body": "x" }], "include": ["css", "v*"] },
        { "path": "work/other/**", "discover": ["project"], "trust": ["project"] },
    ] });
    let file = skills.write("skills.yaml", &config.to_string());
    let mut fixture = Fixture::over_http(home.proxy().flag("--config", &file));
    for (session, directory, expected) in [
        ("a", "work/api/deep", json!(["openapi", "review"])),
        ("b", "work/web", json!(["virtual", "css"])),
        ("c", "work/other", json!(["mine", "review", "secret"])),
        ("d", "work", json!(["review", "secret"])),
    ] {
        let params = json!({ "cwd": skills.path().join(directory), "mcpServers": [] });
        let (received, _) =
            fixture.exchange("session/new", params, json!({ "result": { "sessionId": session } }));
        let connection = fixture.connect(&entry(&received["params"]), MCP_2025);
        assert_eq!(fixture.skill_names(&connection), expected, "{directory}");
    }
    // We must also notice changes in any of these directories.
    skills.write("api/more/SKILL.md", "---\nname: more\ndescription: d\n---\nx\n");
    fixture.wait_for_command("more");
    fixture.finish();
}

/// Other processes may change the files while a command waits for the user's answer.
fn concurrent_commands_keep_each_others_changes() {
    let home = Home::new();
    let repositories: Vec<_> = (0..4).map(|_| Repository::review()).collect();
    home.write(&home.config(), "# ours\n");
    thread::scope(|scope| {
        for repository in &repositories {
            scope.spawn(|| home.printed(&["add", &repository.source(""), "--yes"]));
        }
    });
    let text = fs::read_to_string(home.config()).expect("a file");
    for repository in &repositories {
        assert!(text.contains(&repository.source("")) && text.starts_with("# ours\n"), "{text}");
    }
    thread::scope(|scope| {
        for repository in &repositories[1..] {
            scope.spawn(|| home.printed(&["remove", &repository.source("")]));
        }
    });
    let sources = home.json(&["sources", "--json"]);
    assert_eq!(sources.as_array().map(Vec::len), Some(1), "{sources}");
    // `remove` should find all of the entries for this source, no matter how they are written.
    let other = "https://skills.example.com";
    let written = ["github:a/b", "https://github.com/a/b", "github:a/b", other];
    home.write(&home.config(), &format!("sources: {}\n", json!(written)));
    home.printed(&["remove", "github:a/b"]);
    let text = fs::read_to_string(home.config()).expect("a file");
    assert!(text.contains(other) && !text.contains("a/b"), "{text}");
}
