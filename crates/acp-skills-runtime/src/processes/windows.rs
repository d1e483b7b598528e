//! Puts this process into a job object (Windows).
//!
//! Each child process has its own job, and Windows ends a job when its last handle is closed, which also happens if
//! this process is killed. No watchdog is needed.
//!
//! A program is created in a suspended state and then added to its job. If this process were killed in between, the
//! program would stay suspended forever and hold the pipes that it has inherited. To avoid this, this process is in a
//! job itself, and its children belong to that job from the start ([Nested Jobs]).
//!
//! [Nested Jobs]: https://learn.microsoft.com/windows/win32/procthread/nested-jobs

use std::{env, path::Path, sync::Once};

use win32job::{ExtendedLimitInfo, Job, JobError};

use super::Processes;

/// The helper processes, of which there are none on Windows.
#[derive(Debug, Default)]
pub(super) struct Guard;

#[expect(clippy::unused_self, reason = "the interface of the other systems")]
impl Guard {
    pub(super) fn added(&mut self, _id: u32) {}

    pub(super) fn removed(&mut self, _id: u32) {}

    /// Returns `None`, because jobs have no leader.
    pub(super) fn take_leader(&mut self, _id: u32) -> Option<Guard> {
        None
    }
}

#[expect(clippy::unused_self, reason = "the interface of the other systems")]
impl Processes {
    /// Does the same as [`prepare`](Self::prepare).
    pub fn prepare_agent(&self, program: &Path) {
        self.prepare(program);
    }

    /// Ensures that all child processes are ended if this process is killed. Does so only if `program` is the program
    /// of this process, because other programs may have children that have to survive.
    pub fn prepare(&self, program: &Path) {
        if env::current_exe().is_ok_and(|own| own == program) {
            end_children_with_this_process();
        }
    }

    /// Returns `None`, because each agent has its own job.
    pub(crate) fn agent_group(&self) -> Option<u32> {
        None
    }

    /// Registers an agent.
    pub(crate) fn agent_started(&self, _group: Option<u32>, id: Option<u32>) {
        if let Some(id) = id {
            self.add(id);
        }
    }

    /// Removes an agent that has exited with all of its children.
    pub(crate) fn agent_ended(&self, _group: Option<u32>, id: Option<u32>) {
        if let Some(id) = id {
            self.remove(id);
        }
    }

    /// Does nothing, because Windows ends the jobs.
    pub fn finish(&self) {}

    /// Returns `None`, because each program has its own job.
    pub(super) fn new_group(&self) -> Option<u32> {
        None
    }
}

/// Makes Windows end all future children of this process when this process ends, for whatever reason.
pub(crate) fn end_children_with_this_process() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        if let Err(error) = join_job() {
            tracing::warn!(
                "a process that is being started could outlive the proxy if it is killed: {error}"
            );
        }
    });
}

fn join_job() -> Result<(), JobError> {
    let mut limits = ExtendedLimitInfo::new();
    limits.limit_kill_on_job_close();
    let job = Job::create_with_limit_info(&limits)?;
    job.assign_current_process()?;
    // Windows closes the handle when this process ends. Closing it earlier would end this process.
    job.into_handle();
    Ok(())
}
