//! Directories that are replaced and restored while the user reviews a skill. The files of the skill are not touched.

use super::*;

#[test]
fn a_directory_above_a_skill_that_is_replaced_and_restored() {
    for path in ["project/.skills/x", "project/.skills", "project"] {
        let project = Project::new();
        let base = dunce::canonicalize(project.dir.path()).unwrap();
        let shown = project.sift();
        let [was] = shown.unapproved() else { panic!("{path}") };
        // The clock of the file system may not have ticked since the directory was created.
        let deadline = Instant::now() + Duration::from_secs(30);
        let now = loop {
            fs::rename(base.join(path), base.join("aside")).unwrap();
            project.write("SKILL.md", "---\nname: x\ndescription: d\n---\nHarmless.\n");
            fs::remove_dir_all(base.join(path)).unwrap();
            fs::rename(base.join("aside"), base.join(path)).unwrap();
            let now = project.sift();
            if now.unapproved() != shown.unapproved() {
                break now;
            }
            assert!(Instant::now() < deadline, "{path}");
        };
        let [is] = now.unapproved() else { panic!("{path}") };
        assert_eq!(was.digest, is.digest, "{path}");
        assert_ne!(was.version(), is.version(), "{path}");
        let decided = project.trust.decide(&project.root(), shown.unapproved(), true);
        assert!(decided.done.is_empty() && decided.failed[0].1.contains("changed"), "{path}: {decided:?}");
        assert_eq!(project.decide(true).done.len(), 1, "{path}");
    }
}

/// Otherwise, the user could not approve a skill while the agent writes files elsewhere in the project.
#[test]
fn files_beside_the_directories_above_a_skill_do_not_count() {
    let project = Project::new();
    fs::create_dir(project.root().join("src")).unwrap();
    fs::create_dir(project.root().join(".skills/y")).unwrap();
    let shown = project.sift();
    fs::write(project.root().join("src/main.rs"), "fn main() {}\n").unwrap();
    fs::write(project.root().join(".skills/y/notes.md"), "text\n").unwrap();
    assert_eq!(project.sift().unapproved(), shown.unapproved());
    assert_eq!(project.trust.decide(&project.root(), shown.unapproved(), true).done.len(), 1);
}
