//! [`ProjectSearches`]: the searches for skills of the projects of one workspace.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
};

use acp_skills_intercept::Workspace;
use skills_core::{
    Skill, SkillSet,
    discovery::{Changes, Discovery},
    set::{Entry, Skipped},
};

use super::{directories::DirectoryLibrary, project_tree::ProjectTree, scan::Search};

/// The search for the project skills of one root.
pub(super) struct ProjectSearch {
    /// The root, as the client wrote it.
    pub(super) root: PathBuf,
    /// The root of the project: the repository, or the root itself.
    pub(super) project: PathBuf,
    /// The directories to search, with the settings.
    pub(super) discovery: Discovery,
    /// True if the subdirectories of the root are searched, too.
    pub(super) tree: bool,
}

impl ProjectSearch {
    /// Returns a skill of this project that was found through a link in another one.
    fn linked(&self, entry: &Entry) -> ProjectFound {
        let mut skill = Skill::clone(&entry.skill);
        skill.session_root = Some(self.root.as_path().into());
        let mut skills = SkillSet::builder();
        skills.add(skill, entry.diagnostics.clone());
        let (root, project) = (self.root.clone(), self.project.clone());
        ProjectFound { root, project, skills: skills.build(), is_linked: true, limited: None }
    }
}

/// The skills of one root of a session.
pub(super) struct ProjectFound {
    pub(super) root: PathBuf,
    pub(super) project: PathBuf,
    pub(super) skills: SkillSet,
    /// True if only a link in another root leads to the skill. The project itself doesn't offer it.
    pub(super) is_linked: bool,
    /// A warning if not all subdirectories were searched.
    pub(super) limited: Option<Skipped>,
}

/// The searches of one workspace, with their results.
#[derive(Default)]
pub(super) struct ProjectSearches {
    searches: Vec<(ProjectSearch, Search)>,
    /// The subdirectories of each root that is searched with its subdirectories.
    trees: HashMap<PathBuf, ProjectTree>,
}

impl ProjectSearches {
    /// Searches everything.
    pub(super) fn run(library: &DirectoryLibrary, workspace: &Workspace) -> Self {
        let mut searches = Self::default();
        searches.rescan(library, workspace, &Changes::default());
        searches
    }

    /// Searches again in the changed directories, and in the directories of new searches.
    pub(super) fn rescan(&mut self, library: &DirectoryLibrary, workspace: &Workspace, changes: &Changes) {
        self.trees.retain(|root, _| {
            let root = real(root);
            !changes.replaces(&root) && !changes.trees.iter().any(|changed| changed.starts_with(&root))
        });
        let wanted = library.project_searches(workspace, &mut self.trees);
        let mut before: HashMap<PathBuf, Search> =
            self.searches.drain(..).map(|(search, found)| (search.root, found)).collect();
        let mut count = 0;
        for search in wanted {
            let mut found = before.remove(&search.root).unwrap_or_default();
            let mut discovery = search.discovery.clone();
            // The limit applies to all roots together.
            discovery.limits.max_skills = discovery.limits.max_skills.saturating_sub(count);
            found.rescan(&discovery, changes);
            count += found.skills.len();
            self.searches.push((search, found));
        }
    }

    /// Returns the searches with their results, in the order of the roots.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&ProjectSearch, &Search)> {
        self.searches.iter().map(|(search, found)| (search, found))
    }

    /// Returns the directories in which new subdirectories may have skills.
    pub(super) fn tree_directories(&self) -> impl Iterator<Item = PathBuf> {
        let roots = self.trees.keys().map(|root| real(root));
        roots.chain(self.trees.values().flat_map(|tree| tree.directories.iter().cloned()))
    }

    /// Returns the skills that were found, in the order of the roots. A skill behind a link belongs to the project that contains its
    /// directory.
    pub(super) fn found(&self) -> Vec<ProjectFound> {
        let mut all = Vec::new();
        let projects: Vec<_> = self
            .searches
            .iter()
            .map(|(search, found)| (real(&search.project), search, &found.skills))
            .collect();
        for (search, found) in &self.searches {
            let owner = |skill: &Skill| {
                let dir = skill.dir()?;
                let around = projects.iter().filter(|(project, ..)| dir.starts_with(project));
                let (_, owner, skills) = around.max_by_key(|(project, ..)| project.components().count())?;
                Some((*owner, *skills)).filter(|(owner, _)| owner.project != search.project)
            };
            all.push(ProjectFound {
                root: search.root.clone(),
                project: search.project.clone(),
                skills: found.skills.filtered(|skill| owner(skill).is_none()),
                is_linked: false,
                limited: self.trees.get(&search.root).and_then(|tree| tree.limited.clone()),
            });
            for entry in found.skills.entries() {
                let Some((owner, skills)) = owner(&entry.skill) else { continue };
                if skills.iter().all(|skill| skill.dir() != entry.skill.dir()) {
                    all.push(owner.linked(entry));
                }
            }
        }
        all
    }
}

/// Returns a path without links, or the path itself if it can't be resolved.
pub(super) fn real(path: &Path) -> PathBuf {
    dunce::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}
