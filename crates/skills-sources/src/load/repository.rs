//! Loads the skills of a repository from its commits in the store.

use std::{
    collections::{BTreeMap, HashSet},
    path::{Path, PathBuf},
};

use skills_core::{
    Diagnostic, Skill, SkillName, SkillSet, SkillSetBuilder, Source, files::is_text_of, order, set::Skipped,
    skill::Guard, text::shown,
};

use super::{
    super::{address::Address, approved, digest, lockfile::PinnedGit},
    Wanted, not_approved, refusal,
};

/// The maximum number of missing skills that are reported one by one.
const MAX_MISSING: usize = 20;

/// Loads the skills of a repository from the directories of their commits, of which the first one is that of the source.
pub(super) fn of_repository(
    address: &Address,
    parts: &[(PathBuf, PinnedGit)],
    pinned: &PinnedGit,
    wanted: &Wanted<'_>,
) -> SkillSet {
    let mut skills = SkillSet::builder();
    let mut served = Vec::new();
    // The names of skills that are not served, by directory.
    let mut others = BTreeMap::new();
    for (number, (root, part)) in parts.iter().enumerate() {
        let found = add_part(&mut skills, &mut served, address, root, part, wanted);
        if number == 0 {
            others = found;
        }
    }
    let pins = &pinned.decisions.pinned;
    if parts.len() > 1 || !pins.is_empty() {
        // The order must not depend on the commits, because it is the order of the catalog. Pinned skills are first, so that no other
        // skill of the source takes their name.
        let key = |skill: &Served| (!pins.contains(&skill.path), skill.path.clone());
        order::sort_by(&mut served, |a, b| key(a).cmp(&key(b)));
    }
    for Served { skill, diagnostics, .. } in served {
        skills.add(skill, diagnostics);
    }
    let root = parts.first().map_or(Path::new(""), |(root, _)| root.as_path());
    if let Some(skipped) = without_commit(address, parts, pinned, wanted) {
        skills.skip(skipped);
    }
    for (path, name) in others {
        if pinned.decisions.kept.contains_key(&path) || pinned.decisions.declined.contains_key(&path) {
            continue;
        }
        if let Some(name) = SkillName::new(&name).filter(|name| wanted.takes(name)) {
            let why = not_approved(address, &name, pinned.skills.contains_key(&path));
            skills.skip(Skipped::new(root.join(path), vec![why]));
        }
    }
    skills.build()
}

/// Reports approved skills that stay at a commit that is not among the `parts`, because it can't be fetched.
fn without_commit(
    address: &Address,
    parts: &[(PathBuf, PinnedGit)],
    pinned: &PinnedGit,
    wanted: &Wanted<'_>,
) -> Option<Skipped> {
    let has_part = |commit: &str| parts.iter().any(|(_, part)| part.commit == commit);
    let takes = |path: &str| {
        let name = SkillName::new(pinned.decisions.name_of(path));
        name.is_none_or(|name| wanted.takes(&name))
    };
    let kept = pinned.decisions.kept.iter();
    let kept = kept.filter(|(path, commit)| **commit != pinned.commit && pinned.skills.contains_key(*path));
    let missing: Vec<_> = kept.filter(|(path, commit)| !has_part(commit) && takes(path)).collect();
    let (path, commit) = missing.first()?;
    let others = if missing.len() > 1 { format!(", and {} more", missing.len() - 1) } else { String::new() };
    let what = format!(
        "an approved skill of {address} is missing: `{}` stays at commit {commit:.12}, which is not in the cache{others}",
        shown(path)
    );
    let (root, _) = parts.first()?;
    Some(Skipped::new(root.join(path), vec![Diagnostic::error("source-skill-missing", what)]))
}

/// An approved skill.
pub(super) struct Served {
    /// The directory in the source.
    pub(super) path: String,
    pub(super) skill: Skill,
    pub(super) diagnostics: Vec<Diagnostic>,
}

