//! Processes are in jobs, and the system ends a job when its last handle is closed, so also when this process is killed.
//! Nobody has to watch.
//!
//! A program is put into its job after it was created, suspended. If this process is killed in between, it would stay for
//! ever, and with it the pipes that it has inherited. So this process is in a job itself, which takes in all that it starts
//! from the first instant ([Nested Jobs]).
//!
//! [Nested Jobs]: https://learn.microsoft.com/windows/win32/procthread/nested-jobs

use std::{env, path::Path, sync::Once};

use win32job::{ExtendedLimitInfo, Job, JobError};

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
    /// The same as [`prepare`](Self::prepare).
    pub fn prepare_agent(&self, program: &Path) {
        self.prepare(program);
    }

    /// Has all processes ended should this one be killed, where it is the one of `program`: other programs may have started
    /// processes that are to stay.
    pub fn prepare(&self, program: &Path) {
        if env::current_exe().is_ok_and(|own| own == program) {
            end_children_with_this_process();
        }
    }

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

/// Has the system end whatever this process starts from now on, however this process ends.
pub(crate) fn end_children_with_this_process() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        if let Err(error) = join_job() {
            tracing::warn!("processes that are just being started would outlive this one: {error}");
        }
    });
}

fn join_job() -> Result<(), JobError> {
    let mut limits = ExtendedLimitInfo::new();
    limits.limit_kill_on_job_close();
    let job = Job::create_with_limit_info(&limits)?;
    job.assign_current_process()?;
    // The system closes it when this process is over; whoever closes it earlier ends this process.
    job.into_handle();
    Ok(())
}
