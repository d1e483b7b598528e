//! [`Skills`]: the skills of a session, and which of them the client gets.

use std::collections::HashSet;

use acp_skills_intercept::{Workspace, other_name};
use skills_core::{Skill, SkillName, SkillSet};

use super::own_skills::OwnSkills;

/// The skills of a session.
#[derive(Clone, Default)]
pub(super) struct Skills {
    /// The directories of the session.
    pub(super) workspace: Workspace,
    /// All skills of the workspace.
    pub(super) library: SkillSet,
    /// The keys of the skills that are off in the working directory.
    pub(super) off: HashSet<String>,
    /// The skills that the client loads itself, if these are left out.
    pub(super) own: OwnSkills,
}

impl Skills {
    /// Returns the skills that the client gets. May read the disk.
    pub(super) fn visible(&self) -> SkillSet {
        let is_off = |name: &SkillName| self.off.contains(&name.key());
        let is_visible = |skill: &Skill| {
            !is_off(&skill.name)
                && !other_name(skill).is_some_and(|name| is_off(&name))
                && !self.own.has(skill)
        };
        // A client doesn't tell us which files come up, so skills that are meant for certain files are always listed.
        self.library.filtered(is_visible).joined(|_| true)
    }
}

#[cfg(test)]
mod tests {
    use std::{error::Error, sync::Arc};

    use skills_core::{
        Source,
        skill::{FileService, Remote, Sha256},
    };

    use super::*;

    #[derive(Debug)]
    struct Docs;

    impl FileService for Docs {
        fn label(&self) -> &'static str {
            "MCP server docs"
        }

        fn identity(&self) -> &'static str {
            "docs"
        }

        fn namespace(&self) -> Option<&str> {
            Some("docs")
        }

        fn read(&self, _: &str) -> Result<Vec<u8>, Box<dyn Error + Send + Sync>> {
            Err("not read".into())
        }
    }

    /// The name of a skill of a server depends on the user's own skills.
    #[test]
    fn a_skill_stays_off_under_its_other_name() {
        let name = |name: &str| SkillName::new(name).unwrap();
        for (off, own) in [("review", true), ("docs-review", false)] {
            let remote =
                Remote::of_service("skill://review/SKILL.md", Sha256::of(b""), Vec::new(), Arc::new(Docs));
            let called = if own { "docs-review" } else { "review" };
            let mut library = SkillSet::builder();
            library.add_shared(Arc::new(Skill::new(name(called), "d", Source::Remote(remote))), Vec::new());
            library.add(Skill::builder("other", "d").body("x").build().unwrap(), Vec::new());
            let off = [name(off).key()].into();
            let skills = Skills { library: library.build(), off, ..Skills::default() };
            let visible: Vec<_> = skills.visible().iter().map(|skill| skill.name.to_string()).collect();
            assert_eq!(visible, ["other"], "{called}");
        }
    }
}
