//! The directories of a repository that are searched for project skills: those above a session's directory, and those below it.

use std::fs;

use crate::{
    commands::names,
    fixture::Fixture,
    roots::{Roots, catalog},
};

crate::trials!(
    directories_up_to_the_repository_are_searched,
    directories_below_are_searched_with_project_tree,
);

fn directories_up_to_the_repository_are_searched() {
    let roots = Roots::new();
    fs::create_dir_all(roots.path("repo/.git")).expect("a directory");
    roots.skill(".skills/outside", "Outside.");
    roots.skill("repo/.skills/common", "Common.");
    roots.skill("repo/packages/.claude/skills/packages", "Packages.");
    roots.skill("repo/packages/api/.agents/skills/api", "API.");
    roots.skill("repo/packages/api/.skills/common", "Common of the API.");
    roots.skill("repo/packages/web/.skills/web", "Web.");
    let mut fixture = Fixture::over_http(roots.trusting());
    roots.open(&mut fixture, "repo/packages/api", &[]);
    assert_eq!(names(&fixture.editor.menu()), ["skills", "common", "api", "packages"]);
    assert!(catalog(&mut fixture).contains("Common of the API."));
    // The directories of the repository belong to both roots, and are searched once.
    roots.open_as(&mut fixture, "t", "repo/packages/api", &["repo/packages/web"]);
    assert_eq!(names(&fixture.editor.menu()), ["skills", "common", "api", "packages", "web"]);
    fixture.finish();
}

fn directories_below_are_searched_with_project_tree() {
    let roots = Roots::new();
    fs::create_dir_all(roots.path("repo/.git")).expect("a directory");
    roots.skill("repo/.skills/common", "Common.");
    roots.skill("repo/packages/api/.claude/skills/api", "API.");
    roots.skill("repo/packages/web/.skills/web", "Web.");
    roots.skill("repo/packages/web/.skills/common", "Common of the web.");
    for hidden in ["node_modules/x", "target/x", ".hidden/x", "vendor/lib"] {
        roots.skill(&format!("repo/{hidden}/.skills/hidden"), "Hidden.");
    }
    fs::create_dir_all(roots.path("repo/vendor/lib/.git")).expect("a directory");
    let proxy = roots.home.proxy().flag("--discover", "project-tree");
    let mut fixture = Fixture::over_http(proxy.flag("--trust", "project"));
    roots.open(&mut fixture, "repo", &[]);
    assert_eq!(names(&fixture.editor.menu()), ["skills", "common", "api", "web"]);
    let text = catalog(&mut fixture);
    assert!(text.contains("Common.") && !text.contains("Common of the web."), "{text}");
    // New directories, also in new parents, are noticed, and so are removed ones.
    roots.skill("repo/packages/new/deep/.agents/skills/deep", "Deep.");
    fixture.wait_for_command("deep");
    roots.skill("repo/packages/api/.skills/late", "Late.");
    fixture.wait_for_command("late");
    fs::remove_dir_all(roots.path("repo/packages/new")).expect("a directory");
    loop {
        if !names(&fixture.editor.menu()).contains(&"deep") {
            break;
        }
    }
    fixture.finish();
    // They need the same trust as the others.
    let proxy = roots.home.proxy().flag("--discover", "project-tree");
    let mut fixture = Fixture::over_http(proxy);
    roots.open(&mut fixture, "repo", &[]);
    assert_eq!(names(&fixture.editor.menu()), ["skills"]);
    assert!(fixture.ask("/skills").contains("`web`"));
    fixture.finish();
}
