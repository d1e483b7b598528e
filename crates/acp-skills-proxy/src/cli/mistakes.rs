//! Explains invalid command lines and suggests the intended one. `words` has the words of other programs for our commands.

mod words;

use std::{
    ffi::{OsStr, OsString},
    path::{Path, PathBuf},
};

use clap::{
    CommandFactory,
    error::{ContextKind, ContextValue, ErrorKind},
};

use acp_skills::{agents, config::expand_home};
use acp_skills_setup::editors;
use acp_skills_setup::shell::shell_word;

use super::Cli;
use crate::{error::UsageError, words::command_line};

/// The minimum similarity of two words, from 0 to 1, for a suggestion.
const MIN_SIMILARITY: f64 = 0.75;

/// Explains an error and suggests a fix. Returns `None` if clap's own message is sufficient.
pub(super) fn explain(error: &clap::Error, words: &[OsString]) -> Option<UsageError> {
    if error.kind() == ErrorKind::MissingRequiredArgument {
        return words::missing(context(error)?, words.get(1)?.to_str()?);
    }
    if !matches!(error.kind(), ErrorKind::UnknownArgument | ErrorKind::InvalidSubcommand) {
        return None;
    }
    let ContextValue::String(wrong) = context(error)? else { return None };
    let words = texts(words);
    if let Some(long) = words::with_one_dash(wrong, &words) {
        return Some(
            UsageError::new(format!("unknown flag `{}`", &long[1..])).hint(format!("did you mean `{long}`?")),
        );
    }
    let at = words.iter().skip(1).position(|word| word == wrong)? + 1;
    if let Some(hint) = equivalent_flag(words.get(1)?, wrong) {
        return Some(UsageError::new(format!("unknown flag `{wrong}`")).hint(hint));
    }
    if wrong.starts_with('-') || words[..at].iter().any(|word| word == "--") {
        return None;
    }
    let message = format!("unexpected argument `{wrong}`");
    let command = words.get(1).filter(|word| commands().any(|name| name == **word));
    if let (Some(command), "help") = (command, wrong.as_str()) {
        return Some(UsageError::new(message).hint(format!("run `acp-skills-proxy help {command}`")));
    }
    if at == 1 && wrong == "version" {
        return Some(UsageError::new(message).hint("run `acp-skills-proxy --version`"));
    }
    let is_help = words[1] == "help";
    if is_help && at > 2 && commands().any(|name| name == words[2]) {
        return Some(UsageError::new(message).hint(format!("run `acp-skills-proxy help {}`", words[2])));
    }
    if at == 1 || is_help {
        let unknown = UsageError::new(format!("unknown command `{wrong}`"));
        if let Some(hint) = words::equivalent_command(wrong) {
            return Some(unknown.hint(hint));
        }
        match similar(wrong) {
            Some(meant) => return Some(unknown.hint(format!("did you mean `{meant}`?"))),
            None if is_help => {
                return Some(unknown.hint("use `acp-skills-proxy --help` to list all commands"));
            }
            None => {}
        }
    }
    if command.is_none() && commands().any(|name| name == *wrong) {
        let line: Vec<_> =
            [&words[0], wrong].into_iter().chain(&words[1..at]).chain(&words[at + 1..]).collect();
        return Some(
            UsageError::new(message).hint(format!("put the command first: {}", command_line(&line))),
        );
    }
    if let Some(hint) = command.and_then(|command| command_hint(command, &words, at)) {
        return Some(UsageError::new(message).hint(hint));
    }
    if let Some(flag) = words[..at].iter().rev().find(|word| matches!(word.as_str(), "--skill" | "--skills"))
        && Path::new(wrong).is_dir()
    {
        return Some(
            UsageError::new(message).hint(format!("repeat the flag for each directory: `{flag} {wrong}`")),
        );
    }
    if command.is_some_and(|name| !takes_agent(name)) {
        return None;
    }
    if words[at..].iter().any(|word| word == "--") {
        let hint =
            "only flags and values can come before `--`; use `acp-skills-proxy help flags` to list all flags";
        return Some(UsageError::new(message).hint(hint));
    }
    let (ours, agent) = words.split_at(at);
    not_an_agent(command.map(String::as_str), agent).or_else(|| Some(misplaced_agent(message, ours, agent)))
}

