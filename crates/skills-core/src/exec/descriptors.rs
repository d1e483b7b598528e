//! [`Descriptors`]: the file descriptors that a program receives in addition to its standard streams.
//!
//! On Linux, a program inherits all descriptors without the close-on-exec flag. This includes descriptors that we inherited
//! ourselves, for example a connection of the editor that started us. To keep them from scripts, we replace each of them by
//! `/dev/null` in the child.

use std::{
    ffi::OsString,
    fs::{self, File},
    io::{self, Seek, Write},
    os::fd::{AsRawFd, OwnedFd, RawFd},
    process::Command,
    sync::Arc,
};

use command_fds::{CommandFdExt, FdMapping};
use rustix::fs::{MemfdFlags, memfd_create};

/// The first descriptor after the standard streams.
const FIRST: RawFd = 3;
/// `O_CLOEXEC`, as it appears in the flags in `/proc/self/fdinfo`.
const CLOSE_ON_EXEC: u32 = libc::O_CLOEXEC.cast_unsigned();

/// The complete set of descriptors that a program receives.
#[derive(Debug, Clone)]
pub(super) struct Descriptors {
    inputs: Vec<(&'static str, Arc<[u8]>)>,
    held: Vec<(&'static str, Arc<OwnedFd>)>,
}

impl Descriptors {
    /// Describes a set with one file in memory for each of `inputs`. For each input, the command gets the option and the number of a
    /// descriptor from which it can read the bytes.
    pub(super) fn new(inputs: impl IntoIterator<Item = (&'static str, Arc<[u8]>)>) -> Self {
        Self { inputs: inputs.into_iter().collect(), held: Vec::new() }
    }

    /// Adds descriptors that the command gets with these options, which are followed by their numbers.
    pub(super) fn hold(&mut self, held: impl IntoIterator<Item = (&'static str, Arc<OwnedFd>)>) {
        self.held.extend(held);
    }

    /// Adds an input, before those that are already there.
    pub(super) fn add(&mut self, option: &'static str, bytes: Vec<u8>) {
        self.inputs.insert(0, (option, bytes.into()));
    }

    /// Passes the descriptors to `command`, and appends their options as its next arguments.
    pub(super) fn apply(&self, command: &mut Command) -> io::Result<()> {
        let null = File::options().read(true).write(true).open("/dev/null")?;
        let mut mappings = Vec::new();
        // We need to list the descriptors before we create the pipes below.
        for child_fd in inheritable()? {
            mappings.push(FdMapping { parent_fd: null.try_clone()?.into(), child_fd });
        }
        let mut preserved: Vec<OwnedFd> = Vec::new();
        for (option, bytes) in &self.inputs {
            let mut reader = File::from(memfd_create("input", MemfdFlags::CLOEXEC)?);
            reader.write_all(bytes)?;
            reader.rewind()?;
            command.arg(option).arg(OsString::from(reader.as_raw_fd().to_string()));
            preserved.push(reader.into());
        }
        for (option, held) in &self.held {
            let held = held.try_clone()?;
            command.arg(option).arg(OsString::from(held.as_raw_fd().to_string()));
            preserved.push(held);
        }
        command.fd_mappings(mappings).map_err(io::Error::other)?;
        command.preserved_fds(preserved);
        Ok(())
    }
}

/// Lists the descriptors that a program would inherit, without the standard streams.
fn inheritable() -> io::Result<Vec<RawFd>> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc/self/fdinfo")? {
        let entry = entry?;
        let Some(number) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        let info = match fs::read_to_string(entry.path()) {
            Ok(info) => info,
            // Another thread has closed the descriptor in the meantime.
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(error),
        };
        if number >= FIRST && !closes_on_exec(&info) {
            found.push(number);
        }
    }
    Ok(found)
}

fn closes_on_exec(info: &str) -> bool {
    let flags = info.lines().find_map(|line| line.strip_prefix("flags:"));
    flags
        .and_then(|flags| u32::from_str_radix(flags.trim(), 8).ok())
        .is_some_and(|flags| flags & CLOSE_ON_EXEC != 0)
}
