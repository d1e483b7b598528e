//! Texts to paste into a command line, or into settings that are written in a programming language, as in Neovim and
//! Emacs.

use acp_skills::agents::Agent;

use crate::shell::{shell_line, shell_word};

/// A text to paste.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Snippet {
    /// For [CodeCompanion](https://github.com/olimorris/codecompanion.nvim). Extends its adapter for the agent.
    CodeCompanion,
    /// For [avante](https://github.com/yetone/avante.nvim).
    Avante,
    /// For [agent-shell](https://github.com/xenodium/agent-shell).
    AgentShell,
    /// For [Jupyter AI](https://github.com/jupyterlab/jupyter-ai). It starts agents by their names in `PATH`, so a script of the same
    /// name comes first there.
    Jupyter,
    /// For [Toad](https://github.com/batrachianai/toad).
    Toad,
}

/// The names of an agent in plug-ins. `None` if the plug-in does not support the agent.
struct Names {
    /// The identifier in the ACP registry.
    agent: &'static str,
    /// The name of CodeCompanion's adapter.
    adapter: Option<&'static str>,
    /// The name of avante's provider.
    provider: Option<&'static str>,
    /// The variable of agent-shell that contains the command.
    variable: Option<&'static str>,
}

const fn names(
    agent: &'static str,
    adapter: Option<&'static str>,
    provider: Option<&'static str>,
    variable: Option<&'static str>,
) -> Names {
    Names { agent, adapter, provider, variable }
}

const NAMES: &[Names] = &[
    names(
        "claude-acp",
        Some("claude_code"),
        Some("claude-code"),
        Some("agent-shell-anthropic-claude-acp-command"),
    ),
    names("codex-acp", Some("codex"), Some("codex"), Some("agent-shell-openai-codex-acp-command")),
    names("gemini", Some("gemini_cli"), Some("gemini-cli"), Some("agent-shell-google-gemini-acp-command")),
    names("github-copilot-cli", Some("copilot_acp"), None, Some("agent-shell-github-acp-command")),
    names("opencode", Some("opencode"), Some("opencode"), Some("agent-shell-opencode-acp-command")),
    names("qwen-code", None, None, Some("agent-shell-qwen-acp-command")),
    names("goose", Some("goose"), Some("goose"), Some("agent-shell-goose-acp-command")),
    names("kimi", Some("kimi_cli"), Some("kimi-cli"), None),
    names("kilo", Some("kilocode"), None, None),
    names("cline", Some("cline_cli"), None, None),
    names("mistral-vibe", Some("mistral_vibe"), None, None),
    names("pi-acp", None, None, Some("agent-shell-pi-acp-command")),
];

impl Snippet {
    /// Returns the heading of the text, which says where to paste it.
    pub fn title(self) -> &'static str {
        match self {
            Self::CodeCompanion => "CodeCompanion, in your init.lua:",
            Self::Avante => "avante, in your init.lua (for slash commands, install nvim-cmp as well):",
            Self::AgentShell => "agent-shell, in your init.el:",
            Self::Jupyter => "Jupyter AI, in a terminal:",
            Self::Toad => "Toad, on a command line:",
        }
    }

    /// Returns the text that makes the plug-in start `command`. `agent` is the agent that the command runs, if it is a known
    /// one. `None` if the plug-in only supports certain agents, and this is not one of them.
    pub fn text(self, agent: Option<&Agent>, command: &[String]) -> Option<String> {
        let known = agent.and_then(|agent| NAMES.iter().find(|names| names.agent == agent.id));
        let lua = || command.iter().map(|word| lua(word)).collect::<Vec<_>>();
        match self {
            Self::CodeCompanion => {
                let adapter = known?.adapter?;
                Some(format!(
                    "require(\"codecompanion\").setup({{\n  adapters = {{\n    acp = {{\n      {adapter} = function()\n        \
                     return require(\"codecompanion.adapters\").extend(\"{adapter}\", {{\n          commands = {{\n            \
                     default = {{ {} }},\n          }},\n        }})\n      end,\n    }},\n  }},\n}})\n",
                    lua().join(", ")
                ))
            }
            Self::Avante => {
                let provider = known.and_then(|names| names.provider).or(agent.map(|agent| agent.id));
                let provider = provider.unwrap_or("acp-skills");
                let program = lua().remove(0);
                let arguments = lua()[1..].join(", ");
                Some(format!(
                    "require(\"avante\").setup({{\n  provider = \"{provider}\",\n  acp_providers = {{\n    [\"{provider}\"] = \
                     {{\n      command = {program},\n      args = {{ {arguments} }},\n    }},\n  }},\n}})\n"
                ))
            }
            Self::AgentShell => {
                let words: Vec<_> = command.iter().map(|word| lisp(word)).collect();
                Some(format!("(setq {}\n      '({}))\n", known?.variable?, words.join(" ")))
            }
            Self::Jupyter => Some(jupyter(agent, command)),
            Self::Toad => Some(format!("toad acp {}\n", shell_word(&shell_line(command)))),
        }
    }
}

