//! Where the skills of sessions come from, and how changes of them are noticed.
//!
//! | file | owns |
//! |---|---|
//! | `mod` | what a library is |
//! | `directories` | the skills that a configuration names, as they are found |
//! | `snapshots` | what was found, for sessions; and finding it again where something has changed |
//! | `missing` | what was asked for and is not there |
//! | `remote` | the skills of web sites |
//! | `watch/` | noticing that skills have changed |

mod directories;
mod missing;
pub(crate) mod remote;
mod snapshots;
mod watch;

use std::{path::Path, sync::Arc, time::Duration};

use skills_core::{SkillSet, Toolbox};

pub use self::directories::DirectoryLibrary;
pub(crate) use self::directories::{Named, Scan, load_named};

/// Where the skills of sessions come from. A set is a library too: always the same.
pub trait SkillLibrary: Send + Sync {
    /// The skills of a session that works in `cwd`.
    fn at(&self, cwd: Option<&Path>) -> SkillSet;

    /// Looks again at what is there, for the next call.
    fn reload(&self) {}

    /// No session works in `cwd` any more.
    fn leave(&self, cwd: &Path) {
        let _ = cwd;
    }

    /// Has `changed` called each time that there are other skills than before, for as long as the library lives; by a
    /// thread of its own, and when [`at`](Self::at) gives the new ones at once. A library whose skills never change by
    /// themselves never does.
    fn watch(self: Arc<Self>, changed: WhenReloaded) {
        drop(changed);
    }
}

/// What a library found when it looked again, over all directories that it looks after.
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

/// Who wants to know that there are other skills.
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
