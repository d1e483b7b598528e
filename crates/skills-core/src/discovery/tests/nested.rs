//! Skills within the directories of other skills.

use super::*;
use crate::discovery::{Changes, DiscoveryCache, skills_within};

fn write(base: &Path, dir: &str, text: &str) {
    fs::create_dir_all(base.join(dir)).unwrap();
    fs::write(base.join(dir).join("SKILL.md"), text).unwrap();
}

fn skill(name: &str) -> String {
    format!("---\nname: {name}\ndescription: Helps.\n---\nBody.\n")
}

fn hub() -> tempfile::TempDir {
    let base = tempfile::tempdir().unwrap();
    for dir in ["hub", "hub/debugging", "hub/setup/deep", "hub/setup/deep/deeper", "plain/other"] {
        write(base.path(), dir, &skill(dir.rsplit('/').next().unwrap()));
    }
    fs::create_dir_all(base.path().join("hub/references")).unwrap();
    base
}

fn found(base: &Path, nested: bool) -> Vec<String> {
    let set = Discovery { nested, ..Discovery::new([Root::scanned(base)]) }.find();
    assert!(set.skipped().is_empty(), "{:?}", set.skipped());
    set.iter().map(|skill| skill.name.to_string()).collect()
}

#[test]
fn skills_within_skills_are_found_if_wanted() {
    let base = hub();
    assert_eq!(found(base.path(), false), ["hub", "other"]);
    assert_eq!(found(base.path(), true), ["hub", "debugging", "deep", "deeper", "other"]);
    // A skill that is the root itself.
    assert_eq!(found(&base.path().join("hub"), true), ["hub", "debugging", "deep", "deeper"]);
    let real = dunce::canonicalize(base.path()).unwrap();
    let within: Vec<_> = skills_within(&base.path().join("hub"))
        .iter()
        .map(|file| file.strip_prefix(&real).unwrap().to_str().unwrap().replace('\\', "/"))
        .collect();
    let expected = ["hub/debugging/SKILL.md", "hub/setup/deep/SKILL.md", "hub/setup/deep/deeper/SKILL.md"];
    assert_eq!(within, expected);
    assert!(skills_within(&base.path().join("plain/other")).is_empty());
}

#[test]
fn filters_apply_to_each_skill() {
    let base = hub();
    let mut search = Discovery { nested: true, ..Discovery::new([Root::scanned(base.path())]) };
    search.filter = Filter::new(["deep*"], [""; 0]).unwrap();
    let names: Vec<_> = search.find().iter().map(|skill| skill.name.to_string()).collect();
    assert_eq!(names, ["deep", "deeper"]);
}

#[test]
fn the_files_of_skills_do_not_use_up_the_limits() {
    let base = tempfile::tempdir().unwrap();
    for number in 0..20 {
        write(base.path(), &format!("s{number}"), &skill(&format!("s{number}")));
        fs::create_dir_all(base.path().join(format!("s{number}/a/b/c/d/e/f/g/h"))).unwrap();
    }
    let mut search = Discovery { nested: true, ..Discovery::new([Root::scanned(base.path())]) };
    search.limits.max_dirs = 20;
    let set = search.find();
    assert_eq!((set.len(), set.skipped().len()), (20, 0), "{:?}", set.skipped());
    // The 160 directories within the skills are more than ten times the limit.
    search.limits.max_dirs = 3;
    let set = search.find();
    let codes: Vec<_> =
        set.skipped().iter().flat_map(|skipped| &skipped.diagnostics).map(|d| d.code).collect();
    assert_eq!((set.len(), codes), (20, vec!["too-many-directories"]));
}

#[test]
fn changes_within_a_skill_are_noticed() {
    let base = hub();
    let real = dunce::canonicalize(base.path()).unwrap();
    let search = Discovery { nested: true, ..Discovery::new([Root::scanned(&real)]) };
    let mut cache = DiscoveryCache::default();
    let mut find = |changes: &Changes| {
        let mut skills = SkillSet::builder();
        search.run_incremental(&mut cache, changes, &mut skills);
        skills.build().iter().map(|skill| skill.name.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(find(&Changes::default()).len(), 5);
    write(&real, "hub/new", &skill("new"));
    let changed = |dir: &str| Changes { directories: [real.join(dir)].into(), ..Changes::default() };
    assert_eq!(find(&changed("hub")), ["hub", "debugging", "new", "deep", "deeper", "other"]);
    // While the outer skill is broken, its previous version and the inner skills are kept.
    write(&real, "hub", "half a fi");
    assert_eq!(find(&changed("hub")).len(), 6);
}
