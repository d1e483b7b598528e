//! The approved skills of repositories on disk, apart from all other skills.
//!
//! A script can read and run the files beside its own skill. Skills are therefore only served from `COMMIT/NAME`, which contains the
//! skills that a lock file of the user approves, and no other file of the repository. Everything else stays in the checkout for the
//! review ([`Store::fetch_git`]), which is removed after the approval.
//!
//! A lock file of a project is not trusted, and may name any directory and checksum. Nothing is created, moved or replaced for a skill
//! unless the checkout has it with the approved checksum.
//!
//! `COMMIT/skills.json` lists all skills of the repository at this commit, because skills that were not approved are still listed with
//! the reason.

use std::{
    collections::{BTreeMap, HashSet},
    fs::{self, File},
    io::{self, Write},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use skills_core::{
    Scope, SkillSet,
    discovery::{Discovery, Limits, Root},
    exec::ProcessObserver,
    files::SKILL_FILE_NAMES,
    skill::Sha256,
};

use super::{
    address::GitPlace,
    digest,
    git::{Found, GitError},
    lockfile::PinnedGit,
    manifest,
    prune::Unused,
    store::{self, Checkout, LIST, MISSING, Store},
    system,
};
use crate::disk::{FileLock, private, relative_path, state};

/// Finds all skills below the directory of a checkout or of a served version. With `nested`, this includes skills within the
/// directories of other skills.
pub(super) fn find(root: &Path, max_skills: usize, nested: bool) -> SkillSet {
    let real = dunce::canonicalize(root).unwrap_or_else(|_| root.to_owned());
    let dirs = match skills_at(root) {
        // The manifests are not part of a served version.
        Some(skills) => skills.keys().map(|path| at(&real, path)).filter(|dir| dir.is_dir()).collect(),
        None => manifest::directories(&real),
    };
    let mut discovery = discovery(&real, std::iter::once(real.clone()).chain(dirs), max_skills);
    discovery.nested = nested;
    discovery.find()
}

/// Returns the search in directories below `real`.
fn discovery(real: &Path, dirs: impl Iterator<Item = PathBuf>, max_skills: usize) -> Discovery {
    let mut discovery = Discovery::new(dirs.map(|dir| Root::new(Scope::Remote, dir).within(real)));
    discovery.limits.max_skills = max_skills;
    discovery
}

/// Finds the approved skills of a served version that `found` doesn't have, because another skill has their name or contains them. That one
/// can come from another lock file, which must not take them away. At most `max_skills` are returned. `listed` are the skills of the version,
/// by directory. With `nested`, the result includes further ones within other approved skills.
pub(super) fn find_hidden(
    real: &Path,
    found: &SkillSet,
    pinned: &PinnedGit,
    listed: &BTreeMap<String, String>,
    (max_skills, nested): (usize, bool),
) -> SkillSet {
    let dirs = || found.iter().filter_map(|skill| Some((relative(real, skill.dir()?), &skill.name)));
    let paths: HashSet<_> = dirs().map(|(path, _)| path).collect();
    let is_hidden = |path: &str| {
        let is_nested = !nested && !listed.contains_key(path) && is_within_approved(path, pinned);
        !paths.contains(path) && !is_nested && is_skill(&at(real, path))
    };
    let hidden: Vec<_> =
        pinned.skills.keys().filter(|path| is_hidden(path)).map(|path| at(real, path)).collect();
    if hidden.is_empty() || found.len() >= max_skills {
        return SkillSet::default();
    }
    let names: HashSet<_> =
        dirs().filter(|(path, _)| pinned.skills.contains_key(path)).map(|(_, name)| name).collect();
    discovery(real, hidden.into_iter(), max_skills).find().filtered(|skill| !names.contains(&skill.name))
}

/// Returns true if a directory in a source is within an approved skill.
pub(super) fn is_within_approved(path: &str, pinned: &PinnedGit) -> bool {
    let mut around = Path::new(path).ancestors().skip(1).filter_map(Path::to_str);
    path != "." && around.any(|above| pinned.skills.contains_key(if above.is_empty() { "." } else { above }))
}

/// Returns the names of all skills of the repository by directory, for a served version. A skill that another one shadows has an empty
/// name. Returns `None` for a checkout.
pub(super) fn skills_at(root: &Path) -> Option<BTreeMap<String, String>> {
    serde_json::from_slice(&fs::read(root.with_file_name(LIST)).ok()?).ok()
}

/// Returns the directory of a skill in the form that lock files use: relative to `root` with `/` as the separator; the root is `.`.
pub(super) fn relative(root: &Path, dir: &Path) -> String {
    let path = relative_path(root, dir);
    if path.is_empty() { ".".to_owned() } else { path }
}

pub(super) fn at(root: &Path, path: &str) -> PathBuf {
    if path == "." { root.to_owned() } else { root.join(path) }
}

/// Returns the directory from which an approved version is served, or `None` if it has to be fetched first.
pub(super) fn served(store: &Store, place: &GitPlace, pinned: &PinnedGit) -> Option<PathBuf> {
    let root = store.root(place, &pinned.commit);
    skills_at(&root)?;
    let missing = missing(&root, pinned);
    (missing.is_empty() || is_recorded(&root, &checksum(&missing))).then_some(root)
}

/// Returns the approved skills that are not there.
fn missing<'a>(root: &Path, pinned: &'a PinnedGit) -> Vec<(&'a str, &'a str)> {
    let skills = pinned.skills.iter().map(|(path, digest)| (path.as_str(), digest.as_str()));
    skills.filter(|(path, _)| !is_skill(&at(root, path))).collect()
}

