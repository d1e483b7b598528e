//! `completions`: scripts for shells.

use std::process::ExitCode;

use clap::{Args, Command};
use clap_complete::Shell;

use crate::output;

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

/// Prints the script for `all`, the command line of the program.
///
/// # Errors
/// Stdout cannot be written.
pub(crate) fn run(args: CompletionsArgs, all: &Command) -> anyhow::Result<ExitCode> {
    let name = all.get_name().to_owned();
    // Without what is only for programs.
    let mut command = Command::new(name.clone())
        .args(all.get_arguments().cloned())
        .subcommands(all.get_subcommands().filter(|command| !command.is_hide_set()).cloned());
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut command, name, &mut script);
    output::print(&String::from_utf8_lossy(&script))?;
    Ok(ExitCode::SUCCESS)
}
