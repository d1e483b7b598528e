//! Decisions about single skills of a source: yes, no and later, pinned skills, ranges of versions, and `outdated`.

use std::{fs, process::Command};

use serde_json::{Value, json};

use crate::repositories::{Home, Repository};

crate::trials!(
    each_skill_is_approved_by_itself,
    only_the_named_version_is_approved,
    renamed_skills_are_selected_by_both_names,
    decisions_hold_with_an_empty_cache,
    a_pinned_skill_stays,
    skills_of_several_commits_are_fetched_again,
    two_approvals_on_two_branches,
    decisions_on_two_branches,
    a_lock_file_of_an_older_program,
    ranges_of_versions,
    outdated_lists_what_is_new,
    add_takes_only_some_skills,
    a_new_source_ignores_what_the_lock_file_has_for_it,
);

/// Creates a repository with the skills `review`, `greet` and `plan`.
pub(crate) fn three_skills() -> Repository {
    let repository = Repository::review();
    repository.skill("greet", "Greets.", "one");
    repository.skill("plan", "Plans.", "one");
    repository.commit();
    repository
}

/// Changes all three skills.
pub(crate) fn change_all(repository: &Repository, body: &str) -> String {
    for name in ["review", "greet", "plan"] {
        repository.skill(name, "Changed.", body);
    }
    repository.commit()
}

pub(crate) fn lock(home: &Home) -> Value {
    let file = home.config().with_file_name("skills.lock");
    serde_json::from_slice(&fs::read(file).expect("a file")).expect("JSON")
}

/// Returns the names of the served skills that have the description `Changed.`.
fn changed(home: &Home) -> Vec<String> {
    let list = home.json(&["list", "--json"]);
    let skills = list["skills"].as_array().expect("skills").iter();
    let changed = skills.filter(|skill| skill["description"] == "Changed.");
    changed.map(|skill| skill["name"].as_str().expect("a name").to_owned()).collect()
}