/// Returns true if a directory contains a skill. A lock file can also name a directory in a skill or around skills. Moving it alone would
/// leave others with a part of a skill, or with skills that were not approved.
fn is_skill(dir: &Path) -> bool {
    SKILL_FILE_NAMES.iter().any(|name| dir.join(name).is_file())
}

/// Returns a checksum of skills that a version doesn't have.
fn checksum(missing: &[(&str, &str)]) -> String {
    let lines: String = missing.iter().flat_map(|(path, digest)| [*digest, " ", *path, "\n"]).collect();
    Sha256::of(lines.as_bytes()).to_string()
}

/// Returns true if a fetch of the version has already shown that it doesn't have the skills with this [`checksum`].
fn is_recorded(root: &Path, checksum: &str) -> bool {
    let recorded = fs::read_to_string(root.with_file_name(MISSING));
    recorded.is_ok_and(|recorded| recorded.lines().any(|line| line == checksum))
}

/// Fetches an approved version, unless it is already served.
pub(super) fn fetch(
    store: &Store,
    place: &GitPlace,
    pinned: &PinnedGit,
    observer: Option<Arc<dyn ProcessObserver>>,
) -> Result<(), GitError> {
    let version = Found { commit: pinned.commit.clone(), tag: None };
    fetch_at(store, place, Some(&version), pinned, observer)
}

/// Fetches an approved version like [`fetch`], from another version of the place, or from its current one.
pub(super) fn fetch_at(
    store: &Store,
    place: &GitPlace,
    version: Option<&Found>,
    pinned: &PinnedGit,
    observer: Option<Arc<dyn ProcessObserver>>,
) -> Result<(), GitError> {
    let _lock = store.lock(place)?;
    if served(store, place, pinned).is_some() {
        return Ok(());
    }
    // Check this before anything is received.
    check_unused(&store.root(place, &pinned.commit))?;
    let checkout = store.for_approved(pinned).fetch_locked(place, version, observer)?;
    add_locked(store, place, pinned, &checkout.root)
}

/// Moves the approved skills out of a checkout, so that they are served.
pub(super) fn add(
    store: &Store,
    place: &GitPlace,
    pinned: &PinnedGit,
    checkout: &Checkout,
) -> Result<(), GitError> {
    let _lock = store.lock(place)?;
    add_locked(store, place, pinned, &checkout.root)
}

