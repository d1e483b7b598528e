//! `man`: writes the manual pages of the program and of each command, for packages.

use std::{fs, path::PathBuf, process::ExitCode};

use clap::{Args, Command};
use skills_core::text::shown_path;

use crate::{args::path, error::UsageError};

/// The flags of `man`.
#[derive(Debug, Args)]
pub(crate) struct ManArgs {
    /// The directory for the pages. It is created if it is missing.
    #[arg(value_name = "DIR", value_parser = path())]
    dir: PathBuf,
}

/// Writes the manual pages for the command line `all`.
///
/// # Errors
/// Returns an error if a page can't be written.
pub(crate) fn run(args: ManArgs, all: Command) -> anyhow::Result<ExitCode> {
    let written = fs::create_dir_all(&args.dir).and_then(|()| clap_mangen::generate_to(all, &args.dir));
    written.map_err(|error| {
        UsageError::failed(format_args!("cannot write to {}", shown_path(&args.dir)), error)
    })?;
    Ok(ExitCode::SUCCESS)
}
