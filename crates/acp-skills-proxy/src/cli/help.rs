//! Help pages: an overview of the commands on one screen, and all flags of the proxy (`help flags`).

use std::fmt::Write;

use clap::{Command, CommandFactory, builder::StyledStr};

use super::Cli;

/// The commands of the overview, grouped by purpose. A test checks that the groups contain every command.
const GROUPS: [(&str, &[&str]); 4] = [
    ("Use skills", &["setup", "mcp", "try", "list", "search", "why", "trust", "untrust"]),
    ("Write skills", &["init", "check", "eval"]),
    ("Share skills", &["add", "update", "outdated", "remove", "sources"]),
    ("Operate", &["doctor", "report", "policy", "completions"]),
];

const USAGE: &str = "\
Usage: acp-skills-proxy [FLAGS] -- AGENT...
       acp-skills-proxy COMMAND [FLAGS]
";

const FLAGS: &str = "\
Flags of the proxy (`acp-skills-proxy help flags` lists all of them):
  --skill DIR      Use the skill in a directory; `--skills DIR` uses all skills below a directory
  --discover user  Use the skills in your own directories, such as ~/.agents/skills
  --source SOURCE  Use the skills of a git repository, an archive, an npm package or a web site

Examples:
  acp-skills-proxy --skill ./code-review -- claude-agent-acp
      Use this in the editor instead of `claude-agent-acp`.
  acp-skills-proxy try --skill ./code-review --prompt 'Review src/main.rs'
      Watch a skill work in the terminal, with a built-in agent.
";

/// Returns the command line with the overview as its help.
pub(super) fn command() -> Command {
    let command = Cli::command();
    let overview = overview(&command);
    command.override_help(overview)
}

/// Renders the overview: the commands in groups, the most important flags, and examples.
fn overview(command: &Command) -> StyledStr {
    let mut text = String::from("Agent Skills for every ACP agent, in any editor\n\n");
    text.push_str(USAGE);
    for (group, names) in GROUPS {
        text.extend(["\n", group, ":\n"]);
        for name in names {
            let about = command.find_subcommand(name).and_then(Command::get_about);
            let about = about.map(ToString::to_string).unwrap_or_default();
            let _ = writeln!(text, "  {name:<13}{about}");
        }
    }
    text.push_str("  help         Show help for a command: `acp-skills-proxy help COMMAND`\n\n");
    text.push_str(FLAGS);
    text.into()
}

/// Renders all flags of the proxy, with examples and exit codes.
pub(super) fn flags() -> String {
    let all = Cli::command();
    let mut flags = Command::new(all.get_name().to_owned())
        .bin_name(all.get_name().to_owned())
        .args(all.get_arguments().cloned())
        .max_term_width(120)
        .after_long_help(all.get_after_long_help().cloned().unwrap_or_default());
    if let Some(about) = all.get_long_about() {
        flags = flags.long_about(about.clone());
    }
    flags.render_long_help().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_groups_contain_every_command_once() {
        let mut grouped: Vec<_> = GROUPS.iter().flat_map(|(_, names)| names.iter().copied()).collect();
        let all = Cli::command();
        let mut commands: Vec<_> =
            all.get_subcommands().filter(|command| !command.is_hide_set()).map(Command::get_name).collect();
        grouped.sort_unstable();
        commands.sort_unstable();
        assert_eq!(grouped, commands);
    }

    /// A terminal of 40 lines and 80 columns shows all of it.
    #[test]
    fn the_overview_fits_one_screen() {
        let overview = command().render_help().to_string();
        assert!(overview.lines().count() <= 44, "{overview}");
        for line in overview.lines() {
            assert!(line.chars().count() <= 100, "{line}");
        }
    }
}
