//! The skills of a session, and what is searched for those of its projects: one search for each root of its workspace.
//!
//! The roots are searched in their order, so that a skill of an earlier root takes precedence. A directory that belongs to several
//! roots, such as that of their common repository, belongs to the first one. Each root has its own project, and the skills of a
//! project are approved for that project.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use acp_skills_intercept::Workspace;
use skills_core::{
    Scope, Skill, SkillSet,
    discovery::{Discovery, Root, project_roots},
    files::Bounds,
    order,
    set::Unapproved,
};
use skills_sources::trust::{self, Decided, Trust};

use super::{
    directories::{DirectoryLibrary, Named},
    project_searches::{ProjectFound, ProjectSearch, ProjectSearches, real},
    project_tree::ProjectTree,
    projects,
};

/// The maximum number of subdirectories of a workspace that are searched for projects with skills.
const MAX_TREE_DIRS: usize = 2_000;

/// Returns the directories that are searched for skills of the roots, each with the root whose project contains it. A link can lead to the
/// directory of another root, but the skills in it are approved for their own project.
fn owners(workspace: &Workspace) -> HashMap<PathBuf, &Path> {
    let mut owners = HashMap::new();
    if workspace.additional.is_empty() {
        return owners;
    }
    for root in workspace.roots() {
        for found in project_roots(root) {
            let project = real(found.boundary.as_deref().unwrap_or(root));
            let real = real(&found.path);
            if real.starts_with(project) {
                owners.entry(real).or_insert(root);
            }
        }
    }
    owners
}

impl DirectoryLibrary {
    /// Returns the skills of a session with these directories.
    pub fn at(&self, workspace: &Workspace) -> SkillSet {
        let found = ProjectSearches::run(self, workspace).found();
        self.assemble(workspace, &found)
    }

    /// Returns the directories of the user and of the projects in which a session looks for skills by default. They need
    /// not exist.
    pub fn discovered(&self, workspace: &Workspace) -> Vec<PathBuf> {
        let scanned = &self.scan.discovery.roots;
        let of_user = scanned.iter().filter(|root| root.scope == Scope::User).map(|root| root.path.clone());
        of_user.chain(self.project_directories(workspace)).collect()
    }

    pub(super) fn assemble(&self, workspace: &Workspace, found: &[ProjectFound]) -> SkillSet {
        let scanned = self.rules.permitted(self.scan.get());
        let here = self.projects_of(workspace);
        // We use the same bounds for all roots together, so that a large workspace can't delay the start of a session.
        let mut bounds = Bounds::SKILL;
        let sift = |project| self.rules.permitted(self.sift(project, &mut bounds));
        let approved: Vec<_> = found.iter().map(sift).collect();
        let is_scan_alone =
            self.named.is_empty() && self.sources.is_empty() && here.is_empty() && self.rules.is_silent();
        let is_scan_alone = is_scan_alone && !self.servers.has_configured();
        let limited = || found.iter().filter_map(|project| project.limited.clone());
        if is_scan_alone && approved.iter().all(is_nothing) && limited().next().is_none() {
            return scanned;
        }
        let mut own = SkillSet::builder();
        for named in &self.named {
            match named {
                Named::Stored(skill) => skill.add_to(&mut own),
                Named::Fixed(skill, diagnostics) => {
                    own.add_shared(Arc::clone(skill), diagnostics.clone());
                }
            }
        }
        for project in &here {
            project.add_fixed(&mut own);
            own.extend(&project.scan.get());
        }
        let mut builder = SkillSet::builder();
        builder.extend(&self.rules.permitted(own.build()));
        for project in &approved {
            builder.extend(project);
        }
        limited().for_each(|limited| builder.skip(limited));
        builder.extend(&scanned);
        for sources in here.iter().map(|project| &project.sources).chain([&self.sources]) {
            builder.extend(&sources.get());
        }
        builder.extend(&self.servers.configured());
        self.rules.refused.iter().cloned().for_each(|refused| builder.skip(refused));
        let skills = projects::filtered(builder.build(), &here);
        if self.rules.required.is_empty() { skills } else { self.rules.required.get().with(&skills) }
    }

