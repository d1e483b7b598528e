//! Where the skills of sessions come from, and how changes of them are noticed.
//!
//! | file | owns |
//! |---|---|
//! | `mod` | what a library is |
//! | `directories` | the skills that a configuration names, as they are found on disk |
//! | `scan` | what is found below directories, once for all who ask |
//! | `snapshots` | the sets that sessions get, and the rescan where something has changed |
//! | `projects` | what differs for sessions in some directories |
//! | `missing` | what was asked for and is not there |
//! | `watch/` | noticing that skills have changed |

mod directories;
mod missing;
mod projects;
mod scan;
mod snapshots;
mod watch;

use std::{path::Path, sync::Arc, time::Duration};

use skills_core::{SkillSet, Toolbox, set::Unapproved};
use skills_sources::trust::Decided;

pub use self::{
    directories::{DirectoryLibrary, Named, load_named},
    projects::ProjectSkills,
    scan::Scan,
};

/// Where the skills of sessions come from. A set is a library too: always the same.
pub trait SkillLibrary: Send + Sync {
    /// The skills of a session that works in `cwd`. May read the disk.
    fn at(&self, cwd: Option<&Path>) -> SkillSet;

    /// Reads everything again, for the next call of [`at`](Self::at).
    fn reload(&self) {}

    /// Keeps what the user of a session that works in `cwd` decided about skills that wait there, as they were told of them;
    /// then [`at`](Self::at) returns what that comes to. May read and write the disk.
    fn decide(&self, cwd: Option<&Path>, skills: &[Unapproved], trusted: bool) -> Decided {
        let _ = (cwd, trusted);
        let why = "nothing of this library waits".to_owned();
        let failed = skills.iter().map(|it| (it.skill.name.clone(), why.clone())).collect();
        Decided { failed, ..Decided::default() }
    }

    /// No session works in `cwd` any more.
    fn leave(&self, cwd: &Path) {
        let _ = cwd;
    }

    /// Calls `changed` each time that the skills differ from those before, for as long as the library lives: from a
    /// thread of its own, once [`at`](Self::at) returns the new ones. A library whose skills never change by themselves
    /// never calls it.
    fn watch(self: Arc<Self>, changed: WhenReloaded) {
        drop(changed);
    }
}

/// What a library found when it searched again, over all directories that it looks after.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reloaded {
    /// How many skills are new.
    pub added: usize,
    /// How many are not there any more.
    pub removed: usize,
    /// How many differ from what they were.
    pub changed: usize,
    /// How long it took to find out.
    pub took: Duration,
}

/// What a library calls when its skills have changed.
pub type WhenReloaded = Box<dyn Fn(Reloaded) + Send>;

impl SkillLibrary for SkillSet {
    fn at(&self, _cwd: Option<&Path>) -> SkillSet {
        self.clone()
    }
}

/// A library that is shared.
pub type Library = Arc<dyn SkillLibrary>;

/// Makes the tools over a set of skills.
pub type MakeToolbox = Arc<dyn Fn(SkillSet) -> Toolbox + Send + Sync>;
