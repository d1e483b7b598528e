//! Words of other programs for our commands, and the arguments that commands need.

use clap::{CommandFactory, error::ContextValue};

use crate::{cli::Cli, error::UsageError};

/// Suggests our equivalent of a command that is common in other programs.
pub(super) fn equivalent_command(word: &str) -> Option<&'static str> {
    Some(match word.to_ascii_lowercase().as_str() {
        "install" | "get" => {
            "use `acp-skills-proxy add SOURCE` for the skills of a repository, or `acp-skills-proxy setup EDITOR` to use the proxy in an \
             editor"
        }
        "uninstall" | "rm" | "delete" | "del" => {
            "use `acp-skills-proxy remove SOURCE` for the skills of a repository, or `acp-skills-proxy setup EDITOR --undo` to take the \
             proxy out of an editor"
        }
        "undo" | "revert" => {
            "use `acp-skills-proxy setup EDITOR --undo` to revert the last change of an editor"
        }
        "ls" | "show" | "info" | "skills" => "use `acp-skills-proxy list` to list skills",
        "find" | "grep" => "use `acp-skills-proxy search WORDS` to find a skill",
        "validate" | "lint" | "verify" | "scan" | "audit" => {
            "use `acp-skills-proxy check PATH` to check skills"
        }
        "new" | "create" => "use `acp-skills-proxy init NAME` to create a skill",
        "upgrade" | "sync" | "fetch" | "pull" | "approve" => {
            "use `acp-skills-proxy update` to fetch and approve new versions of sources"
        }
        "test" | "bench" | "benchmark" => {
            "use `acp-skills-proxy try --skill DIR` for one prompt, or `acp-skills-proxy eval DIR` to evaluate a skill"
        }
        "ask" | "prompt" | "chat" => "use `acp-skills-proxy try --prompt TEXT` to send one prompt",
        "stats" | "log" | "logs" | "history" | "events" => {
            "use `acp-skills-proxy report FILE` to summarize a file that `--events FILE` wrote"
        }
        "status" | "diagnose" | "debug" => "use `acp-skills-proxy doctor -- AGENT` to test an agent",
        "login" | "logout" | "auth" => "log in with the agent itself, or in your editor",
        "agents" => "use `acp-skills-proxy setup --agents` to list the known agents",
        "editors" | "config" | "configure" => {
            "use `acp-skills-proxy setup` to list your editors, agents and skills, or to set up an editor"
        }
        "run" | "start" | "serve" | "exec" | "proxy" | "mcp" | "acp" => {
            "the proxy runs without a command: `acp-skills-proxy --skill DIR -- claude-agent-acp`"
        }
        _ => return None,
    })
}

/// Returns the long flag that was written with a single dash, such as `--skill` for `-skill`. `wrong` is its first letter.
pub(super) fn with_one_dash(wrong: &str, words: &[String]) -> Option<String> {
    let is_meant = |word: &&String| word.len() > 2 && word.starts_with(wrong) && !word.starts_with("--");
    let word = words.iter().take_while(|word| *word != "--").find(is_meant).filter(|_| wrong.len() == 2)?;
    let name = word.trim_start_matches('-').split('=').next()?;
    let all = Cli::command();
    let has_flag = |command: &clap::Command| command.get_arguments().any(|arg| arg.get_long() == Some(name));
    (has_flag(&all) || all.get_subcommands().any(has_flag)).then(|| format!("--{name}"))
}

/// Explains what is missing if a command needs an argument. Returns `None` if only a flag is missing.
pub(super) fn missing(missing: &ContextValue, command: &str) -> Option<UsageError> {
    let ContextValue::Strings(arguments) = missing else { return None };
    arguments.iter().any(|argument| argument.starts_with('<')).then_some(())?;
    let (what, hint) = match command {
        "check" => (
            "path",
            "name a skill or a directory, for example `acp-skills-proxy check ./code-review`; `acp-skills-proxy check .` checks all skills \
             below the working directory",
        ),
        "search" => (
            "words",
            "describe a task, for example `acp-skills-proxy search --skills ~/skills fill in a form`",
        ),
        "add" => (
            "source",
            "name a repository or a web site, for example `acp-skills-proxy add github:acme/skills`",
        ),
        "remove" => ("source", "use `acp-skills-proxy sources` to list all sources"),
        "init" => ("name", "name the skill, for example `acp-skills-proxy init code-review`"),
        "eval" => {
            ("skill", "name the directory of a skill, for example `acp-skills-proxy eval ./code-review`")
        }
        "report" => {
            ("file", "name a file that the proxy wrote with `--events FILE`, or use `-` to read stdin")
        }
        "setup" => (
            "editor",
            "name your editor, for example `acp-skills-proxy setup zed`; `acp-skills-proxy setup` lists your editors",
        ),
        "completions" => ("shell", "name your shell, for example `acp-skills-proxy completions bash`"),
        _ => return None,
    };
    Some(UsageError::new(format!("no {what} given")).hint(hint))
}
