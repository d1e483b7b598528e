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
    let script = String::from_utf8_lossy(&script);
    output::print(&match args.shell {
        Shell::Bash => of_commands(&script, all.get_name()),
        _ => script.into_owned(),
    })?;
    Ok(ExitCode::SUCCESS)
}

/// The script for bash, such that it completes words of commands too: it looks for a command by one label and has it under
/// another where the program's name has a hyphen (<https://github.com/clap-rs/clap/issues/6421>).
fn of_commands(script: &str, name: &str) -> String {
    script.replace(&name.replace('-', "__subcmd__"), &name.replace('-', "__"))
}
