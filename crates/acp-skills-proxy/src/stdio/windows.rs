//! Handles.

#![expect(clippy::disallowed_methods, reason = "the handles themselves are what is taken")]

use std::{fs::File, io, os::windows::io::AsHandle};

use acp_skills_runtime::relay::Ends;

use super::{Spare, read_ahead::read_ahead};

/// Sending what others print to stderr would need `SetStdHandle`, which is unsafe. The lints keep our own code from
/// printing.
pub(super) fn take() -> io::Result<Ends> {
    let Spare { reader, writer } = copies()?;
    // No event tells that the other end of a pipe is closed; only reading does.
    let (reader, hangup) = read_ahead(reader);
    let mut ends = Ends::new(reader, writer);
    ends.hangup = Some(Box::new(hangup));
    Ok(ends)
}

/// Both, beside those that everybody has.
pub(super) fn copies() -> io::Result<Spare> {
    let reader = File::from(io::stdin().as_handle().try_clone_to_owned()?);
    let writer = File::from(io::stdout().as_handle().try_clone_to_owned()?);
    Ok(Spare { reader, writer })
}