/// Returns the error with `message` for an agent that is not after `--`. `agent` is its command with any flags, and `ours` are the words
/// before it.
fn misplaced_agent(message: String, ours: &[String], agent: &[String]) -> UsageError {
    // A word like `claude` might be the name of an agent, but not the name of a program.
    if agent.len() == 1
        && let Ok(known) = agents::find(&agent[0])
        && known.program[0] != agent[0]
    {
        let line: Vec<_> = ours.iter().map(String::as_str).chain(["--agent", &agent[0]]).collect();
        return UsageError::new(message)
            .hint(format!("use `--agent` to start an agent by name: {}", command_line(&line)));
    }
    let line: Vec<_> =
        ours.iter().map(String::as_str).chain(["--"]).chain(agent.iter().map(String::as_str)).collect();
    UsageError::new(message).hint(format!("put the agent command after `--`: {}", command_line(&line)))
}

/// Explains words that can't be the command of an agent. `command` is our own command before them.
fn not_an_agent(command: Option<&str>, words: &[String]) -> Option<UsageError> {
    let wrong = words.first()?;
    let path = expand_home(Path::new(wrong));
    if path.is_dir() || path.file_name().is_some_and(|name| name == "SKILL.md") {
        let dir = if path.is_dir() { wrong.as_str() } else { path.parent()?.to_str()? };
        let flag = if Path::new(dir).join("SKILL.md").exists() { "--skill" } else { "--skills" };
        return Some(
            UsageError::new(format!("unexpected argument `{wrong}`"))
                .hint(format!("use `{flag} {}` for skills", shell_word(dir))),
        );
    }
    if is_program(wrong) {
        return None;
    }
    if let (Some(command @ ("try" | "doctor")), 2..) = (command, words.len()) {
        let prompt = words.iter().take_while(|word| !word.starts_with('-')).map(String::as_str);
        let prompt = shell_word(&prompt.collect::<Vec<_>>().join(" "));
        return Some(UsageError::new(format!("unexpected argument `{wrong}`")).hint(format!(
            "put a prompt in quotes, after its flag: acp-skills-proxy {command} --prompt {prompt}"
        )));
    }
    if words.len() > 1 {
        return None;
    }
    Some(match command {
        Some(_) => UsageError::new(format!("unexpected argument `{wrong}`")).hint(
            "use `--skill DIR` for a skill and `--prompt TEXT` for a prompt; the command of an agent comes after `--`",
        ),
        None => UsageError::new(format!("unknown command `{wrong}`")).hint(
            "use `acp-skills-proxy --help` to list all commands; the command of an agent comes after `--`",
        ),
    })
}

/// Returns true if a word is probably a program: one that is installed, one that runs others, or a known agent.
fn is_program(word: &str) -> bool {
    let is_path = word.contains(['/', '\\']);
    is_path
        || ["npx", "uvx", "node", "python", "python3"].contains(&word)
        || agents::find(word).is_ok()
        || agents::of_command(&[word.to_owned()]).is_some()
        || which::which(word).is_ok()
}

/// Suggests our equivalent of a flag that is common in other programs.
fn equivalent_flag(command: &str, flag: &str) -> Option<&'static str> {
    Some(match (command, flag) {
        (_, "-v" | "--verbose" | "--debug") => {
            "use `--log debug` for more messages, or `--version` to print the version"
        }
        ("list" | "search", "--all" | "-a") => {
            "use `--discover user,project` for all of your own skills and those of the project"
        }
        ("setup", "--dry-run" | "-n") => "use `--print` to show changes without writing to the file",
        (_, "-y") => "use `--yes` for commands that ask for confirmation",
        (_, "-q" | "--quiet" | "--silent") => "use `--log off` for fewer messages",
        _ => return None,
    })
}

/// Removes clap's advice to pass an unknown flag after `--`, because words after `--` are the agent's command.
pub(super) fn without_advice(mut error: clap::Error) -> clap::Error {
    if let Some(ContextValue::StyledStrs(mut advice)) = error.remove(ContextKind::Suggested) {
        advice.retain(|text| !text.to_string().contains(" as a value, use "));
        if !advice.is_empty() {
            error.insert(ContextKind::Suggested, ContextValue::StyledStrs(advice));
        }
    }
    error
}

