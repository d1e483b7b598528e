//! Takes the descriptors of stdin and stdout.

#![expect(clippy::disallowed_methods, reason = "this module takes the descriptors")]

use std::{fs::File, io, os::fd::AsFd};

use acp_skills_runtime::relay::Ends;

pub(crate) use super::waiting::Waiting as Stream;
use super::{Spare, hangup};

/// Takes stdin and stdout. From now on, descriptor 1 is stderr.
pub(super) fn take() -> io::Result<Ends> {
    let Spare { reader, writer } = copies()?;
    rustix::stdio::dup2_stdout(io::stderr().as_fd())?;
    let watched = reader.0.try_clone()?;
    let mut ends = Ends::new(reader, writer);
    ends.hangup = Some(Box::new(move || hangup::wait(&watched)));
    Ok(ends)
}

/// Duplicates stdin and stdout.
pub(super) fn copies() -> io::Result<Spare> {
    let reader = File::from(io::stdin().as_fd().try_clone_to_owned()?);
    let writer = File::from(io::stdout().as_fd().try_clone_to_owned()?);
    Ok(Spare { reader: Stream(reader), writer: Stream(writer) })
}
