//! What our program does as a watchdog (Unix): ends process groups when the process that started them is gone.
//!
//! It learns of the groups on its stdin, a line each: `+ID` is one that runs, `-ID` one that has ended. When the pipe ends,
//! so does the life of those that are left. It is in a process group of its own, so that whoever ends the proxy's group does
//! not end it.

use std::{
    collections::HashSet,
    env, fs, io,
    io::{BufRead, Write},
    os::{fd::AsFd, unix::process::CommandExt},
    process::{Command, Stdio},
    thread::sleep,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, getpid, kill_process_group};

use super::group_is_alive;

/// The hidden subcommand.
pub const SUBCOMMAND: &str = "watchdog";

/// The part that makes a group and waits until others watch over it.
pub(super) const LEADER: &str = "leader";
/// The line that tells it that they do.
pub(super) const DISMISSAL: &str = ".\n";
/// In front of a group that runs.
pub(super) const ADD: char = '+';
/// In front of a group that has ended.
pub(super) const REMOVE: char = '-';

/// How long processes have to end once they were told to.
const GRACE: Duration = Duration::from_secs(2);
const POLL: Duration = Duration::from_millis(20);

/// Plays a part, the watchdog when none is named.
///
/// # Errors
/// There is no such part, or the system refuses what it needs.
pub fn run(part: Option<&str>) -> io::Result<()> {
    match part {
        None => {
            watch(io::stdin().lock());
            Ok(())
        }
        Some(LEADER) => lead(),
        Some(part) => Err(io::Error::new(io::ErrorKind::InvalidInput, format!("no part is called `{part}`"))),
    }
}

/// Waits until the pipe ends, and ends the groups that are left.
fn watch(lines: impl BufRead) {
    let mut groups = HashSet::new();
    // A pipe that cannot be read has ended as well.
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
            // Fails only when nobody is left.
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
}

/// Leads a group until it is dismissed. When the proxy is gone before that, has the group ended by another process, because
/// what ends the group ends this one; and with it those groups that it was told of.
fn lead() -> io::Result<()> {
    // Without the buffer of the standard library.
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
            // Without a grace, but ended.
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
    fn what_is_left_is_ended() {
        let (first, mut other, last) = (sleeper(), sleeper(), sleeper());
        let [a, b, c] = [&first, &other, &last].map(Child::id);
        let ends = [first, last].map(|mut process| std::thread::spawn(move || process.wait()));
        // Nonsense is no reason to leave anybody alone.
        watch(format!("+{a}\n+{b}\n+0\n\n-{b}\n+x\nnonsense\n+{c}").as_bytes());
        for end in ends {
            assert!(!end.join().unwrap().unwrap().success());
        }
        assert!(other.try_wait().unwrap().is_none());
        other.kill().unwrap();
        other.wait().unwrap();
    }
}
