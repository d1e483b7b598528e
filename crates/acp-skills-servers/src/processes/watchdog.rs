//! The watchdog process (Unix): ends all process groups of the proxy when the proxy exits.
//!
//! The watchdog receives the groups on its stdin, one per line: `+ID` adds a group, and `-ID` removes a group. When
//! the pipe is closed, the watchdog ends all remaining groups. The watchdog runs in a separate process group, so that
//! it is still there if the group of the proxy is killed.

use std::{
    collections::HashSet,
    env, fs, io,
    io::{BufRead, Write},
    os::{fd::AsFd, unix::process::CommandExt},
    process::{Command, Stdio},
    thread::sleep,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, getpid, kill_process, kill_process_group};

use super::group_is_alive;

/// The name of the hidden subcommand.
pub const SUBCOMMAND: &str = "watchdog";

/// The argument that starts a leader instead of a watchdog. A leader creates a process group and waits for a watchdog
/// to take over.
pub(super) const LEADER: &str = "leader";
/// The line that dismisses a leader.
pub(super) const DISMISSAL: &str = ".\n";
/// The line on the stdout of a watchdog that catches signals now.
pub(super) const READY: &[u8] = b"ready\n";
/// The prefix of a group that was added.
pub(super) const ADD: char = '+';
/// The prefix of a group that was removed.
pub(super) const REMOVE: char = '-';

/// The time that processes have to exit after they were asked to terminate.
const GRACE: Duration = Duration::from_secs(2);
const POLL: Duration = Duration::from_millis(20);

/// Runs as a leader if `part` is `leader`, or as the watchdog if it is `None`. A watchdog must already catch the signals that ask
/// a process to end.
///
/// # Errors
/// Returns an error if `part` is unknown, or if a system call fails.
pub fn run(part: Option<&str>) -> io::Result<()> {
    match part {
        None => {
            // This fails if the proxy was killed, and then its groups have to be ended.
            let _ = io::stdout().write_all(READY);
            watch(io::stdin().lock());
            Ok(())
        }
        Some(LEADER) => lead(),
        Some(part) => Err(io::Error::new(io::ErrorKind::InvalidInput, format!("unknown part `{part}`"))),
    }
}

/// Reads groups until the pipe closes, and then ends the remaining ones.
fn watch(lines: impl BufRead) {
    let mut groups = HashSet::new();
    // If we can't read from the pipe, treat it as closed.
    for line in lines.lines().map_while(Result::ok) {
        let group = |id: &str| id.parse().ok().and_then(Pid::from_raw);
        if let Some(id) = line.strip_prefix(ADD).and_then(group) {
            groups.insert(id);
        } else if let Some(id) = line.strip_prefix(REMOVE).and_then(group) {
            groups.remove(&id);
        }
    }
    end(&groups);
}

fn end(groups: &HashSet<Pid>) {
    let send = |signal| {
        for &group in groups {
            // This fails if the group doesn't have any processes left, so we can ignore the error.
            let _ = kill_process_group(group, signal);
        }
    };
    let is_alive = || groups.iter().copied().any(group_is_alive);
    send(Signal::TERM);
    let deadline = Instant::now() + GRACE;
    while is_alive() && Instant::now() < deadline {
        sleep(POLL);
    }
    send(Signal::KILL);
    for &process in groups {
        // The first process of a sandbox leads no group.
        let _ = kill_process(process, Signal::KILL);
    }
}

/// Leads a group until it is dismissed. If the proxy ends before that, starts a watchdog that ends this group and the
/// groups that were added. The leader can't do this, because it is in the same group and would be killed first.
fn lead() -> io::Result<()> {
    // Use a file here to avoid the buffer of the standard library's stdin.
    let stdin = fs::File::from(io::stdin().as_fd().try_clone_to_owned()?);
    let mut groups = format!("{ADD}{}\n", getpid().as_raw_nonzero());
    for line in io::BufReader::with_capacity(64, stdin).lines().map_while(Result::ok) {
        if line == DISMISSAL.trim_end() {
            return Ok(());
        }
        groups.extend([&line, "\n"]);
    }
    let started = env::current_exe().and_then(|program| {
        let mut command = Command::new(program);
        command.arg(SUBCOMMAND).stdin(Stdio::piped()).process_group(0).spawn()
    });
    match started {
        Ok(mut watchdog) => match watchdog.stdin.take() {
            Some(mut pipe) => pipe.write_all(groups.as_bytes()),
            None => Ok(()),
        },
        Err(error) => {
            // If we can't start the watchdog, kill the group right here, which means that there is no grace period.
            let _ = kill_process_group(getpid(), Signal::KILL);
            Err(error)
        }
    }
}

#[cfg(test)]
mod tests {
    use std::process::Child;

    use super::*;

    fn sleeper() -> Child {
        Command::new("sleep").arg("1000").process_group(0).spawn().unwrap()
    }

    #[test]
    fn remaining_groups_are_ended() {
        let first = sleeper();
        let mut other = sleeper();
        let last = sleeper();
        // The first process of a sandbox is in the group of another process.
        let inside = Command::new("sleep").arg("1000").spawn().unwrap();
        let [a, b, c, d] = [&first, &other, &last, &inside].map(Child::id);
        let ends = [first, last, inside].map(|mut process| std::thread::spawn(move || process.wait()));
        // Invalid lines should be ignored.
        watch(format!("+{a}\n+{b}\n+0\n\n-{b}\n+x\nnonsense\n+{c}\n+{d}").as_bytes());
        for end in ends {
            assert!(!end.join().unwrap().unwrap().success());
        }
        assert!(other.try_wait().unwrap().is_none());
        other.kill().unwrap();
        other.wait().unwrap();
    }
}
