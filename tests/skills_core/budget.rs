//! Tests the budget for last good texts with many skills.
//!
//! The budget belongs to the process, so this test has a process of its own.

#![expect(clippy::print_stderr, reason = "prints the memory use")]

use std::{
    alloc::System,
    fs::{self, File},
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use skills_core::{
    Activation, Discovery, Skill, SkillSet,
    activation::{ActivationError, ActivationOptions, BodyCache, activate},
    discovery::Root,
};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

const SKILLS: usize = 2_000;

fn file(base: &Path, number: usize) -> PathBuf {
    base.join(format!("skill-{number}/SKILL.md"))
}

fn text(skills: &SkillSet, number: usize) -> Result<Activation, ActivationError> {
    let skill: &Skill = skills.get(&format!("skill-{number}")).unwrap();
    activate(skill, &ActivationOptions::default(), &BodyCache::default())
}

#[test]
fn texts_of_used_and_recently_modified_skills_are_kept() {
    let base = tempfile::tempdir().unwrap();
    let now = SystemTime::now();
    for number in 0..SKILLS {
        let file = file(base.path(), number);
        fs::create_dir(file.parent().unwrap()).unwrap();
        let body = format!("Body {number}.\n{}", "Do this, then that, and tell the user.\n".repeat(128));
        fs::write(&file, format!("---\nname: skill-{number}\ndescription: d\n---\n{body}")).unwrap();
        // We set the times so that the skill in the middle is the newest.
        let age = Duration::from_secs(10 + 60 * number.abs_diff(SKILLS / 2) as u64);
        File::options().write(true).open(&file).unwrap().set_modified(now - age).unwrap();
    }
    let region = Region::new(ALLOCATOR);
    let skills = Discovery::new([Root::scanned(base.path())]).find();
    let change = region.change();
    let held = change.bytes_allocated.saturating_sub(change.bytes_deallocated);
    eprintln!("{SKILLS} skills of 5 KB use {held} bytes, {} each", held / SKILLS);
    assert_eq!(skills.len(), SKILLS);
    assert!(held < 1024 * SKILLS, "{SKILLS} skills use {held} bytes");

    assert!(text(&skills, 3).unwrap().text.contains("Body 3."));
    let empty = |number| fs::write(file(base.path(), number), "").unwrap();
    // We should keep the first one, since it was activated, and the next two, since they're among the newest. The last one
    // should be read from disk.
    for (number, is_kept) in [(3, true), (SKILLS / 2, true), (SKILLS / 2 + 9, true), (4, false)] {
        empty(number);
        match text(&skills, number) {
            Ok(activation) => {
                assert!(is_kept && activation.text.contains(&format!("Body {number}.")), "{number}");
            }
            Err(error) => {
                assert!(!is_kept && matches!(error, ActivationError::Broken { .. }), "{number}: {error}");
                let message = error.to_string();
                assert!(
                    message.contains("failed to load instructions from ")
                        && message.ends_with("file does not start with frontmatter"),
                    "{message}"
                );
            }
        }
    }
}
