//! Changes of a source that the user must not miss: renamed skills, ranges of versions that are left, and declined changes.

use std::{
    fs,
    process::{Command, Stdio},
};

use serde_json::{Map, json};

#[cfg(unix)]
use crate::git::wait_for_overview;
use crate::{
    repositories::{Home, Repository},
    single_skills::{change_all, lock, three_skills},
};

crate::trials!(
    a_renamed_skill_is_not_lost,
    a_range_is_left_only_if_the_user_agrees,
    a_range_that_cannot_be_read_stops_no_other_source,
    nothing_is_approved_if_stdout_is_closed,
    sources_of_projects_keep_their_decisions,
    a_source_of_a_team_is_removed_from_its_configuration_only,
    a_kept_version_with_another_content_is_replaced,
    declined_changes_are_listed,
    naming_a_configured_source_approves_nothing,
    naming_a_source_of_projects_approves_nothing,
    the_entry_of_a_file_is_for_a_flag_as_well,
    a_lock_file_of_two_configurations,
    a_lock_file_cannot_name_any_number_of_commits,
    #[cfg(unix)]
    a_commit_that_hangs_takes_no_other_skill_away,
    #[cfg(unix)]
    a_source_that_is_removed_while_it_is_fetched_is_not_served,
);

/// The flag `--source` approves the first version of a source, but not if the configuration has the source: the user has pinned a skill
/// there, or declined a version.
fn naming_a_configured_source_approves_nothing() {
    for was_named in [false, true] {
        let repository = three_skills();
        let home = Home::new();
        let source = repository.source("");
        if was_named {
            // The decisions about a source that was named before stay as well.
            home.printed(&["list", "--source", &source]);
            home.printed(&["sources", "pin", "plan"]);
        }
        home.printed(&["add", &source, "--only", "plan", "--yes"]);
        if was_named {
            change_all(&repository, "two");
            home.printed(&["update", "--yes"]);
            let listed = home.json(&["list", "--json", "--source", &source]);
            let plan =
                listed["skills"].as_array().expect("skills").iter().find(|skill| skill["name"] == "plan");
            assert_eq!(plan.expect("the pinned skill")["description"], "Plans.", "{listed}");
            continue;
        }
        home.printed(&["sources", "pin", "plan"]);
        change_all(&repository, "two");
        let listed = home.json(&["list", "--json", "--source", &source]);
        let names: Vec<_> =
            listed["skills"].as_array().expect("skills").iter().map(|skill| &skill["name"]).collect();
        assert_eq!(names, ["plan"], "{listed}");
        assert!(!listed.to_string().contains("Changed."), "{listed}");
        assert!(!home.lock().exists(), "the source was approved by naming it");
        // Another source is still approved by naming it.
        let other = three_skills();
        let listed = home.json(&["list", "--json", "--source", &other.source("")]);
        assert!(listed["skills"].as_array().is_some_and(|skills| skills.len() >= 3), "{listed}");
    }
}

/// The configuration has the source only for another directory, and the user has pinned a skill there.
fn naming_a_source_of_projects_approves_nothing() {
    let repository = three_skills();
    let home = Home::new();
    let source = repository.source("");
    let project = json!({ "path": home.path("project"), "sources": [source], "include": ["plan", "review"] });
    home.write(&home.config(), &json!({ "projects": [project] }).to_string());
    home.printed(&["update", "--yes"]);
    home.printed(&["sources", "pin", "plan"]);
    change_all(&repository, "two");
    let listed = home.json(&["list", "--json", "--source", &source]).to_string();
    assert!(listed.contains("Plans.") && !listed.contains("Changed."), "{listed}");
    assert!(!home.lock().exists(), "the source was approved by naming it");
}

/// The filters of the file apply to a source that a flag named before, and so does its check of signatures.
fn the_entry_of_a_file_is_for_a_flag_as_well() {
    let repository = three_skills();
    let home = Home::new();
    let source = repository.source("");
    home.printed(&["list", "--source", &source]);
    let before = fs::read_to_string(home.lock()).expect("a file");
    let entry = json!([{ "source": source, "exclude": ["plan"], "verify": "git" }]);
    home.write(&home.config(), &json!({ "sources": entry }).to_string());
    let listed = home.json(&["list", "--json", "--source", &source]).to_string();
    assert!(listed.contains("review") && !listed.contains("Plans."), "{listed}");
    change_all(&repository, "two");
    let errors = home.fails(&["update", "--yes"], 1);
    assert!(errors.contains("is not signed"), "{errors}");
    assert_eq!(fs::read_to_string(home.lock()).expect("a file"), before);
}

