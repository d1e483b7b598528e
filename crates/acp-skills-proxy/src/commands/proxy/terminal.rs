//! Messages for a person who types the command in a terminal, although only an editor can use it.

use std::ffi::OsString;

use crate::error::UsageError;

/// The first letters of an argument with which agents let the user log in, such as `--login` or `auth login`.
const LOGIN: [&str; 6] = ["login", "auth", "signin", "sign-in", "setup", "configure"];
/// The argument that starts the terminal program of an agent. Other words begin with these letters as well, such as `cline`.
const TERMINAL: &str = "cli";

/// Returns true if the agent was probably started to let the user log in. A client that does this appends arguments to the command.
/// Nothing else marks such a start.
pub(super) fn is_login(agent: &[OsString]) -> bool {
    agent.iter().skip(1).filter_map(|word| word.to_str()).any(|word| {
        let word = word.trim_start_matches('-').to_ascii_lowercase();
        word == TERMINAL || LOGIN.iter().any(|login| word.starts_with(login))
    })
}

/// Returns the note that the agent waits for an editor. `to_try` is the command line that tries the same skills.
pub(super) fn note(to_try: &str) -> String {
    format!(
        "note: waiting for an editor, which would start this command and send messages to it; to end it, press Ctrl+C\n  \
         to try the skills in this terminal: {to_try}\n  to add the agent to an editor: acp-skills-proxy setup"
    )
}

/// Returns the error if the command line has no agent. `to_try` is the command line that tries the same skills.
pub(super) fn no_agent(to_try: &str) -> UsageError {
    UsageError::new("no agent to run").hint(format!(
        "an editor starts this command with an agent after `--`, for example `acp-skills-proxy --skill DIR -- claude-agent-acp`; to try \
         the skills in this terminal, use `{to_try}`; to add an agent to an editor, use `acp-skills-proxy setup`"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logins_by_the_arguments_of_the_agent() {
        for (line, expected) in [
            ("claude-agent-acp", false),
            ("claude-agent-acp --cli auth login", true),
            ("npx -y @agentclientprotocol/claude-agent-acp --cli", true),
            ("npx -y cline --acp", false),
            ("gemini --acp", false),
            ("qwen --acp --auth-type=openai", true),
            ("kimi --login", true),
            ("hermes acp --setup", true),
            ("login-agent --acp", false),
        ] {
            let words: Vec<OsString> = line.split(' ').map(Into::into).collect();
            assert_eq!(is_login(&words), expected, "{line}");
        }
    }
}
