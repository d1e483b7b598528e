//! Takes the handles of stdin and stdout.

#![expect(clippy::disallowed_methods, reason = "this module takes the handles")]

use std::{fs::File, io, os::windows::io::AsHandle};

use acp_skills_runtime::relay::Ends;

use super::{Spare, read_ahead::read_ahead};

pub(crate) type Stream = File;

/// Takes stdin and stdout. Redirecting the output of dependencies to stderr would need `SetStdHandle`, which is unsafe. Lints
/// prevent our own code from printing.
pub(super) fn take() -> io::Result<Ends> {
    let Spare { reader, writer } = copies()?;
    // The only way to find out whether a pipe was closed is to read from it.
    let (reader, hangup) = read_ahead(reader);
    let mut ends = Ends::new(reader, writer);
    ends.hangup = Some(Box::new(hangup));
    Ok(ends)
}

/// Duplicates stdin and stdout.
pub(super) fn copies() -> io::Result<Spare> {
    let reader = File::from(io::stdin().as_handle().try_clone_to_owned()?);
    let writer = File::from(io::stdout().as_handle().try_clone_to_owned()?);
    Ok(Spare { reader, writer })
}