/// Suggests a fix that is specific to `command` for the word at index `at`.
fn command_hint(command: &str, words: &[String], at: usize) -> Option<String> {
    let wrong = &words[at];
    match command {
        // The word is probably a part of the prompt.
        "try" | "doctor" => {
            let (first, end) = match words[..at].iter().rposition(|word| word == "--prompt") {
                // If the prompt is not quoted, the shell passes it as several arguments.
                Some(flag) if words[flag + 1..=at].iter().all(|word| !word.starts_with('-')) => {
                    let more = words[at..].iter().take_while(|word| !word.starts_with('-')).count();
                    (flag, at + more)
                }
                None if wrong.contains(char::is_whitespace) => (at, at + 1),
                _ => return None,
            };
            let prompt = words[first..end].iter().filter(|word| *word != "--prompt").map(String::as_str);
            let prompt = prompt.collect::<Vec<_>>().join(" ");
            let flag = ["--prompt".to_owned(), prompt];
            let line: Vec<_> = words[..first].iter().chain(&flag).chain(&words[end..]).collect();
            Some(format!("put the prompt in quotes: {}", command_line(&line)))
        }
        "setup" if editors::find(wrong).is_ok() => {
            Some(format!("`setup` takes one editor at a time: `acp-skills-proxy setup {wrong}`"))
        }
        "setup" if words[..at].iter().skip(2).any(|word| editors::find(word).is_ok()) && !is_program(wrong) => Some(
            "use `--skill DIR` for a skill and `--agent ID` for a known agent; the command of an agent comes after `--`"
                .to_owned(),
        ),
        "eval" if Path::new(wrong).is_dir() => Some(
            "`eval` takes one skill; use `--among DIR` for skills that are offered beside it, and `--baseline DIR` for another version"
                .to_owned(),
        ),
        _ => None,
    }
}

/// Returns true if the first word of a command line is a command, or similar to one.
pub(super) fn names_a_command(words: &[OsString]) -> bool {
    let first = words.get(1).and_then(|word| word.to_str());
    first.is_some_and(|word| word == "help" || (!word.starts_with('-') && similar(word).is_some()))
}

/// Returns the value of `--log-file` in an invalid command line.
pub(super) fn log_file(words: &[OsString]) -> Option<PathBuf> {
    let ours: Vec<_> = words.iter().take_while(|word| *word != "--").collect();
    let at = ours.iter().position(|word| word.to_string_lossy().starts_with("--log-file"))?;
    let file = match ours[at].to_str()?.strip_prefix("--log-file=") {
        Some(file) => OsStr::new(file),
        None => ours.get(at + 1).filter(|_| ours[at] == "--log-file")?.as_os_str(),
    };
    Some(expand_home(Path::new(file)))
}

/// Returns clap's message without the usage.
pub(super) fn message(error: &clap::Error) -> String {
    let text = error.render().to_string();
    let text = text.split("\n\nUsage:").next().unwrap_or_default();
    text.trim().strip_prefix("error: ").unwrap_or(text).to_owned()
}

fn context(error: &clap::Error) -> Option<&ContextValue> {
    error.get(ContextKind::InvalidArg).or_else(|| error.get(ContextKind::InvalidSubcommand))
}

pub(super) fn texts(words: &[OsString]) -> Vec<String> {
    words.iter().map(|word| word.to_string_lossy().into_owned()).collect()
}

/// Returns the names of all visible commands.
fn commands() -> impl Iterator<Item = String> {
    let commands: Vec<_> = Cli::command().get_subcommands().cloned().collect();
    commands.into_iter().filter(|command| !command.is_hide_set()).map(|command| command.get_name().to_owned())
}

fn takes_agent(name: &str) -> bool {
    let command = Cli::command();
    let command = command.find_subcommand(name);
    command.is_some_and(|command| command.get_positionals().any(clap::Arg::is_last_set))
}

