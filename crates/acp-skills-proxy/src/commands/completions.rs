//! `completions`: prints a completion script for a shell.

use std::{fmt::Write, process::ExitCode};

use acp_skills::agents;
use acp_skills_setup::editors;
use clap::{
    Arg, Args, Command,
    builder::{PossibleValue, PossibleValuesParser},
};
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

/// Completes the command of an agent in bash. With the package `bash-completion`, this includes its arguments.
const AGENT_IN_BASH: &str = r#"
    local at
    for ((at = 1; at < COMP_CWORD; at++)); do
        [[ ${COMP_WORDS[at]} == -- ]] || continue
        if declare -F _command_offset >/dev/null; then
            _command_offset $((at + 1))
        elif ((at + 1 == COMP_CWORD)); then
            COMPREPLY=($(compgen -c -- "${COMP_WORDS[COMP_CWORD]}"))
        fi
        return 0
    done
"#;

/// Completes the command of an agent in zsh.
const AGENT_IN_ZSH: &str = r"
    local end=${words[(i)--]}
    if (( end < CURRENT )); then
        shift $end words
        (( CURRENT -= end ))
        _normal
        return
    fi
";

/// Completes the command of an agent in fish.
const AGENT_IN_FISH: &str = "complete -c acp-skills-proxy -n \"contains -- -- (commandline -opc)\" -a \"(__fish_complete_command)\"\n";

/// Prints the completion script for the command line `all`.
///
/// # Errors
/// Returns an error if stdout can't be written.
pub(crate) fn run(args: CompletionsArgs, all: &Command) -> anyhow::Result<ExitCode> {
    output::print(&script(args.shell, all))?;
    Ok(ExitCode::SUCCESS)
}

fn script(shell: Shell, all: &Command) -> String {
    let name = all.get_name().to_owned();
    let mut command = completed(all);
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut command, name, &mut script);
    let script = String::from_utf8_lossy(&script);
    match shell {
        Shell::Bash => {
            let script = fix_labels(&script, all.get_name());
            script.replacen("    COMPREPLY=()\n", &format!("    COMPREPLY=()\n{AGENT_IN_BASH}\n"), 1)
        }
        Shell::Zsh => {
            // These lines would complete the command of an agent in places without `--` before them.
            let lines = script.lines().filter(|line| !line.starts_with("'*::command -- "));
            let script: String = lines.flat_map(|line| [line, "\n"]).collect();
            let start = "    typeset -A opt_args\n";
            script.replacen(start, &format!("{AGENT_IN_ZSH}\n{start}"), 1)
        }
        Shell::Fish => fix_values(&script) + &editors_in_fish() + AGENT_IN_FISH,
        _ => script.into_owned(),
    }
}

/// Returns the part of the command line that is completed: visible commands, with the names of editors and agents.
fn completed(all: &Command) -> Command {
    // The command of an agent can only follow `--`. In zsh, it would take the place of our own commands.
    let flags = all.get_arguments().filter(|arg| !arg.is_positional()).map(|arg| match arg.get_long() {
        // This is a new argument, because the original conflicts with the command of the agent.
        Some("agent") => Arg::new("agent")
            .long("agent")
            .value_name("ID")
            .help(arg.get_help().cloned().unwrap_or_default())
            .value_parser(agent_names()),
        _ => arg.clone(),
    });
    let commands = all.get_subcommands().filter(|command| !command.is_hide_set()).map(|command| {
        let named = command.get_arguments().find(|arg| arg.get_long() == Some("agent"));
        let named = named.map(|arg| arg.get_id().to_string());
        let command = match named {
            Some(id) => command.clone().mut_arg(id, |arg| arg.value_parser(agent_names())),
            None => command.clone(),
        };
        match command.get_name() {
            "setup" => command.mut_arg("editor", |arg| arg.value_parser(editor_names())),
            _ => command,
        }
    });
    Command::new(all.get_name().to_owned()).args(flags).subcommands(commands)
}

fn editor_names() -> PossibleValuesParser {
    editors::ALL
        .iter()
        .map(|editor| PossibleValue::new(editor.id).help(editor.name))
        .collect::<Vec<_>>()
        .into()
}

fn agent_names() -> PossibleValuesParser {
    let names = agents::all().iter().flat_map(|agent| {
        let names = std::iter::once(agent.id).chain(agent.aliases.iter().copied());
        names.map(|name| PossibleValue::new(name).help(agent.name))
    });
    names.collect::<Vec<_>>().into()
}

/// Returns the lines that complete editors in fish. clap doesn't generate values of positional arguments for this shell.
fn editors_in_fish() -> String {
    editors::ALL.iter().fold(String::new(), |mut lines, editor| {
        let _ = writeln!(
            lines,
            "complete -c acp-skills-proxy -n \"__fish_acp_skills_proxy_using_subcommand setup\" -f -a '{}' -d '{}'",
            editor.id, editor.name
        );
        lines
    })
}

/// Fixes the script for bash so that it completes flags of commands. clap generates two different labels for a command if the name
/// of the program contains a hyphen (<https://github.com/clap-rs/clap/issues/6421>).
fn fix_labels(script: &str, name: &str) -> String {
    script.replace(&name.replace('-', "__subcmd__"), &name.replace('-', "__"))
}

/// Fixes the script for fish so that it completes the value of a flag before the command. clap's script parses the words before the
/// cursor, which fails if the last one is a flag whose value is missing.
fn fix_values(script: &str) -> String {
    let parse = "    argparse -s (__fish_acp_skills_proxy_global_optspecs) -- $cmd 2>/dev/null\n";
    let with_value = "    or argparse -s (__fish_acp_skills_proxy_global_optspecs) -- $cmd '' 2>/dev/null\n";
    script.replacen(parse, &format!("{parse}{with_value}"), 1)
}
