//! Tests that a check of a `SKILL.md` reads only files of the skill's directory.

#![expect(clippy::print_stderr, reason = "prints that a test was skipped")]

use std::fs;

use skills_core::{
    Discovery, SkillFiles,
    discovery::{Root, load_dir},
    files::SkillMd,
    frontmatter::MAX_FILE_BYTES,
};
use tempfile::TempDir;

const SKILL: &str = "---\nname: skill\ndescription: d\n---\nBody\n";

fn skill(name: &str) -> (TempDir, std::path::PathBuf) {
    let base = tempfile::tempdir().unwrap();
    let dir = base.path().join("skill");
    fs::create_dir(&dir).unwrap();
    fs::write(dir.join(name), SKILL).unwrap();
    (base, dir)
}

/// Returns the name and the text, or the code of the error.
fn read(path: &std::path::Path) -> Result<(String, String), &'static str> {
    match SkillMd::read(path) {
        Ok(file) => Ok((file.name, String::from_utf8(file.bytes).unwrap())),
        Err(error) => {
            assert_eq!(error.to_diagnostic().code, error.code());
            assert!(error.to_diagnostic().is_error());
            Err(error.code())
        }
    }
}

#[test]
fn files_with_any_name_are_read() {
    for name in ["SKILL.md", "skill.md", "notes: a.md"] {
        if cfg!(windows) && name.contains(':') {
            continue;
        }
        let (_base, dir) = skill(name);
        assert_eq!(read(&dir.join(name)), Ok((name.to_owned(), SKILL.to_owned())));
    }
    let (_base, dir) = skill("SKILL.md");
    fs::create_dir(dir.join("directory")).unwrap();
    assert_eq!(read(&dir.join("missing.md")), Err("not-found"));
    assert_eq!(read(&dir.join("directory")), Err("not-found"));
    assert_eq!(read(&dir.join("missing/SKILL.md")), Err("skill-directory-unreadable"));
    assert_eq!(read("".as_ref()), Err("not-found"));
    // This should also work for a relative path.
    let here = "no-such-file.md".as_ref();
    assert_eq!(read(here), Err("not-found"));
}

#[test]
fn only_the_beginning_of_a_long_file_is_read() {
    let (_base, dir) = skill("SKILL.md");
    let path = dir.join("SKILL.md");
    fs::write(&path, "é".repeat(MAX_FILE_BYTES)).unwrap();
    let file = SkillMd::read(&path).unwrap();
    assert_eq!(file.size, 2 * MAX_FILE_BYTES as u64);
    assert!((MAX_FILE_BYTES + 1..MAX_FILE_BYTES + 9).contains(&file.bytes.len()), "{}", file.bytes.len());
    assert!(std::str::from_utf8(&file.bytes).is_ok());
}

/// A check of a pull request must not print files from other directories of the machine.
#[cfg(unix)]
#[test]
fn links_out_of_the_directory_are_refused() {
    use std::os::unix::fs::symlink;
    let (base, dir) = skill("real.md");
    fs::write(base.path().join(".env"), "SECRET").unwrap();
    for (target, name, expected) in [
        ("../.env", "out.md", Err("outside-skill")),
        ("/etc/passwd", "absolute.md", Err("outside-skill")),
        ("/proc/self/environ", "environment.md", Err("outside-skill")),
        ("out.md", "twice.md", Err("outside-skill")),
        ("real.md", "SKILL.md", Ok(("SKILL.md".to_owned(), SKILL.to_owned()))),
        ("gone.md", "dangling.md", Err("not-found")),
    ] {
        symlink(target, dir.join(name)).unwrap();
        assert_eq!(read(&dir.join(name)), expected, "{name}");
    }
    let error = SkillMd::read(&dir.join("out.md")).unwrap_err().to_diagnostic();
    assert!(!format!("{error}").contains("SECRET"));
    assert_eq!(error.help.as_deref(), Some("link the skill directory instead of the file"));

    // However, a link to the whole directory is allowed.
    symlink("skill", base.path().join("linked")).unwrap();
    assert!(read(&base.path().join("linked/SKILL.md")).is_ok());

    let made = std::process::Command::new("mkfifo").arg(dir.join("fifo.md")).status().unwrap();
    assert!(made.success());
    assert_eq!(read(&dir.join("fifo.md")), Err("not-a-file"));
}

/// A file system that ignores case finds a `skill.md` as `SKILL.md`, but other systems don't.
#[test]
fn the_spelling_of_the_name_on_disk_is_reported() {
    let (base, dir) = skill("skill.md");
    let path = dir.join("SKILL.md");
    if !path.exists() {
        eprintln!("skipped: the file system distinguishes SKILL.md and skill.md");
        return;
    }
    assert_eq!(read(&path).map(|(name, _)| name), Ok("skill.md".to_owned()));
    let (skill, diagnostics) = load_dir(&dir).unwrap();
    assert!(
        diagnostics.iter().any(|finding| finding.code == "file-name" && finding.message.contains("skill.md"))
    );
    assert_eq!(SkillFiles::of(&skill).unwrap().list(9).total(), 0);
    let found = Discovery::new([Root::scanned(base.path())]).find();
    assert!(found.entries()[0].diagnostics.iter().any(|finding| finding.code == "file-name"));
}
