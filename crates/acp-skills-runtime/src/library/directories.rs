//! [`DirectoryLibrary`]: the skills that a configuration names, as they are found on disk.

use std::{path::Path, sync::Arc};

use acp_skills_intercept::Workspace;
use skills_core::{
    Diagnostic, LoadError, Skill, Source,
    discovery::{Discovery, NamedSkill, load_dir},
    frontmatter::{ParseContext, Verdict, validate_bytes},
};
use skills_sources::{Address, Sources, trust::Trust};

use acp_skills_servers::skills::SkillServers;

use super::{missing, projects::ProjectSkills, rules::Rules, scan::Scan};

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
    pub(super) rules: Rules,
    pub(super) servers: SkillServers,
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
            rules: Rules::default(),
            servers: SkillServers::default(),
        }
    }

    /// Sets the approvals. With these, skills of a project are only used if the user approved them.
    #[must_use]
    pub fn trust(self, trust: Option<Trust>) -> Self {
        Self { trust, ..self }
    }

    /// Sets the rules of an administrator.
    #[must_use]
    pub fn governed(self, rules: Rules) -> Self {
        Self { rules, ..self }
    }

    /// Sets the MCP servers that offer skills. By default, there are none.
    #[must_use]
    pub fn servers(self, servers: SkillServers) -> Self {
        Self { servers, ..self }
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

    /// Fetches all sources that are not in the store yet, and waits until they are there. A skill that cannot be
    /// loaded is among the [skipped skills](skills_core::SkillSet::skipped). Returns the other failures, each as a sentence with a
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
        let own = [&self.rules.required, &self.sources].into_iter();
        own.chain(self.projects.iter().map(|project| &project.sources))
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
    /// loaded are not included, because they are among the [skipped skills](skills_core::SkillSet::skipped).
    pub fn missing(&self) -> Vec<String> {
        missing::sentences(&self.scan.discovery, &self.scan.get())
    }

    /// Returns true if the configuration has no skill, no directory and no source.
    pub fn is_empty(&self) -> bool {
        self.named.is_empty() && !self.servers.has_configured() && !self.has_directories()
    }

    /// Returns true if skills can come from the disk, now or later.
    pub(super) fn has_directories(&self) -> bool {
        self.project.is_some()
            || !self.sources.is_empty()
            || !self.rules.required.is_empty()
            || !self.projects.is_empty()
            || !self.scan.discovery.roots.is_empty()
            || self.named.iter().any(|named| matches!(named, Named::Stored(_)))
    }
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
