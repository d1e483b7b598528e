//! Modes, and what a FIFO does.

use std::{
    fs::{self, DirBuilder, File, OpenOptions},
    io,
    os::unix::fs::{DirBuilderExt, FileTypeExt, OpenOptionsExt},
    path::Path,
};

use rustix::{fs::OFlags, io::Errno};

pub(super) fn private_file(options: &mut OpenOptions) {
    // To open a FIFO blocks until somebody reads it, without this flag.
    options.mode(0o600).custom_flags(OFlags::NONBLOCK.bits().cast_signed());
}

pub(super) fn private_dir(builder: &mut DirBuilder) {
    builder.mode(0o700);
}

/// `No such device or address` is what the system says of a FIFO.
pub(super) fn explained(error: io::Error, path: &Path) -> io::Error {
    let is_fifo = || fs::metadata(path).is_ok_and(|metadata| metadata.file_type().is_fifo());
    if error.raw_os_error() == Some(Errno::NXIO.raw_os_error()) && is_fifo() {
        return io::Error::new(io::ErrorKind::NotConnected, "it is a FIFO that nobody reads");
    }
    error
}

pub(super) fn wait_when_full(file: &File) -> io::Result<()> {
    Ok(rustix::io::ioctl_fionbio(file, false)?)
}
