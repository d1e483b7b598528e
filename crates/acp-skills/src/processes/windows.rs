//! Processes are in jobs, and the system ends a job when its last handle is closed, so also when this process is killed.
//! Nobody has to watch.

use std::path::Path;

use super::Processes;

/// There is none.
#[derive(Debug, Default)]
pub(super) struct Guard;

#[expect(clippy::unused_self, reason = "the interface of the other systems")]
impl Guard {
    pub(super) fn added(&mut self, _id: u32) {}

    pub(super) fn removed(&mut self, _id: u32) {}

    /// Nobody leads a job.
    pub(super) fn take_leader(&mut self, _id: u32) -> Option<Guard> {
        None
    }
}

#[expect(clippy::unused_self, reason = "the interface of the other systems")]
impl Processes {
    /// Nothing to prepare.
    pub fn prepare_agent(&self, _program: &Path) {}

    /// Nothing to prepare.
    pub fn prepare(&self, _program: &Path) {}

    /// An agent is in a job of its own.
    pub(crate) fn agent_group(&self) -> Option<u32> {
        None
    }

    /// An agent runs.
    pub(crate) fn agent_started(&self, _group: Option<u32>, id: Option<u32>) {
        if let Some(id) = id {
            self.add(id);
        }
    }

    /// An agent has ended, with all its children.
    pub(crate) fn agent_ended(&self, _group: Option<u32>, id: Option<u32>) {
        if let Some(id) = id {
            self.remove(id);
        }
    }

    /// Nothing to end.
    pub fn finish(&self) {}

    /// A program is in a job of its own.
    pub(super) fn new_group(&self) -> Option<u32> {
        None
    }
}