/// The directory of the scripts for Jupyter AI.
pub const SCRIPTS: &str = "~/.local/share/acp-skills-proxy/jupyter";

/// Returns commands that write a script with the name of the agent, and start JupyterLab so that it finds the script first. Jupyter AI passes
/// the arguments of a known agent.
fn jupyter(agent: Option<&Agent>, command: &[String]) -> String {
    let (name, command, arguments) = if let Some(agent) = agent {
        let own = command.len() - (agent.program.len() - 1);
        (agent.program[0], &command[..own], " \"$@\"")
    } else {
        let program = command.iter().skip_while(|word| *word != "--").nth(1);
        let name = program.and_then(|program| program.rsplit('/').next());
        (name.unwrap_or("agent"), command, "")
    };
    let file = format!("{SCRIPTS}/{}", shell_word(name));
    format!(
        "mkdir -p {SCRIPTS}\ncat > {file} <<'EOF'\n#!/bin/sh\nexec {}{arguments}\nEOF\nchmod +x {file}\nPATH={SCRIPTS}:$PATH jupyter \
         lab\n",
        shell_line(command)
    )
}

/// Returns the identifiers of the agents that the plug-in supports.
pub fn known(snippet: Snippet) -> Vec<&'static str> {
    let is_known = |names: &&Names| match snippet {
        Snippet::CodeCompanion => names.adapter.is_some(),
        Snippet::AgentShell => names.variable.is_some(),
        Snippet::Avante | Snippet::Jupyter | Snippet::Toad => true,
    };
    NAMES.iter().filter(is_known).map(|names| names.agent).collect()
}

/// Returns a Lua string literal.
fn lua(text: &str) -> String {
    quoted(text, |c| format!("\\{:03}", u32::from(c)))
}

/// Returns a string literal of Emacs Lisp.
fn lisp(text: &str) -> String {
    quoted(text, |c| format!("\\x{:x}\\ ", u32::from(c)))
}

/// Returns a string literal with escapes that Lua and Emacs Lisp share. `control` escapes other control characters.
fn quoted(text: &str, control: impl Fn(char) -> String) -> String {
    let escaped = text.chars().map(|c| match c {
        '"' | '\\' => format!("\\{c}"),
        '\n' => "\\n".to_owned(),
        c if c.is_control() => control(c),
        c => c.to_string(),
    });
    format!("\"{}\"", escaped.collect::<String>())
}

#[cfg(test)]
mod tests {
    use acp_skills::agents;

    use super::*;

    #[test]
    fn all_names_belong_to_known_agents() {
        for names in NAMES {
            assert_eq!(agents::find(names.agent).unwrap().id, names.agent);
        }
    }

    #[test]
    fn words_are_quoted() {
        for (word, in_lua, in_lisp, in_shell) in [
            ("a b", r#""a b""#, r#""a b""#, "'a b'"),
            (r#"C:\x "y""#, r#""C:\\x \"y\"""#, r#""C:\\x \"y\"""#, r#"'C:\x "y"'"#),
            ("it's", r#""it's""#, r#""it's""#, r"'it'\''s'"),
            ("", r#""""#, r#""""#, "''"),
            ("/a-b", r#""/a-b""#, r#""/a-b""#, "/a-b"),
        ] {
            assert_eq!(
                (lua(word).as_str(), lisp(word).as_str(), shell_word(word).as_str()),
                (in_lua, in_lisp, in_shell)
            );
        }
    }
}
