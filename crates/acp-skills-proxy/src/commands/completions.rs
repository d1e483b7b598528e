//! `completions`: prints a completion script for a shell.

use std::process::ExitCode;

use clap::{Args, Command};
use clap_complete::Shell;

use crate::output;

/// The flags of `completions`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  acp-skills-proxy completions bash > ~/.local/share/bash-completion/completions/acp-skills-proxy
  acp-skills-proxy completions zsh > \"${fpath[1]}/_acp-skills-proxy\"
  acp-skills-proxy completions fish > ~/.config/fish/completions/acp-skills-proxy.fish")]
pub(crate) struct CompletionsArgs {
    /// The shell for the script.
    #[arg(value_name = "SHELL")]
    shell: Shell,
}

/// Prints the completion script for the command line `all`.
///
/// # Errors
/// Returns an error if stdout can't be written.
pub(crate) fn run(args: CompletionsArgs, all: &Command) -> anyhow::Result<ExitCode> {
    let name = all.get_name().to_owned();
    // Only include commands that are shown to users.
    let mut command = Command::new(name.clone())
        .args(all.get_arguments().cloned())
        .subcommands(all.get_subcommands().filter(|command| !command.is_hide_set()).cloned());
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut command, name, &mut script);
    let script = String::from_utf8_lossy(&script);
    output::print(&match args.shell {
        Shell::Bash => fix_labels(&script, all.get_name()),
        _ => script.into_owned(),
    })?;
    Ok(ExitCode::SUCCESS)
}

/// Fixes the script for bash so that it completes flags of commands. clap generates two different labels for a command if the name
/// of the program contains a hyphen (<https://github.com/clap-rs/clap/issues/6421>).
fn fix_labels(script: &str, name: &str) -> String {
    script.replace(&name.replace('-', "__subcmd__"), &name.replace('-', "__"))
}
