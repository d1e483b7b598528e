//! [`Style`]: the wording and order of a catalog.

use std::path::Component;

use super::{Guide, one_line};
use crate::skill::Skill;

/// The wording and order of a catalog. The best one depends on the model, and can be measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Deserialize, schemars::JsonSchema)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Style {
    /// A list, with instructions that explain what skills are.
    #[default]
    List,
    /// The same list, with instructions that demand to check it before each task.
    Imperative,
    /// The list in groups if there are more than 60 skills: by the first tag of a skill or, if it has none, by its source.
    Grouped,
}

impl Style {
    /// All styles, the default first.
    pub const ALL: [Self; 3] = [Self::List, Self::Imperative, Self::Grouped];

    /// Returns the name of the style, as in `--catalog-style`.
    pub fn name(self) -> &'static str {
        match self {
            Self::List => "list",
            Self::Imperative => "imperative",
            Self::Grouped => "grouped",
        }
    }

    /// Returns the instructions of the style.
    pub(super) fn guide(self, guide: Guide) -> &'static str {
        match (self, guide) {
            (Self::List | Self::Grouped, Guide::Tools) => {
                "Skills are proven instructions for particular kinds of tasks. \
                 When a task matches the description of a skill, call `activate_skill` with its name before you begin, \
                 and follow the instructions that it returns."
            }
            (Self::List | Self::Grouped, Guide::Files) => {
                "Skills are proven instructions for particular kinds of tasks. \
                 When a task matches the description of a skill, read the `SKILL.md` at its location with your own file \
                 tools before you begin, and follow the instructions in it. \
                 Relative paths in a skill start at the directory of its `SKILL.md`; read further files only when the \
                 instructions ask for them."
            }
            (_, Guide::Prompts) => {
                "Skills are proven instructions for particular kinds of tasks. \
                 You cannot load them yourself. The instructions of a skill are added to a message of the user that matches its \
                 description, or that begins with `/skill:NAME`. When a task needs a skill whose instructions you do not have, \
                 ask the user to send `/skill:NAME` with its name."
            }
            (Self::Imperative, Guide::Tools) => {
                "Before each task, compare it with these skills. \
                 If one fits, you must call `activate_skill` with its name first, and follow the instructions that it \
                 returns. Do not begin from memory. If none fits, continue without a skill."
            }
            (Self::Imperative, Guide::Files) => {
                "Before each task, compare it with these skills. \
                 If one fits, you must read the `SKILL.md` at its location with your own file tools first, and follow \
                 the instructions in it. Do not begin from memory. If none fits, continue without a skill. \
                 Relative paths in a skill start at the directory of its `SKILL.md`; read further files only when the \
                 instructions ask for them."
            }
        }
    }
}

/// Returns the name of a skill's group: its first tag, or the directory from which it comes, or its scope. The tags of a service don't
/// count, because its user approves them unseen.
pub(super) fn group(skill: &Skill) -> String {
    if let Some(tag) = skill.properties.tags.first().filter(|_| skill.service().is_none()) {
        return one_line(tag);
    }
    let above = skill.dir().and_then(|dir| dir.parent());
    // Most directories of skills are called `skills`, such as `python/.claude/skills`.
    let names = above.into_iter().flat_map(|above| above.components().rev()).filter_map(|part| match part {
        Component::Normal(name) => Some(name.to_string_lossy()),
        _ => None,
    });
    let mut names = names.filter(|name| !name.starts_with('.') && name != "skills");
    names.next().map_or_else(|| skill.scope.to_string(), |name| one_line(&name))
}
