//! [`Processes`]: the process groups that this process has started, so that all of them end with it, however it ends.
//!
//! A process that ends in good order ends its children itself. One that is killed cannot, so somebody else has to: on Unix a
//! watchdog, on Windows the system, which ends a job with its last handle.
//!
//! | file | owns |
//! |---|---|
//! | `mod` | which groups run |
//! | `unix` | how the watchdog is started and told of them |
//! | `alive` | whether anybody is left in a group |
//! | `watchdog` | what it does, in a process of its own |
//! | `windows` | the job that this process is in |

#[cfg(unix)]
mod alive;
#[cfg_attr(unix, path = "processes/unix.rs")]
#[cfg_attr(windows, path = "processes/windows.rs")]
mod system;
#[cfg(unix)]
pub mod watchdog;

#[cfg(unix)]
pub(crate) use self::alive::group_is_alive;
#[cfg(windows)]
pub(crate) use self::system::end_children_with_this_process;

use std::{collections::HashSet, sync::Arc};

use parking_lot::{Condvar, Mutex};

use skills_core::exec::ProcessObserver;

/// The groups that run, and who watches over them. All clones are the same; with the last one, what is left is ended.
#[derive(Debug, Clone, Default)]
pub struct Processes(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    /// Guards everything. Taken alone, and held while a few bytes go into a pipe that never blocks.
    state: Mutex<State>,
    /// A guard of the agent's has started, or cannot be.
    #[cfg_attr(windows, expect(dead_code, reason = "nobody waits there"))]
    prepared: Condvar,
}

#[derive(Debug, Default)]
struct State {
    groups: HashSet<u32>,
    guard: system::Guard,
}

impl Processes {
    fn add(&self, id: u32) {
        let mut state = self.0.state.lock();
        if state.groups.insert(id) {
            state.guard.added(id);
        }
    }

    /// Also of one that was made and stayed empty.
    fn remove(&self, id: u32) {
        // It goes last: only then may its number be another's.
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

/// Scripts, and the programs behind tools.
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
