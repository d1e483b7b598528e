//! Tests discovery, activation and file access with the conformance skill.

use std::{
    fs,
    path::{Path, PathBuf},
};

use skills_core::{
    Catalog, CatalogOptions, Discovery, FileContent, ReadOptions, Scope, Skill, SkillFiles, SkillSet, Source,
    activation::{ActivationOptions, BodyCache, activate},
    discovery::{Root, load_dir},
    frontmatter::{ParseContext, Verdict, validate_bytes},
};

const NAME: &str = "skills-system-validation";
const IN_BODY: &str = "CONFORMANCE_BODY_V1";

/// The bundled files, each with a marker that it contains.
const FILES: [(&str, &str); 3] = [
    ("assets/fixture.json", "CONFORMANCE_ASSET_V1"),
    ("references/REFERENCE.md", "CONFORMANCE_REFERENCE_V1"),
    ("scripts/echo.sh", "CONFORMANCE_SCRIPT_V1"),
];

fn skills() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/skills")
}

fn find() -> SkillSet {
    Discovery::new([Root::scanned(skills())]).find()
}

fn text(files: &SkillFiles, path: &str) -> String {
    match files.read(path, ReadOptions::default()) {
        Ok(FileContent::Text { text, note: None, .. }) => text,
        other => panic!("{path}: {other:?}"),
    }
}

#[test]
fn the_conformance_skill_follows_all_rules() {
    let bytes = fs::read(skills().join(NAME).join("SKILL.md")).unwrap();
    assert_eq!(validate_bytes(&bytes, &ParseContext::in_directory(NAME), Verdict::Spec), []);
}

#[test]
fn discovery_loads_metadata_without_the_body() {
    let set = find();
    assert!(set.skipped().is_empty() && set.shadowed().is_empty());
    let entry = set.entry(NAME).unwrap();
    assert_eq!(entry.diagnostics, []);
    let skill = &entry.skill;
    assert_eq!((skill.name.as_str(), skill.scope), (NAME, Scope::Scanned));
    assert!(skill.description.starts_with("Proves that a skills system works"));
    assert_eq!(skill.properties.license.as_deref(), Some("MIT OR Apache-2.0"));
    assert_eq!(skill.properties.allowed_tools, ["Read", "Bash(sh:*)"]);

    let catalog = Catalog::render(&set, &CatalogOptions::default()).unwrap();
    assert!(catalog.text.contains(NAME) && catalog.text.contains(&skill.description));
    // At this point, we shouldn't have loaded the body at all.
    assert!(!catalog.text.contains(IN_BODY));
    assert!(!format!("{skill:?}").contains(IN_BODY));
}

#[test]
fn activation_returns_the_body_and_lists_the_files() {
    let set = find();
    let skill = set.get(NAME).unwrap();
    let activation = activate(skill, &ActivationOptions::default(), &BodyCache::default()).unwrap();
    assert!(activation.text.starts_with(&format!("<skill_content name=\"{NAME}\">")));
    assert!(activation.text.contains(IN_BODY));
    assert!(!activation.text.contains("license:"), "the activation text has no frontmatter");
    assert!(activation.text.contains("Needs a POSIX shell"));
    assert!(activation.text.contains(&*skill.dir().unwrap().to_string_lossy()));
    for (path, _) in FILES {
        assert!(activation.text.contains(path), "{path}");
    }
    // This is a list of the files, so it should not contain what's in them.
    assert!(!activation.text.contains("ümläuts"));
}

#[test]
fn the_body_is_read_at_each_activation() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("SKILL.md");
    let write =
        |body: &str| fs::write(&file, format!("---\nname: edited\ndescription: D.\n---\n{body}\n")).unwrap();
    write("BEFORE");
    let (skill, _) = load_dir(dir.path()).unwrap();
    let text =
        |skill: &Skill| activate(skill, &ActivationOptions::default(), &BodyCache::default()).unwrap().text;
    assert!(text(&skill).contains("BEFORE"));
    write("AFTER");
    assert!(text(&skill).contains("AFTER") && !text(&skill).contains("BEFORE"));
}

#[test]
fn files_are_listed_and_read() {
    let (skill, _) = load_dir(&skills().join(NAME)).unwrap();
    let files = SkillFiles::of(&skill).unwrap();
    let listed: Vec<_> = files.list(200).files.into_iter().map(|file| file.path).collect();
    assert_eq!(listed, FILES.map(|(path, _)| path));
    for (path, marker) in FILES {
        assert!(text(&files, path).contains(marker), "{path}");
    }
    let fixture: serde_json::Value = serde_json::from_str(&text(&files, "assets/fixture.json")).unwrap();
    assert_eq!(fixture["fixture_id"], NAME);
    assert_eq!(fixture["text"], "ümläuts and 漢字 arrive as they are");
}

#[test]
fn paths_out_of_the_skill_are_refused() {
    let (skill, _) = load_dir(&skills().join(NAME)).unwrap();
    let Source::Stored(stored) = &skill.source else { panic!("a stored skill") };
    let absolute = stored.file();
    let files = SkillFiles::of(&skill).unwrap();
    for (path, code) in [
        ("../SKILL.md", "outside-skill"),
        ("/etc/passwd", "invalid-path"),
        ("references/../../../../etc/passwd", "outside-skill"),
        // We don't allow absolute paths, even if the file is in the skill.
        (absolute.to_str().unwrap(), "invalid-path"),
        ("..", "outside-skill"),
        ("../skills-system-validation/SKILL.md", "outside-skill"),
        ("C:\\Windows\\win.ini", "invalid-path"),
        ("\\\\server\\share\\file", "invalid-path"),
        ("references\\REFERENCE.md", "invalid-path"),
        ("", "invalid-path"),
        ("assets/fixture.json\0.md", "invalid-path"),
        ("references", "is-directory"),
        ("references/MISSING.md", "not-found"),
    ] {
        let error = files.read(path, ReadOptions::default()).expect_err(path);
        assert_eq!(error.code(), code, "{path}: {error}");
    }
}

#[test]
#[cfg(unix)]
fn the_script_prints_its_marker() {
    let script = skills().join(NAME).join("scripts/echo.sh");
    let output = std::process::Command::new("sh").arg(script).args(["one", "two words"]).output().unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "CONFORMANCE_SCRIPT_V1\none\ntwo words\n");
}
