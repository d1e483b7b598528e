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

use super::{
    missing,
    projects::{self, ProjectSkills},
    scan::Scan,
};
use skills_sources::{
    Sources,
    trust::{Decided, Trust},
};

/// The skills of a configuration, by precedence: those that were named, those of the session's project, those of a scan,
/// those of sources: git repositories and web sites.
///
/// Made by [`SkillSources::load`](crate::config::SkillSources::load).
pub struct DirectoryLibrary {
    pub(super) named: Vec<Named>,
    pub(super) strict: bool,
    pub(super) scan: Scan,
    pub(super) sources: Sources,
    pub(super) project: Option<Discovery>,
    /// Which skills of projects were approved; `None` where none need be.
    pub(super) trust: Option<Trust>,
    pub(super) projects: Vec<ProjectSkills>,
    pub(super) watch: bool,
}

/// A skill that was named.
pub enum Named {
    /// In a directory.
    Stored(NamedSkill),
    /// Defined in the configuration.
    Fixed(Arc<Skill>, Vec<Diagnostic>),
}

impl DirectoryLibrary {
    /// `project` finds the skills of a session's project.
    pub fn new(
        named: Vec<Named>,
        strict: bool,
        scan: Scan,
        sources: Sources,
        project: Option<Discovery>,
    ) -> Self {
        Self { named, strict, scan, sources, project, trust: None, projects: Vec::new(), watch: false }
    }

    /// With skills of projects that have to be approved.
    pub fn approved_by(self, trust: Option<Trust>) -> Self {
        Self { trust, ..self }
    }

    /// With what differs for sessions in some directories.
    pub fn with_projects(self, projects: Vec<ProjectSkills>) -> Self {
        Self { projects, ..self }
    }

    /// Sets whether the library notices changes by itself.
    pub fn watched(self, watch: bool) -> Self {
        Self { watch, ..self }
    }

    /// The skills of a session that works in `cwd`.
    pub fn at(&self, cwd: Option<&Path>) -> SkillSet {
        let project = cwd.and_then(|cwd| self.project_search(cwd)).map(|discovery| discovery.find());
        self.assemble(cwd, project.as_ref())
    }

    /// Fetches the sources that are not in the cache yet, and waits for them: for whoever does not stay until they come.
    /// What cannot be fetched is among the [skills that were skipped](SkillSet::skipped).
    /// Returns why others cannot be had, each with what to do about it.
    pub fn fetch(&self) -> Vec<String> {
        self.all_sources().flat_map(Sources::fetch).collect()
    }

    /// The sources, wherever they are to be used.
    pub(super) fn all_sources(&self) -> impl Iterator<Item = &Sources> {
        [&self.sources].into_iter().chain(self.projects.iter().map(|project| &project.sources))
    }

    /// The searches that somebody needs.
    pub(super) fn scans(&self) -> impl Iterator<Item = &Scan> {
        let of_projects = self.projects.iter().map(|project| &project.scan);
        [&self.scan].into_iter().chain(of_projects.filter(|scan| scan.is_used()))
    }

    /// The entries of `projects` that are about a directory.
    fn projects_at(&self, cwd: Option<&Path>) -> Vec<&ProjectSkills> {
        self.projects.iter().filter(|project| cwd.is_some_and(|cwd| project.is_about(cwd))).collect()
    }

    /// What was asked for and is not there, in sentences: directories without a skill, filters that leave none. What
    /// cannot be loaded is among the [skills that were skipped](SkillSet::skipped).
    pub fn missing(&self) -> Vec<String> {
        missing::sentences(&self.scan.discovery, &self.scan.get())
    }

    /// Whether nothing was named where skills could be: no skill, no directory, no source.
    pub fn names_nothing(&self) -> bool {
        self.named.is_empty() && !self.has_directories()
    }

    /// Where a session that works in `cwd` finds skills without being told of a directory: the places of the user and of the
    /// project, where they are to be looked in. They need not exist.
    pub fn discovered(&self, cwd: Option<&Path>) -> Vec<PathBuf> {
        let scanned = &self.scan.discovery.roots;
        let of_user = scanned.iter().filter(|root| root.scope == Scope::User).map(|root| root.path.clone());
        let project = cwd.and_then(|cwd| self.project_search(cwd));
        let of_project = project.into_iter().flat_map(|search| search.roots).map(|root| root.path);
        of_user.chain(of_project).collect()
    }

    /// The search for the skills of the project that `cwd` is in.
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

    /// The skills of the project that need no approval, or have it; the others wait. `None` when none needs it.
    fn sift(
        &self,
        cwd: Option<&Path>,
        project: Option<&SkillSet>,
        here: &[&ProjectSkills],
    ) -> Option<SkillSet> {
        let trust = self.trust.as_ref().filter(|_| !here.iter().any(|it| it.is_trusted))?;
        Some(trust.sift(&root(cwd?), project?))
    }

    /// The file that says what was decided about the project of a session.
    pub(super) fn trust_file(&self, cwd: &Path) -> Option<PathBuf> {
        self.trust.as_ref()?.file(&root(cwd))
    }

    /// Keeps what the user decided about skills of the project that `cwd` is in.
    pub(super) fn decide(&self, cwd: Option<&Path>, skills: &[Unapproved], trusted: bool) -> Decided {
        match (&self.trust, cwd) {
            (Some(trust), Some(cwd)) => trust.decide(&root(cwd), skills, trusted),
            _ => Decided::default(),
        }
    }

    /// Whether anything is in a directory, or could come to be in one.
    pub(super) fn has_directories(&self) -> bool {
        self.project.is_some()
            || !self.sources.is_empty()
            || !self.projects.is_empty()
            || !self.scan.discovery.roots.is_empty()
            || self.named.iter().any(|named| matches!(named, Named::Stored(_)))
    }
}

/// The project that a directory is in.
fn root(cwd: &Path) -> PathBuf {
    let boundary = project_roots(cwd).into_iter().find_map(|root| root.boundary);
    boundary.unwrap_or_else(|| cwd.to_owned())
}

/// Whether there is nothing in a set, not even a bad skill.
fn is_nothing(set: &SkillSet) -> bool {
    set.is_empty() && set.skipped().is_empty() && set.unapproved().is_empty()
}

/// Loads a skill that was named by an absolute path. With `strict`, any rule of the specification that it breaks is an
/// error.
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