/// A new name that the filters don't select is shown as the removal of the skill, with or without the approved version in the cache.
fn a_renamed_skill_is_not_lost() {
    for (is_pinned, has_cache) in [(false, true), (false, false), (true, true), (true, false)] {
        let repository = three_skills();
        let home = Home::new();
        let source = repository.source("");
        home.printed(&["add", &source, "--only", "plan", "--yes"]);
        if is_pinned {
            home.printed(&["sources", "pin", "plan"]);
        }
        let before = lock(&home)["sources"][&source]["skills"].clone();
        repository.write("plan/SKILL.md", "---\nname: scheme\ndescription: Changed.\n---\ntwo\n");
        repository.commit();
        let expected = if is_pinned { "pinned" } else { "unapproved" };
        let clear = || {
            if !has_cache {
                fs::remove_dir_all(home.path("cache")).expect("the path exists");
            }
        };
        clear();
        let report = home.json(&["outdated", "--json"]);
        let row = &report["skills"][0];
        assert_eq!(
            (&row["name"], &row["change"], &row["state"]),
            (&json!("plan"), &json!("gone"), &json!(expected)),
            "{is_pinned} {has_cache}: {report}"
        );
        clear();
        let output = home.run(&["update", "--locked"]);
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert_eq!(output.status.code(), Some(i32::from(!is_pinned)), "{text}");
        if !is_pinned {
            assert!(text.contains("- plan (plan)"), "{text}");
            assert!(
                text.contains("has the new name `scheme`, which `include` or `exclude` leaves out"),
                "{text}"
            );
            // Without a decision, nothing changes.
            home.run(&["update"]);
            assert_eq!(lock(&home)["sources"][&source]["skills"], before);
        }
        clear();
        home.printed(&["update", "--yes"]);
        let after = lock(&home)["sources"][&source]["skills"].clone();
        assert_eq!(after, if is_pinned { before } else { json!({}) }, "{has_cache}");
        let served = home.json(&["list", "--json"])["skills"].as_array().map(Vec::len);
        assert_eq!(served, Some(usize::from(is_pinned)));
    }
    // A filter of the user is no change of the source.
    let repository = three_skills();
    let home = Home::new();
    home.printed(&["add", &repository.source(""), "--yes"]);
    let text = fs::read_to_string(home.config()).expect("a file");
    home.write(&home.config(), &format!("{text}exclude: [plan]\n"));
    repository.write("README.md", "new");
    repository.commit();
    assert_eq!(home.json(&["outdated", "--json"])["skills"], json!([]));
    home.printed(&["update", "--locked"]);
    change_all(&repository, "two");
    let report = home.json(&["outdated", "--json"]);
    assert_eq!(report["skills"].as_array().map(Vec::len), Some(2), "{report}");
}

/// A version beyond the range can have the same skills.
fn a_range_is_left_only_if_the_user_agrees() {
    let repository = three_skills();
    let home = Home::new();
    repository.git(&["tag", "v1.0.0"]);
    let source = repository.source("#^1.0");
    home.printed(&["add", &source, "--yes"]);
    let config = fs::read_to_string(home.config()).expect("a file");
    let check_stays = |arguments: &[&str], words: &str| {
        let output = home.run(&[&["update", "--latest"][..], arguments].concat());
        let said = String::from_utf8([output.stdout, output.stderr].concat()).expect("text");
        assert!(output.status.code() == Some(1) && said.contains(words), "{arguments:?}: {said}");
        assert_eq!(fs::read_to_string(home.config()).expect("a file"), config, "{arguments:?}");
        assert!(home.pinned(&home.config().with_file_name("skills.lock"), &source).is_some());
    };
    repository.write("README.md", "new");
    repository.commit();
    repository.git(&["tag", "v2.0.0"]);
    check_stays(&[], "The range of versions stays.");
    check_stays(&[], "use `--yes`");
    check_stays(&["--json"], "\"changes\": []");
    // The user decides about no skill.
    change_all(&repository, "two");
    repository.git(&["tag", "v3.0.0"]);
    check_stays(&[], "The range of versions stays.");
    repository.git(&["tag", "--delete", "v3.0.0"]);
    home.printed(&["update", "--latest", "--yes"]);
    let config = fs::read_to_string(home.config()).expect("a file");
    assert!(config.contains("#^2.0") && !config.contains("#^1.0"), "{config}");
}

