//! What a wrong command line probably meant.

use std::{
    ffi::{OsStr, OsString},
    path::{Path, PathBuf},
};

use clap::{
    CommandFactory,
    error::{ContextKind, ContextValue, ErrorKind},
};

use acp_skills::{agents, config::expand_home};
use skills_core::text::shown;

use super::Cli;
use crate::{error::UsageError, setup::editors};

/// How alike two words have to be, from 0 to 1, for one to be meant by the other.
const ALIKE: f64 = 0.75;

/// The same error with what was probably meant; `None` when there is nothing to add to what clap says.
pub(super) fn explain(error: &clap::Error, words: &[OsString]) -> Option<UsageError> {
    if !matches!(error.kind(), ErrorKind::UnknownArgument | ErrorKind::InvalidSubcommand) {
        return None;
    }
    let (ContextValue::String(wrong), words) = (context(error)?, texts(words)) else { return None };
    let at = words.iter().skip(1).position(|word| word == wrong)? + 1;
    if let Some(hint) = called_otherwise(words.get(1)?, wrong) {
        return Some(UsageError::new(format!("there is no flag `{wrong}`")).hint(hint));
    }
    if wrong.starts_with('-') || words[..at].iter().any(|word| word == "--") {
        return None;
    }
    let message = format!("`{wrong}` is not expected here");
    let command = words.get(1).filter(|word| commands().any(|name| name == **word));
    if let (Some(command), "help") = (command, wrong.as_str()) {
        return Some(UsageError::new(message).hint(format!("`acp-skills-proxy help {command}`")));
    }
    if at == 1 && wrong == "version" {
        return Some(UsageError::new(message).hint("`acp-skills-proxy --version`"));
    }
    let is_help = words[1] == "help";
    if at == 1 || is_help {
        let unknown = UsageError::new(format!("there is no command `{wrong}`"));
        match similar(wrong) {
            Some(meant) => return Some(unknown.hint(format!("did you mean `{meant}`?"))),
            None if is_help => return Some(unknown.hint("`acp-skills-proxy --help` lists them")),
            None => {}
        }
    }
    if command.is_none() && commands().any(|name| name == *wrong) {
        let line: Vec<_> =
            [&words[0], wrong].into_iter().chain(&words[1..at]).chain(&words[at + 1..]).collect();
        return Some(UsageError::new(message).hint(format!("the command comes first: {}", shell(&line))));
    }
    if let Some(hint) = command.and_then(|command| of_command(command, &words, at)) {
        return Some(UsageError::new(message).hint(hint));
    }
    if let Some(flag) = words[..at].iter().rev().find(|word| matches!(word.as_str(), "--skill" | "--skills"))
        && Path::new(wrong).is_dir()
    {
        return Some(
            UsageError::new(message).hint(format!("each directory has a flag of its own: `{flag} {wrong}`")),
        );
    }
    if command.is_some_and(|name| !takes_agent(name)) {
        return None;
    }
    if words[at..].iter().any(|word| word == "--") {
        let hint = "in front of `--` there are only flags and their values: `--help` lists them";
        return Some(UsageError::new(message).hint(hint));
    }
    // The rest is the agent's, its flags too.
    let (ours, agent) = words.split_at(at);
    // `claude` is what people call an agent, and no program that is one.
    if agent.len() == 1
        && let Ok(known) = agents::find(wrong)
        && known.program[0] != *wrong
    {
        let line: Vec<_> = ours.iter().map(String::as_str).chain(["--agent", wrong]).collect();
        return Some(
            UsageError::new(message).hint(format!("an agent by its name has a flag: {}", shell(&line))),
        );
    }
    let line: Vec<_> =
        ours.iter().map(String::as_str).chain(["--"]).chain(agent.iter().map(String::as_str)).collect();
    Some(UsageError::new(message).hint(format!("the agent's command goes after `--`: {}", shell(&line))))
}

/// What a flag of many other programs is called here.
fn called_otherwise(command: &str, flag: &str) -> Option<&'static str> {
    Some(match (command, flag) {
        (_, "-v" | "--verbose" | "--debug") => {
            "`--log debug` says more, and `--version` which version this is"
        }
        ("setup", "--dry-run" | "-n") => "`--print` only shows the change",
        (_, "-y") => "`--yes`, where something is asked",
        (_, "-q" | "--quiet" | "--silent") => "`--log off` says less",
        _ => return None,
    })
}

