//! The skills of sessions, and how changes to them are noticed.
//!
//! | file | owns |
//! |---|---|
//! | `directories` | the skills that a configuration names, as they are found on disk |
//! | `scan` | the result of a search below directories, which all sessions share |
//! | `snapshots` | the sets that sessions get, and the new search after a change |
//! | `workspace` | the skills of a session, and the directories of its projects |
//! | `revoke` | taking trust back, by name |
//! | `project_searches` | the searches for the skills of a session's projects |
//! | `project_tree` | the subdirectories of a project that can have skills, as monorepos have them |
//! | `projects` | additional skills and filters for sessions in certain directories |
//! | `rules` | the rules of an administrator about skills on disk |
//! | `missing` | warnings about directories without skills, and filters that match none |
//! | `warnings` | lines for the log about the skills of sessions |
//! | `watch/` | noticing that skills have changed |

mod directories;
mod missing;
mod project_searches;
mod project_tree;
mod projects;
mod revoke;
mod rules;
mod scan;
mod snapshots;
mod warnings;
mod watch;
mod workspace;

use std::{sync::Arc, time::Duration};

use acp_skills_intercept::Workspace;
use skills_core::{Skill, SkillName, SkillSet, Toolbox, set::Unapproved};
use skills_sources::trust::Decided;

use acp_skills_servers::skills::SkillServers;

pub use self::{
    directories::{DirectoryLibrary, Named, load_named},
    projects::ProjectSkills,
    rules::Rules,
    scan::Scan,
};

/// A source of skills for sessions. A [`SkillSet`] is a library too, which never changes.
pub trait SkillLibrary: Send + Sync {
    /// Returns the skills of a session with these directories. May read the disk.
    fn at(&self, workspace: &Workspace) -> SkillSet;

    /// Reads everything again, so that the next call of [`at`](Self::at) returns the current skills. By default, does
    /// nothing.
    fn reload(&self) {}

    /// Saves the user's decision about skills of a project that need approval, as they were shown in a session
    /// with these directories. After that, [`at`](Self::at) returns the skills according to the decision. May read and write the disk.
    /// By default, the decision fails for all skills.
    fn decide(&self, workspace: &Workspace, skills: &[Unapproved], trusted: bool) -> Decided {
        let _ = (workspace, trusted);
        let why = "skills of this library need no approval".to_owned();
        let failed = skills.iter().map(|unapproved| (unapproved.skill.name.clone(), why.clone())).collect();
        Decided { failed, ..Decided::default() }
    }

    /// Takes the user's trust in all skills of a project with these names back. `skills` are those that a session has. After that,
    /// [`at`](Self::at) returns them as unapproved. May read and write the disk. By default, there was no trust in any of the skills.
    fn revoke(&self, workspace: &Workspace, names: &[SkillName], skills: &[Arc<Skill>]) -> Decided {
        let _ = (workspace, skills);
        Decided { unknown: names.to_vec(), ..Decided::default() }
    }

    /// Returns the MCP servers that offer skills. They are asked once the library is watched. By default, there are none.
    fn servers(&self) -> SkillServers {
        SkillServers::default()
    }

    /// Tells the library that no session has these directories any more.
    fn leave(&self, workspace: &Workspace) {
        let _ = workspace;
    }

    /// Calls `changed` whenever the skills have changed, after [`at`](Self::at) returns the new ones. The calls come
    /// from a background thread and continue as long as the library lives. By default, `changed` is never called,
    /// because the skills don't change by themselves.
    fn watch(self: Arc<Self>, changed: WhenReloaded) {
        drop(changed);
    }
}

/// The result of a new search, over all directories of a library.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Reloaded {
    /// The number of new skills.
    pub added: usize,
    /// The number of skills that were removed.
    pub removed: usize,
    /// The number of skills that have changed.
    pub changed: usize,
    /// The duration of the search.
    pub took: Duration,
}

/// A function that a library calls after its skills have changed.
pub type WhenReloaded = Box<dyn Fn(Reloaded) + Send>;

impl SkillLibrary for SkillSet {
    fn at(&self, _workspace: &Workspace) -> SkillSet {
        self.clone()
    }
}

/// A shared library.
pub type Library = Arc<dyn SkillLibrary>;

/// A function that creates the tools for a set of skills.
pub type MakeToolbox = Arc<dyn Fn(SkillSet) -> Toolbox + Send + Sync>;
