//! Tests of servers in settings.

use super::*;

fn command() -> Vec<String> {
    ["/p/acp-skills-proxy", "mcp", "--skills", r#"/a "b"\c"#].map(str::to_owned).to_vec()
}

/// Adds the server, replaces it and removes it. `expected` is the text with the server, and `removed` the text without it.
fn check(client: &str, before: &str, expected: &str, removed: &str) {
    let client = find(client).unwrap();
    assert_eq!(client.server(before, SERVER).unwrap(), None, "{before}");
    let first = vec!["/old/acp-skills-proxy".to_owned(), "mcp".to_owned()];
    let old = client.with_server(before, SERVER, &first).unwrap();
    assert_eq!(client.server(&old, SERVER).unwrap().unwrap(), first);
    let added = client.with_server(before, SERVER, &command()).unwrap();
    assert_eq!(added, expected);
    assert_eq!(client.server(&added, SERVER).unwrap().unwrap(), command());
    assert_eq!(
        client.with_server(&old, SERVER, &command()).unwrap(),
        expected,
        "a server is replaced in place"
    );
    assert_eq!(client.without_server(&added, SERVER).unwrap(), removed);
}

#[test]
fn json() {
    let words = r#""/p/acp-skills-proxy",
      "args": ["mcp", "--skills", "/a \"b\"\\c"]"#;
    check(
        "gemini",
        "",
        &format!(
            "{{\n  \"mcpServers\": {{\n    \"acp-skills\": {{\n      \"command\": {words}\n    }}\n  }}\n}}\n"
        ),
        "{\n  \"mcpServers\": {}\n}\n",
    );
    let other =
        "// mine\n{\n  \"theme\": \"x\", // dark\n  \"mcpServers\": {\n    \"a\": { \"command\": \"b\" }";
    check(
        "claude",
        &format!("{other}\n  }}\n}}\n"),
        &format!(
            "{other},\n    \"acp-skills\": {{\n      \"type\": \"stdio\",\n      \"command\": {words}\n    }}\n  }}\n}}\n"
        ),
        &format!("{other}\n  }}\n}}\n"),
    );
}

#[test]
fn other_shapes_of_json() {
    for (client, key, expected) in [
        ("vscode", "servers", r#"{"type":"stdio","command":"p","args":["mcp"]}"#),
        ("cursor", "mcpServers", r#"{"command":"p","args":["mcp"]}"#),
        ("opencode", "mcp", r#"{"type":"local","command":["p","mcp"],"enabled":true}"#),
    ] {
        let words = ["p".to_owned(), "mcp".to_owned()];
        let text = find(client).unwrap().with_server("", SERVER, &words).unwrap();
        let value: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(value[key][SERVER].to_string(), expected, "{client}");
    }
}

#[test]
fn toml() {
    let table = "[mcp_servers.acp-skills]\ncommand = \"/p/acp-skills-proxy\"\nargs = [\"mcp\", \"--skills\", \"/a \\\"b\\\"\\\\c\"]\n";
    check("codex", "", table, "");
    let before = "# mine\nmodel = \"x\" # [not.a.table]\nnotes = \"\"\"\n[mcp_servers.acp-skills]\n\"\"\"\n\n\
                  [mcp_servers.other]\nargs = [\n  \"[mcp_servers.acp-skills]\",\n]\n";
    check("codex", before, &format!("{before}\n{table}"), before);
    // A table of the server that is not the last one stays where it is.
    let client = find("codex").unwrap();
    let rest = "\n[mcp_servers.acp-skills.env]\nA = \"1\"\n\n# next\n[b]\nc = 1\n";
    let text = &format!("[mcp_servers.acp-skills]\ncommand = \"x\"\n{rest}");
    let expected = "[mcp_servers.acp-skills]\nargs = [\"mcp\", \"--skills\", \"/a \\\"b\\\"\\\\c\"]\ncommand = \"/p/acp-skills-proxy\"\n";
    assert_eq!(client.with_server(text, SERVER, &command()).unwrap(), format!("{expected}{rest}"));
    assert_eq!(client.without_server(text, SERVER).unwrap(), "\n# next\n[b]\nc = 1\n");
}

#[test]
fn other_ways_to_define_a_server_in_toml_are_refused() {
    let client = find("codex").unwrap();
    for text in [
        "mcp_servers = { acp-skills = { command = \"x\" } }\n",
        "[mcp_servers]\nacp-skills = { command = \"x\" }\n",
        "[mcp_servers]\n\"acp-skills\".command = \"x\"\n",
        "mcp_servers.acp-skills.command = \"x\"\n",
        "[mcp_servers.acp-skills]\ncommand = \"x\"\n[other]\n[mcp_servers.acp-skills.env]\n",
        "[mcp_servers.acp-skills.env]\nA = \"1\"\n[mcp_servers.acp-skills]\ncommand = \"x\"\n",
    ] {
        assert!(client.with_server(text, SERVER, &command()).is_err(), "{text}");
    }
    for text in [
        "[mcp_servers.\"acp-skills\"]\ncommand = \"x\"\n",
        "[ mcp_servers . 'acp-skills' ] # x\ncommand = \"x\"\n",
    ] {
        assert_eq!(client.server(text, SERVER).unwrap(), Some(vec!["x".to_owned()]), "{text}");
    }
}

#[test]
fn yaml() {
    let entry = |indentation: usize| {
        let outer = " ".repeat(indentation);
        let members = [
            "type: stdio",
            "name: acp-skills",
            "enabled: true",
            "cmd: \"/p/acp-skills-proxy\"",
            "args: [\"mcp\", \"--skills\", \"/a \\\"b\\\"\\\\c\"]",
            "timeout: 300",
        ];
        let members: Vec<_> = members.iter().map(|member| format!("{outer}{outer}{member}\n")).collect();
        format!("{outer}acp-skills:\n{}", members.concat())
    };
    check("goose", "", &format!("extensions:\n{}", entry(2)), "extensions:\n");
    let head = "# mine\nGOOSE_MODEL: x\nextensions:\n";
    let rest = "    # first\n    a:\n        cmd: b # c\n        args: []\nother: 1\n";
    check("goose", &format!("{head}{rest}"), &format!("{head}{}{rest}", entry(4)), &format!("{head}{rest}"));
}

/// `COMMAND` stands for the command of the server.
#[test]
fn the_users_own_keys_of_the_server_are_kept() {
    for (client, text) in [
        (
            "gemini",
            "{\"mcpServers\": {\"acp-skills\": {\"trust\": true, COMMAND, \"env\": {\"A\": \"1\"}, \"timeout\": 5, \"disabled\": true}}}\n",
        ),
        ("claude", "{\"mcpServers\": {\"acp-skills\": {\"env\": {}, \"type\": \"stdio\", COMMAND}}}\n"),
        (
            "opencode",
            "{\"mcp\": {\"acp-skills\": {\"type\": \"local\", COMMAND, \"enabled\": false, \"environment\": {\"A\": \"1\"}}}}\n",
        ),
        (
            "codex",
            "[mcp_servers.acp-skills]\nenabled = false # mine\nCOMMAND\nstartup_timeout_sec = 60\n\n[mcp_servers.acp-skills.env]\ncommand = \"no\"\n",
        ),
        (
            "goose",
            "extensions:\n  acp-skills: # mine\n    enabled: false\n    COMMAND\n    # soon\n    timeout: 60\n    envs: {A: \"1\"}\n  b:\n    cmd: c\n",
        ),
    ] {
        let (old, new) = match client {
            "opencode" => {
                (r#""command": ["p/acp-skills-proxy", "mcp"]"#, r#""command": ["n", "mcp", "--x"]"#)
            }
            "codex" => (
                "command = \"p/acp-skills-proxy\"\nargs = [\"mcp\"]",
                "command = \"n\"\nargs = [\"mcp\", \"--x\"]",
            ),
            "goose" => {
                ("cmd: p/acp-skills-proxy\n    args:\n    - mcp", "cmd: \"n\"\n    args: [\"mcp\", \"--x\"]")
            }
            _ => (
                r#""command": "p/acp-skills-proxy", "args": ["mcp"]"#,
                r#""command": "n", "args": ["mcp", "--x"]"#,
            ),
        };
        let words = ["n", "mcp", "--x"].map(str::to_owned);
        let found = find(client).unwrap();
        let before = text.replace("COMMAND", old);
        assert_eq!(
            found.server(&before, SERVER).unwrap().unwrap(),
            ["p/acp-skills-proxy", "mcp"],
            "{client}"
        );
        let after = found.with_server(&before, SERVER, &words).unwrap();
        assert_eq!(after, text.replace("COMMAND", new), "{client}");
    }
}

#[test]
fn duplicate_keys_are_refused() {
    for text in [
        "{ \"mcpServers\": {}, \"mcpServers\": {} }",
        "{ \"mcpServers\": { \"acp-skills\": {}, \"acp-skills\": {} } }",
        "{ \"mcpServers\": { \"acp-skills\": { \"command\": \"a\", \"command\": \"b\" } } }",
    ] {
        let error = find("gemini").unwrap().with_server(text, SERVER, &command()).unwrap_err();
        assert!(error.message.contains("duplicate key"), "{error} {text}");
    }
    // Other duplicates are no concern of ours.
    let text = "{ \"a\": 1, \"a\": 2, \"mcpServers\": { \"b\": {}, \"b\": {} } }";
    assert!(find("gemini").unwrap().with_server(text, SERVER, &command()).is_ok());
}

#[test]
fn ways_to_write_an_empty_list_of_extensions() {
    let words = ["p".to_owned(), "mcp".to_owned()];
    let client = find("goose").unwrap();
    let entry = "  acp-skills:\n    type: stdio\n    name: acp-skills\n    enabled: true\n    cmd: \"p\"\n    args: [\"mcp\"]\n    timeout: 300\n";
    for (before, head) in [
        ("extensions:", "extensions:\n"),
        ("extensions: {}", "extensions:\n"),
        ("extensions: {} # mine\n", "extensions: # mine\n"),
        ("extensions: # mine\n", "extensions: # mine\n"),
        ("a: 1", "a: 1\nextensions:\n"),
    ] {
        let after = client.with_server(before, SERVER, &words).unwrap();
        assert_eq!(after, format!("{head}{entry}"), "{before}");
        // The same with the line ends of Windows.
        let windows = |text: &str| text.replace('\n', "\r\n");
        if before.ends_with('\n') {
            let after = client.with_server(&windows(before), SERVER, &words).unwrap();
            assert_eq!(after, windows(&format!("{head}{entry}")), "{before}");
        }
    }
}

#[test]
fn settings_that_cannot_be_parsed_are_errors() {
    for (client, text) in [
        ("gemini", "{ \"a\": "),
        ("gemini", "[]"),
        ("gemini", "{ \"mcpServers\": 1 }"),
        ("goose", "a: [\n"),
        ("goose", "extensions: { a: { cmd: b } }\n"),
        ("goose", "extensions: [a]\n"),
    ] {
        assert!(find(client).unwrap().with_server(text, SERVER, &command()).is_err(), "{client} {text}");
    }
}

#[test]
fn names_of_clients() {
    for (name, expected) in
        [("Claude", Some("claude-code")), ("codex-cli", Some("codex")), ("zed", None), ("gemni", None)]
    {
        assert_eq!(find(name).ok().map(|client| client.id), expected, "{name}");
    }
    assert!(find("gemni").unwrap_err().hint().unwrap().contains("did you mean `gemini`?"));
}
