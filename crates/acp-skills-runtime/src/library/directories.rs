//! [`DirectoryLibrary`]: the skills that a configuration names, as they are found on disk.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
    sync::Arc,
};

use acp_skills_intercept::Workspace;
use skills_core::{
    Diagnostic, LoadError, Scope, Skill, SkillSet, Source,
    discovery::{Discovery, NamedSkill, load_dir},
    files::Bounds,
    frontmatter::{ParseContext, Verdict, validate_bytes},
    set::Unapproved,
};
use skills_sources::{
    Address, Sources,
    trust::{Decided, Trust},
};

use super::{
    missing,
    projects::{self, ProjectSkills},
    scan::Scan,
    workspace::{ProjectFound, ProjectSearches, project_of},
};

/// The skills of a configuration. If several have the same name, the first of these wins: named skills, skills of the
/// session's project, skills below scanned directories, and skills from sources such as git repositories.
pub struct DirectoryLibrary {
    pub(super) named: Vec<Named>,
    pub(super) strict: bool,
    pub(super) scan: Scan,
    pub(super) sources: Sources,
    pub(super) project: Option<Discovery>,
    /// The approvals of project skills, or `None` if they need no approval.
    pub(super) trust: Option<Trust>,
    pub(super) projects: Vec<ProjectSkills>,
    /// True if the subdirectories of a session's directories are searched for project skills.
    pub(super) tree: bool,
    pub(super) watch: bool,
}

/// A skill that was named in the configuration.
pub enum Named {
    /// A skill in a directory.
    Stored(NamedSkill),
    /// A skill that is defined in the configuration itself.
    Fixed(Arc<Skill>, Vec<Diagnostic>),
}

impl DirectoryLibrary {
    /// Creates a library. `project` is the search for skills of the session's project, or `None` if projects aren't
    /// searched. With `strict`, a named skill that breaks a rule of the specification is invalid.
    pub fn new(
        named: Vec<Named>,
        strict: bool,
        scan: Scan,
        sources: Sources,
        project: Option<Discovery>,
    ) -> Self {
        Self {
            named,
            strict,
            scan,
            sources,
            project,
            trust: None,
            projects: Vec::new(),
            tree: false,
            watch: false,
        }
    }

    /// Sets the approvals. With these, skills of a project are only used if the user approved them.
    #[must_use]
    pub fn trust(self, trust: Option<Trust>) -> Self {
        Self { trust, ..self }
    }

    /// Sets the entries of `projects`, which apply to sessions in certain directories.
    #[must_use]
    pub fn projects(self, projects: Vec<ProjectSkills>) -> Self {
        Self { projects, ..self }
    }

    /// Sets whether the subdirectories of a session's directories are searched for project skills. The default is false.
    #[must_use]
    pub fn tree(self, tree: bool) -> Self {
        Self { tree, ..self }
    }

    /// Sets whether the library watches the disk for changes. The default is false.
    #[must_use]
    pub fn watch(self, watch: bool) -> Self {
        Self { watch, ..self }
    }

    /// Returns the skills of a session with these directories.
    pub fn at(&self, workspace: &Workspace) -> SkillSet {
        let found = ProjectSearches::run(self, workspace).found();
        self.assemble(workspace, &found)
    }

    /// Fetches all sources that are not in the store yet, and waits until they are there. A skill that cannot be
    /// loaded is among the [skipped skills](SkillSet::skipped). Returns the other failures, each as a sentence with a
    /// hint.
    pub fn fetch(&self) -> Vec<String> {
        self.all_sources().flat_map(Sources::fetch).collect()
    }

    /// Returns the address of the source that a skill's file or directory was fetched from. `None` if it belongs to the user.
    pub fn address_of(&self, path: &Path) -> Option<&Address> {
        self.all_sources().find_map(|sources| sources.address_of(path))
    }

    /// Returns all sources, including those that apply only to certain directories.
    pub(super) fn all_sources(&self) -> impl Iterator<Item = &Sources> {
        [&self.sources].into_iter().chain(self.projects.iter().map(|project| &project.sources))
    }

    /// Returns the scans that are in use.
    pub(super) fn scans(&self) -> impl Iterator<Item = &Scan> {
        let of_projects = self.projects.iter().map(|project| &project.scan);
        [&self.scan].into_iter().chain(of_projects.filter(|scan| scan.is_used()))
    }

    /// Returns the entries of `projects` that apply to one root of a workspace.
    pub(super) fn projects_at(&self, root: &Path) -> Vec<&ProjectSkills> {
        self.projects.iter().filter(|project| project.is_about(root)).collect()
    }

    /// Returns the entries of `projects` that apply to any root of a workspace.
    pub(super) fn projects_of(&self, workspace: &Workspace) -> Vec<&ProjectSkills> {
        let is_about = |project: &&ProjectSkills| workspace.roots().any(|root| project.is_about(root));
        self.projects.iter().filter(is_about).collect()
    }

    /// Returns warnings about directories without skills and filters that match no skill. Skills that cannot be
    /// loaded are not included, because they are among the [skipped skills](SkillSet::skipped).
    pub fn missing(&self) -> Vec<String> {
        missing::sentences(&self.scan.discovery, &self.scan.get())
    }

