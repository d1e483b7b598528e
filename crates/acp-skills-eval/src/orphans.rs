//! Ends processes that have left the process group of the agent that started them (Linux).
//!
//! Such a process survives the end of its group. If this process is a *subreaper*, the system makes it the parent of these
//! processes when their own parent ends. They are recognized by a variable in their environment, which they inherit from the agent. Those
//! that have removed it are ended together with our other children.

use std::{
    fs,
    sync::atomic::{AtomicU64, Ordering},
    thread,
    time::{Duration, Instant},
};

use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, WaitOptions, getpid, kill_process, set_child_subreaper, waitid,
    waitpid,
};

/// The variable with the mark of an agent.
pub(super) const VARIABLE: &str = "ACP_SKILLS_EVAL_AGENT";
/// The maximum time for ending the processes of an agent. Each generation of processes takes a round.
const TIMEOUT: Duration = Duration::from_secs(2);
/// The maximum time for processes that start a program when we look at them, so that they have no environment yet. Processes that
/// were started without any variable look the same.
const UNKNOWN_TIMEOUT: Duration = Duration::from_millis(200);
/// The pause before a round, in which killed processes end.
const PAUSE: Duration = Duration::from_millis(2);

static NEXT: AtomicU64 = AtomicU64::new(0);

/// Kills all children of this process when it is dropped, including those that were adopted.
#[derive(Debug)]
#[must_use]
pub struct AdoptedOrphans(());

/// Makes this process the parent of processes whose parent has ended. If the system doesn't support it, these keep running.
pub fn adopt_orphans() -> AdoptedOrphans {
    let _ = set_child_subreaper(Some(getpid()));
    AdoptedOrphans(())
}

impl Drop for AdoptedOrphans {
    fn drop(&mut self) {
        end_each(|_child| Some(true));
    }
}

/// Returns a new mark for an agent.
pub(super) fn mark() -> String {
    format!("{}-{}", getpid().as_raw_nonzero(), NEXT.fetch_add(1, Ordering::Relaxed))
}

/// Kills the processes with this mark that this process has adopted. Blocks until they have ended, for two seconds at most.
pub(super) fn end(mark: &str) {
    let wanted = format!("{VARIABLE}={mark}");
    end_each(|child| has_variable(child, &wanted));
}

/// Kills the children for which `is_wanted` returns true. `None` means that this is not known yet.
fn end_each(is_wanted: impl Fn(Pid) -> Option<bool>) {
    let start = Instant::now();
    let mut killed: Vec<Pid> = Vec::new();
    // The list of children lacks some if others end while it is read (see `proc_tid_children(5)`), so look twice.
    let mut was_done = false;
    loop {
        let mut found = Vec::new();
        let mut is_unknown = false;
        for child in children() {
            match is_wanted(child) {
                Some(true) => found.push(child),
                Some(false) => {}
                None => is_unknown = true,
            }
        }
        for &child in &found {
            // This fails if the process has ended in the meantime.
            let _ = kill_process(child, Signal::KILL);
            if !killed.contains(&child) {
                killed.push(child);
            }
        }
        // Wait for them, so that their ids are free and their own children become ours. The next round finds those children.
        killed.retain(|child| matches!(waitpid(Some(*child), WaitOptions::NOHANG), Ok(None)));
        let is_done = found.is_empty() && killed.is_empty();
        let timeout = if is_done { UNKNOWN_TIMEOUT } else { TIMEOUT };
        if (was_done && is_done && !is_unknown) || start.elapsed() > timeout {
            return;
        }
        was_done = is_done && !is_unknown;
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

/// Returns whether a child has started with this variable. Returns `None` if the child has no environment, which is so while it
/// starts a program. A child that has ended has not started with it.
fn has_variable(child: Pid, wanted: &str) -> Option<bool> {
    let environment = fs::read(format!("/proc/{}/environ", child.as_raw_nonzero())).unwrap_or_default();
    if environment.is_empty() {
        let peek = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        return if matches!(waitid(WaitId::Pid(child), peek), Ok(None)) { None } else { Some(false) };
    }
    Some(environment.split(|byte| *byte == 0).any(|variable| variable == wanted.as_bytes()))
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    /// Processes that replace their program all the time: some of them have no environment when `end` looks.
    #[test]
    fn processes_that_start_programs_are_ended() {
        for _ in 0..20 {
            let mark = mark();
            let start = || {
                let mut command = Command::new("sh");
                command.args(["-c", "exec sh -c \"$0\" \"$0\"", "exec sh -c \"$0\" \"$0\""]);
                command.env(VARIABLE, &mark).stdin(Stdio::null());
                command.spawn().expect("a shell")
            };
            let started: Vec<_> = (0..8).map(|_| start()).collect();
            end(&mark);
            for mut child in started {
                // `end` has waited for the child, so that the system no longer knows it.
                let is_running = child.try_wait().is_ok();
                // Don't leave it behind.
                let _ = child.kill();
                assert!(!is_running, "{} is running", child.id());
            }
        }
    }
}
