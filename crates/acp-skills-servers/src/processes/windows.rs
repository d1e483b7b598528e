//! Puts this process into a job object (Windows).
//!
//! Each child process runs in a separate job. Windows ends a job when the last handle to it is closed, which also
//! happens if this process is killed, so there is no need for a watchdog.
//!
//! A program is first created in a suspended state, and then added to a job. If this process is killed in between,
//! the program would stay suspended forever and keep the inherited pipes open. To avoid this, we also run this
//! process in a job, which includes all children from the start ([Nested Jobs]).
//!
//! [Nested Jobs]: https://learn.microsoft.com/windows/win32/procthread/nested-jobs

use std::{env, path::Path, sync::Once};

use win32job::{ExtendedLimitInfo, Job, JobError};

use super::Processes;

/// The helper processes, of which there are none on Windows.
#[derive(Debug, Default)]
pub(super) struct Guard;

#[expect(clippy::unused_self, reason = "same interface as on Unix")]
impl Guard {
    pub(super) fn added(&mut self, _id: u32) {}

    pub(super) fn removed(&mut self, _id: u32) {}

    /// Returns `None`, because jobs have no leader.
    pub(super) fn take_leader(&mut self, _id: u32) -> Option<Guard> {
        None
    }
}

#[expect(clippy::unused_self, reason = "same interface as on Unix")]
impl Processes {
    /// Does the same as [`prepare`](Self::prepare).
    pub fn prepare_agent(&self, program: &Path) {
        self.prepare(program);
    }

    /// Ensures that all child processes are ended if this process is killed. This only has an effect if this process
    /// runs `program`, because other programs may start children that should keep running.
    pub fn prepare(&self, program: &Path) {
        if env::current_exe().is_ok_and(|own| own == program) {
            end_children_with_this_process();
        }
    }

    /// Returns `None`, because agents run in separate jobs.
    pub fn agent_group(&self) -> Option<u32> {
        None
    }

    /// Registers an agent.
    pub fn agent_started(&self, _group: Option<u32>, id: Option<u32>) {
        if let Some(id) = id {
            self.add(id);
        }
    }

    /// Removes an agent after the agent and all of its children have ended.
    pub fn agent_ended(&self, _group: Option<u32>, id: Option<u32>) {
        if let Some(id) = id {
            self.remove(id);
        }
    }

    /// Does nothing, because Windows ends the jobs.
    pub fn finish(&self) {}

    /// Returns `None`, because programs run in separate jobs.
    pub(super) fn new_group(&self) -> Option<u32> {
        None
    }
}

/// Makes Windows end all future children of this process when this process ends.
pub fn end_children_with_this_process() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        if let Err(error) = join_job() {
            tracing::warn!("new process may keep running if the proxy is killed: {error}");
        }
    });
}

fn join_job() -> Result<(), JobError> {
    let mut limits = ExtendedLimitInfo::new();
    limits.limit_kill_on_job_close();
    let job = Job::create_with_limit_info(&limits)?;
    job.assign_current_process()?;
    // We must not close the handle, or it would end our own process. It's closed by Windows when we exit.
    job.into_handle();
    Ok(())
}
