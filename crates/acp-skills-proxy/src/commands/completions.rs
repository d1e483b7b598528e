//! `completions`: scripts for shells.

use std::process::ExitCode;

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use crate::{args::Cli, output};

/// Flags of `completions`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  acp-skills-proxy completions bash > ~/.local/share/bash-completion/completions/acp-skills-proxy
  acp-skills-proxy completions zsh > \"${fpath[1]}/_acp-skills-proxy\"
  acp-skills-proxy completions fish > ~/.config/fish/completions/acp-skills-proxy.fish")]
pub(crate) struct CompletionsArgs {
    /// The shell.
    #[arg(value_name = "SHELL")]
    shell: Shell,
}

/// Prints the script.
///
/// # Errors
/// Stdout cannot be written.
pub(crate) fn run(args: CompletionsArgs) -> anyhow::Result<ExitCode> {
    let mut command = Cli::command();
    let name = command.get_name().to_owned();
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut command, name, &mut script);
    output::print(&String::from_utf8_lossy(&script))?;
    Ok(ExitCode::SUCCESS)
}