/// Everything is shown before it is approved.
fn nothing_is_approved_if_stdout_is_closed() {
    let repository = three_skills();
    let home = Home::new();
    let source = repository.source("");
    let fails = |args: &[&str]| {
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        let mut command = Command::new(env!("CARGO_BIN_EXE_acp-skills-proxy"));
        command.args(args).envs(home.variables()).stdin(Stdio::null()).stdout(writer);
        let output = command.output().expect("the program runs");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && errors.contains("nothing is approved"), "{args:?}: {errors}");
    };
    for format in [&[][..], &["--json"]] {
        fails(&[&["add", &source, "--yes"], format].concat());
        assert!(!home.config().exists());
    }
    home.printed(&["add", &source, "--yes"]);
    change_all(&repository, "two");
    let lock = || fs::read_to_string(home.config().with_file_name("skills.lock")).expect("a file");
    let before = lock();
    for format in [&[][..], &["--json"]] {
        fails(&[&["update", "--yes"], format].concat());
        assert_eq!(lock(), before, "{format:?}");
    }
}

/// The other sources are updated.
fn a_range_that_cannot_be_read_stops_no_other_source() {
    let (repository, gone) = (three_skills(), three_skills());
    let home = Home::new();
    for repository in [&gone, &repository] {
        repository.git(&["tag", "v1.0.0"]);
        home.printed(&["add", &repository.source("#^1.0"), "--yes"]);
    }
    fs::remove_dir_all(gone.path().join(".git")).expect("the path exists");
    change_all(&repository, "two");
    repository.git(&["tag", "v2.0.0"]);
    let output = home.run(&["update", "--latest", "--yes"]);
    let said = String::from_utf8([output.stdout, output.stderr].concat()).expect("text");
    assert!(output.status.code() == Some(1) && said.contains("Approved."), "{said}");
    let config = fs::read_to_string(home.config()).expect("a file");
    assert!(config.contains("#^2.0") && config.contains("#^1.0"), "{config}");
}

/// `sources` and `projects` can contain the same source, in one version or in several.
fn sources_of_projects_keep_their_decisions() {
    let repository = three_skills();
    let home = Home::new();
    for tag in ["v1.0.0", "v2.0.0"] {
        change_all(&repository, tag);
        repository.git(&["tag", tag]);
    }
    let (first, second) = (repository.source("#^1.0"), repository.source("#^2.0"));
    let write = |listed: &[&String], of_project: &String| {
        let projects = json!([{ "path": "/work", "sources": [of_project] }]);
        let listed: Vec<_> = listed.iter().map(|source| format!("- {source}")).collect();
        home.write(&home.config(), &format!("sources:\n{}\nprojects: {projects}\n", listed.join("\n")));
    };
    let decisions = |source: &String| lock(&home)["sources"][source]["decisions"]["pinned"].clone();
    write(&[&first], &second);
    home.printed(&["update", "--yes"]);
    for source in [&first, &second] {
        home.printed(&["sources", "pin", "plan", "--from", source]);
    }
    let pinned = json!(["plan"]);
    let before = lock(&home);
    assert_eq!([&first, &second].map(decisions), [&pinned, &pinned].map(Clone::clone), "{before}");
    // The new version of the first source is that of the project.
    let errors = home.fails(&["update", "--latest", "--yes"], 2);
    assert!(
        errors.contains(&format!("`{second}` is already in")) && errors.contains("in an editor"),
        "{errors}"
    );
    assert_eq!(lock(&home), before);
    // A project has the range as well.
    write(&[&first, &second], &first);
    let text = fs::read_to_string(home.config()).expect("a file");
    let output = home.run(&["update", "--latest", "--yes", &first]);
    let said = String::from_utf8([output.stdout, output.stderr].concat()).expect("text");
    assert!(said.contains(&format!("replace `{first}` with `{second}` in an editor")), "{said}");
    assert_eq!((lock(&home), fs::read_to_string(home.config()).expect("a file")), (before.clone(), text));
    // If a source is removed, its version stays while a project needs it.
    let removed = |source: &String, code: i32, words: &str| {
        let output = home.run(&["remove", source]);
        let said = String::from_utf8([output.stdout, output.stderr].concat()).expect("text");
        assert!(output.status.code() == Some(code) && said.contains(words), "{source}: {said}");
    };
    let used = format!("`{first}` is still used, because `projects` in ");
    write(&[&first], &first);
    removed(&first, 0, &used);
    assert_eq!(decisions(&first), pinned);
    let text = fs::read_to_string(home.config()).expect("a file");
    removed(&first, 2, &used);
    assert_eq!(
        (decisions(&first), fs::read_to_string(home.config()).expect("a file")),
        (pinned.clone(), text)
    );
    write(&[&first], &second);
    removed(&first, 0, "Removed from ");
    assert_eq!([&first, &second].map(decisions), [serde_json::Value::Null, pinned]);
    write(&[&second], &"github:acme/skills".to_owned());
    removed(&second, 0, "Removed from ");
    assert_eq!(lock(&home)["sources"], json!({}));
}

