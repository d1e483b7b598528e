//! `policy`: shows the policy of this machine, and validates a policy before it is installed.

use std::{fmt::Write, io, path::PathBuf, process::ExitCode};

use clap::{Args, Subcommand};
use skills_core::text::{shown, shown_path};
use skills_sources::policy::{self, Policy, PolicyError};

use crate::{args::path, error::UsageError, output};

/// The flags of `policy`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  acp-skills-proxy policy show
  acp-skills-proxy policy check ./policy.yaml")]
pub(crate) struct PolicyArgs {
    #[command(subcommand)]
    action: Action,
}

/// The actions of `policy`.
#[derive(Debug, Subcommand)]
enum Action {
    /// Show the rules that hold on this machine, and the file that they come from.
    Show,
    /// Validate a policy file, wherever it is.
    Check {
        /// The file.
        #[arg(value_name = "FILE", value_parser = path())]
        file: PathBuf,
    },
}

/// Shows or validates a policy.
///
/// # Errors
/// Returns an error if the policy can't be used.
pub(crate) fn run(args: &PolicyArgs) -> anyhow::Result<ExitCode> {
    let text = match &args.action {
        Action::Show => match Policy::load().map_err(unusable)? {
            Some(policy) => described(&policy),
            None => format!("No policy on this machine ({} does not exist).\n", shown_path(&policy::path())),
        },
        Action::Check { file } => {
            let policy = Policy::check(file).map_err(unusable)?;
            match policy.check_lock(false) {
                // The policy can be for another machine.
                Err(PolicyError::Unreadable { path, source }) if source.kind() == io::ErrorKind::NotFound => {
                    output::note(&format!(
                        "{} does not exist on this machine; nothing starts until it does",
                        shown_path(&path)
                    ));
                }
                checked => checked.map_err(unusable)?,
            }
            format!(
                "Valid. On this machine, the policy is read from {}.\n{}",
                shown_path(&policy::path()),
                described(&policy)
            )
        }
    };
    output::print(&text)?;
    Ok(ExitCode::SUCCESS)
}

fn unusable(error: PolicyError) -> anyhow::Error {
    let hint = error.hint();
    UsageError::of(error).hint(hint).into()
}

fn described(policy: &Policy) -> String {
    let file = shown_path(policy.file());
    let mut text = String::new();
    for (rule, value) in policy.rules() {
        // Writing to a string never fails.
        let _ = writeln!(text, "{rule}: {} (from {file})", shown(value));
    }
    if text.is_empty() { format!("No rules in {file}.\n") } else { text }
}
