//! Ends processes that have left the process group of the agent that started them (Linux).
//!
//! Such a process survives the end of its group. If this process is a *subreaper*, the system makes it the parent of these
//! processes when their own parent ends. They are recognized by a variable in their environment, which they inherit from the agent.

use std::{
    fs,
    sync::atomic::{AtomicU64, Ordering},
    thread,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, WaitOptions, getpid, kill_process, set_child_subreaper, waitpid};

/// The variable with the mark of an agent.
pub(super) const VARIABLE: &str = "ACP_SKILLS_EVAL_AGENT";
/// The maximum time for ending the processes of an agent. Each generation of processes takes a round.
const TIMEOUT: Duration = Duration::from_secs(2);
/// The pause before a round, in which killed processes end.
const PAUSE: Duration = Duration::from_millis(2);

static NEXT: AtomicU64 = AtomicU64::new(0);

/// Makes this process the parent of processes whose parent has ended, until it ends. Returns false if the system doesn't support
/// it.
pub fn adopt_orphans() -> bool {
    set_child_subreaper(Some(getpid())).is_ok()
}

/// Returns a new mark for an agent.
pub(super) fn mark() -> String {
    format!("{}-{}", getpid().as_raw_nonzero(), NEXT.fetch_add(1, Ordering::Relaxed))
}

/// Kills the processes with this mark that this process has adopted. Blocks until they have ended, for two seconds at most.
pub(super) fn end(mark: &str) {
    let wanted = format!("{VARIABLE}={mark}");
    let deadline = Instant::now() + TIMEOUT;
    let mut killed: Vec<Pid> = Vec::new();
    loop {
        let found: Vec<_> = children().into_iter().filter(|child| has_variable(*child, &wanted)).collect();
        for &child in &found {
            // This fails if the process has ended in the meantime.
            let _ = kill_process(child, Signal::KILL);
            if !killed.contains(&child) {
                killed.push(child);
            }
        }
        // Wait for them, so that their ids are free and their own children become ours. The next round finds those children.
        killed.retain(|child| matches!(waitpid(Some(*child), WaitOptions::NOHANG), Ok(None)));
        if (found.is_empty() && killed.is_empty()) || Instant::now() > deadline {
            return;
        }
        thread::sleep(PAUSE);
    }
}

/// Returns the children of this process.
fn children() -> Vec<Pid> {
    let mut children = Vec::new();
    for task in fs::read_dir("/proc/self/task").into_iter().flatten().flatten() {
        let Ok(text) = fs::read_to_string(task.path().join("children")) else { continue };
        children.extend(text.split_whitespace().filter_map(|id| Pid::from_raw(id.parse().ok()?)));
    }
    children
}

/// Returns true if a process has started with this variable. A process that has ended has none.
fn has_variable(process: Pid, wanted: &str) -> bool {
    let environment = fs::read(format!("/proc/{}/environ", process.as_raw_nonzero())).unwrap_or_default();
    environment.split(|byte| *byte == 0).any(|variable| variable == wanted.as_bytes())
}