    /// Returns true if the configuration has no skill, no directory and no source.
    pub fn is_empty(&self) -> bool {
        self.named.is_empty() && !self.has_directories()
    }

    /// Returns the directories of the user and of the projects in which a session looks for skills by default. They need
    /// not exist.
    pub fn discovered(&self, workspace: &Workspace) -> Vec<PathBuf> {
        let scanned = &self.scan.discovery.roots;
        let of_user = scanned.iter().filter(|root| root.scope == Scope::User).map(|root| root.path.clone());
        of_user.chain(self.project_directories(workspace)).collect()
    }

    pub(super) fn assemble(&self, workspace: &Workspace, found: &[ProjectFound]) -> SkillSet {
        let scanned = self.scan.get();
        let here = self.projects_of(workspace);
        // We use the same bounds for all roots together, so that a large workspace can't delay the start of a session.
        let mut bounds = Bounds::SKILL;
        let approved: Vec<_> = found.iter().map(|project| self.sift(project, &mut bounds)).collect();
        let is_scan_alone = self.named.is_empty() && self.sources.is_empty() && here.is_empty();
        let limited = || found.iter().filter_map(|project| project.limited.clone());
        if is_scan_alone && approved.iter().all(is_nothing) && limited().next().is_none() {
            return scanned;
        }
        let mut builder = SkillSet::builder();
        for named in &self.named {
            match named {
                Named::Stored(skill) => skill.add_to(&mut builder),
                Named::Fixed(skill, diagnostics) => {
                    builder.add_shared(Arc::clone(skill), diagnostics.clone());
                }
            }
        }
        for project in &here {
            project.add_fixed(&mut builder);
            builder.extend(&project.scan.get());
        }
        for project in &approved {
            builder.extend(project);
        }
        limited().for_each(|limited| builder.skip(limited));
        builder.extend(&scanned);
        for sources in here.iter().map(|project| &project.sources).chain([&self.sources]) {
            builder.extend(&sources.get());
        }
        projects::filtered(builder.build(), &here)
    }

    /// Removes the skills of a project that are not approved, unless there is no need for approval.
    fn sift(&self, found: &ProjectFound, bounds: &mut Bounds) -> SkillSet {
        let is_trusted = || self.projects_at(&found.root).iter().any(|project| project.is_trusted);
        match &self.trust {
            Some(trust) if !is_trusted() => trust.sift_within(&found.project, &found.skills, bounds),
            _ => found.skills.clone(),
        }
    }

    /// Returns the files with the user's decisions about the projects of a workspace.
    pub(super) fn trust_files(&self, searches: &ProjectSearches) -> Vec<PathBuf> {
        let Some(trust) = &self.trust else { return Vec::new() };
        let projects: BTreeSet<&Path> = searches.iter().map(|(search, _)| search.project.as_path()).collect();
        projects.into_iter().filter_map(|project| trust.file(project)).collect()
    }

    /// Saves the user's decision about skills of the projects that a workspace belongs to.
    pub(super) fn decide(&self, workspace: &Workspace, skills: &[Unapproved], trusted: bool) -> Decided {
        let mut decided = Decided::default();
        let Some(trust) = &self.trust else { return decided };
        let mut by_project: BTreeMap<PathBuf, Vec<Unapproved>> = BTreeMap::new();
        for unapproved in skills {
            let root = unapproved.skill.session_root.as_deref().or(workspace.cwd.as_deref());
            let Some(root) = root else { continue };
            by_project.entry(project_of(root)).or_default().push(unapproved.clone());
        }
        for (project, skills) in by_project {
            let Decided { done, failed, unsaved } = trust.decide(&project, &skills, trusted);
            decided.done.extend(done);
            decided.failed.extend(failed);
            decided.unsaved = decided.unsaved.or(unsaved);
        }
        decided
    }

    /// Returns true if skills can come from the disk, now or later.
    pub(super) fn has_directories(&self) -> bool {
        self.project.is_some()
            || !self.sources.is_empty()
            || !self.projects.is_empty()
            || !self.scan.discovery.roots.is_empty()
            || self.named.iter().any(|named| matches!(named, Named::Stored(_)))
    }
}

/// Returns true if a set is empty, and also has no skipped or unapproved skills.
fn is_nothing(set: &SkillSet) -> bool {
    set.is_empty() && set.skipped().is_empty() && set.unapproved().is_empty()
}

/// Loads a named skill from an absolute path.
///
/// # Errors
/// Returns an error if the skill cannot be loaded. With `strict`, also returns an error if it breaks any rule of the
/// specification.
pub fn load_named(path: &Path, strict: bool) -> Result<(Skill, Vec<Diagnostic>), LoadError> {
    let (skill, diagnostics) = load_dir(path)?;
    if strict && let Source::Stored(stored) = &skill.source {
        let file = stored.file();
        let bytes = std::fs::read(&file).map_err(|error| {
            let finding = Diagnostic::error("unreadable-file", error.to_string()).caused_by(&error);
            LoadError::new(&file, vec![finding])
        })?;
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let broken = validate_bytes(&bytes, &ParseContext::in_directory(&name), Verdict::Spec);
        if !broken.is_empty() {
            return Err(LoadError::new(file, broken));
        }
    }
    Ok((skill, diagnostics))
}
