//! Facts about the home directories of agents: where they find skills themselves, and which files hold their login.
//!
//! The facts are from the documentation of the agents. Agents without a row may load skills from the directories that many
//! agents share.

use std::{
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
};

use acp_skills::agents;
use skills_core::order;

use super::AgentCommand;

/// The directories below the home directory from which agents without a row may load skills.
const SHARED: [&str; 2] = [".agents/skills", ".claude/skills"];

/// A row of facts about an agent. All paths are relative to the home directory.
struct Facts {
    /// The agent's identifier.
    id: &'static str,
    /// The directories from which the agent loads skills itself.
    skills: &'static [&'static str],
    /// The files with the login, and with the settings that select the account or the provider.
    login: &'static [&'static str],
}

const FACTS: [Facts; 6] = [
    Facts {
        id: "claude-acp",
        skills: &[".claude/skills"],
        login: &[".claude/.credentials.json", ".claude/settings.json", ".claude.json"],
    },
    Facts {
        id: "codex-acp",
        skills: &[".agents/skills", ".codex/skills"],
        login: &[".codex/auth.json", ".codex/config.toml"],
    },
    Facts {
        id: "gemini",
        skills: &[".agents/skills", ".gemini/skills"],
        login: &[".gemini/oauth_creds.json", ".gemini/google_accounts.json", ".gemini/settings.json"],
    },
    Facts {
        id: "github-copilot-cli",
        skills: &[".agents/skills", ".claude/skills", ".copilot/skills"],
        login: &[".copilot/config.json"],
    },
    Facts {
        id: "opencode",
        skills: &[".agents/skills", ".claude/skills", ".config/opencode/skill", ".config/opencode/skills"],
        login: &[".local/share/opencode/auth.json", ".config/opencode/opencode.json"],
    },
    Facts {
        id: "qwen-code",
        skills: &[".qwen/skills"],
        login: &[".qwen/oauth_creds.json", ".qwen/settings.json"],
    },
];

fn facts(command: &[OsString]) -> Option<&'static Facts> {
    let words: Vec<_> = command.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let agent = agents::of_command(&words)?;
    FACTS.iter().find(|facts| facts.id == agent.id)
}

/// Returns the files with the agent's login, relative to the home directory. Returns `None` if they are not known.
pub(super) fn login(command: &[OsString]) -> Option<&'static [&'static str]> {
    facts(command).map(|facts| facts.login)
}

/// The skills that are installed for an agent, in addition to those of an evaluation.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Installed {
    /// The agent's name.
    pub agent: String,
    /// The directories with a skill of the same name as the evaluated skill.
    pub same: Vec<PathBuf>,
    /// The number of other skills.
    pub others: usize,
    /// True if the agent is known to load these skills. False if it may.
    pub is_known: bool,
    /// True if the files with the agent's login are known, so that it stays logged in with [`Options::isolate`].
    ///
    /// [`Options::isolate`]: crate::Options::isolate
    pub has_known_login: bool,
}

/// Returns the skills that are installed for each agent below `home`. `skill` is the name of the evaluated skill. The built-in
/// agent has none.
pub fn installed_skills(agents: &[AgentCommand], skill: &str, home: &Path) -> Vec<Installed> {
    let agents = agents.iter().filter(|agent| !agent.command.is_empty());
    agents.map(|agent| find(home, &agent.name, &agent.command, skill)).collect()
}

fn find(home: &Path, agent: &str, command: &[OsString], skill: &str) -> Installed {
    let known = facts(command);
    let dirs: &[&str] = known.map_or(&SHARED, |facts| facts.skills);
    let mut same = Vec::new();
    let mut others = 0;
    for dir in dirs {
        for entry in fs::read_dir(home.join(dir)).into_iter().flatten().flatten() {
            let path = entry.path();
            if !path.join("SKILL.md").is_file() {
                continue;
            }
            if entry.file_name() == skill {
                same.push(path);
            } else {
                others += 1;
            }
        }
    }
    order::sort(&mut same);
    let has_known_login = known.is_some();
    Installed { agent: agent.to_owned(), same, others, is_known: known.is_some(), has_known_login }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn installed_skills_are_found() {
        let home = tempfile::tempdir().unwrap();
        for dir in
            [".claude/skills/demo", ".claude/skills/other", ".codex/skills/demo", ".agents/skills/third"]
        {
            let dir = home.path().join(dir);
            fs::create_dir_all(&dir).unwrap();
            fs::write(dir.join("SKILL.md"), "x").unwrap();
        }
        fs::create_dir_all(home.path().join(".claude/skills/not-a-skill")).unwrap();
        for (command, same, others, is_known) in [
            ("claude-agent-acp", &[".claude/skills/demo"][..], 1, true),
            ("codex-acp", &[".codex/skills/demo"], 1, true),
            ("my-agent", &[".claude/skills/demo"], 2, false),
        ] {
            let found = find(home.path(), "a", &[command.into()], "demo");
            let expected: Vec<_> = same.iter().map(|dir| home.path().join(dir)).collect();
            assert_eq!((found.same, found.others, found.is_known), (expected, others, is_known), "{command}");
        }
    }
}