/// A team's configuration has a source that the user has also approved for `--source`.
fn a_source_of_a_team_is_removed_from_its_configuration_only() {
    let repository = three_skills();
    let home = Home::new();
    let source = repository.source("");
    home.printed(&["list", "--source", &source]);
    home.printed(&["sources", "pin", "plan"]);
    let team = home.path("team/skills.yaml");
    let team = team.to_str().expect("text");
    home.printed(&["add", &source, "--yes", "--config", team]);
    change_all(&repository, "two");
    home.printed(&["remove", &source, "--config", team]);
    assert!(!fs::read_to_string(team).expect("a file").contains(&source));
    let list = home.json(&["list", "--source", &source, "--json"]);
    let skills = list["skills"].as_array().expect("skills").iter();
    let descriptions: Vec<_> = skills.map(|skill| &skill["description"]).collect();
    assert!(
        descriptions.contains(&&json!("Plans.")) && !descriptions.contains(&&json!("Changed.")),
        "{list}"
    );
    assert!(home.printed(&["sources"]).contains("(1 pinned)"));
}

/// Git merges the approval of a skill with the decision on another branch to keep its earlier version, if both are on different lines.
fn a_kept_version_with_another_content_is_replaced() {
    let repository = three_skills();
    let home = Home::new();
    let source = repository.source("");
    home.printed(&["add", &source, "--yes"]);
    let file = home.config().with_file_name("skills.lock");
    let first = home.pinned(&file, &source).expect("a commit");
    change_all(&repository, "two");
    home.printed(&["update", "--yes"]);
    let good = lock(&home);
    let mut merged = good.clone();
    merged["sources"][&source]["decisions"]["kept"] = json!({ "plan": first });
    fs::write(&file, merged.to_string()).expect("a file");
    assert!(home.printed(&["update"]).contains("no changes"));
    assert_eq!(lock(&home), good);
    assert_eq!(home.json(&["list", "--json"])["skills"].as_array().map(Vec::len), Some(3));
}

/// A declined change is listed, also if the commit has been decided about.
fn declined_changes_are_listed() {
    let repository = three_skills();
    let home = Home::new();
    let source = repository.source("");
    home.printed(&["add", &source, "--yes"]);
    let before = lock(&home);
    let path = home.config().with_file_name("skills.lock");
    change_all(&repository, "two");
    let checksum = |name: &str| lock(&home)["sources"][&source]["skills"][name].clone();
    let first = home.pinned(&path, &source).expect("a commit");
    let plan = checksum("plan");
    home.printed(&["update", "--yes"]);
    // As if the user had answered no for this skill.
    let mut declined = lock(&home);
    let pinned = &mut declined["sources"][&source];
    pinned["decisions"]["declined"] = json!({ "plan": pinned["skills"]["plan"] });
    pinned["decisions"]["kept"] = json!({ "plan": first });
    pinned["skills"]["plan"] = plan;
    fs::write(&path, declined.to_string()).expect("a file");
    assert!(home.printed(&["update"]).contains("no changes"));
    let report = home.json(&["outdated", "--json", "--check"]);
    let row = &report["skills"][0];
    assert_eq!((&row["name"], &row["state"]), (&json!("plan"), &json!("declined")), "{report}");
    assert_eq!(report["skills"].as_array().map(Vec::len), Some(1), "{report}");
    assert!(home.printed(&["outdated"]).contains("declined"));
    assert_ne!(lock(&home), before);
}