/// Without clap's advice to put an unknown flag behind `--`: there it would be the agent.
pub(super) fn without_advice(mut error: clap::Error) -> clap::Error {
    if let Some(ContextValue::StyledStrs(mut advice)) = error.remove(ContextKind::Suggested) {
        advice.retain(|text| !text.to_string().contains(" as a value, use "));
        if !advice.is_empty() {
            error.insert(ContextKind::Suggested, ContextValue::StyledStrs(advice));
        }
    }
    error
}

/// What the word at `at` of a command line of `command` probably was meant to be.
fn of_command(command: &str, words: &[String], at: usize) -> Option<String> {
    let wrong = &words[at];
    match command {
        // What somebody says to the agent.
        "try" | "doctor" => {
            let (first, end) = match words[..at].iter().rposition(|word| word == "--prompt") {
                // Without quotes, it is as many words as it has.
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
            Some(format!("the prompt is one word behind its flag, in quotes: {}", shell(&line)))
        }
        "setup" if editors::find(wrong).is_ok() => {
            Some(format!("one editor at a time: `acp-skills-proxy setup {wrong}`"))
        }
        _ => None,
    }
}

/// Whether a command line is one of a command, or of something much like one.
pub(super) fn names_a_command(words: &[OsString]) -> bool {
    let first = words.get(1).and_then(|word| word.to_str());
    first.is_some_and(|word| word == "help" || (!word.starts_with('-') && similar(word).is_some()))
}

/// Where messages are to go, of a command line that is wrong elsewhere.
pub(super) fn log_file(words: &[OsString]) -> Option<PathBuf> {
    let ours: Vec<_> = words.iter().take_while(|word| *word != "--").collect();
    let at = ours.iter().position(|word| word.to_string_lossy().starts_with("--log-file"))?;
    let file = match ours[at].to_str()?.strip_prefix("--log-file=") {
        Some(file) => OsStr::new(file),
        None => ours.get(at + 1).filter(|_| ours[at] == "--log-file")?.as_os_str(),
    };
    Some(expand_home(Path::new(file)))
}

/// What clap says is wrong, without the usage.
pub(super) fn message(error: &clap::Error) -> String {
    let text = error.render().to_string();
    let text = text.split("\n\nUsage:").next().unwrap_or_default();
    text.trim().strip_prefix("error: ").unwrap_or(text).to_owned()
}

fn context(error: &clap::Error) -> Option<&ContextValue> {
    error.get(ContextKind::InvalidArg).or_else(|| error.get(ContextKind::InvalidSubcommand))
}

fn texts(words: &[OsString]) -> Vec<String> {
    words.iter().map(|word| word.to_string_lossy().into_owned()).collect()
}

/// The commands that people type.
fn commands() -> impl Iterator<Item = String> {
    let commands: Vec<_> = Cli::command().get_subcommands().cloned().collect();
    commands.into_iter().filter(|command| !command.is_hide_set()).map(|command| command.get_name().to_owned())
}

fn takes_agent(name: &str) -> bool {
    let command = Cli::command();
    let command = command.find_subcommand(name);
    command.is_some_and(|command| command.get_positionals().any(clap::Arg::is_last_set))
}

/// The command that is written much like `word`.
fn similar(word: &str) -> Option<String> {
    let alike = commands().map(|name| (strsim::jaro_winkler(word, &name), name));
    let best = alike.max_by(|a, b| a.0.total_cmp(&b.0))?;
    (best.0 >= ALIKE).then_some(best.1)
}

/// A command line as somebody would type it.
fn shell(words: &[impl AsRef<str>]) -> String {
    let plain = |c: char| c.is_alphanumeric() || "-_./:=@%+,~".contains(c);
    let quoted = |word: &str| match word {
        word if !word.is_empty() && word.chars().all(plain) => word.to_owned(),
        word => format!("'{}'", word.replace('\'', r"'\''")),
    };
    let program = words.first().map(|word| PathBuf::from(word.as_ref()));
    let program =
        program.as_deref().and_then(Path::file_stem).map(|name| name.to_string_lossy().into_owned());
    let rest = words.iter().skip(1).map(|word| quoted(word.as_ref()));
    let line: Vec<_> = program.into_iter().chain(rest).collect();
    shown(&line.join(" ")).into_owned()
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use expect_test::{Expect, expect};

    use super::*;

    fn check(line: &str, expected: Expect) {
        // A word with blanks has them as `_`.
        let words: Vec<OsString> = line.split(' ').map(|word| word.replace('_', " ").into()).collect();
        let error = Cli::try_parse_from(&words).expect_err("it is wrong");
        let said = explain(&error, &words);
        let said = said.map_or_else(|| "(what clap says)".to_owned(), |error| error.to_string_with_hint());
        expected.assert_eq(&said);
    }

    #[test]
    fn what_was_meant() {
        check("acp-skills-proxy lst", expect!["there is no command `lst`; did you mean `list`?"]);
        check("acp-skills-proxy chekc a", expect!["there is no command `chekc`; did you mean `check`?"]);
        check(
            "/usr/bin/acp-skills-proxy --skill X claude-agent-acp --acp",
            expect![
                "`claude-agent-acp` is not expected here; the agent's command goes after `--`: acp-skills-proxy --skill X -- claude-agent-acp --acp"
            ],
        );
        check(
            "acp-skills-proxy --skill a$b npx",
            expect![
                "`npx` is not expected here; the agent's command goes after `--`: acp-skills-proxy --skill 'a$b' -- npx"
            ],
        );
        check(
            "acp-skills-proxy --skill X claude",
            expect![
                "`claude` is not expected here; an agent by its name has a flag: acp-skills-proxy --skill X --agent claude"
            ],
        );
        check(
            "acp-skills-proxy claude-agent-acp",
            expect![
                "`claude-agent-acp` is not expected here; the agent's command goes after `--`: acp-skills-proxy -- claude-agent-acp"
            ],
        );
        check(
            "acp-skills-proxy try --skill X gemini --acp",
            expect![
                "`gemini` is not expected here; the agent's command goes after `--`: acp-skills-proxy try --skill X -- gemini --acp"
            ],
        );
        check(
            "acp-skills-proxy --skills . src",
            expect!["`src` is not expected here; each directory has a flag of its own: `--skills src`"],
        );
        check(
            "acp-skills-proxy try help",
            expect!["`help` is not expected here; `acp-skills-proxy help try`"],
        );
        check(
            "acp-skills-proxy try --skill X Review_it",
            expect![
                "`Review it` is not expected here; the prompt is one word behind its flag, in quotes: acp-skills-proxy try --skill X --prompt 'Review it'"
            ],
        );
        check(
            "acp-skills-proxy try --skill X --prompt Review src now -- gemini --acp",
            expect![
                "`src` is not expected here; the prompt is one word behind its flag, in quotes: acp-skills-proxy try --skill X --prompt 'Review src now' -- gemini --acp"
            ],
        );
        check(
            "acp-skills-proxy version",
            expect!["`version` is not expected here; `acp-skills-proxy --version`"],
        );
        check("acp-skills-proxy help lst", expect!["there is no command `lst`; did you mean `list`?"]);
        check(
            "acp-skills-proxy help 123",
            expect!["there is no command `123`; `acp-skills-proxy --help` lists them"],
        );
        check(
            "acp-skills-proxy --config c.yaml list --json",
            expect![
                "`list` is not expected here; the command comes first: acp-skills-proxy list --config c.yaml --json"
            ],
        );
        check(
            "acp-skills-proxy --allow-scripts yes -- gemini",
            expect![
                "`yes` is not expected here; in front of `--` there are only flags and their values: `--help` lists them"
            ],
        );
        check(
            "acp-skills-proxy setup zed jetbrains",
            expect![
                "`jetbrains` is not expected here; one editor at a time: `acp-skills-proxy setup jetbrains`"
            ],
        );
        check(
            "acp-skills-proxy list --verbose",
            expect![
                "there is no flag `--verbose`; `--log debug` says more, and `--version` which version this is"
            ],
        );
        check(
            "acp-skills-proxy setup zed --dry-run",
            expect!["there is no flag `--dry-run`; `--print` only shows the change"],
        );
        // Clap knows its flags.
        check("acp-skills-proxy --skils x", expect!["(what clap says)"]);
        check("acp-skills-proxy report", expect!["(what clap says)"]);
    }
}