/// Reduces a version from the cache of an older program, which contains all skills, to the approved ones. Does nothing if another
/// process uses it. If this fails, the version stays as it was.
pub(super) fn reduce(store: &Store, place: &GitPlace, pinned: &PinnedGit) {
    let root = store.root(place, &pinned.commit);
    let (Some(version), Some(name)) = (root.parent(), root.file_name()) else { return };
    let Some(of_place) = version.parent().filter(|_| root.is_dir() && skills_at(&root).is_none()) else {
        return;
    };
    let Some(_lock) = FileLock::try_acquire(&of_place.join(store::LOCK)) else { return };
    let Some(aside) = Unused::of(version, Duration::ZERO).and_then(|unused| unused.aside(of_place)) else {
        return;
    };
    let whole = aside.path().join(name);
    if let Err(error) = add_locked(store, place, pinned, &whole) {
        tracing::warn!("cannot use {} from the cache: {error}", root.display());
        if let Err(error) = give_back(pinned, &root, &whole) {
            tracing::warn!("cannot restore {}: {error}", root.display());
        }
    }
}

/// Undoes a part of [`add_locked`]: moves the skills below `root` back to `whole`, and the directory of the version back to its place.
fn give_back(pinned: &PinnedGit, root: &Path, whole: &Path) -> io::Result<()> {
    for path in pinned.skills.keys() {
        let moved = at(root, path);
        let source = at(whole, path);
        if !source.exists() && moved.exists() {
            fs::rename(moved, source)?;
        }
    }
    let (Some(version), Some(old)) = (root.parent(), whole.parent()) else { return Ok(()) };
    if version.exists() {
        system::remove_dir_all(version)?;
    }
    fs::rename(old, version)
}

/// Checks that an older version of the program doesn't use the directory of a version.
fn check_unused(root: &Path) -> Result<(), GitError> {
    if root.exists() && skills_at(root).is_none() {
        return Err(GitError::InUse { path: root.to_owned() });
    }
    Ok(())
}

/// Moves the approved skills from `from`. A skill whose content differs from its checksum is missing.
fn add_locked(store: &Store, place: &GitPlace, pinned: &PinnedGit, from: &Path) -> Result<(), GitError> {
    let root = store.root(place, &pinned.commit);
    check_unused(&root)?;
    move_skills(store, place, pinned, from).map_err(|source| GitError::Write { path: root, source })
}

fn move_skills(store: &Store, place: &GitPlace, pinned: &PinnedGit, from: &Path) -> io::Result<()> {
    let root = store.root(place, &pinned.commit);
    let from = dunce::canonicalize(from)?;
    if skills_at(&root).is_none() {
        let dir = root.parent().unwrap_or(&root);
        private::create_dir(dir)?;
        fs::write(dir.join(LIST), list(&find(&from, Limits::default().max_skills, false), &from))?;
    }
    let replaced = store.temporary(place)?;
    for (number, (path, approved)) in pinned.skills.iter().enumerate() {
        let target = at(&root, path);
        let is_approved =
            |dir: &Path| digest::of_skill(dir).is_ok_and(|digest| digest.to_string() == *approved);
        let source = at(&from, path);
        if is_approved(&target) || !is_skill(&source) || !is_approved(&source) {
            continue;
        }
        if target.exists() {
            fs::rename(&target, replaced.path().join(number.to_string()))?;
        }
        private::create_dir(target.parent().unwrap_or(&root))?;
        fs::rename(source, target)?;
    }
    private::create_dir(&root)?;
    let missing = missing(&root, pinned);
    let checksum = checksum(&missing);
    if missing.is_empty() || is_recorded(&root, &checksum) {
        return Ok(());
    }
    let mut recorded = File::options().create(true).append(true).open(root.with_file_name(MISSING))?;
    writeln!(recorded, "{checksum}")
}