    /// Removes the skills of a project that are not approved, unless there is no need for approval.
    ///
    /// A search also finds skills in the parent directories of a root, and a root can be a link. Only skills below a directory that
    /// the user named need no approval, and only if the search of their own project finds them. A skill that the user has declined
    /// needs one.
    fn sift(&self, found: &ProjectFound, bounds: &mut Bounds) -> SkillSet {
        let Some(trust) = &self.trust else { return found.skills.clone() };
        let here = self.projects_at(&found.root);
        let trusting: Vec<_> = here.iter().filter(|project| project.is_trusted && !found.is_linked).collect();
        let declined = (!trusting.is_empty()).then(|| trust.declined(&found.project));
        let is_declined = |skill: &Skill| declined.as_ref().is_some_and(|declined| declined(skill));
        let is_trusted = |skill: &Skill| {
            let real = skill.dir().and_then(|dir| dunce::canonicalize(dir).ok());
            real.is_some_and(|real| {
                trusting.iter().any(|project| real.ancestors().any(|dir| project.paths.is_match(dir)))
            })
        };
        let (trusted, others): (Vec<_>, Vec<_>) = if trusting.is_empty() {
            (Vec::new(), found.skills.entries().iter().collect())
        } else {
            let needs_none = |skill: &Skill| is_trusted(skill) && !is_declined(skill);
            found.skills.entries().iter().partition(|entry| needs_none(&entry.skill))
        };
        if trusted.is_empty() {
            return trust.sift_within(&found.project, &found.skills, bounds);
        }
        if others.is_empty() {
            return found.skills.clone();
        }
        let mut skills = SkillSet::builder();
        for entry in &trusted {
            skills.add_shared(Arc::clone(&entry.skill), entry.diagnostics.clone());
        }
        let others =
            found.skills.filtered(|skill| trusted.iter().all(|entry| entry.skill.name != skill.name));
        skills.extend(&trust.sift_within(&found.project, &others, bounds));
        skills.build()
    }

    /// Returns the files with the user's decisions about the projects of a workspace.
    pub(super) fn trust_files(&self, searches: &ProjectSearches) -> Vec<PathBuf> {
        let Some(trust) = &self.trust else { return Vec::new() };
        let projects = order::set(searches.iter().map(|(search, _)| search.project.as_path()));
        projects.into_iter().filter_map(|project| trust.file(project)).collect()
    }

    /// Saves the user's decision about skills of the projects that a workspace belongs to.
    pub fn decide(&self, workspace: &Workspace, skills: &[Unapproved], trusted: bool) -> Decided {
        let mut decided = Decided::default();
        let mut by_project: BTreeMap<PathBuf, Vec<Unapproved>> = BTreeMap::new();
        for unapproved in skills {
            let Some(project) = decided_for(workspace, &unapproved.skill) else { continue };
            by_project.entry(project).or_default().push(unapproved.clone());
        }
        for (project, skills) in by_project {
            let trust = skills.first().and_then(|first| self.trust_of(&first.skill));
            let Some(trust) = trust else { continue };
            let Decided { done, failed, unsaved, .. } = trust.decide(&project, &skills, trusted);
            decided.done.extend(done);
            decided.failed.extend(failed);
            decided.unsaved = decided.unsaved.or(unsaved);
        }
        decided
    }

    /// Returns the decisions of the user that apply to a skill. `None` if it needs no approval.
    fn trust_of(&self, skill: &Skill) -> Option<&Trust> {
        self.servers.trust_of(skill).or(self.trust.as_ref())
    }

