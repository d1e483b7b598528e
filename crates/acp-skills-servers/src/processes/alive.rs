//! Checks if a process group still has running processes (Unix).

use rustix::process::{Pid, test_kill_process_group};

/// Returns true if a process of `group` still runs. Zombies don't count. These processes already exited, but can
/// still receive signals until the parent or the init process waits for them.
pub fn group_is_alive(group: Pid) -> bool {
    test_kill_process_group(group).is_ok() && !has_only_zombies(group)
}

/// Returns true if `/proc` lists processes of the group, and all of them are zombies.
#[cfg(target_os = "linux")]
fn has_only_zombies(group: Pid) -> bool {
    let Ok(processes) = std::fs::read_dir("/proc") else { return false };
    let mut found = false;
    for process in processes.flatten() {
        let name = process.file_name();
        if !name.as_encoded_bytes().first().is_some_and(u8::is_ascii_digit) {
            continue;
        }
        // Skip this process if it has ended since we listed the directory.
        let Ok(stat) = std::fs::read_to_string(process.path().join("stat")) else { continue };
        if let Some((state, id)) = state_and_group(&stat)
            && id == group.as_raw_nonzero().get()
        {
            found = true;
            if !matches!(state, 'Z' | 'X') {
                return false;
            }
        }
    }
    // If `/proc` hides the processes of other users, there are none here, and we assume that the group is still
    // running.
    found
}

/// Returns false, because a group of zombies cannot be signalled on these systems.
#[cfg(not(target_os = "linux"))]
fn has_only_zombies(_group: Pid) -> bool {
    false
}

/// Parses a line of `/proc/ID/stat` and returns the state and the process group. The process name before them may
/// contain any characters.
#[cfg(target_os = "linux")]
fn state_and_group(stat: &str) -> Option<(char, i32)> {
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_ascii_whitespace();
    let state = fields.next()?.chars().next()?;
    Some((state, fields.nth(1)?.parse().ok()?))
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::{
        os::unix::process::CommandExt,
        process::{Command, Stdio},
        thread,
        time::{Duration, Instant},
    };

    use super::*;

    #[test]
    fn zombies_are_not_alive() {
        let mut child =
            Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::null()).process_group(0).spawn().unwrap();
        let group = Pid::from_raw(child.id().cast_signed()).unwrap();
        assert!(group_is_alive(group));
        drop(child.stdin.take());
        let deadline = Instant::now() + Duration::from_mins(1);
        while group_is_alive(group) {
            assert!(Instant::now() < deadline, "process has ended but counts as alive");
            thread::sleep(Duration::from_millis(1));
        }
        // We haven't waited for the child yet, so signals can still be sent to the zombie.
        test_kill_process_group(group).unwrap();
        child.wait().unwrap();
        assert!(!group_is_alive(group));
    }

    #[test]
    fn lines_of_stat_are_parsed() {
        for (line, expected) in [
            ("7 (cat) S 1 42 42 0 -1", Some(('S', 42))),
            ("7 (a ) Z 9 9 (x) Z 1 43 42", Some(('Z', 43))),
            ("7 (cat) S 1", None),
            ("", None),
        ] {
            assert_eq!(state_and_group(line), expected, "{line}");
        }
    }
}