/// Returns the command that is most similar to `word`, if it is similar enough.
fn similar(word: &str) -> Option<String> {
    let alike = commands().map(|name| (strsim::jaro_winkler(word, &name), name));
    let best = alike.max_by(|a, b| a.0.total_cmp(&b.0))?;
    (best.0 >= MIN_SIMILARITY).then_some(best.1)
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use expect_test::{Expect, expect};

    use super::*;

    fn check(line: &str, expected: Expect) {
        // Use `_` for a space within a word.
        let words: Vec<OsString> = line.split(' ').map(|word| word.replace('_', " ").into()).collect();
        let error = Cli::try_parse_from(&words).expect_err("an invalid command line");
        let explained = explain(&error, &words);
        let explained =
            explained.map_or_else(|| "(clap's message)".to_owned(), |error| error.to_string_with_hint());
        expected.assert_eq(&explained);
    }

    #[test]
    fn explanations_and_suggestions() {
        check("acp-skills-proxy lst", expect!["unknown command `lst`; did you mean `list`?"]);
        check("acp-skills-proxy chekc a", expect!["unknown command `chekc`; did you mean `check`?"]);
        check(
            "/usr/bin/acp-skills-proxy --skill X claude-agent-acp --acp",
            expect![
                "unexpected argument `claude-agent-acp`; put the agent command after `--`: acp-skills-proxy --skill X -- claude-agent-acp --acp"
            ],
        );
        check(
            "acp-skills-proxy --skill a$b npx",
            expect![
                "unexpected argument `npx`; put the agent command after `--`: acp-skills-proxy --skill 'a$b' -- npx"
            ],
        );
        check(
            "acp-skills-proxy --skill X claude",
            expect![
                "unexpected argument `claude`; use `--agent` to start an agent by name: acp-skills-proxy --skill X --agent claude"
            ],
        );
        check(
            "acp-skills-proxy claude-agent-acp",
            expect![
                "unexpected argument `claude-agent-acp`; put the agent command after `--`: acp-skills-proxy -- claude-agent-acp"
            ],
        );
        check(
            "acp-skills-proxy try --skill X gemini --acp",
            expect![
                "unexpected argument `gemini`; put the agent command after `--`: acp-skills-proxy try --skill X -- gemini --acp"
            ],
        );
        check(
            "acp-skills-proxy --skills . src",
            expect!["unexpected argument `src`; repeat the flag for each directory: `--skills src`"],
        );
        check(
            "acp-skills-proxy try help",
            expect!["unexpected argument `help`; run `acp-skills-proxy help try`"],
        );
        check(
            "acp-skills-proxy try --skill X Review_it",
            expect![
                "unexpected argument `Review it`; put the prompt in quotes: acp-skills-proxy try --skill X --prompt 'Review it'"
            ],
        );
        check(
            "acp-skills-proxy try --skill X --prompt Review src now -- gemini --acp",
            expect![
                "unexpected argument `src`; put the prompt in quotes: acp-skills-proxy try --skill X --prompt 'Review src now' -- gemini --acp"
            ],
        );
        check(
            "acp-skills-proxy version",
            expect!["unexpected argument `version`; run `acp-skills-proxy --version`"],
        );
        check(
            "acp-skills-proxy help list foo",
            expect!["unexpected argument `foo`; run `acp-skills-proxy help list`"],
        );
        check("acp-skills-proxy help lst", expect!["unknown command `lst`; did you mean `list`?"]);
        check(
            "acp-skills-proxy help 123",
            expect!["unknown command `123`; use `acp-skills-proxy --help` to list all commands"],
        );
        check(
            "acp-skills-proxy --config c.yaml list --json",
            expect![
                "unexpected argument `list`; put the command first: acp-skills-proxy list --config c.yaml --json"
            ],
        );
        check(
            "acp-skills-proxy --allow-scripts yes -- gemini",
            expect![
                "unexpected argument `yes`; only flags and values can come before `--`; use `acp-skills-proxy help flags` to list all flags"
            ],
        );
        check(
            "acp-skills-proxy setup zed jetbrains",
            expect![
                "unexpected argument `jetbrains`; `setup` takes one editor at a time: `acp-skills-proxy setup jetbrains`"
            ],
        );
        check(
            "acp-skills-proxy list --verbose",
            expect![
                "unknown flag `--verbose`; use `--log debug` for more messages, or `--version` to print the version"
            ],
        );
        check(
            "acp-skills-proxy setup zed --dry-run",
            expect!["unknown flag `--dry-run`; use `--print` to show changes without writing to the file"],
        );
        // For these, clap already suggests similar flags.
        check("acp-skills-proxy --skils x", expect!["(clap's message)"]);
        check(
            "acp-skills-proxy report",
            expect![
                "no file given; name a file that the proxy wrote with `--events FILE`, or use `-` to read stdin"
            ],
        );
    }
}