    /// Returns the searches for skills of the projects that a workspace belongs to. There is none for a root without directories
    /// of its own. Subdirectories of roots that are not in `trees` are searched.
    pub(super) fn project_searches(
        &self,
        workspace: &Workspace,
        trees: &mut HashMap<PathBuf, ProjectTree>,
    ) -> Vec<ProjectSearch> {
        let mut taken: HashSet<PathBuf> = self.directories_of_user(workspace);
        let mut searches: Vec<ProjectSearch> = Vec::new();
        let mut left = MAX_TREE_DIRS;
        let owners = owners(workspace);
        for root in workspace.roots() {
            // A root that doesn't exist can be created later, but a file can't have skills.
            if fs::metadata(root).is_ok_and(|metadata| !metadata.is_dir()) {
                continue;
            }
            let Some((discovery, tree)) = self.project_discovery(root) else { continue };
            let mut roots = project_roots(root);
            let project = roots.first().and_then(|first| first.boundary.clone());
            let project = project.unwrap_or_else(|| root.to_owned());
            if tree {
                let search = || ProjectTree::search(root, &project, left);
                let tree = trees.entry(root.to_owned()).or_insert_with(search);
                left = left.saturating_sub(tree.directories.len());
                roots.extend(tree.roots.iter().cloned());
            }
            roots.retain(|found| {
                let real = real(&found.path);
                owners.get(&real).is_none_or(|owner| *owner == root) && taken.insert(real)
            });
            if !roots.is_empty() {
                let discovery = Discovery { roots, ..discovery };
                searches.push(ProjectSearch { root: root.to_owned(), project, discovery, tree });
            }
        }
        trees.retain(|root, _| searches.iter().any(|search| search.tree && search.root == *root));
        let others = workspace.roots().filter(|_| !workspace.additional.is_empty());
        let reachable: Arc<[PathBuf]> = others.filter_map(|root| dunce::canonicalize(root).ok()).collect();
        for search in &mut searches {
            let session_root: Arc<Path> = search.root.as_path().into();
            for root in &mut search.discovery.roots {
                root.session_root = Some(Arc::clone(&session_root));
                root.reachable = Arc::clone(&reachable);
            }
        }
        searches
    }

    /// Returns the directories in which the projects of a workspace are searched for skills. They need not exist.
    pub(super) fn project_directories(&self, workspace: &Workspace) -> Vec<PathBuf> {
        let searches = self.project_searches(workspace, &mut HashMap::new());
        let roots = searches.into_iter().flat_map(|search| search.discovery.roots);
        roots.map(|root| root.path).collect()
    }

    /// Returns the settings of the search for project skills of one root, and true if its subdirectories are searched. Returns `None`
    /// if the root isn't searched.
    fn project_discovery(&self, root: &Path) -> Option<(Discovery, bool)> {
        let here = self.projects_at(root);
        let tree = self.tree || here.iter().any(|project| project.tree);
        let discovery = self.project.clone();
        let discovery = discovery.or_else(|| here.iter().find_map(|project| project.project.clone()))?;
        Some((discovery, tree))
    }

    /// Returns the user's own directories for skills that a session searches. They are not part of a project, even if a root is
    /// the user's home directory.
    fn directories_of_user(&self, workspace: &Workspace) -> HashSet<PathBuf> {
        let here = self.projects_of(workspace);
        let scans = here.iter().map(|project| &project.scan).chain([&self.scan]);
        let roots = scans.flat_map(|scan| &scan.discovery.roots);
        roots.filter(|root| root.scope == Scope::User).map(|root| real(&root.path)).collect()
    }
}

/// Returns the project or the MCP server to which a decision about a skill applies.
pub(super) fn decided_for(workspace: &Workspace, skill: &Skill) -> Option<PathBuf> {
    let root = skill.session_root.as_deref().or(workspace.cwd.as_deref());
    trust::project_of(skill).or_else(|| root.map(project_of))
}

/// Returns the root of the project that a directory belongs to, or the directory itself.
pub(super) fn project_of(root: &Path) -> PathBuf {
    let boundary = project_roots(root).into_iter().find_map(|Root { boundary, .. }| boundary);
    boundary.unwrap_or_else(|| root.to_owned())
}

/// Returns true if a set is empty, and also has no skipped or unapproved skills.
fn is_nothing(set: &SkillSet) -> bool {
    set.is_empty() && set.skipped().is_empty() && set.unapproved().is_empty()
}
