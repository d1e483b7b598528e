//! [`Descriptors`]: what a program finds open beside its standard streams.
//!
//! On Linux a program inherits whatever was opened without close-on-exec, and we inherit what the program that started us
//! forgot: a connection of an editor can end up in a script. Such descriptors are `/dev/null` for the program.

use std::{
    ffi::OsString,
    fs::{self, File},
    io::{self, Write},
    os::fd::{AsRawFd, OwnedFd, RawFd},
    process::Command,
    sync::Arc,
};

use command_fds::{CommandFdExt, FdMapping};

/// The first number behind the standard streams.
const FIRST: RawFd = 3;
/// `O_CLOEXEC`, as the kernel shows it.
const CLOSE_ON_EXEC: u32 = libc::O_CLOEXEC.cast_unsigned();

/// Exactly the descriptors that a program gets.
#[derive(Debug, Clone)]
pub(super) struct Descriptors {
    inputs: Vec<(&'static str, Arc<[u8]>)>,
    kept: Option<Arc<File>>,
}

impl Descriptors {
    /// For each input a descriptor from which the bytes can be read, its number behind the option; `kept` has the number
    /// that it has here. An input must fit into a pipe: at most 4,096 bytes.
    pub(super) fn new(
        inputs: impl IntoIterator<Item = (&'static str, Arc<[u8]>)>,
        kept: Option<Arc<File>>,
    ) -> Self {
        Self { inputs: inputs.into_iter().collect(), kept }
    }

    /// Gives them to `command`, as its next arguments.
    pub(super) fn give(&self, command: &mut Command) -> io::Result<()> {
        // Before we open any ourselves.
        let null = File::options().read(true).write(true).open("/dev/null")?;
        let mut mappings = Vec::new();
        for child_fd in inheritable()? {
            mappings.push(FdMapping { parent_fd: null.try_clone()?.into(), child_fd });
        }
        if let Some(kept) = &self.kept {
            mappings.push(FdMapping { parent_fd: kept.try_clone()?.into(), child_fd: kept.as_raw_fd() });
        }
        let mut readers: Vec<OwnedFd> = Vec::new();
        for (option, bytes) in &self.inputs {
            let (reader, mut writer) = io::pipe()?;
            writer.write_all(bytes)?;
            command.arg(option).arg(OsString::from(reader.as_raw_fd().to_string()));
            readers.push(reader.into());
        }
        command.fd_mappings(mappings).map_err(io::Error::other)?;
        command.preserved_fds(readers);
        Ok(())
    }
}

/// The numbers of the descriptors, behind the standard streams, that a program would inherit.
fn inheritable() -> io::Result<Vec<RawFd>> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc/self/fdinfo")? {
        let entry = entry?;
        let Some(number) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        // It may have been closed meanwhile.
        let Ok(info) = fs::read_to_string(entry.path()) else { continue };
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
