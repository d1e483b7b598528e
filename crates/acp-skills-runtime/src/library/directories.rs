//! [`DirectoryLibrary`]: the skills that a configuration names, as they are found on disk.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use skills_core::{
    Diagnostic, LoadError, Scope, Skill, SkillSet, Source,
    discovery::{Discovery, NamedSkill, load_dir, project_roots},
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
        Self { named, strict, scan, sources, project, trust: None, projects: Vec::new(), watch: false }
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

    /// Sets whether the library watches the disk for changes. The default is false.
    #[must_use]
    pub fn watch(self, watch: bool) -> Self {
        Self { watch, ..self }
    }

    /// Returns the skills of a session whose working directory is `cwd`.
    pub fn at(&self, cwd: Option<&Path>) -> SkillSet {
        let project = cwd.and_then(|cwd| self.project_search(cwd)).map(|discovery| discovery.find());
        self.assemble(cwd, project.as_ref())
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

    /// Returns the entries of `projects` that apply to a working directory.
    fn projects_at(&self, cwd: Option<&Path>) -> Vec<&ProjectSkills> {
        self.projects.iter().filter(|project| cwd.is_some_and(|cwd| project.is_about(cwd))).collect()
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

    /// Returns the directories of the user and of the project in which a session in `cwd` looks for skills by
    /// default. They need not exist.
    pub fn discovered(&self, cwd: Option<&Path>) -> Vec<PathBuf> {
        let scanned = &self.scan.discovery.roots;
        let of_user = scanned.iter().filter(|root| root.scope == Scope::User).map(|root| root.path.clone());
        let project = cwd.and_then(|cwd| self.project_search(cwd));
        let of_project = project.into_iter().flat_map(|search| search.roots).map(|root| root.path);
        of_user.chain(of_project).collect()
    }

    /// Returns the search for skills of the project that `cwd` belongs to, or `None` if projects aren't searched.
    pub(super) fn project_search(&self, cwd: &Path) -> Option<Discovery> {
        let here = || self.projects_at(Some(cwd)).into_iter().find_map(|project| project.project.clone());
        let discovery = self.project.clone().or_else(here)?;
        Some(Discovery { roots: project_roots(cwd), ..discovery })
    }

    pub(super) fn assemble(&self, cwd: Option<&Path>, project: Option<&SkillSet>) -> SkillSet {
        let scanned = self.scan.get();
        let here = self.projects_at(cwd);
        let approved = self.sift(cwd, project, &here);
        let project = approved.as_ref().or(project);
        let is_scan_alone = self.named.is_empty() && self.sources.is_empty() && here.is_empty();
        if is_scan_alone && project.is_none_or(is_nothing) {
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
        if let Some(project) = project {
            builder.extend(project);
        }
        builder.extend(&scanned);
        for sources in here.iter().map(|project| &project.sources).chain([&self.sources]) {
            builder.extend(&sources.get());
        }
        projects::filtered(builder.build(), &here)
    }

    /// Removes the skills of the project that are not approved. Returns `None` if there is no need for approval.
    fn sift(
        &self,
        cwd: Option<&Path>,
        project: Option<&SkillSet>,
        here: &[&ProjectSkills],
    ) -> Option<SkillSet> {
        let trust = self.trust.as_ref().filter(|_| !here.iter().any(|project| project.is_trusted))?;
        Some(trust.sift(&root(cwd?), project?))
    }

    /// Returns the file with the user's decisions about a project.
    pub(super) fn trust_file(&self, cwd: &Path) -> Option<PathBuf> {
        self.trust.as_ref()?.file(&root(cwd))
    }

    /// Saves the user's decision about skills of the project that `cwd` belongs to.
    pub(super) fn decide(&self, cwd: Option<&Path>, skills: &[Unapproved], trusted: bool) -> Decided {
        match (&self.trust, cwd) {
            (Some(trust), Some(cwd)) => trust.decide(&root(cwd), skills, trusted),
            _ => Decided::default(),
        }
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

/// Returns the root of the project that a directory belongs to, or the directory itself.
fn root(cwd: &Path) -> PathBuf {
    let boundary = project_roots(cwd).into_iter().find_map(|root| root.boundary);
    boundary.unwrap_or_else(|| cwd.to_owned())
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
