//! [`Gate`]: holds the program of a sandbox until the mounts of the sandbox were checked.

use std::{
    fs::{self, File},
    io::{self, PipeReader, PipeWriter, Read, Write},
    os::fd::{AsRawFd, OwnedFd},
    path::Path,
    sync::Arc,
    time::Duration,
};

use rustix::{
    fs::{CWD, Mode, OFlags, ResolveFlags, fcntl_setfl, fstat, openat, openat2},
    process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal},
};
use serde::Deserialize;
use skills_sandbox::mounts::{Comparison, Expected};
use tokio::time::{Instant, sleep};

use crate::exec::ProcessObserver;

/// The time in which the sandbox must be ready. It is ready after a few milliseconds on a machine that is not busy.
const LIMIT: Duration = Duration::from_mins(1);
/// The number of looks at wrong mounts after which they are taken as final.
const MAX_DIFFERENT: u32 = 20;
/// The time between two looks at the sandbox.
const POLL: Duration = Duration::from_millis(1);
/// The maximum length of the information about the sandbox, in bytes.
const MAX_INFO: usize = 4096;

/// Our ends of two pipes. bubblewrap writes the id of its process inside to one of them, and this process reads from the other one before
/// it starts the program.
#[derive(Debug)]
pub(in crate::exec) struct Gate {
    expected: Expected,
    info: PipeReader,
    release: PipeWriter,
}

/// The first process inside a sandbox. All others end with it, so dropping the value ends them. Usually, they have ended before, but a
/// program can take this process over using `ptrace`, and then it survives bubblewrap.
#[derive(Debug)]
pub(in crate::exec) struct Init {
    id: u32,
    process: Option<OwnedFd>,
    observer: Option<Arc<dyn ProcessObserver>>,
}

/// The descriptors that bubblewrap receives, with their options.
pub(super) type Held = [(&'static str, Arc<OwnedFd>); 2];

/// The information that bubblewrap writes, in JSON.
#[derive(Deserialize)]
struct Info {
    #[serde(rename = "child-pid")]
    process: u32,
}

impl Gate {
    /// Creates a gate for a sandbox with these mounts.
    pub(super) fn new(expected: Expected) -> io::Result<(Self, Held)> {
        let (info, info_writer) = io::pipe()?;
        fcntl_setfl(&info, OFlags::NONBLOCK)?;
        let (reader, release) = io::pipe()?;
        // This descriptor is for both ends of the pipe, so that the pipe stays open, and the program held, if this process is killed.
        let both =
            File::options().read(true).write(true).open(format!("/proc/self/fd/{}", reader.as_raw_fd()))?;
        let held = [
            ("--info-fd", Arc::new(OwnedFd::from(info_writer))),
            ("--block-fd", Arc::new(OwnedFd::from(both))),
        ];
        Ok((Self { expected, info, release }, held))
    }

    /// Waits until the sandbox has the expected mounts, and lets its program start. `observer` is told about the first process inside.
    ///
    /// # Errors
    /// Returns an error if the sandbox doesn't get these mounts in time, because a part of a path was replaced by a link.
    pub(in crate::exec) async fn open(
        mut self,
        observer: Option<Arc<dyn ProcessObserver>>,
    ) -> io::Result<Option<Init>> {
        if fs::read_link("/proc/self").is_ok_and(|own| own != Path::new(&std::process::id().to_string())) {
            return Err(io::Error::other(
                "`/proc` is that of another PID namespace, so the sandbox cannot be checked",
            ));
        }
        let deadline = Instant::now() + LIMIT;
        let mut text = Vec::new();
        let mut process = None;
        let mut different = 0;
        while Instant::now() < deadline && different < MAX_DIFFERENT {
            if process.is_none() {
                process = self.process(&mut text)?;
            }
            match process.map_or(Comparison::NotFinal, |process| self.compare(process)) {
                Comparison::Same => {
                    let init = process.map(|id| Init::new(id, observer));
                    self.release.write_all(b"!")?;
                    return Ok(init);
                }
                Comparison::Different => different += 1,
                Comparison::NotFinal => {}
            }
            sleep(POLL).await;
        }
        let why = if different == 0 {
            "the sandbox was not ready in time"
        } else {
            "the sandbox has other mounts than it should, because a directory was replaced by a link while it started"
        };
        Err(io::Error::other(why))
    }

    /// Returns the id of the process inside, if bubblewrap has written it. `text` is what was read so far.
    fn process(&mut self, text: &mut Vec<u8>) -> io::Result<Option<u32>> {
        let mut buffer = [0; MAX_INFO];
        match self.info.read(&mut buffer) {
            Ok(count) => text.extend_from_slice(&buffer[..count]),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
        if text.len() > MAX_INFO {
            return Err(io::Error::other("bubblewrap has written too much"));
        }
        Ok(serde_json::from_slice::<Info>(text).ok().map(|info| info.process))
    }

    /// Compares the mounts of the process inside with the expected ones.
    fn compare(&self, process: u32) -> Comparison {
        let read = |process: &str| fs::read(format!("/proc/{process}/mountinfo"));
        // Read the mounts of the host last, because a directory can be mounted at any time.
        let tables = read(&process.to_string()).and_then(|inside| Ok((inside, read("self")?)));
        let is_same_file = |path: &Path| {
            let files = [process.to_string().as_str(), "self"].map(|process| identity(process, path));
            files[0].is_some() && files[0] == files[1]
        };
        tables.map_or(Comparison::NotFinal, |(inside, host)| {
            self.expected.compare(&inside, &host, is_same_file)
        })
    }
}

/// Returns the device and the inode of a canonical path, as a process sees it. `None` if the path contains a link now.
fn identity(process: &str, path: &Path) -> Option<(u64, u64)> {
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    let root = openat(CWD, format!("/proc/{process}/root"), flags, Mode::empty()).ok()?;
    let below = path.strip_prefix("/").ok().filter(|below| !below.as_os_str().is_empty());
    let below = below.unwrap_or(Path::new("."));
    let file = openat2(root, below, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS).ok()?;
    let status = fstat(file).ok()?;
    Some((status.st_dev, status.st_ino))
}

impl Init {
    fn new(id: u32, observer: Option<Arc<dyn ProcessObserver>>) -> Self {
        let process = Pid::from_raw(id.cast_signed());
        // Linux before 5.3 has no such descriptors.
        let process = process.and_then(|process| pidfd_open(process, PidfdFlags::empty()).ok());
        if let Some(observer) = &observer {
            observer.started(None, id);
        }
        Self { id, process, observer }
    }
}

impl Drop for Init {
    fn drop(&mut self) {
        if let Some(process) = &self.process {
            // This fails if the process has ended.
            let _ = pidfd_send_signal(process, Signal::KILL);
        }
        if let Some(observer) = &self.observer {
            observer.ended(None, Some(self.id));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{os::unix::process::ExitStatusExt, process::Command};

    use super::*;

    /// A program that has taken over the first process of its sandbox must not survive.
    #[test]
    fn the_first_process_inside_is_ended() {
        let mut process = Command::new("sleep").arg("1000").spawn().unwrap();
        drop(Init::new(process.id(), None));
        assert_eq!(process.wait().unwrap().signal(), Some(9));
    }
}