/// Returns the text of the list.
fn list(found: &SkillSet, root: &Path) -> String {
    let mut skills = BTreeMap::new();
    for skill in found.iter() {
        skills.extend(skill.dir().map(|dir| (relative(root, dir), skill.name.to_string())));
    }
    for shadowed in found.shadowed() {
        let dir = shadowed.path.as_deref().and_then(Path::parent);
        skills.extend(dir.map(|dir| (relative(root, dir), String::new())));
    }
    state::inert(serde_json::to_string(&skills).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::address::{Address, Place};

    /// Creates a version in the cache of an older program, and returns its directory.
    fn version_of_older_program(store: &Store, place: &GitPlace, commit: &str) -> PathBuf {
        let root = store.root(place, commit);
        for name in ["a", "b"] {
            fs::create_dir_all(root.join(name)).unwrap();
            let text = format!("---\nname: {name}\ndescription: d\n---\n");
            fs::write(root.join(name).join("SKILL.md"), text).unwrap();
        }
        root
    }

    #[test]
    fn a_version_that_cannot_be_reduced_stays() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::new(dir.path().to_owned());
        let address = Address::parse("github:acme/skills").unwrap();
        let Place::Git(place) = address.place() else { unreachable!() };
        let commit = "a".repeat(40);
        let root = version_of_older_program(&store, place, &commit);
        let digest = digest::of_skill(&root.join("a")).unwrap().to_string();
        // The second directory can't be created, because the list of skills has this name.
        let blocked = root.with_file_name(LIST).join("x");
        fs::create_dir_all(&blocked).unwrap();
        fs::write(blocked.join("SKILL.md"), "x").unwrap();
        let of_blocked = digest::of_skill(&blocked).unwrap().to_string();
        let path = format!("b/../../{LIST}/x");
        let skills = [("a".to_owned(), digest.clone()), (path, of_blocked)].into();
        let pinned = PinnedGit::new(commit.clone(), skills);
        reduce(&store, place, &pinned);
        assert_eq!(digest::of_skill(&root.join("a")).unwrap().to_string(), digest);
        assert!(root.join("b/SKILL.md").exists() && skills_at(&root).is_none());
        // Nothing is fetched for a directory that can't be used.
        let error = fetch(&store, place, &pinned, None).unwrap_err();
        assert!(matches!(&error, GitError::InUse { path } if *path == root), "{error}");
        assert!(error.hint().contains("older version"), "{}", error.hint());
        let pinned = PinnedGit::new(commit, [("a".to_owned(), digest)].into());
        reduce(&store, place, &pinned);
        assert_eq!(served(&store, place, &pinned), Some(root.clone()));
        assert!(root.join("a/SKILL.md").exists() && !root.join("b").exists());
    }

    /// The lock file of a project can name any directory with any checksum. This must not change what other lock files approve.
    #[test]
    fn wrong_checksums_change_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::new(dir.path().join("cache"));
        let address = Address::parse("github:acme/skills").unwrap();
        let Place::Git(place) = address.place() else { unreachable!() };
        let commit = "a".repeat(40);
        let root = store.root(place, &commit);
        let checkout = dir.path().join("checkout");
        let add = |skills: &[(&str, &str)]| {
            for (path, text) in [("a/SKILL.md", "x"), ("a/scripts/run.sh", "y"), ("b/SKILL.md", "z")] {
                fs::create_dir_all(checkout.join(path).parent().unwrap()).unwrap();
                fs::write(checkout.join(path), text).unwrap();
            }
            let skills = skills.iter().map(|(path, digest)| ((*path).to_owned(), (*digest).to_owned()));
            let pinned = PinnedGit::new(commit.clone(), skills.collect());
            fs::create_dir_all(root.ancestors().nth(2).unwrap()).unwrap();
            move_skills(&store, place, &pinned, &checkout).unwrap();
            fs::remove_dir_all(&checkout).unwrap();
            pinned
        };
        let zeros = "0".repeat(64);
        fs::create_dir_all(checkout.join("a/scripts")).unwrap();
        fs::write(checkout.join("a/SKILL.md"), "x").unwrap();
        fs::write(checkout.join("a/scripts/run.sh"), "y").unwrap();
        let approved = digest::of_skill(&checkout.join("a")).unwrap().to_string();
        let own = add(&[("a", &approved)]);
        assert_eq!(served(&store, place, &own), Some(root.clone()));
        for wrong in ["a/scripts", "a", ".", "a/other", "zz", "z/z/z"] {
            let theirs = add(&[(wrong, &zeros)]);
            // The version is not fetched again each time.
            assert_eq!(served(&store, place, &theirs), Some(root.clone()), "{wrong}");
            assert_eq!(digest::of_skill(&root.join("a")).unwrap().to_string(), approved, "{wrong}");
            let entries = fs::read_dir(&root).unwrap().count();
            assert!(entries == 1 && !root.join("a/other").exists(), "{wrong}");
        }
        let other = PinnedGit::new(commit.clone(), [("yy".to_owned(), zeros)].into());
        assert_eq!(served(&store, place, &other), None);
    }
}
