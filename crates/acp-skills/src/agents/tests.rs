use std::collections::HashSet;

use super::*;

fn words(name: &str, installed: &[&str]) -> Result<String, AgentError> {
    let here = |program: &str| installed.contains(&program).then(|| PathBuf::from(program));
    Ok(find(name)?.words(here)?.join(" "))
}

#[test]
fn the_table_is_sound() {
    let (mut names, mut infos) = (HashSet::new(), HashSet::new());
    for agent in all() {
        for name in std::iter::once(&agent.id).chain(&agent.aliases) {
            assert!(names.insert(name), "{name} is there twice");
            assert!(
                name.bytes().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == b'-'),
                "{name}"
            );
        }
        assert!(!agent.program.is_empty() && agent.home.starts_with("https://"), "{}", agent.id);
        if let Some(info) = &agent.info {
            assert!(infos.insert(info), "{info} is there twice");
        }
        assert!(agent.npx.is_none() || agent.uvx.is_none(), "{}: one way is enough", agent.id);
        for package in agent.npx.iter().chain(&agent.uvx) {
            assert!(!package[1..].contains(['@', '=']), "{package} would hold people back");
        }
    }
}

#[test]
fn commands() {
    for (name, installed, expected) in [
        ("claude-acp", &["npx"][..], "npx -y @agentclientprotocol/claude-agent-acp"),
        ("Claude", &["npx", "claude-agent-acp"], "claude-agent-acp"),
        ("gemini", &["npx"], "npx -y @google/gemini-cli --acp"),
        ("copilot", &["npx", "copilot"], "copilot --acp"),
        ("kimi", &["uvx"], "uvx --from kimi-cli kimi acp"),
        ("goose", &["goose"], "goose acp"),
    ] {
        assert_eq!(words(name, installed).as_deref(), Ok(expected), "{name}");
    }
}

#[test]
fn what_is_not_here() {
    for (name, installed, message, hint) in [
        ("claud", &[][..], "no agent is known as `claud`", "did you mean `claude-acp`?"),
        ("qwn-code", &[], "no agent is known as `qwn-code`", "did you mean `qwen-code`?"),
        ("zzz", &["npx"], "no agent is known as `zzz`", "`acp-skills-proxy setup --agents` lists"),
        ("gemini", &["uvx"], "`gemini` needs `npx` or `gemini`, and neither is in PATH", "install Node.js"),
        ("kimi", &["npx"], "`kimi` needs `uvx` or `kimi`, and neither is in PATH", "install uv"),
        (
            "goose",
            &["npx", "uvx"],
            "`goose` is not in PATH, and `goose` is no package that `npx` or `uvx` could run",
            "install it from https://block.github.io/goose; when it is not in PATH, give its command after `--`: \
             `-- /path/to/goose acp`",
        ),
    ] {
        let error = words(name, installed).unwrap_err();
        assert_eq!(error.to_string(), message);
        assert!(error.hint().starts_with(hint), "{}", error.hint());
    }
}