/// Adds the approved skills in `root` to `served`, and those that can't be used to `skills`. Returns the names of the other skills by
/// directory.
pub(super) fn add_part(
    skills: &mut SkillSetBuilder,
    served: &mut Vec<Served>,
    address: &Address,
    root: &Path,
    pinned: &PinnedGit,
    wanted: &Wanted<'_>,
) -> BTreeMap<String, String> {
    let real = dunce::canonicalize(root).unwrap_or_else(|_| root.to_owned());
    let found = approved::find(&real, wanted.max_skills, wanted.nested);
    let listed = approved::skills_at(root).unwrap_or_default();
    let hidden = approved::find_hidden(&real, &found, pinned, &listed, (wanted.max_skills, wanted.nested));
    let mut others = listed.clone();
    let mut seen = HashSet::new();
    for entry in found.entries().iter().chain(hidden.entries()) {
        let Source::Stored(stored) = &entry.skill.source else { continue };
        let path = approved::relative(&real, &stored.dir);
        let Some(approved) = pinned.skills.get(&path) else {
            // The list of the approved directory has no skills within other skills.
            if wanted.nested {
                others.entry(path).or_insert_with(|| entry.skill.name.to_string());
            }
            continue;
        };
        others.remove(&path);
        seen.insert(path.clone());
        if !wanted.takes(&entry.skill.name) {
            continue;
        }
        // If a file changes later, the guard will detect this when we read it. Here, we check for changes since discovery.
        let mut is_same = false;
        let read = digest::files(&stored.dir).and_then(|paths| {
            digest::Files::read(&stored.dir, paths, |path, content| {
                is_same |= path == stored.file_name && is_text_of(stored, content);
            })
        });
        let digest = read.as_ref().map_or_else(|_| String::new(), |files| files.digest().to_string());
        if let Some(files) = read.ok().filter(|_| is_same && digest == *approved) {
            let number = files.len();
            let skill = Skill::clone(&entry.skill).guarded(Guard::new(digest, files));
            if let Some(refusal) = refusal(&skill, &path, number, wanted) {
                skills.skip(refusal.skipped(stored.file()));
                continue;
            }
            served.push(Served { path, skill, diagnostics: entry.diagnostics.clone() });
        } else {
            let why = not_approved(address, &entry.skill.name, true);
            skills.skip(Skipped::new(stored.file(), vec![why]));
        }
    }
    for skipped in found.skipped() {
        let places = [Some(skipped.path.as_path()), skipped.path.parent()];
        seen.extend(places.into_iter().flatten().map(|dir| approved::relative(&real, dir)));
        skills.skip(skipped.clone());
    }
    let shadowed = found.shadowed().iter().chain(hidden.shadowed());
    let shadowed = shadowed.filter_map(|shadowed| shadowed.path.as_deref()?.parent());
    seen.extend(shadowed.map(|dir| approved::relative(&real, dir)));
    if found.len() < wanted.max_skills {
        // A manifest can list a skill within another one. Others within an approved skill are only found with `nested`.
        let is_nested = |path: &str| !listed.contains_key(path) && approved::is_within_approved(path, pinned);
        let paths = pinned.skills.keys().filter(|path| !seen.contains(*path));
        let missing: Vec<_> = paths.filter(|path| wanted.nested || !is_nested(path)).collect();
        add_missing(skills, &mut others, &missing, address, root, wanted);
    }
    others
}

