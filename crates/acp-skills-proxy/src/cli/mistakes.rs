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
use crate::error::UsageError;

/// How alike two words have to be, from 0 to 1, for one to be meant by the other.
const ALIKE: f64 = 0.75;

/// The same error with what was probably meant; `None` when there is nothing to add to what clap says.
pub(super) fn explain(error: &clap::Error, words: &[OsString]) -> Option<UsageError> {
    if !matches!(error.kind(), ErrorKind::UnknownArgument | ErrorKind::InvalidSubcommand) {
        return None;
    }
    let (ContextValue::String(wrong), words) = (context(error)?, texts(words)) else { return None };
    let at = words.iter().skip(1).position(|word| word == wrong)? + 1;
    if wrong.starts_with('-') || words[..at].iter().any(|word| word == "--") {
        return None;
    }
    let message = format!("`{wrong}` is not expected here");
    let command = words.get(1).filter(|word| commands().any(|name| name == **word));
    if let (Some(command), "help") = (command, wrong.as_str()) {
        return Some(UsageError::new(message).hint(format!("`acp-skills-proxy help {command}`")));
    }
    if at == 1
        && let Some(meant) = similar(wrong)
    {
        let message = format!("there is no command `{wrong}`");
        return Some(UsageError::new(message).hint(format!("did you mean `{meant}`?")));
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
fn shell(words: &[&str]) -> String {
    let plain = |c: char| c.is_alphanumeric() || "-_./:=@%+,~".contains(c);
    let quoted = |word: &&str| match word {
        word if !word.is_empty() && word.chars().all(plain) => (*word).to_owned(),
        word => format!("'{}'", word.replace('\'', r"'\''")),
    };
    let program = words.first().map(PathBuf::from);
    let program =
        program.as_deref().and_then(Path::file_stem).map(|name| name.to_string_lossy().into_owned());
    let rest = words.iter().skip(1).map(quoted);
    let line: Vec<_> = program.into_iter().chain(rest).collect();
    shown(&line.join(" ")).into_owned()
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use expect_test::{Expect, expect};

    use super::*;

    fn check(line: &str, expected: Expect) {
        let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
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
        // Clap knows its flags.
        check("acp-skills-proxy --skils x", expect!["(what clap says)"]);
        check("acp-skills-proxy report", expect!["(what clap says)"]);
    }
}
