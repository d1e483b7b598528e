//! Warnings about directories without skills, and about filters that match none.

use skills_core::{
    Scope, SkillSet,
    discovery::{Discovery, Root},
};

/// Returns a warning for each named directory in which `search` has found no skill.
pub(super) fn sentences(search: &Discovery, found: &SkillSet) -> Vec<String> {
    let named = search.roots.iter().filter(|root| root.scope == Scope::Scanned);
    named.filter_map(|root| sentence(search, root, found)).collect()
}

fn sentence(search: &Discovery, root: &Root, found: &SkillSet) -> Option<String> {
    let real = dunce::canonicalize(&root.path).unwrap_or_else(|_| root.path.clone());
    let stored = found.iter().filter_map(|skill| skill.dir());
    let shadowed = found.shadowed().iter().filter_map(|shadowed| shadowed.path.as_deref());
    let skipped = found.skipped().iter().map(|skipped| &*skipped.path);
    if stored
        .chain(shadowed)
        .chain(skipped)
        .any(|path| path.starts_with(&real) || path.starts_with(&root.path))
    {
        return None;
    }
    // No skill was found below this root. For example, it may be a link, or all of the skills were already found
    // below another root. We need to search the root again to find out, which is slow, so we only do it in this case.
    let everything = Discovery { roots: vec![root.clone()], ..Discovery::default() }.find();
    let dir = root.path.display();
    if everything.is_empty() && everything.skipped().is_empty() {
        return Some(format!(
            "no skills found in {dir}: a skill is a directory with a SKILL.md file, at most {} levels down",
            search.limits.max_depth
        ));
    }
    let is_filtered =
        everything.skipped().is_empty() && !everything.iter().any(|skill| search.filter.takes(&skill.name));
    is_filtered.then(|| {
        let names: Vec<_> = everything.iter().take(3).map(|skill| format!("`{}`", skill.name)).collect();
        let more = if everything.len() > names.len() { ", …" } else { "" };
        format!(
            "no skills in {dir} match `--include` and `--exclude`; available skills: {}{more}",
            names.join(", ")
        )
    })
}

#[cfg(test)]
mod tests {
    use std::{fs, path::Path};

    use skills_core::discovery::Filter;

    use super::*;

    fn write(dir: &Path, name: &str) {
        fs::create_dir_all(dir.join(name)).unwrap();
        let text = format!("---\nname: {name}\ndescription: d\n---\nBody\n");
        fs::write(dir.join(name).join("SKILL.md"), text).unwrap();
    }

    fn check(roots: &[&Path], include: &[&str], expected: &[&str]) {
        let mut search = Discovery::new(roots.iter().map(Root::scanned));
        search.filter = Filter::new(include, [""; 0]).unwrap();
        let found = sentences(&search, &search.find());
        assert_eq!(found.len(), expected.len(), "{found:?}");
        for (found, expected) in found.iter().zip(expected) {
            assert!(found.contains(expected), "{found:?}");
        }
    }

    #[test]
    fn directories_without_skills_are_reported() {
        let dir = tempfile::tempdir().unwrap();
        let full = dir.path().join("full");
        let empty = dir.path().join("empty");
        let broken = dir.path().join("broken");
        fs::create_dir(&empty).unwrap();
        write(&full, "pdf");
        write(&full, "docx");
        fs::create_dir_all(broken.join("x")).unwrap();
        fs::write(broken.join("x/SKILL.md"), "nothing").unwrap();
        check(&[&full], &[], &[]);
        check(&[&full, &empty], &[], &["empty: a skill is a directory"]);
        check(&[&full], &["pdf"], &[]);
        check(&[&full], &["pfd"], &["match `--include` and `--exclude`; available skills: `docx`, `pdf`"]);
        check(&[&full, &empty], &["x"], &["match `--include`", "empty: a skill is a directory"]);
        // If a skill can't be loaded, there is already another warning.
        check(&[&broken], &["x"], &[]);
        check(&[&dir.path().join("missing")], &[], &[]);
        // The skills are only found below the first root.
        check(&[dir.path(), &full], &[], &[]);
        check(&[], &["x"], &[]);
    }

    #[cfg(unix)]
    #[test]
    fn linked_skills_count() {
        let dir = tempfile::tempdir().unwrap();
        write(&dir.path().join("real"), "pdf");
        fs::create_dir(dir.path().join("links")).unwrap();
        std::os::unix::fs::symlink(dir.path().join("real/pdf"), dir.path().join("links/pdf")).unwrap();
        check(&[&dir.path().join("links")], &[], &[]);
    }
}
