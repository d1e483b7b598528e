//! Resolves the conflict of two branches that both changed a lock file, such as two `add`s.
//!
//! Git marks the lines that conflict. Both sides are complete lock files, so the result has the sources of both. If the sides have
//! different versions of a source, our version is kept: it stays in use until the user approves the current one.

use std::{
    collections::{BTreeMap, btree_map::Entry},
    path::Path,
};

use super::{Decisions, LockError, LockFile, MAX_BYTES, Pinned, PinnedWeb, lock_path};
use crate::disk::{FileLock, Resolved, bounded};

/// The number of characters in a conflict marker.
const MARKER_CHARS: usize = 7;

/// Returns true if a version of a source has a skill with this content. The arguments are the address of the source, its version, the
/// directory of the skill, and its checksum.
pub(crate) type HasSkill<'a> = &'a dyn Fn(&str, &str, &str, &str) -> bool;

impl LockFile {
    /// Resolves the conflict in the lock file at `path`. Returns the sources of which the sides have different versions, or `None` if
    /// the file has no conflict markers.
    ///
    /// # Errors
    /// Returns [`LockError::Unresolvable`] if the markers are incomplete or a side is invalid, and [`LockError::Unreadable`] or
    /// [`LockError::Unwritable`] if the file can't be read, locked or written.
    pub(crate) fn resolve(
        path: &Path,
        cache: &Path,
        has: HasSkill<'_>,
    ) -> Result<Option<Vec<String>>, LockError> {
        if !matches!(Self::read(path), Err(LockError::Conflict { .. })) {
            return Ok(None);
        }
        let unwritable = |source| LockError::Unwritable { path: path.to_owned(), source };
        let _lock = FileLock::acquire_for_change(&lock_path(path, cache)).map_err(unwritable)?;
        let file = Resolved::new(path).map_err(unwritable)?;
        // Another process may have resolved the conflict while we were waiting.
        match Self::read(file.path()) {
            Err(LockError::Conflict { .. }) => {}
            read => return read.map(|_| None),
        }
        let text = bounded::read_text(file.path(), MAX_BYTES)
            .map_err(|source| LockError::Unreadable { path: path.to_owned(), source })?;
        let unresolvable = |what| LockError::Unresolvable { path: path.to_owned(), what };
        let (ours, theirs) = sides(&text).ok_or_else(|| unresolvable("a marker is missing".to_owned()))?;
        let parse = |text: &str| {
            Self::parse(text).map_err(|reason| unresolvable(format!("a side is invalid: {reason}")))
        };
        let mut lock = parse(&ours)?;
        let disputed = lock.add(parse(&theirs)?, has);
        file.write(&lock.text().map_err(unwritable)?).map_err(unwritable)?;
        lock.keep(path, cache);
        Ok(Some(disputed))
    }

    /// Adds the sources of `theirs`. If `self` has a different version of a source, this version is kept, and the
    /// source is returned.
    fn add(&mut self, theirs: Self, has: HasSkill<'_>) -> Vec<String> {
        let mut disputed = Vec::new();
        for (source, theirs) in theirs.sources {
            match self.sources.entry(source) {
                Entry::Vacant(entry) => {
                    entry.insert(theirs);
                }
                Entry::Occupied(mut entry) => {
                    let source = entry.key().clone();
                    let has = |version: &str, path: &str, digest: &str| has(&source, version, path, digest);
                    if !entry.get_mut().add(&theirs, &has) {
                        disputed.push(source);
                    }
                }
            }
        }
        disputed
    }
}

