//! [`Coverage`]: the directories of interest, and the meaning of events in them.

use std::{
    collections::{HashMap, HashSet},
    ffi::{OsStr, OsString},
    path::{Path, PathBuf},
    sync::Arc,
};

use notify::{
    Event, EventKind, RecursiveMode,
    event::{AccessKind, AccessMode, ModifyKind},
};
use skills_core::{
    discovery::{Changes, Discovery, DiscoveryCache, PROJECT_ENTRIES},
    files::SKILL_FILE_NAMES,
};

use crate::library::project_tree::is_in_tree;

/// The directories to check for changes.
#[derive(Debug, Default, PartialEq, Eq)]
pub(in crate::library) struct Coverage {
    /// The directories by canonical path. There can be ten thousand of these, so paths are shared with the search to save memory.
    directories: HashMap<Arc<Path>, Interest>,
    /// The files with decisions of the user, which need not exist.
    decisions: HashSet<PathBuf>,
}

/// The changes that matter in a directory.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Interest {
    /// The position in the order of addition. Earlier directories matter more if there are too many.
    pub(super) order: usize,
    /// True if changes of its `SKILL.md` and of the directory itself matter.
    pub(super) skill: bool,
    /// True if new and removed subdirectories matter.
    pub(super) directories: bool,
    /// True if new and removed directories of a project's tree matter.
    pub(super) tree: bool,
    /// Names of entries that matter.
    pub(super) names: Vec<OsString>,
    /// Names of files whose content matters.
    pub(super) files: Vec<OsString>,
}

/// The change that an event reports for a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Change {
    /// The path was only read.
    Nothing,
    /// The contents or the metadata have changed.
    Content,
    /// The path was created, removed or renamed, or the event doesn't say more.
    Existence,
}

impl Change {
    fn of(kind: EventKind) -> Self {
        match kind {
            EventKind::Access(AccessKind::Close(AccessMode::Write))
            // Windows uses this kind if a file was written to, but also if an entry was added to a directory or
            // removed from it.
            | EventKind::Modify(ModifyKind::Any | ModifyKind::Data(_) | ModifyKind::Metadata(_)) => Self::Content,
            EventKind::Access(_) => Self::Nothing,
            _ => Self::Existence,
        }
    }
}

impl Coverage {
    /// Adds the directory of a named skill.
    pub(in crate::library) fn add_named(&mut self, path: &Path) {
        match dunce::canonicalize(path) {
            Ok(real) => self.at(real).skill = true,
            Err(_) => self.add_missing(path),
        }
        self.add_link(path);
    }

    /// Adds a file, which need not exist yet. It can be replaced, or written in place.
    pub(in crate::library) fn add_file(&mut self, path: &Path) {
        self.add_missing(path);
        self.add_link(path);
        if let Ok(real) = dunce::canonicalize(path)
            && let (Some(dir), Some(name)) = (real.parent(), real.file_name())
        {
            add(&mut self.at(dir.to_owned()).files, name.to_owned());
        }
    }

    /// Adds a file with decisions of the user.
    pub(in crate::library) fn add_decisions(&mut self, path: PathBuf) {
        self.add_file(&path);
        self.decisions.insert(path);
    }

    /// Returns the files with decisions that `before` did not cover, and that may have changed in the meantime.
    pub(super) fn new_decisions(&self, before: &Self) -> Changes {
        let trees = self.decisions.difference(&before.decisions).cloned().collect();
        Changes { trees, ..Changes::default() }
    }

    /// Adds the directories that a search has visited, and those in which it would find more if they were created.
    pub(in crate::library) fn add_search(&mut self, discovery: &Discovery, visits: &DiscoveryCache) {
        for seen in visits.directories() {
            let interest = self.at(Arc::clone(seen.dir));
            interest.skill = true;
            interest.directories |= seen.may_have_more;
        }
        for root in &discovery.roots {
            if !root.path.exists() {
                self.add_missing(&root.path);
            }
            self.add_link(&root.path);
        }
    }

    /// Adds a directory of a project's tree, in which new subdirectories may have skills.
    pub(in crate::library) fn add_tree(&mut self, dir: PathBuf) {
        self.at(dir).tree = true;
    }

    /// Adds the parent of each watched directory, so that moving or removing a watched directory is noticed.
    pub(super) fn add_parents(&mut self, one_level: bool) {
        let watched: Vec<_> = self.watches(one_level).into_keys().map(Arc::clone).collect();
        for dir in watched {
            if let (Some(parent), Some(name)) = (dir.parent(), dir.file_name()) {
                self.add_name(parent.to_owned(), name.to_owned());
            }
        }
    }

