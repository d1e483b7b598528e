//! Flags and the configuration file have the same settings, and flags take precedence.

use acp_skills::{
    config::{CatalogLocation, Config, SkillEntry},
    intercept::McpMode,
};
use clap::{CommandFactory, Parser};
use serde_json::json;

use super::Cli;

/// Returns the configuration key of a flag.
fn key(flag: &str) -> Option<String> {
    Some(match flag {
        // These are not in the file: the first two select it, and the last two exit.
        "config" | "no-config" | "help" | "version" => return None,
        "skill" => "skills".to_owned(),
        "skills" => "roots".to_owned(),
        "source" => "sources".to_owned(),
        "no-watch" => "watch".to_owned(),
        flag => flag.replace('-', "_"),
    })
}

#[test]
fn every_flag_has_a_configuration_key() {
    let command = Cli::command();
    let flags: Vec<_> = command.get_arguments().filter_map(clap::Arg::get_long).collect();
    assert!(flags.len() > 30, "{flags:?}");
    for key in flags.into_iter().filter_map(key) {
        let read = serde_json::from_value::<Config>(json!({ &key: null }));
        let unknown = read.err().filter(|error| error.to_string().contains("unknown field"));
        assert!(unknown.is_none(), "{key}: {unknown:?}");
    }
}

#[test]
fn flags_take_precedence() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("skills.yaml");
    std::fs::write(&file, "mcp: http\nmount: /m\nskills: [b]\ndollar: true\nmax_output: 7\n").unwrap();
    let config = |flags: &[&str]| {
        let program = ["acp-skills-proxy", "--config", file.to_str().unwrap()];
        let words = program.into_iter().chain(flags.iter().copied());
        Cli::try_parse_from(words).unwrap().proxy.config().unwrap()
    };
    let without = config(&[]);
    assert_eq!((without.mcp, without.max_output, without.dollar), (Some(McpMode::Http), Some(7), true));
    assert_eq!((without.mount.as_deref(), without.location), (Some("/m"), None));
    let with = config(&["--mcp", "off", "--location", "absolute", "--skill", "a", "--allow-scripts"]);
    assert_eq!((with.mcp, with.max_output, with.dollar), (Some(McpMode::Off), Some(7), true));
    assert_eq!((with.mount, with.location), (None, Some(CatalogLocation::Absolute)));
    assert!(with.allow_scripts);
    let SkillEntry::Directory(first) = &with.skills[0] else { panic!("not a directory") };
    assert_eq!((first.as_os_str(), with.skills.len()), ("a".as_ref(), 2));
}