impl Pinned {
    /// Adds the skills that `theirs` approves at the same version, and the pins and declined changes of `theirs`. Returns false if the
    /// sides contradict each other.
    fn add(&mut self, theirs: &Self, has: &dyn Fn(&str, &str, &str) -> bool) -> bool {
        let agree = match (&mut *self, theirs) {
            (Self::Git(ours), Self::Git(theirs)) if ours.commit == theirs.commit => {
                ours.committed = ours.committed.or(theirs.committed);
                if ours.registry.is_none() {
                    ours.registry.clone_from(&theirs.registry);
                }
                let is_same = theirs.registry.is_none() || ours.registry == theirs.registry;
                let (skills, decisions) = (&mut ours.skills, &mut ours.decisions);
                is_same && add_skills((skills, decisions), (&theirs.skills, &theirs.decisions), has)
            }
            (Self::Web(PinnedWeb { index, skills: Some(ours), decisions }), Self::Web(theirs))
                if *index == theirs.index =>
            {
                let skills = theirs.skills.as_ref();
                skills.is_some_and(|skills| add_skills((ours, decisions), (skills, &theirs.decisions), has))
            }
            (ours, theirs) => *ours == *theirs,
        };
        // If all skills of an index are approved, each of them can be pinned.
        let known = self.skills().cloned();
        let has = |path: &String| known.as_ref().is_none_or(|skills| skills.contains_key(path));
        let (ours, theirs) = (self.decisions_mut(), theirs.decisions());
        ours.pinned.extend(theirs.pinned.iter().filter(|path| has(path)).cloned());
        for (path, digest) in &theirs.declined {
            if known.as_ref().is_none_or(|skills| skills.get(path) != Some(digest)) {
                ours.declined.entry(path.clone()).or_insert_with(|| digest.clone());
            }
        }
        agree
    }
}

/// Adds the skills of the second side, which has the same version. If one side has approved the version of a skill at this version of the
/// source, and the other side has not decided about it, the skill is approved. Otherwise, a skill that differs stays as it is. Returns
/// false if there is such a skill.
fn add_skills(
    (skills, decisions): (&mut BTreeMap<String, String>, &mut Decisions),
    (theirs, their_decisions): (&BTreeMap<String, String>, &Decisions),
    has: &dyn Fn(&str, &str, &str) -> bool,
) -> bool {
    let mut agree = true;
    for (path, digest) in theirs {
        let ours = skills.get(path);
        let is_kept = |decisions: &Decisions| decisions.kept.contains_key(path);
        let takes = match ours {
            None => !decisions.declines(path, Some(digest)),
            // Git has merged the lines of the versions, which say less than the content: one side may not have updated the source.
            Some(ours) if ours == digest => {
                match (decisions.kept.get(path), their_decisions.kept.get(path)) {
                    (Some(version), None) => !has(version, path, digest),
                    (None, Some(version)) => has(version, path, digest),
                    _ => false,
                }
            }
            Some(ours) if is_kept(their_decisions) && !is_kept(decisions) => {
                agree &= !their_decisions.rejects(path, Some(ours));
                false
            }
            Some(_) if is_kept(decisions) && !is_kept(their_decisions) => {
                let is_open = !decisions.rejects(path, Some(digest));
                agree &= is_open;
                is_open
            }
            Some(_) => {
                agree = false;
                false
            }
        };
        if takes {
            skills.insert(path.clone(), digest.clone());
            decisions.kept.remove(path);
            decisions
                .kept
                .extend(their_decisions.kept.get(path).map(|version| (path.clone(), version.clone())));
            decisions.copy_approval(path, their_decisions);
        }
    }
    agree
}

/// The part of a text with conflict markers that a line belongs to.
#[derive(Clone, Copy, PartialEq)]
enum Part {
    Both,
    Ours,
    Base,
    Theirs,
}

/// Returns true if a line begins with a conflict marker of `character`.
fn is_marker(line: &str, character: char) -> bool {
    let rest = line.trim_start_matches(character);
    line.len() - rest.len() == MARKER_CHARS && (rest.is_empty() || rest.starts_with(' '))
}

/// Returns true if a text has conflict markers.
pub(super) fn has_markers(text: &str) -> bool {
    text.lines().any(|line| is_marker(line, '<'))
}