/// Reports the approved skills that were not found. The user could remove a skill from the cache, and the cache also says which skills the
/// version has, so each approved skill is accounted for.
fn add_missing(
    skills: &mut SkillSetBuilder,
    others: &mut BTreeMap<String, String>,
    paths: &[&String],
    address: &Address,
    root: &Path,
    wanted: &Wanted<'_>,
) {
    let mut missing = 0;
    for path in paths {
        let name = others.remove(*path).and_then(|name| SkillName::new(&name));
        if name.as_ref().is_some_and(|name| wanted.filters.iter().any(|filter| !filter.takes(name))) {
            continue;
        }
        missing += 1;
        if missing <= MAX_MISSING {
            let why = name.map_or_else(|| gone(address, path), |name| not_approved(address, &name, true));
            skills.skip(Skipped::new(root.join(path), vec![why]));
        }
    }
    if missing > MAX_MISSING {
        let what = format!("{} more approved skills of {address} are missing", missing - MAX_MISSING);
        let why = Diagnostic::error("source-skill-missing", what);
        skills.skip(Skipped::new(root.to_owned(), vec![why]));
    }
}

/// Someone can have removed the skill from the cache, together with the record that it exists.
fn gone(address: &Address, path: &str) -> Diagnostic {
    let path = shown(path);
    Diagnostic::error(
        "source-skill-missing",
        format!(
            "an approved skill of {address} is missing: its commit or the cache has no skill in `{path}`"
        ),
    )
    .help("remove the source's directory in the cache, so that it is fetched again")
}

#[cfg(test)]
mod tests {
    use std::fs;

    use skills_core::discovery::Filter;

    use super::*;
    use crate::store::LIST;

    /// A user can remove an approved skill from the cache, and its name from the list of skills.
    #[test]
    fn missing_skills_are_reported() {
        let dir = tempfile::tempdir().unwrap();
        let root = dunce::canonicalize(dir.path()).unwrap();
        fs::create_dir(root.join("a")).unwrap();
        fs::write(root.join("a/SKILL.md"), "---\nname: a\ndescription: d\n---\n").unwrap();
        let digest = digest::of_skill(&root.join("a")).unwrap().to_string();
        let skills = [("a".to_owned(), digest), ("b/gone".to_owned(), "0".repeat(64))];
        let pinned = PinnedGit::new("c".repeat(40), skills.into());
        let address = Address::parse("github:acme/skills").unwrap();
        let wanted = Wanted::new(&[], 10, false, None);
        let set = of_repository(&address, &[(root.clone(), pinned.clone())], &pinned, &wanted);
        assert_eq!(set.len(), 1);
        let skipped: Vec<_> =
            set.skipped().iter().map(|skipped| (&skipped.path, &skipped.diagnostics[0])).collect();
        let [(path, why)] = skipped[..] else { panic!("{skipped:?}") };
        assert_eq!(*path, root.join("b/gone"));
        assert!(why.code == "source-skill-missing" && why.message.contains("`b/gone`"), "{why:?}");
        // A lock file can name very many.
        let many = (0..30).map(|number| (format!("c/{number}"), "0".repeat(64)));
        let pinned = PinnedGit::new("c".repeat(40), many.collect());
        let set = of_repository(&address, &[(root, pinned.clone())], &pinned, &wanted);
        let last = &set.skipped().last().expect("skills").diagnostics[0];
        assert_eq!((set.skipped().len(), last.message.split(' ').next()), (MAX_MISSING + 1, Some("10")));
    }

    /// The directory of a skill can have another name, so the recorded name decides if a filter leaves it out.
    #[test]
    fn missing_commits_are_reported_by_name() {
        let address = Address::parse("github:acme/skills").unwrap();
        let mut pinned = PinnedGit::new("c".repeat(40), [("dir".to_owned(), "0".repeat(64))].into());
        pinned.decisions.kept.insert("dir".to_owned(), "d".repeat(40));
        pinned.decisions.names.insert("dir".to_owned(), "review".to_owned());
        let parts = [(PathBuf::from("src"), pinned.clone())];
        for (exclude, is_reported) in [("review", false), ("dir", true)] {
            let filters = [Filter::new([] as [&str; 0], [exclude]).unwrap()];
            let wanted = Wanted::new(&filters, 10, false, None);
            let said = without_commit(&address, &parts, &pinned, &wanted);
            assert_eq!(said.is_some(), is_reported, "{exclude}: {said:?}");
        }
    }