/// Adds a source with three skills, and names other commits in the lock file at which skills stay.
fn with_kept_commits(home: &Home, repository: &Repository, number: usize) {
    let source = repository.source("");
    home.printed(&["add", &source, "--yes"]);
    let mut changed = lock(home);
    let pinned = &mut changed["sources"][&source];
    let mut kept = Map::new();
    for number in 0..number {
        pinned["skills"][format!("d{number}")] = "0".repeat(64).into();
        kept.insert(format!("d{number}"), format!("{number:040x}").into());
    }
    pinned["decisions"]["kept"] = kept.into();
    fs::write(home.config().with_file_name("skills.lock"), changed.to_string()).expect("a file");
}

/// Each commit would be fetched on its own, with the limits of a fetch.
fn a_lock_file_cannot_name_any_number_of_commits() {
    let home = Home::new();
    with_kept_commits(&home, &three_skills(), 2_000);
    let output = home.run(&["list"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(said.matches("cannot fetch").count(), 1, "{said}");
    assert!(said.contains("skills stay at more than 64 other commits"), "{said}");
    let listed = String::from_utf8_lossy(&output.stdout);
    assert!(listed.contains("greet"), "{said}");
    let note = "`d0` stays at commit 000000000000, which is not in the cache, and 1999 more";
    assert!(format!("{listed}{said}").contains(note), "{listed}{said}");
}

/// The other skills of the source are served while a commit is fetched.
#[cfg(unix)]
fn a_commit_that_hangs_takes_no_other_skill_away() {
    use crate::fixture::Fixture;
    use std::os::unix::fs::PermissionsExt;
    let repository = three_skills();
    let home = Home::new();
    with_kept_commits(&home, &repository, 1);
    let git = home.path("bin/git");
    home.write(&git, "#!/bin/sh\nexec /bin/sleep 600\n");
    fs::set_permissions(&git, fs::Permissions::from_mode(0o755)).expect("permissions");
    let mut fixture = Fixture::over_http(home.proxy().env("PATH", home.path("bin")));
    fixture.new_session("s");
    let said = fixture.ask("/skills");
    assert!(said.contains("`/greet`") && said.contains("in the background"), "{said}");
    fixture.finish();
}

/// The lock file changes while git runs.
#[cfg(unix)]
fn a_source_that_is_removed_while_it_is_fetched_is_not_served() {
    use crate::fixture::Fixture;
    use std::os::unix::fs::PermissionsExt;
    let repository = three_skills();
    let home = Home::new();
    home.printed(&["add", &repository.source(""), "--yes"]);
    fs::remove_dir_all(home.path("cache")).expect("the path exists");
    let git = home.path("bin/git");
    let lock = home.config().with_file_name("skills.lock");
    let empty =
        format!("echo '{{\"version\":1,\"sources\":{{}}}}' >'{0}.new' && mv '{0}.new' '{0}'", lock.display());
    let path = std::env::var("PATH").expect("a PATH");
    let script =
        format!("#!/bin/sh\nPATH='{path}'\ncase \"$*\" in *fetch*) {empty} ;; esac\nexec git \"$@\"\n");
    home.write(&git, &script);
    fs::set_permissions(&git, fs::Permissions::from_mode(0o755)).expect("permissions");
    let mut fixture = Fixture::over_http(home.proxy().env("PATH", home.path("bin")));
    fixture.new_session("s");
    wait_for_overview(&mut fixture, "is not approved: it is not in");
    let said = fixture.ask("/skills");
    assert!(!said.contains("`/greet`"), "{said}");
    fixture.finish();
}

/// `add` approves a new source as a whole, so it can't keep the decisions of another configuration file.
fn a_lock_file_of_two_configurations() {
    let repository = three_skills();
    let home = Home::new();
    let source = repository.source("");
    let printed = home.printed(&["add", &source, "--yes"]);
    assert!(!printed.contains("replaced"), "{printed}");
    home.printed(&["sources", "pin", "plan"]);
    let other = home.config().with_file_name("work.yaml");
    home.write(&other, "watch: true\n");
    let printed = home.printed(&["add", &source, "--yes", "--config", other.to_str().expect("text")]);
    assert!(printed.contains("will be replaced, with 1 pinned skill"), "{printed}");
}
