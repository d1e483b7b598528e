//! [`Attached`]: the skills and tools that a program attaches to a proxy.

use std::{path::PathBuf, sync::Arc};

use acp_skills_intercept::Workspace;
use acp_skills_runtime::library::{Library, SkillLibrary, WhenReloaded};
use skills_core::{
    LoadError, Skill, SkillName, SkillSet, SkillTool, load_dir,
    set::{ToolNameError, Unapproved},
};
use skills_sources::trust::Decided;

/// Skills and tools, in the order in which they were attached.
#[derive(Default, Clone)]
pub(super) struct Attached {
    skills: Vec<Origin>,
    tools: Vec<SkillTool>,
}

#[derive(Clone)]
enum Origin {
    Dir(PathBuf),
    Code(Box<Skill>),
}

/// An error that occurs when a skill or a tool is attached to a proxy.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AttachError {
    /// The skill in a directory is missing or invalid.
    #[error("cannot attach skill from {}", path.display())]
    Directory {
        /// The directory.
        path: PathBuf,
        /// The skill's problems.
        source: LoadError,
    },
    /// Two attached skills have the same name.
    #[error("duplicate skill name `{0}`")]
    DuplicateSkill(SkillName),
    /// The name of a tool is invalid or already used.
    #[error("cannot attach a tool")]
    Tool(#[from] ToolNameError),
}

impl Attached {
    pub(super) fn dir(&mut self, dir: PathBuf) {
        self.skills.push(Origin::Dir(dir));
    }

    pub(super) fn skill(&mut self, skill: Skill) {
        self.skills.push(Origin::Code(Box::new(skill)));
    }

    pub(super) fn tool(&mut self, tool: SkillTool) {
        self.tools.push(tool);
    }

    /// Returns a library with the attached skills and tools, followed by those of `library`.
    ///
    /// # Errors
    /// See the variants of [`AttachError`].
    pub(super) fn in_front_of(self, library: Library) -> Result<Library, AttachError> {
        let mut own = SkillSet::builder();
        for origin in self.skills {
            let (skill, diagnostics) = match origin {
                Origin::Dir(path) => {
                    load_dir(&path).map_err(|source| AttachError::Directory { path, source })?
                }
                Origin::Code(skill) => (*skill, Vec::new()),
            };
            let name = skill.name.clone();
            if !own.add(skill, diagnostics) {
                return Err(AttachError::DuplicateSkill(name));
            }
        }
        for tool in self.tools {
            own.add_tool(tool)?;
        }
        let own = own.build();
        Ok(if own.offers_nothing() { library } else { Arc::new(InFront { own, library }) })
    }
}

/// A library with attached skills and tools in front of it.
struct InFront {
    own: SkillSet,
    library: Library,
}

impl SkillLibrary for InFront {
    fn at(&self, workspace: &Workspace) -> SkillSet {
        let mut all = SkillSet::builder();
        all.extend(&self.own);
        all.extend(&self.library.at(workspace));
        all.build()
    }

    fn reload(&self) {
        self.library.reload();
    }

    fn decide(&self, workspace: &Workspace, skills: &[Unapproved], trusted: bool) -> Decided {
        self.library.decide(workspace, skills, trusted)
    }

    fn revoke(&self, workspace: &Workspace, names: &[SkillName], skills: &[Arc<Skill>]) -> Decided {
        self.library.revoke(workspace, names, skills)
    }

    fn leave(&self, workspace: &Workspace) {
        self.library.leave(workspace);
    }

    fn watch(self: Arc<Self>, changed: WhenReloaded) {
        Arc::clone(&self.library).watch(changed);
    }
}