    /// Returns the watches that cover everything. With `one_level`, a watch covers only one directory. Otherwise a
    /// recursive watch covers a whole tree.
    pub(super) fn watches(&self, one_level: bool) -> HashMap<&Arc<Path>, RecursiveMode> {
        if one_level {
            return self.directories.keys().map(|dir| (dir, RecursiveMode::NonRecursive)).collect();
        }
        let searched = self.directories.iter().filter(|(_, interest)| interest.directories || interest.tree);
        let searched: HashSet<&Path> = searched.map(|(dir, _)| &**dir).collect();
        let is_seen = |dir: &Path| dir.ancestors().skip(1).any(|above| searched.contains(above));
        let mode = |dir: &Path| {
            if searched.contains(dir) { RecursiveMode::Recursive } else { RecursiveMode::NonRecursive }
        };
        self.directories.keys().filter(|dir| !is_seen(dir)).map(|dir| (dir, mode(dir))).collect()
    }

    /// Returns the position of a directory in the order of addition.
    pub(super) fn order(&self, dir: &Path) -> usize {
        self.directories.get(dir).map_or(usize::MAX, |interest| interest.order)
    }

    fn at(&mut self, dir: impl Into<Arc<Path>>) -> &mut Interest {
        let order = self.directories.len();
        self.directories.entry(dir.into()).or_insert_with(|| Interest { order, ..Interest::default() })
    }

    /// Adds the nearest existing parent of `path`, because that is where the missing part will be created.
    fn add_missing(&mut self, path: &Path) {
        let parents = path.ancestors().zip(path.ancestors().skip(1));
        let found = parents.into_iter().find_map(|(child, parent)| {
            let real = dunce::canonicalize(parent).ok().filter(|real| real.is_dir())?;
            Some((real, child.file_name()?.to_owned()))
        });
        if let Some((dir, name)) = found {
            self.add_name(dir, name);
        }
    }

    /// Adds the parent of a symbolic link, because the link may be replaced.
    fn add_link(&mut self, path: &Path) {
        if path.is_symlink()
            && let Some(parent) = path.parent().and_then(|parent| dunce::canonicalize(parent).ok())
            && let Some(name) = path.file_name()
        {
            self.add_name(parent, name.to_owned());
        }
    }

    /// Adds the links in a path. Links of the system, such as `/tmp` on macOS, are left out: their directory contains everything.
    pub(in crate::library) fn add_links(&mut self, path: &Path) {
        let is_of_system = |path: &Path| path.parent().is_none_or(|parent| parent.parent().is_none());
        path.ancestors().filter(|above| !is_of_system(above)).for_each(|above| self.add_link(above));
    }

    fn add_name(&mut self, dir: PathBuf, name: OsString) {
        add(&mut self.at(dir).names, name);
    }

    /// Returns the changes that an event reports.
    pub(super) fn changes(&self, event: &Event) -> Changes {
        // Some events were lost, so anything could have changed.
        if event.need_rescan() {
            return Changes::everything();
        }
        let mut changes = Changes::default();
        let change = Change::of(event.kind);
        for path in event.paths.iter().filter(|_| change != Change::Nothing) {
            self.add_change(path, change, &mut changes);
        }
        changes
    }

    /// Returns true if an entry of a project's tree is a directory of interest. A directory that was removed is one if it was
    /// searched.
    fn is_of_tree(&self, path: &Path, name: &OsStr) -> bool {
        PROJECT_ENTRIES.iter().any(|entry| name == *entry)
            || is_in_tree(name) && (self.directories.contains_key(path) || path.is_dir())
    }

    fn add_change(&self, path: &Path, change: Change, changes: &mut Changes) {
        if self.directories.get(path).is_some_and(|interest| interest.skill) {
            match change {
                Change::Existence => changes.trees.insert(path.to_owned()),
                _ => changes.directories.insert(path.to_owned()),
            };
        }
        let (Some(dir), Some(name)) = (path.parent(), path.file_name()) else { return };
        let Some(interest) = self.directories.get(dir) else { return };
        if interest.skill && is_skill_file(name) {
            changes.directories.insert(dir.to_owned());
            return;
        }
        if interest.files.iter().any(|known| known == name) {
            changes.trees.insert(path.to_owned());
            return;
        }
        if change == Change::Existence
            && (interest.directories
                || interest.names.iter().any(|known| known == name)
                || interest.tree && self.is_of_tree(path, name))
        {
            changes.trees.insert(path.to_owned());
            if interest.directories {
                changes.directories.insert(dir.to_owned());
            }
        }
    }
}

fn add(names: &mut Vec<OsString>, name: OsString) {
    if !names.contains(&name) {
        names.push(name);
    }
}

fn is_skill_file(name: &OsStr) -> bool {
    SKILL_FILE_NAMES.iter().any(|known| name.eq_ignore_ascii_case(known))
}

