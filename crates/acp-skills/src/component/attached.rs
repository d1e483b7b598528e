//! What a program attaches to a proxy: skills, by directory or defined in code, and tools.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::{Context, bail};
use skills_core::{Skill, SkillSet, SkillTool, load_dir};

use crate::library::{Library, SkillLibrary, WhenReloaded};

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

    /// All of it in front of what `library` has.
    ///
    /// # Errors
    /// A directory that holds no skill, or a name that is there twice.
    pub(super) fn in_front_of(self, library: Library) -> anyhow::Result<Library> {
        let mut own = SkillSet::builder();
        for origin in self.skills {
            let (skill, diagnostics) = match origin {
                Origin::Dir(dir) => {
                    load_dir(&dir).with_context(|| format!("cannot attach the skill in {}", dir.display()))?
                }
                Origin::Code(skill) => (*skill, Vec::new()),
            };
            let name = skill.name.clone();
            if !own.add(skill, diagnostics) {
                bail!("two skills named `{name}` are attached");
            }
        }
        for tool in self.tools {
            own.add_tool(tool).context("cannot attach a tool")?;
        }
        let own = own.build();
        Ok(if own.offers_nothing() { library } else { Arc::new(InFront { own, library }) })
    }
}

/// A library behind what is attached.
struct InFront {
    own: SkillSet,
    library: Library,
}

impl SkillLibrary for InFront {
    fn at(&self, cwd: Option<&Path>) -> SkillSet {
        let mut all = SkillSet::builder();
        all.extend(&self.own);
        all.extend(&self.library.at(cwd));
        all.build()
    }

    fn reload(&self) {
        self.library.reload();
    }

    fn leave(&self, cwd: &Path) {
        self.library.leave(cwd);
    }

    fn watch(self: Arc<Self>, changed: WhenReloaded) {
        Arc::clone(&self.library).watch(changed);
    }
}