    /// Two ways to remove a skill from the cache without a fetch, which the list of skills in the cache doesn't show.
    #[test]
    fn files_in_the_cache_do_not_hide_skills() {
        let address = Address::parse("github:acme/skills").unwrap();
        let wanted = Wanted::new(&[], 10, false, None);
        for (list, is_removed, has_other, expected) in [
            (r#"{"review":""}"#, true, false, "source-skill-missing"),
            (r#"{"review":"review"}"#, true, false, "not-approved"),
            ("{}", true, true, "source-skill-missing"),
            ("{}", false, true, ""),
        ] {
            let dir = tempfile::tempdir().unwrap();
            let root = dunce::canonicalize(dir.path()).unwrap().join("src");
            fs::create_dir_all(root.join("review")).unwrap();
            let text = |name: &str| format!("---\nname: {name}\ndescription: d\n---\n");
            fs::write(root.join("review/SKILL.md"), text("review")).unwrap();
            let digest = digest::of_skill(&root.join("review")).unwrap().to_string();
            let pinned = PinnedGit::new("c".repeat(40), [("review".to_owned(), digest)].into());
            fs::write(root.with_file_name(LIST), list).unwrap();
            if is_removed {
                fs::remove_dir_all(root.join("review")).unwrap();
            }
            if has_other {
                // All others are within this one.
                fs::write(root.join("SKILL.md"), text("top")).unwrap();
            }
            // The second part is a skill that stays at another commit.
            for parts in [1, 2] {
                let other = PinnedGit::new("d".repeat(40), BTreeMap::new());
                let mut all = vec![(root.clone(), pinned.clone())];
                if parts == 2 {
                    fs::create_dir_all(dir.path().join("other/src")).unwrap();
                    all.insert(0, (dir.path().join("other/src"), other));
                }
                let set = of_repository(&address, &all, &pinned, &wanted);
                let codes: Vec<_> = set.skipped().iter().map(|skipped| skipped.diagnostics[0].code).collect();
                let expected: Vec<_> = Some(expected).filter(|code| !code.is_empty()).into_iter().collect();
                assert_eq!(codes, expected, "{list} {is_removed} {parts}");
                assert_eq!(set.len(), usize::from(!is_removed), "{list} {is_removed} {parts}");
            }
        }
    }

    /// Another lock file can approve a skill of the same name in the same commit, for example one within another skill.
    #[test]
    fn skills_of_other_lock_files_take_no_names() {
        let dir = tempfile::tempdir().unwrap();
        let root = dunce::canonicalize(dir.path()).unwrap().join("src");
        let write = |path: &str, name: &str| {
            fs::create_dir_all(root.join(path)).unwrap();
            let text = format!("---\nname: {name}\ndescription: d\n---\n{path}\n");
            fs::write(root.join(path).join("SKILL.md"), text).unwrap();
        };
        write("a/sub", "review");
        write("b", "review");
        write("c", "review");
        fs::write(root.with_file_name(LIST), r#"{"a":"other","b":"review","c":""}"#).unwrap();
        let digest = |path: &str| (path.to_owned(), digest::of_skill(&root.join(path)).unwrap().to_string());
        let address = Address::parse("github:acme/skills").unwrap();
        let wanted = Wanted::new(&[], 10, false, None);
        for (paths, expected) in [(&["a/sub"][..], "a/sub"), (&["b"], "b"), (&["c"], "c"), (&["b", "c"], "b")]
        {
            let pinned = PinnedGit::new("c".repeat(40), paths.iter().map(|path| digest(path)).collect());
            let set = of_repository(&address, &[(root.clone(), pinned.clone())], &pinned, &wanted);
            let dirs: Vec<_> = set.iter().filter_map(|skill| skill.dir()).collect();
            assert_eq!(dirs, [root.join(expected)], "{paths:?}");
        }
    }
}
