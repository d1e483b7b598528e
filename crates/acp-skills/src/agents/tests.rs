use std::collections::HashSet;

use super::*;

fn words(name: &str, installed: &[&str]) -> Result<String, AgentError> {
    let find_program = |program: &str| installed.contains(&program).then(|| PathBuf::from(program));
    Ok(super::words(find(name)?, find_program)?.join(" "))
}

#[test]
fn rows_are_complete_and_names_are_unique() {
    let mut seen_names = HashSet::new();
    let mut seen_infos = HashSet::new();
    for agent in all() {
        for name in names(agent) {
            assert!(seen_names.insert(name), "{name} is in the table twice");
            assert!(
                name.bytes().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == b'-'),
                "{name}"
            );
        }
        assert!(!agent.program.is_empty() && agent.home.starts_with("https://"), "{}", agent.id);
        if let Some(info) = &agent.info {
            assert!(seen_infos.insert(info), "{info} is in the table twice");
        }
        assert!(agent.npx.is_none() || agent.uvx.is_none(), "{}: one package is enough", agent.id);
        for package in agent.npx.iter().chain(&agent.uvx) {
            assert!(!package[1..].contains(['@', '=']), "{package} would hold users back at one version");
        }
    }
}

#[test]
fn an_agent_is_started_by_its_program_or_its_package() {
    let npx = format!("npx --prefix {ROOT} -y");
    for (name, installed, expected) in [
        ("claude-acp", &["npx"][..], &*format!("{npx} @agentclientprotocol/claude-agent-acp")),
        ("Claude", &["npx", "claude-agent-acp"], "claude-agent-acp"),
        ("gemini", &["npx"], &format!("{npx} @google/gemini-cli --acp")),
        ("copilot", &["npx", "copilot"], "copilot --acp"),
        ("kimi", &["uvx"], "uvx --from kimi-cli kimi acp"),
        ("goose", &["goose"], "goose acp"),
    ] {
        assert_eq!(words(name, installed).as_deref(), Ok(expected), "{name}");
    }
}

#[test]
fn errors_name_the_agent_and_have_a_hint() {
    for (name, installed, message, hint) in [
        ("claud", &[][..], "unknown agent `claud`", "did you mean `claude-acp`?"),
        ("qwn-code", &[], "unknown agent `qwn-code`", "did you mean `qwen-code`?"),
        ("zzz", &["npx"], "unknown agent `zzz`", "`acp-skills-proxy setup --agents` lists"),
        ("gemini", &["uvx"], "`gemini` needs `npx` or `gemini`, and neither is in PATH", "install Node.js"),
        ("kimi", &["npx"], "`kimi` needs `uvx` or `kimi`, and neither is in PATH", "install uv"),
        (
            "goose",
            &["npx", "uvx"],
            "`goose` is not in PATH, and `goose` is not a package that `npx` or `uvx` could run",
            "install it from https://block.github.io/goose; if it is installed outside of PATH, give its command after \
             `--`: `-- /path/to/goose acp`",
        ),
    ] {
        let error = words(name, installed).unwrap_err();
        assert_eq!(error.to_string(), message);
        assert!(error.hint().starts_with(hint), "{}", error.hint());
    }
}
