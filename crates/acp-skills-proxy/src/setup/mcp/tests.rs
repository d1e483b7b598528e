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
    let text = "[mcp_servers.acp-skills]\ncommand = \"x\"\n\n[mcp_servers.acp-skills.env]\nA = \"1\"\n\n# next\n[b]\nc = 1\n";
    let expected = format!("{table}\n# next\n[b]\nc = 1\n");
    assert_eq!(client.with_server(text, SERVER, &command()).unwrap(), expected);
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
    assert!(find("gemni").unwrap_err().to_string_with_hint().contains("did you mean `gemini`?"));
}
