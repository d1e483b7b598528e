//! The names that are saved with decisions.

use super::*;

fn text(name: &str) -> String {
    format!("---\nname: {name}\ndescription: d\n---\nBody.\n")
}

fn is_named(project: &Project, name: &str) -> bool {
    project.trust.trusted(&project.root()).iter().any(|dir| dir.is_named(name))
}

/// Files of earlier versions have no names. The directory may be named like the skill, and a skill that is found is named in the file.
#[test]
fn files_without_names_are_upgraded() {
    let project = Project::new();
    project.write("SKILL.md", &text("demo"));
    project.decide(true);
    let file = project.trust.file(&project.root()).unwrap();
    let new = fs::read_to_string(&file).unwrap();
    let mut old: serde_json::Value = serde_json::from_str(&new).unwrap();
    old.as_object_mut().unwrap().remove("names").unwrap();
    fs::write(&file, old.to_string()).unwrap();
    assert!(is_named(&project, "x") && !is_named(&project, "demo"));
    // Another version is not the trusted one.
    project.write("SKILL.md", &text("other"));
    assert_eq!(project.state(), (0, vec!["changed"]));
    assert_eq!(fs::read_to_string(&file).unwrap(), old.to_string());
    project.write("SKILL.md", &text("demo"));
    assert_eq!(project.state(), (1, vec![]));
    assert_eq!(fs::read_to_string(&file).unwrap(), new);
    assert!(is_named(&project, "demo") && !is_named(&project, "x"));
}

#[test]
fn a_directory_has_the_names_of_its_versions() {
    let project = Project::new();
    let all = ["x", "a", "b", "c"];
    for (name, trusted, expected) in [
        ("x", true, &["x"][..]),
        ("a", true, &["a"]),
        // The trusted version can come back.
        ("b", false, &["a", "b"]),
        ("x", false, &["x", "a", "b"]),
        ("c", true, &["c"]),
        ("x", true, &["x"]),
        ("b", false, &["x", "b"]),
    ] {
        project.write("SKILL.md", &text(name));
        assert_eq!(project.decide(trusted).done.len(), 1, "{name}");
        let named: Vec<_> = all.into_iter().filter(|name| is_named(&project, name)).collect();
        assert_eq!(named, expected, "{name} {trusted}");
    }
}

/// A configuration can trust a project, but the user outranks it.
#[test]
fn declined_skills_are_known_by_name_and_by_directory() {
    let project = Project::new();
    let found = |name: &str| {
        project.write("SKILL.md", &text(name));
        let found = Discovery::new(project_roots(&project.root())).find();
        Arc::clone(found.get(name).unwrap())
    };
    let (demo, other) = (found("demo"), found("other"));
    let is_declined = || {
        let declined = project.trust.declined(&project.root());
        (declined(&demo), declined(&other))
    };
    assert_eq!(is_declined(), (false, false));
    assert_eq!(project.trust.refuse(&project.root(), &found("demo")), None);
    assert_eq!(is_declined(), (true, true));
    let elsewhere = project.dir.path().join("project/.skills/y/SKILL.md");
    fs::create_dir_all(elsewhere.parent().unwrap()).unwrap();
    fs::write(&elsewhere, text("Demo")).unwrap();
    fs::remove_dir_all(project.root().join(".skills/x")).unwrap();
    let skills = Discovery::new(project_roots(&project.root())).find();
    assert!(project.trust.declined(&project.root())(skills.get("demo").unwrap()));
    fs::remove_dir_all(elsewhere.parent().unwrap()).unwrap();
    // From then on, the user decides about each version, whatever its name is.
    for name in ["other", "demo"] {
        found(name);
        project.decide(true);
        assert_eq!(is_declined(), (true, true), "{name}");
    }
}