#[cfg(test)]
mod tests {
    use notify::event::{CreateKind, DataChange, Flag, MetadataKind, RemoveKind, RenameMode};
    use skills_core::discovery::Root;

    use super::*;

    const WRITE: EventKind = EventKind::Modify(ModifyKind::Data(DataChange::Any));
    const CREATE: EventKind = EventKind::Create(CreateKind::Any);
    const REMOVE: EventKind = EventKind::Remove(RemoveKind::Any);
    const RENAME: EventKind = EventKind::Modify(ModifyKind::Name(RenameMode::Any));
    const MODE: EventKind = EventKind::Modify(ModifyKind::Metadata(MetadataKind::Any));
    const ANY: EventKind = EventKind::Modify(ModifyKind::Any);
    const READ: EventKind = EventKind::Access(AccessKind::Open(AccessMode::Any));

    /// Returns the coverage of a root with the skills `a` and `deep/b`, and of a root that doesn't exist yet.
    fn coverage(base: &Path) -> Coverage {
        for (dir, text) in [
            ("root/a", "---\nname: a\ndescription: x\n---\n"),
            ("root/deep/b", "---\nname: b\ndescription: x\n---\n"),
        ] {
            std::fs::create_dir_all(base.join(dir)).unwrap();
            std::fs::write(base.join(dir).join("SKILL.md"), text).unwrap();
        }
        let discovery = Discovery::new([
            Root::scanned(base.join("root")),
            Root::new(skills_core::Scope::Project, base.join("later/.agents/skills")),
        ]);
        let mut visits = DiscoveryCache::default();
        discovery.run_incremental(&mut visits, &Changes::default(), &mut skills_core::SkillSet::builder());
        let mut coverage = Coverage::default();
        coverage.add_search(&discovery, &visits);
        std::fs::write(base.join("skills.lock"), "{}").unwrap();
        coverage.add_file(&base.join("skills.lock"));
        coverage.add_file(&base.join("missing.lock"));
        coverage
    }

    #[test]
    fn events_change_directories_and_trees() {
        let base = tempfile::tempdir().unwrap();
        let base = dunce::canonicalize(base.path()).unwrap();
        let coverage = coverage(&base);
        let shown = |paths: &std::collections::HashSet<PathBuf>| {
            let mut paths: Vec<_> = paths
                .iter()
                .map(|path| path.strip_prefix(&base).unwrap().to_str().unwrap().replace('\\', "/"))
                .collect();
            paths.sort();
            paths.join(" ")
        };
        for (kind, path, directories, trees) in [
            (WRITE, "root/a/SKILL.md", "root/a", ""),
            (CREATE, "root/a/SKILL.md", "root/a", ""),
            (RENAME, "root/a/skill.md", "root/a", ""),
            (REMOVE, "root/a/SKILL.md", "root/a", ""),
            (MODE, "root/a/SKILL.md", "root/a", ""),
            (ANY, "root/a/SKILL.md", "root/a", ""),
            (ANY, "root/a", "root/a", ""),
            (ANY, "root/notes.txt", "", ""),
            (READ, "root/a/SKILL.md", "", ""),
            // There is no need to search if these change, because they are read from disk each time they are used.
            (WRITE, "root/a/notes.md", "", ""),
            (CREATE, "root/a/references", "", ""),
            (CREATE, "root/a/.SKILL.md.swp", "", ""),
            // Changes to the directories themselves.
            (REMOVE, "root/a", "root", "root/a"),
            (RENAME, "root/deep", "root", "root/deep"),
            (REMOVE, "root", "", "root"),
            (MODE, "root/a", "root/a", ""),
            (CREATE, "root/new", "root", "root/new"),
            (CREATE, "root/deep/new", "root/deep", "root/deep/new"),
            (WRITE, "root/notes.txt", "", ""),
            (CREATE, "root/SKILL.md", "root", ""),
            // Here, something changes in the place of a root that doesn't exist yet.
            (CREATE, "later", "", "later"),
            (CREATE, "elsewhere", "", ""),
            (WRITE, "later", "", ""),
            (CREATE, "unrelated/path", "", ""),
            // A file that is read, which can be replaced or written in place.
            (WRITE, "skills.lock", "", "skills.lock"),
            (RENAME, "skills.lock", "", "skills.lock"),
            (READ, "skills.lock", "", ""),
            (CREATE, "missing.lock", "", "missing.lock"),
        ] {
            let event = Event::new(kind).add_path(base.join(path));
            let changes = coverage.changes(&event);
            assert_eq!(
                (shown(&changes.directories).as_str(), shown(&changes.trees).as_str()),
                (directories, trees),
                "{kind:?} {path}"
            );
            assert!(!changes.everything);
        }
        let lost = Event::new(EventKind::Other).set_flag(Flag::Rescan);
        assert_eq!(coverage.changes(&lost), Changes::everything());
    }
}
