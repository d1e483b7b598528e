//! [`launchers`]: starts a program inside a sandbox as a child of process 1.

use std::{ffi::OsString, path::PathBuf};

/// A program that starts another one, waits for it, and exits with its code, or with 128 + the number of the signal that ended it. It is
/// part of util-linux and BusyBox.
const FLOCK: &str = "flock";

/// A file that [`FLOCK`] can lock at once, because each sandbox has its own `/proc`.
const LOCKED: &str = "/proc/version";

/// A program that runs another one in a new session. It is part of util-linux, BusyBox and Toybox.
const SETSID: &str = "setsid";

/// Returns the first words of command lines that start a program as a child of process 1 of a sandbox, the best ones first.
///
/// Process 1 stays in our process group, so that it is killed together with bubblewrap. The program has its own session if possible,
/// because otherwise scripts that signal their own group end bubblewrap.
///
/// `find` returns the path of a program.
pub fn launchers(find: impl Fn(&str) -> Option<PathBuf>) -> Vec<Vec<OsString>> {
    let find = |name| find(name).map(OsString::from);
    let Some(flock) = find(FLOCK) else { return Vec::new() };
    let session = find(SETSID).map_or_else(Vec::new, |setsid| vec![setsid, "--".into()]);
    // With `-o`, the program doesn't inherit the locked file. BusyBox doesn't have this option, so those without it are the last ones.
    let locks = [vec![flock.clone(), "-o".into(), LOCKED.into()], vec![flock, LOCKED.into()]];
    locks.into_iter().flat_map(|lock| [[lock.clone(), session.clone()].concat(), lock]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_launchers_are_first() {
        let lines = |names: &[&str]| {
            let found = launchers(|name| names.contains(&name).then(|| format!("/bin/{name}").into()));
            found.iter().map(|words| words.join(" ".as_ref()).into_string().unwrap()).collect::<Vec<_>>()
        };
        let all = [
            "/bin/flock -o /proc/version /bin/setsid --",
            "/bin/flock -o /proc/version",
            "/bin/flock /proc/version /bin/setsid --",
            "/bin/flock /proc/version",
        ];
        assert_eq!(lines(&["flock", "setsid"]), all);
        assert!(lines(&["setsid"]).is_empty());
    }
}
