//! [`Candidate`]: a directory that a walk has not visited yet.

use std::{
    io,
    path::{Path, PathBuf},
};

use super::{
    super::{
        Root,
        load::{Child, Visit, visit},
        names::is_hidden,
        progress::Progress,
    },
    Memory,
};

/// A directory to visit.
#[derive(Debug)]
pub(super) struct Candidate {
    /// The path as a user would write it. It is used for sorting and for the name.
    pub(super) path: PathBuf,
    /// The canonical path, if it is different.
    pub(super) real: Option<PathBuf>,
    /// True if the directory is in a tree that was created or replaced.
    pub(super) is_new: bool,
    /// True if the directory is hidden, or within a hidden directory.
    pub(super) is_hidden: bool,
    /// True if the directory is within a skill.
    pub(super) is_in_skill: bool,
}

impl Candidate {
    pub(super) fn real(&self) -> &Path {
        self.real.as_deref().unwrap_or(&self.path)
    }

    pub(super) fn visit(&self, root: &Root, nested: bool) -> io::Result<Visit> {
        visit(self.real(), self.path.file_name().unwrap_or_default(), root, nested)
    }

    /// Returns a subdirectory, which may be a link. Returns `None` if the link doesn't lead to a directory.
    pub(super) fn child(
        &self,
        child: &Child,
        memory: Option<&Memory<'_>>,
        progress: &mut Progress,
    ) -> Option<Self> {
        let path = self.path.join(&child.name);
        let real = if child.is_link {
            Some(progress.resolve(&path).ok().filter(|real| real.is_dir())?)
        } else {
            self.real.as_ref().map(|real| real.join(&child.name))
        };
        let is_hidden = self.is_hidden || is_hidden(&child.name);
        let mut child = Self { path, real, is_new: self.is_new, is_hidden, is_in_skill: self.is_in_skill };
        child.is_new |= memory.is_some_and(|memory| memory.changes.trees.contains(child.real()));
        Some(child)
    }
}
