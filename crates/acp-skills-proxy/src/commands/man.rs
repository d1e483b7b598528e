//! `man`: the manual pages, one for the program and one for each command. For whoever makes a package.

use std::{fs, path::PathBuf, process::ExitCode};

use clap::{Args, Command};
use skills_core::text::shown_path;

use crate::{args::path, error::UsageError};

/// Flags of `man`.
#[derive(Debug, Args)]
pub(crate) struct ManArgs {
    /// Where the pages go; it is created.
    #[arg(value_name = "DIR", value_parser = path())]
    dir: PathBuf,
}

/// Writes the pages of `all`, the command line of the program.
///
/// # Errors
/// They cannot be written.
pub(crate) fn run(args: ManArgs, all: Command) -> anyhow::Result<ExitCode> {
    let written = fs::create_dir_all(&args.dir).and_then(|()| clap_mangen::generate_to(all, &args.dir));
    written.map_err(|error| {
        UsageError::failed(format_args!("cannot write to {}", shown_path(&args.dir)), error)
    })?;
    Ok(ExitCode::SUCCESS)
}
