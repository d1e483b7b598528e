//! [`Processes`]: the registry of all process groups that we have started. It makes sure that all of them are ended
//! with this process, even if this process is killed.
//!
//! On a normal exit, this process ends the groups. If it is killed, this is not possible. On Unix, a watchdog process
//! is used for this case. On Windows, the operating system ends a job when the last handle to it is closed.
//!
//! | file | owns |
//! |---|---|
//! | `unix` | starting the watchdog and telling it about the groups |
//! | `alive` | checking if a process group still has running processes |
//! | `watchdog` | the watchdog process itself |
//! | `windows` | the job of this process |

#[cfg(unix)]
mod alive;
#[cfg_attr(unix, path = "processes/unix.rs")]
#[cfg_attr(windows, path = "processes/windows.rs")]
mod system;
#[cfg(unix)]
pub mod watchdog;

#[cfg(unix)]
pub use self::alive::group_is_alive;
#[cfg(windows)]
pub use self::system::end_children_with_this_process;

use std::{collections::HashSet, sync::Arc, thread};

use parking_lot::{Condvar, Mutex};
use skills_core::exec::ProcessObserver;
use tokio::sync::oneshot;

/// The registry of running process groups and of the processes that watch over them. Cheap to clone; all clones share
/// their state. When the last clone is dropped, all remaining groups are ended.
#[derive(Debug, Clone, Default)]
pub struct Processes(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    /// Guards the registry. No other lock is taken while it is held. The pipes that are written meanwhile never
    /// block.
    state: Mutex<State>,
    /// Notified when the leader of the agent's group is running, or failed to start.
    #[cfg_attr(windows, expect(dead_code, reason = "only Unix waits for a leader"))]
    leader_ready: Condvar,
}

#[derive(Debug, Default)]
struct State {
    groups: HashSet<u32>,
    guard: system::Guard,
}

impl Processes {
    /// Does the same as [`finish`](Self::finish), without blocking the caller.
    ///
    /// This uses a thread of its own, because the threads of the runtime's pool may all be blocked by a client that doesn't read.
    /// If the system refuses the thread, the caller is blocked after all.
    pub async fn end(&self) {
        let (done, ended) = oneshot::channel();
        let processes = self.clone();
        let work = move || {
            processes.finish();
            // This fails if the caller was dropped.
            let _ = done.send(());
        };
        match thread::Builder::new().name("processes".to_owned()).spawn(work) {
            // This fails if the thread has panicked, and then there is nothing to wait for.
            Ok(_) => drop(ended.await),
            Err(_) => self.finish(),
        }
    }

    fn add(&self, id: u32) {
        let mut state = self.0.state.lock();
        if state.groups.insert(id) {
            state.guard.added(id);
        }
    }

    /// Removes a group, which may never have had a process.
    fn remove(&self, id: u32) {
        // Make sure to drop the leader last. Otherwise, the system could use the id of the group for another process.
        let _leader = {
            let mut state = self.0.state.lock();
            let leader = state.guard.take_leader(id);
            if state.groups.remove(&id) {
                state.guard.removed(id);
            }
            leader
        };
    }
}

/// Registers scripts, and the programs of tools.
impl ProcessObserver for Processes {
    fn starting(&self) -> Option<u32> {
        self.new_group()
    }

    fn started(&self, group: Option<u32>, id: u32) {
        group.into_iter().chain([id]).for_each(|id| self.add(id));
    }

    fn ended(&self, group: Option<u32>, id: Option<u32>) {
        group.into_iter().chain(id).for_each(|id| self.remove(id));
    }
}