pub(crate) fn rows(home: &Home, arguments: &[&str], code: i32) -> Value {
    let output = home.run(arguments);
    assert_eq!(output.status.code(), Some(code), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

fn each_skill_is_approved_by_itself() {
    let repository = three_skills();
    let home = Home::new();
    let source = repository.source("");
    home.printed(&["add", &source, "--yes", "--approved-by", "Ada"]);
    let first = home.pinned(&home.config().with_file_name("skills.lock"), &source).expect("a commit");
    assert_eq!(lock(&home)["sources"][&source]["decisions"]["approvedBy"]["review"], "Ada");
    let second = change_all(&repository, "two");
    let text = home.printed(&["update", "--only", "review", "--yes"]);
    assert!(text.contains("Approved 1 change, 2 changes left for later."), "{text}");
    assert!(text.contains("later: greet, plan") && !text.contains("~ plan"), "{text}");
    assert_eq!(changed(&home), ["review"]);
    let pinned = &lock(&home)["sources"][&source];
    assert_eq!(pinned["commit"], json!(second));
    assert_eq!(pinned["decisions"]["kept"], json!({ "greet": first, "plan": first }));
    // The others are offered again.
    let text = String::from_utf8(home.run(&["update", "--locked"]).stdout).expect("text");
    assert!(
        text.contains("2 changes since") && text.contains("~ plan") && !text.contains("~ review"),
        "{text}"
    );
    let output = home.run(&["update", "--except", "plan,no-such", "--yes"]);
    assert!(output.status.success());
    let notes = String::from_utf8_lossy(&output.stderr);
    assert!(notes.contains("`no-such` has no change") && !notes.contains("`plan`"), "{notes}");
    assert_eq!(changed(&home), ["greet", "review"]);
    home.printed(&["update", "--yes"]);
    assert_eq!(changed(&home), ["greet", "plan", "review"]);
    assert_eq!(lock(&home)["sources"][&source]["decisions"]["kept"], Value::Null);
    // Nothing is fetched if there is no new commit: the objects of the repository are gone.
    // Wine can't remove the objects, because they are read-only.
    let objects = repository.path().join(".git/objects");
    fs::rename(&objects, objects.with_extension("moved")).expect("the path exists");
    fs::create_dir(repository.path().join(".git/objects")).expect("a directory");
    assert!(home.printed(&["update"]).contains("no changes"));
}

/// A skill that is left out stays left out, and one that is selected stays selected by both names.
fn renamed_skills_are_selected_by_both_names() {
    let repository = three_skills();
    let home = Home::new();
    home.printed(&["add", &repository.source(""), "--yes"]);
    let renamed = "---\nname: planner\ndescription: \"Plans.\"\n---\n# Plan two\n";
    repository.write("plan/SKILL.md", renamed);
    repository.commit();
    for (flag, names, is_selected) in [
        ("--except", "plan", false),
        ("--except", "planner", false),
        ("--only", "plan", false),
        ("--only", "planner", false),
        ("--only", "plan,planner", true),
    ] {
        let text = home.printed(&["update", flag, names, "--yes"]);
        assert_eq!(text.contains("Approved"), is_selected, "{flag} {names}: {text}");
    }
    assert!(home.printed(&["list"]).contains("planner"));
}

/// A change of a repository by its author.
type Change<'a> = &'a dyn Fn(&Repository);

/// The author of a source moves or renames a skill that is pinned, left out or not selected, while the approved version is not in the
/// cache, as on a machine for CI.
fn decisions_hold_with_an_empty_cache() {
    let remove = |repository: &Repository, path: &str| {
        fs::remove_dir_all(repository.path().join(path)).expect("the path exists");
    };
    let write = |repository: &Repository, path: &str, name: &str| {
        let text = format!("---\nname: {name}\ndescription: Changed.\n---\n# ZQ-evil\n");
        repository.write(&format!("{path}/SKILL.md"), &text);
    };
    let moved = |repository: &Repository| {
        remove(repository, "a");
        write(repository, "z", "demo");
    };
    let renamed = |repository: &Repository| write(repository, "a", "harmless");
    let taken = |repository: &Repository| {
        remove(repository, "a");
        write(repository, "plan", "Demo");
    };
    let cases: [(&str, Option<&str>, Change<'_>, &[&str]); 6] = [
        ("moved", Some("demo"), &moved, &[]),
        ("another skill gets the name", Some("demo"), &taken, &[]),
        ("another skill gets the name of a directory", Some("plan"), &|it| write(it, "a", "plan"), &[]),
        ("left out", None, &renamed, &["--except", "demo"]),
        ("not selected", None, &renamed, &["--only", "harmless"]),
        ("not selected by its directory", None, &|it| write(it, "plan", "harmless"), &["--only", "harmless"]),
    ];
    for (what, pinned, change, flags) in cases {
        for keeps_cache in [true, false] {
            let repository = three_skills();
            repository.write("a/SKILL.md", "---\nname: demo\ndescription: Demonstrates.\n---\n");
            repository.commit();
            let home = Home::new();
            let source = repository.source("");
            home.printed(&["add", &source, "--yes"]);
            let before = lock(&home)["sources"][&source].clone();
            assert_eq!(before["decisions"]["names"], json!({ "a": "demo" }));
            if let Some(name) = pinned {
                home.printed(&["sources", "pin", name]);
            }
            change(&repository);
            repository.commit();
            if !keeps_cache {
                fs::remove_dir_all(home.path("cache")).expect("the path exists");
            }
            let text = home.printed(&[&["update", "--yes"][..], flags].concat());
            let after = lock(&home)["sources"][&source].clone();
            assert_eq!(before["skills"], after["skills"], "{what}, {keeps_cache}: {text}");
            assert_eq!(after["decisions"]["names"], json!({ "a": "demo" }), "{what}, {keeps_cache}");
        }
    }
}

fn only_the_named_version_is_approved() {
    let repository = three_skills();
    let home = Home::new();
    home.printed(&["add", &repository.source(""), "--yes"]);
    change_all(&repository, "two");
    let hash = |name: &str| {
        let rows = rows(&home, &["update", "--json"], 1);
        let changes = rows[0]["changes"].as_array().expect("changes").clone();
        let change = changes.into_iter().find(|change| change["path"] == name).expect("a change");
        change["after"]["sha256"].as_str().expect("a hash").to_owned()
    };
    let review = format!("review@{}", hash("review"));
    // The source has changed since the user has looked at it.
    change_all(&repository, "three");
    let errors = home.fails(&["update", "--yes-to", &review], 1);
    assert!(errors.contains("was not approved: its current version is `"), "{errors}");
    assert_eq!(changed(&home), Vec::<String>::new());
    let review = format!("review@{}", &hash("review")[..32]);
    let rows = rows(&home, &["update", "--json", "--yes-to", &review], 1);
    assert_eq!(rows[0]["decisions"], json!({ "review": "yes" }), "{rows}");
    assert_eq!(changed(&home), ["review"]);
    home.fails(&["update", "--yes-to", "review@0f3a"], 2);
    // The removal of a skill can be named as well. A file that can't be shown takes another flag.
    fs::remove_dir_all(repository.path().join("plan")).expect("the path exists");
    repository.write("greet/blob.bin", "\0binary");
    repository.commit();
    let greet = format!("greet@{}", hash("greet"));
    let errors = home.fails(&["update", "--yes-to", &format!("plan@removed,{greet}")], 1);
    assert!(errors.contains("greet: blob.bin (cannot be shown: "), "{errors}");
    assert_eq!(changed(&home), ["review"]);
    let list = home.json(&["list", "--json"]);
    assert_eq!(list["skills"].as_array().map(Vec::len), Some(2), "{list}");
    home.printed(&["update", "--unseen", "--yes-to", &greet]);
    assert_eq!(changed(&home), ["greet", "review"]);
}

fn a_pinned_skill_stays() {
    let repository = three_skills();
    let home = Home::new();
    let source = repository.source("");
    home.printed(&["add", &source, "--yes"]);
    let text = home.printed(&["sources", "pin", "plan"]);
    assert!(text.contains("`plan` from ") && text.contains("until `sources unpin`"), "{text}");
    assert!(home.printed(&["sources"]).contains("3 (1 pinned)"));
    change_all(&repository, "two");
    // Another skill can't take the name of a pinned one.
    repository.write("aaa/SKILL.md", "---\nname: plan\ndescription: Changed.\n---\n");
    repository.commit();
    let text = home.printed(&["update", "--yes"]);
    assert!(text.contains("2 changes since the approved version (2 changes pinned)"), "{text}");
    assert!(!text.contains("~ plan"), "{text}");
    assert_eq!(changed(&home), ["greet", "review"]);
    home.printed(&["update", "--locked"]);
    let rows = rows(&home, &["update", "--json", "--only", "plan", "--yes"], 0);
    assert_eq!((&rows[0]["changes"], &rows[0]["rejected"]["plan"]), (&json!([]), &json!("pinned")), "{rows}");
    assert_eq!(changed(&home), ["greet", "review"]);
    let unpinned: Value = home.json(&["sources", "unpin", "plan", "--json"]);
    assert_eq!((&unpinned["pinned"], &unpinned["changed"]), (&json!(false), &json!(true)));
    home.fails(&["update", "--locked"], 1);
    home.printed(&["update", "--yes"]);
    assert_eq!(changed(&home), ["plan", "greet", "review"]);
    let errors = home.fails(&["sources", "pin", "nothing"], 2);
    assert!(errors.contains("no source has an approved skill `nothing`"), "{errors}");
}

/// A teammate, or a machine whose cache was removed, has to fetch the skills of all commits.
fn skills_of_several_commits_are_fetched_again() {
    let repository = three_skills();
    let home = Home::new();
    let source = repository.source("");
    home.printed(&["add", &source, "--yes"]);
    change_all(&repository, "two");
    home.printed(&["update", "--only", "review", "--yes"]);
    change_all(&repository, "three");
    home.printed(&["update", "--only", "greet", "--yes"]);
    let versions = |home: &Home| {
        let list = home.json(&["list", "--json"]);
        let mut bodies = Vec::new();
        for skill in list["skills"].as_array().expect("skills") {
            let text = fs::read_to_string(skill["path"].as_str().expect("a path")).expect("a file");
            bodies.push(text.lines().last().expect("a line").to_owned());
        }
        bodies
    };
    assert_eq!(versions(&home), ["three", "one", "two"]);
    // Pruning keeps all of them.
    home.printed(&["sources", "--prune"]);
    assert_eq!(versions(&home), ["three", "one", "two"]);
    fs::remove_dir_all(home.path("cache")).expect("the path exists");
    assert_eq!(versions(&home), ["three", "one", "two"]);
    // With an empty cache, skills that are approved are not offered again.
    fs::remove_dir_all(home.path("cache")).expect("the path exists");
    let rows = rows(&home, &["update", "--json"], 1);
    let paths: Vec<_> =
        rows[0]["changes"].as_array().expect("changes").iter().map(|row| &row["path"]).collect();
    assert_eq!(paths, ["plan", "review"], "{rows}");
}

/// Two people approve different skills of the same commit.
fn two_approvals_on_two_branches() {
    let repository = three_skills();
    let home = Home::new();
    let source = repository.source("");
    let config = |branch: &str| home.path(&format!("{branch}/skills.yaml"));
    let lock = |branch: &str| home.path(&format!("{branch}/skills.lock"));
    home.printed(&["add", &source, "--yes", "--config", config("base").to_str().expect("text")]);
    for branch in ["ours", "theirs", "merged"] {
        fs::create_dir_all(home.path(branch)).expect("a directory");
        fs::copy(config("base"), config(branch)).expect("a file");
        fs::copy(lock("base"), lock(branch)).expect("a file");
    }
    let second = change_all(&repository, "two");
    for (branch, skill) in [("ours", "review"), ("theirs", "greet")] {
        let config = config(branch);
        home.printed(&["update", "--yes", "--only", skill, "--config", config.to_str().expect("text")]);
    }
    let merged = Command::new("git")
        .args(["merge-file", "--stdout", "ours/skills.lock", "base/skills.lock", "theirs/skills.lock"])
        .current_dir(home.path(""))
        .output()
        .expect("git");
    let text = String::from_utf8(merged.stdout).expect("text");
    assert!(text.contains("<<<<<<< "), "{text}");
    home.write(&lock("merged"), &text);
    let config = config("merged");
    let config = config.to_str().expect("text");
    let rows = rows(&home, &["update", "--json", "--config", config], 1);
    let paths: Vec<_> =
        rows[0]["changes"].as_array().expect("changes").iter().map(|row| &row["path"]).collect();
    assert_eq!(paths, ["plan"], "{rows}");
    assert_eq!(rows[0]["before"]["commit"], json!(second));
    let list = home.json(&["list", "--json", "--config", config]);
    let skills = list["skills"].as_array().expect("skills").iter();
    let descriptions: Vec<_> = skills.map(|skill| &skill["description"]).collect();
    assert_eq!(descriptions, ["Changed.", "Plans.", "Changed."], "{list}");
}

/// One person updates one skill and declines, pins or postpones the change of another one. Another person pins a skill and doesn't update.
fn decisions_on_two_branches() {
    for decision in ["later", "pinned"] {
        let repository = three_skills();
        let home = Home::new();
        let source = repository.source("");
        let config = |branch: &str| home.path(&format!("{branch}/skills.yaml"));
        let lock = |branch: &str| home.path(&format!("{branch}/skills.lock"));
        let run = |branch: &str, arguments: &[&str]| {
            let file = config(branch);
            home.printed(&[arguments, &["--config", file.to_str().expect("text")]].concat())
        };
        run("base", &["add", &source, "--yes"]);
        for branch in ["ours", "theirs", "merged"] {
            fs::create_dir_all(home.path(branch)).expect("a directory");
            fs::copy(config("base"), config(branch)).expect("a file");
            fs::copy(lock("base"), lock(branch)).expect("a file");
        }
        change_all(&repository, "two");
        if decision == "pinned" {
            run("ours", &["sources", "pin", "plan"]);
        }
        run("ours", &["update", "--yes", "--only", "review,greet"]);
        run("theirs", &["sources", "pin", "greet"]);
        for (first, second) in [("ours", "theirs"), ("theirs", "ours")] {
            let files = [first, "base", second].map(|branch| format!("{branch}/skills.lock"));
            let merged = Command::new("git")
                .args(["merge-file", "--stdout"])
                .args(&files)
                .current_dir(home.path(""))
                .output()
                .expect("git");
            let text = String::from_utf8(merged.stdout).expect("text");
            assert!(text.contains("<<<<<<< "), "{text}");
            home.write(&lock("merged"), &text);
            let file = config("merged");
            home.run(&["update", "--config", file.to_str().expect("text")]);
            let file = file.to_str().expect("text");
            let list = home.json(&["list", "--json", "--config", file]);
            let skills = list["skills"].as_array().expect("skills").iter();
            let descriptions: Vec<_> = skills.map(|skill| &skill["description"]).collect();
            assert_eq!(descriptions, ["Changed.", "Plans.", "Changed."], "{decision} {first}: {list}");
            let text = fs::read_to_string(lock("merged")).expect("a file");
            let pinned = &serde_json::from_str::<Value>(&text).expect("JSON")["sources"][&source]["decisions"]
                ["pinned"];
            let expected = if decision == "pinned" { json!(["greet", "plan"]) } else { json!(["greet"]) };
            assert_eq!(*pinned, expected, "{first}: {text}");
        }
    }
}

/// A lock file without decisions is read, and keeps its form until there is a decision.
fn a_lock_file_of_an_older_program() {
    let repository = three_skills();
    let home = Home::new();
    let source = repository.source("");
    home.printed(&["add", &source, "--yes"]);
    let file = home.config().with_file_name("skills.lock");
    let mut old = lock(&home);
    old["sources"][&source].as_object_mut().expect("an object").remove("decisions");
    fs::write(&file, serde_json::to_string_pretty(&old).expect("JSON")).expect("a file");
    assert!(home.printed(&["update"]).contains("no changes"));
    assert_eq!(lock(&home), old);
    change_all(&repository, "two");
    home.printed(&["update", "--only", "greet", "--yes"]);
    assert_eq!(changed(&home), ["greet"]);
    // An unknown key or an invalid value is not ignored.
    let mut wrong = lock(&home);
    wrong["sources"][&source]["decisions"]["kept"]["plan"] = json!("../..");
    fs::write(&file, wrong.to_string()).expect("a file");
    let errors = home.fails(&["update"], 2);
    assert!(errors.contains("`../..` is not a commit hash"), "{errors}");
}

fn ranges_of_versions() {
    let repository = three_skills();
    let home = Home::new();
    let version = |tag: &str, body: &str| {
        let commit = change_all(&repository, body);
        repository.git(&["tag", "--annotate", "--message=m", tag]);
        commit
    };
    version("v2.1.0", "a");
    let approved = version("v2.3.0", "b");
    version("v3.0.0-rc.1", "c");
    change_all(&repository, "unreleased");
    let source = repository.source("#^2.1");
    home.printed(&["add", &source, "--yes"]);
    let file = home.config().with_file_name("skills.lock");
    assert_eq!(home.pinned(&file, &source), Some(approved));
    assert_eq!(lock(&home)["sources"][&source]["tag"], "v2.3.0");
    assert!(home.printed(&["sources"]).contains("v2.3.0"));
    let third = version("v3.0.0", "d");
    assert!(home.printed(&["update"]).contains("no changes"));
    let next = version("v2.10.0", "e");
    let rows: Value = rows(&home, &["outdated", "--json", "--check"], 1);
    let skill = &rows["skills"][0];
    assert_eq!((&skill["approved"], &skill["available"]), (&json!("v2.3.0"), &json!("v2.10.0")), "{rows}");
    home.printed(&["update", "--yes"]);
    assert_eq!(home.pinned(&file, &source), Some(next.clone()));
    // `--latest` leaves the range, and changes the address in the configuration. An approval of the new address, which may have come from
    // a pull request, was not shown.
    let newer = repository.source("#^3.0");
    let mut orphaned = lock(&home);
    let mut orphan = orphaned["sources"][&source].clone();
    orphan["decisions"] = json!({ "pinned": ["plan"] });
    orphaned["sources"][&newer] = orphan;
    fs::write(&file, orphaned.to_string()).expect("a file");
    let text = home.printed(&["update", "--latest", "--yes"]);
    assert!(text.contains("v3.0.0"), "{text}");
    assert_eq!(lock(&home)["sources"][&newer]["decisions"].get("pinned"), None);
    assert_eq!((home.pinned(&file, &newer), home.pinned(&file, &source)), (Some(third), None));
    let config = fs::read_to_string(home.config()).expect("a file");
    assert!(config.contains("#^3.0") && !config.contains("#^2.1"), "{config}");
    assert!(home.printed(&["update", "--latest"]).contains("no changes"));
    // The configuration can't have the same address twice.
    version("v4.0.0", "f");
    let fourth = repository.source("#^4.0");
    fs::write(home.config(), config.replace(&newer, &format!("{newer}\"\n  - \"{fourth}"))).expect("a file");
    let errors = home.fails(&["update", "--latest", "--yes"], 2);
    assert!(errors.contains(&format!("`{fourth}` is already in")), "{errors}");
    fs::write(home.config(), config).expect("a file");
    repository.git(&["tag", "--delete", "v4.0.0"]);
    let errors = home.fails(&["add", &repository.source("#^5")], 2);
    assert!(errors.contains("no tag is a version in the range `^5`"), "{errors}");
    let errors = home.fails(&["add", &repository.source("#^x")], 2);
    assert!(errors.contains("is not a range of versions"), "{errors}");
    assert_eq!(home.json(&["add", &repository.source("#latest"), "--json"])["pinned"]["tag"], "v3.0.0");
}

fn outdated_lists_what_is_new() {
    let repository = three_skills();
    let home = Home::new();
    home.printed(&["add", &repository.source(""), "--yes"]);
    assert_eq!(home.printed(&["outdated", "--check"]), "All skills are up to date.\n");
    home.printed(&["sources", "pin", "plan"]);
    change_all(&repository, "two");
    repository.skill("fresh", "Is new.", "x");
    fs::remove_dir_all(repository.path().join("greet")).expect("the path exists");
    repository.commit();
    let report = home.json(&["outdated", "--json"]);
    let rows: Vec<_> = report["skills"]
        .as_array()
        .expect("skills")
        .iter()
        .map(|row| format!("{} {} {}", row["name"], row["change"], row["state"]).replace('"', ""))
        .collect();
    let expected =
        ["fresh new unapproved", "greet gone unapproved", "plan changed pinned", "review changed unapproved"];
    assert_eq!(rows, expected, "{report}");
    let text = home.printed(&["outdated"]);
    assert!(text.contains("SKILL") && text.contains("gone") && text.contains("pinned"), "{text}");
    home.fails(&["outdated", "--check"], 1);
    home.printed(&["update", "--yes"]);
    home.printed(&["outdated", "--check"]);
    let source = repository.delete();
    let report = rows_of_failure(&home);
    assert_eq!(report["failures"][0]["source"], json!(source));
}

fn rows_of_failure(home: &Home) -> Value {
    rows(home, &["outdated", "--json"], 1)
}

fn add_takes_only_some_skills() {
    let repository = three_skills();
    let home = Home::new();
    let source = repository.source("");
    let errors = home.fails(&["add", &source, "--only", "review,nothing", "--yes"], 2);
    assert!(errors.contains("has no skill `nothing`") && errors.contains("greet, plan, review"), "{errors}");
    home.printed(&["add", &source, "--only", "review,plan", "--yes"]);
    change_all(&repository, "two");
    let text = home.printed(&["update", "--yes"]);
    assert!(text.contains("2 changes since"), "{text}");
    assert_eq!(changed(&home), ["plan", "review"]);
}

/// A project can have an entry in `skills.lock` for a source that it doesn't use. The user sees neither the entry nor its version.
fn a_new_source_ignores_what_the_lock_file_has_for_it() {
    let repository = three_skills();
    let home = Home::new();
    let source = repository.source("");
    home.printed(&["add", &source, "--yes"]);
    home.printed(&["sources", "pin", "plan"]);
    home.write(&home.config(), "sources: []\n");
    change_all(&repository, "two");
    home.printed(&["add", &source, "--yes"]);
    assert_eq!(changed(&home), ["greet", "plan", "review"]);
    let entry = &lock(&home)["sources"][&source];
    assert_eq!(
        (&entry["decisions"]["kept"], &entry["decisions"]["pinned"]),
        (&Value::Null, &Value::Null),
        "{entry}"
    );
}
