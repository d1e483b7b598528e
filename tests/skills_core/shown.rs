//! Tests that errors and diagnostics escape terminal control sequences in names.

use serde_json::Value;
use skills_core::{
    ReadOptions, Skill, SkillFiles, SkillTool, ToolError,
    discovery::{Filter, load_dir},
    set::SkillSetBuilder,
    text::shown,
};

/// A name that clears the screen, rings the bell, reverses the text and hides a part of it.
const NASTY: &str = "n\u{1b}[2J\u{7}\u{9b}31m\u{202e}\u{200b}x";

#[track_caller]
fn check(error: impl ToString) {
    let message = error.to_string();
    for line in message.lines() {
        assert_eq!(shown(line), line);
    }
    assert!(message.contains(r"\u{1b}"), "the message doesn't contain the name: {message}");
}

async fn no_op(_: Value) -> Result<Value, ToolError> {
    Ok(Value::Null)
}

#[test]
fn errors_escape_names() {
    let dir = tempfile::tempdir().unwrap();
    let missing = dir.path().join(NASTY);
    check(load_dir(&missing).unwrap_err());
    check(SkillFiles::open(&missing).unwrap_err());
    let files = SkillFiles::open(dir.path()).unwrap();
    for path in [NASTY.to_owned(), format!("/{NASTY}"), format!("../{NASTY}"), format!("{NASTY}\\")] {
        check(files.read(&path, ReadOptions::default()).unwrap_err());
    }
    check(Filter::new([format!("[{NASTY}")], [""; 0]).unwrap_err());
    check(SkillSetBuilder::default().add_tool(SkillTool::new(NASTY, "x", no_op)).unwrap_err());
    let twice = Skill::builder("a", "b").body("c").tool(NASTY, "x", no_op).tool(NASTY, "x", no_op);
    check(twice.build().unwrap_err());
    let no_body = Skill::builder(NASTY, "b").build().unwrap_err();
    assert!(
        !no_body.to_string().contains(char::is_control),
        "control characters are removed from names of skills"
    );
}

/// Windows doesn't allow such file names.
#[cfg(unix)]
#[test]
fn diagnostics_escape_paths_and_names() {
    use std::{fs, path::Path};

    use skills_core::{Discovery, discovery::Root};

    let base = tempfile::tempdir().unwrap();
    let dir = base.path().join(NASTY);
    fs::create_dir(&dir).unwrap();
    fs::write(dir.join("SKILL.md"), "# Nothing\n").unwrap();
    let root = base.path().join(format!("{NASTY}root"));
    let set = Discovery::new([Root::scanned(base.path()), Root::scanned(&root)]).find();
    assert_eq!(set.skipped().len(), 2);
    for skipped in set.skipped() {
        check(skipped.diagnostics[0].in_file(&skipped.path));
    }
    // Now use this for the name in the frontmatter too.
    let text = format!("---\nname: \"{}\"\ndescription: d\n---\nBody\n", NASTY.escape_default());
    fs::write(dir.join("SKILL.md"), text).unwrap();
    let (skill, diagnostics) = load_dir(&dir).unwrap();
    assert_eq!(shown(skill.name.as_str()), skill.name.as_str());
    assert!(!diagnostics.is_empty());
    for diagnostic in diagnostics {
        let message = diagnostic.to_string();
        assert!(message.lines().all(|line| shown(line) == line), "{message:?}");
        assert_eq!(shown(&diagnostic.message), diagnostic.message);
    }
    check(
        skills_core::files::SkillMd::read(Path::new(&format!("{}/no/{NASTY}", dir.display()))).unwrap_err(),
    );
}