/// Returns both sides of a text with conflict markers, or `None` if a marker is missing.
fn sides(text: &str) -> Option<(String, String)> {
    let mut part = Part::Both;
    let mut ours = String::new();
    let mut theirs = String::new();
    for line in text.lines() {
        let next = [('<', Part::Ours), ('|', Part::Base), ('=', Part::Theirs), ('>', Part::Both)]
            .into_iter()
            .find(|(character, _)| is_marker(line, *character));
        if let Some((_, next)) = next {
            let is_expected = match next {
                Part::Ours => part == Part::Both,
                Part::Base => part == Part::Ours,
                Part::Theirs => matches!(part, Part::Ours | Part::Base),
                Part::Both => part == Part::Theirs,
            };
            if !is_expected {
                return None;
            }
            part = next;
            continue;
        }
        for (side, text) in [(Part::Ours, &mut ours), (Part::Theirs, &mut theirs)] {
            if part == Part::Both || part == side {
                text.push_str(line);
                text.push('\n');
            }
        }
    }
    (part == Part::Both).then_some((ours, theirs))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn both_sides_are_found() {
        for (text, expected) in [
            ("a\n<<<<<<< HEAD\nb\n=======\nc\n>>>>>>> x\nd\n", Some(("a\nb\nd\n", "a\nc\nd\n"))),
            ("<<<<<<< a\nb\n||||||| base\nx\n=======\n>>>>>>> y\r\n", Some(("b\n", ""))),
            (
                "<<<<<<< a\n1\n=======\n2\n>>>>>>> b\n<<<<<<<\n3\n=======\n4\n>>>>>>>\n",
                Some(("1\n3\n", "2\n4\n")),
            ),
            ("<<<<<<< a\n1\n", None),
            ("<<<<<<< a\n1\n=======\n2\n", None),
            ("=======\n", None),
            (">>>>>>> x\n", None),
            ("<<<<<<< a\n<<<<<<< b\n=======\n>>>>>>> x\n=======\n>>>>>>> y\n", None),
            (
                "<<<<<<<< eight\n \"a\": \"<<<<<<< x\"\n",
                Some(("<<<<<<<< eight\n \"a\": \"<<<<<<< x\"\n", "<<<<<<<< eight\n \"a\": \"<<<<<<< x\"\n")),
            ),
        ] {
            let expected = expected.map(|(ours, theirs)| (ours.to_owned(), theirs.to_owned()));
            assert_eq!(sides(text), expected, "{text}");
        }
    }

    #[test]
    fn the_registry_of_either_side_is_kept() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("skills.lock");
        let side = |registry: Option<&str>| {
            let mut source = serde_json::json!({ "commit": "1".repeat(64), "skills": {} });
            source["registry"] = registry.into();
            serde_json::json!({ "version": 1, "sources": { "npm:a": source } }).to_string()
        };
        for (ours, theirs, expected) in [
            (None, Some("https://a"), Some("https://a")),
            (Some("https://a"), None, Some("https://a")),
            (Some("https://a"), Some("https://a"), Some("https://a")),
            (Some("https://a"), Some("https://b"), None),
        ] {
            let text = format!("<<<<<<< HEAD\n{}\n=======\n{}\n>>>>>>> b\n", side(ours), side(theirs));
            fs::write(&path, text).unwrap();
            let disputed = LockFile::resolve(&path, dir.path(), &|_, _, _, _| true).unwrap().unwrap();
            assert_eq!(disputed.is_empty(), expected.is_some(), "{ours:?} {theirs:?}");
            if expected.is_some() {
                let lock = LockFile::read(&path).unwrap();
                let Some(Pinned::Git(git)) = lock.get("npm:a") else { panic!("no package") };
                assert_eq!(git.registry.as_deref(), expected);
            }
        }
    }

    /// Git merges the lines without a conflict, such as the version, and both sides have the result.
    #[test]
    fn decisions_of_both_sides_are_kept() {
        let digest = |c: char| c.to_string().repeat(64);
        let versions = |is_git: bool, version: char| {
            let length = if is_git { 40 } else { 64 };
            (if is_git { "commit" } else { "index" }, version.to_string().repeat(length))
        };
        let side = |is_git: bool, version: char, decisions: &serde_json::Value| {
            let (key, version) = versions(is_git, version);
            let skills = serde_json::json!({ "a": digest('a'), "b": digest('b'), "c": digest('c') });
            let source = serde_json::json!({ key: version, "skills": skills, "decisions": decisions });
            serde_json::json!({ "version": 1, "sources": { "s": source } }).to_string()
        };
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("skills.lock");
        for is_git in [true, false] {
            let kept = serde_json::json!({ "c": versions(is_git, '1').1 });
            let declining = serde_json::json!({ "kept": kept, "declined": { "c": digest('d') } });
            let pinning = serde_json::json!({ "pinned": ["a"] });
            for (ours, theirs, their_version, agree) in [
                (&declining, &pinning, '2', true),
                (&pinning, &declining, '2', true),
                (&declining, &pinning, '3', false),
                (&pinning, &serde_json::json!({ "pinned": ["b"] }), '2', true),
                (
                    &pinning,
                    &serde_json::json!({ "pinned": ["b"], "declined": { "c": digest('d') } }),
                    '3',
                    false,
                ),
            ] {
                let (ours, theirs) = (side(is_git, '2', ours), side(is_git, their_version, theirs));
                fs::write(&path, format!("<<<<<<< HEAD\n{ours}\n=======\n{theirs}\n>>>>>>> b\n")).unwrap();
                let disputed = LockFile::resolve(&path, dir.path(), &|_, _, _, _| true).unwrap().unwrap();
                assert_eq!(disputed.is_empty(), agree, "{ours} {theirs}");
                let lock = LockFile::read(&path).unwrap();
                let pinned = lock.get("s").unwrap();
                let text = format!("{ours}{theirs}");
                for name in ["a", "b"] {
                    let is_pinned = text.contains(&format!("\"pinned\":[\"{name}\"]"));
                    assert_eq!(pinned.decisions().pinned.contains(name), is_pinned, "{text}");
                }
                assert_eq!(
                    pinned.decisions().declined.contains_key("c"),
                    text.contains("declined"),
                    "{text}"
                );
                assert_eq!(pinned.version(), versions(is_git, '2').1);
                let expected = if text.contains("kept") { '1' } else { '2' };
                assert_eq!(pinned.version_of("c"), versions(is_git, expected).1, "{text}");
            }
        }
    }

    #[test]
    fn sources_of_both_sides_are_kept() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("skills.lock");
        let git = |commit: char, skill: &str, digest: char| serde_json::json!({ "commit": commit.to_string().repeat(40), "skills": { skill: digest.to_string().repeat(64) } });
        let lock = |sources: serde_json::Value| {
            serde_json::to_string_pretty(&serde_json::json!({ "version": 1, "sources": sources })).unwrap()
        };
        let ours = lock(serde_json::json!({
            "a": git('1', "x", 'a'), "mine": git('2', "x", 'b'), "same": git('3', "x", 'c'), "other": git('4', "x", 'd'),
        }));
        let theirs = lock(serde_json::json!({
            "a": git('1', "y", 'a'), "yours": git('5', "x", 'e'), "same": git('3', "x", 'c'), "other": git('6', "x", 'f'),
        }));
        fs::write(&path, format!("<<<<<<< HEAD\n{ours}\n=======\n{theirs}\n>>>>>>> branch\n")).unwrap();
        assert_eq!(
            LockFile::resolve(&path, dir.path(), &|_, _, _, _| true).unwrap(),
            Some(vec!["other".to_owned()])
        );
        let lock = LockFile::read(&path).unwrap();
        assert_eq!(lock.sources().collect::<Vec<_>>(), ["a", "mine", "other", "same", "yours"]);
        let commit = |source: &str| match lock.get(source) {
            Some(Pinned::Git(git)) => (git.commit[..1].to_owned(), git.skills.len()),
            _ => unreachable!(),
        };
        assert_eq!((commit("a"), commit("other")), (("1".to_owned(), 2), ("4".to_owned(), 1)));
        assert_eq!(LockFile::resolve(&path, dir.path(), &|_, _, _, _| true).unwrap(), None);
        // A conflict that can't be resolved must stay as it is.
        for text in ["<<<<<<< HEAD\n", "<<<<<<< a\n{}\n=======\n{}\n>>>>>>> b\n"] {
            fs::write(&path, text).unwrap();
            let error = LockFile::resolve(&path, dir.path(), &|_, _, _, _| true).unwrap_err();
            assert!(error.to_string().contains("merge conflict"), "{error}");
            // The update has just failed, so the hint must not suggest it.
            assert!(error.hint().contains("edit the file"), "{}", error.hint());
            assert_eq!(fs::read_to_string(&path).unwrap(), text);
        }
    }
}
