//! Tests of parsing, editing and reverting settings.

use expect_test::{Expect, expect};

use super::{
    document::{Document, Ours, ours},
    edit::{Change, EditError, edit},
    editors::Format,
    undo::{Undone, undo},
};

const ZED: Format = Format { key: "agent_servers", has_type: true, has_argv: false, has_env: false };
const ACPX: Format = Format { key: "agents", has_type: false, has_argv: true, has_env: false };

fn words(text: &str) -> Vec<String> {
    text.split(' ').map(str::to_owned).collect()
}

fn add() -> Change {
    Change::Add { name: "New".to_owned(), words: words("/p/acp-skills-proxy -- a b"), env: Vec::new() }
}

fn wrap(name: &str, program: &str) -> Change {
    Change::Splice {
        name: name.to_owned(),
        before: words(program),
        after: words(&format!("/p/acp-skills-proxy --discover user -- {program}")),
    }
}

fn document(text: &str) -> Document {
    Document::new(text.as_bytes()).unwrap()
}

fn check(format: &Format, text: &str, change: &Change, expected: Expect) {
    let result = match edit(&document(text), format, change) {
        Ok(result) => {
            check_undo(format, text, change, &result.bytes());
            String::from_utf8(result.bytes()).unwrap()
        }
        Err(error) => error.to_string(),
    };
    expected.assert_eq(&result.replace('\r', "␍").replace('\t', "␉").replace('\u{feff}', "␠"));
}

/// Checks that the change can be reverted: the previous bytes are restored, and later edits are kept.
fn check_undo(format: &Format, before: &str, change: &Change, after: &[u8]) {
    let changes = std::slice::from_ref(change);
    let back = |now: &[u8]| match undo(now, Some(before.as_bytes()), after, changes, format).unwrap() {
        Undone::Bytes(bytes) => String::from_utf8(bytes.unwrap()).unwrap(),
        Undone::Nothing => panic!("nothing to undo in {}", String::from_utf8_lossy(now)),
    };
    assert_eq!(back(after), before);
    let edited = [after, b"// mine\n"].concat();
    let back = back(&edited);
    // If the file doesn't end with a line break, we may not be able to merge the texts. We then get the same
    // settings, but not the same bytes.
    if before.ends_with('\n') && before.lines().count() > 1 {
        assert_eq!(back, format!("{before}// mine\n"));
    }
    let agents = |text: &str| document(text).agents(format).unwrap();
    let commands = |text| {
        agents(text)
            .iter()
            .map(|agent| (agent.name.clone(), agent.command().map(<[_]>::to_vec)))
            .collect::<Vec<_>>()
    };
    assert_eq!(commands(back.as_str()), commands(before));
    assert!(back.contains("// mine"), "{back}");
}

#[test]
fn a_new_agent() {
    check(
        &ZED,
        "",
        &add(),
        expect![[r#"
            {
              "agent_servers": {
                "New": {
                  "type": "custom",
                  "command": "/p/acp-skills-proxy",
                  "args": ["--", "a", "b"]
                }
              }
            }
        "#]],
    );
    check(
        &ZED,
        "// mine\n// too\n{\n  // theme\n  \"theme\": \"One\", // dark\n\n  \"tabs\": {},\n}\n// end\n",
        &add(),
        expect![[r#"
            // mine
            // too
            {
              // theme
              "theme": "One", // dark

              "tabs": {},
              "agent_servers": {
                "New": {
                  "type": "custom",
                  "command": "/p/acp-skills-proxy",
                  "args": ["--", "a", "b"]
                }
              },
            }
            // end
        "#]],
    );
    check(
        &ZED,
        "\u{feff}{\r\n\t\"agent_servers\": {\r\n\t\t\"a\": {\"command\": \"x\"}\r\n\t}\r\n}\r\n",
        &add(),
        expect![[r#"
            ␠{␍
            ␉"agent_servers": {␍
            ␉␉"a": {"command": "x"},␍
            ␉␉"New": {␍
            ␉␉␉"type": "custom",␍
            ␉␉␉"command": "/p/acp-skills-proxy",␍
            ␉␉␉"args": ["--", "a", "b"]␍
            ␉␉}␍
            ␉}␍
            }␍
        "#]],
    );
    check(
        &ACPX,
        "{\"agents\":{},\"ttl\":300}",
        &add(),
        expect![[r#"
            {"agents":{
                "New": {
                  "argv": ["/p/acp-skills-proxy", "--", "a", "b"]
                }
              },"ttl":300}"#]],
    );
    check(
        &ZED,
        "{\"agent_servers\": {\"New\": {}}}",
        &add(),
        expect!["agent `New` has changed in the meantime"],
    );
}

#[test]
fn an_existing_agent() {
    check(
        &ZED,
        r#"{
  "agent_servers": {
    "a": { "type": "custom", "command": "npx", /* pinned */ "args": ["-y", "x@1" /* so */], "env": { "K": "v" } }, // a
    "b": {}
  }
}
"#,
        &wrap("a", "npx"),
        expect![[r#"
            {
              "agent_servers": {
                "a": { "type": "custom", "command": "/p/acp-skills-proxy", /* pinned */ "args": ["--discover", "user", "--", "npx", "-y", "x@1" /* so */], "env": { "K": "v" } }, // a
                "b": {}
              }
            }
        "#]],
    );
    check(
        &ZED,
        "{\n  \"agent_servers\": {\n    \"a\": {\n      \"command\": \"x\"\n    }\n  }\n}\n",
        &wrap("a", "x"),
        expect![[r#"
            {
              "agent_servers": {
                "a": {
                  "command": "/p/acp-skills-proxy",
                  "args": ["--discover", "user", "--", "x"]
                }
              }
            }
        "#]],
    );
    check(
        &ACPX,
        "{\n  \"agents\": {\n    \"a\": { \"argv\": [\"x\", \"acp\"] },\n    \"b\": { \"command\": \"y\", \"args\": [] }\n  }\n}\n",
        &wrap("a", "x"),
        expect![[r#"
            {
              "agents": {
                "a": { "argv": ["/p/acp-skills-proxy", "--discover", "user", "--", "x", "acp"] },
                "b": { "command": "y", "args": [] }
              }
            }
        "#]],
    );
    check(&ZED, "{}", &wrap("a", "x"), expect!["agent `a` has changed in the meantime"]);
}

#[test]
fn words_that_need_escapes() {
    let program = "C:\\a \"b\"\\\u{1}é\n";
    let change = Change::Add { name: "q\"\\".to_owned(), words: vec![program.to_owned()], env: Vec::new() };
    let result = edit(&document("{}"), &ZED, &change).unwrap();
    let agents = result.agents(&ZED).unwrap();
    assert_eq!((agents[0].name.as_str(), agents[0].command()), ("q\"\\", Some(&[program.to_owned()][..])));
}

#[test]
fn invalid_settings() {
    for (text, expected) in [
        ("{\n  \"a\": 1\n  \"b\": 2\n}", "2:9: invalid JSON: expected comma"),
        ("{\n  \"a\": [1, 2\n", "2:8: invalid JSON: unterminated array"),
        ("[]", "1:1: expected an object `{ … }`"),
        ("{\"agent_servers\": []}", "1:19: `agent_servers` must be an object `{ … }`"),
        (
            "{\n\"agent_servers\": {},\n\"agent_servers\": {}\n}",
            "3:1: duplicate key `agent_servers`; first used in line 2",
        ),
        ("{\"agent_servers\": {\"a\": {},\n \"a\": {}}}", "2:2: duplicate key `a`; first used in line 1"),
        ("{'a': 1}", "1:2: invalid JSON: single-quoted strings are not allowed"),
    ] {
        assert_eq!(document(text).agents(&ZED).unwrap_err().to_string(), expected, "{text}");
        assert!(matches!(edit(&document(text), &ZED, &add()), Err(EditError::Settings(_))), "{text}");
    }
    let error = Document::new(b"\xef\xbb\xbf{\n  \"\xff\"\n}").unwrap_err();
    assert_eq!(error.to_string(), "2:4: text is not valid UTF-8");
    for (agent, expected) in [
        ("1", "1:27: agent `a` must be an object"),
        ("{\"command\": {\"path\": \"x\"}}", "1:39: `command` of agent `a` must be a string"),
        ("{\"command\": \"x\", \"args\": \"y\"}", "1:52: `args` of agent `a` must be a list of strings"),
        ("{\"command\": \"x\", \"args\": [1]}", "1:53: `args` of agent `a` must be a list of strings"),
    ] {
        let text = format!("{{\"agent_servers\": {{  \"a\": {agent}}}}}");
        let agents = document(&text).agents(&ZED).unwrap();
        let super::document::Start::Unclear(error) = &agents[0].start else { panic!("{agents:?}") };
        assert_eq!(error.to_string(), expected, "{text}");
    }
    let agents = document("{\"agents\": {\"a\": {\"command\": \"x y\"}}}").agents(&ACPX).unwrap();
    assert!(matches!(agents[0].start, super::document::Start::Unclear(_)));
}

#[test]
fn words_of_the_proxy_are_recognized() {
    for (command, expected) in [
        ("acp-skills-proxy --skill x -- npx y", Some((1, Some(4)))),
        ("/opt/a/acp-skills-proxy --agent claude", Some((1, None))),
        (r"C:\a\acp-skills-proxy.exe -- x", Some((1, Some(2)))),
        ("npx -y acp-skills-proxy@1 --strict -- x -- z", Some((3, Some(5)))),
        ("/usr/bin/uvx acp-skills-proxy -- x", Some((2, Some(3)))),
        ("npx -y other -- acp-skills-proxy", None),
        ("my-acp-skills-proxy -- x", None),
        ("npx", None),
    ] {
        let expected = expected.map(|(launcher, agent)| Ours { launcher, agent });
        assert_eq!(ours(&words(command)), expected, "{command}");
    }
}

/// If the user has edited the settings since the change, `undo` removes our change and keeps the edits.
#[test]
fn undo_keeps_later_edits() {
    let before =
        "{\n  \"agent_servers\": {\n    \"a\": { \"command\": \"x\", \"args\": [\"acp\"] }\n  }\n}\n";
    let check = |change: Change, edit_by_user: fn(&str) -> String, expected: Expect| {
        let after = edit(&document(before), &ZED, &change).unwrap().bytes();
        let now = edit_by_user(str::from_utf8(&after).unwrap());
        let undone = undo(now.as_bytes(), Some(before.as_bytes()), &after, &[change], &ZED);
        expected.assert_eq(&match undone {
            Ok(Undone::Bytes(Some(bytes))) => String::from_utf8(bytes).unwrap(),
            other => format!("{other:?}"),
        });
    };
    // The user added an agent directly after ours.
    check(
        add(),
        |now| {
            now.replace(
                "      \"args\": [\"--\", \"a\", \"b\"]\n    }",
                "      \"args\": [\"--\", \"a\", \"b\"]\n    },\n    \"c\": {}",
            )
        },
        expect![[r#"
            {
              "agent_servers": {
                "a": { "command": "x", "args": ["acp"] },
                "c": {}
              }
            }
        "#]],
    );
    // The user changed the flags of the proxy.
    check(
        wrap("a", "x"),
        |now| now.replace("\"user\",", "\"user,project\", \"--strict\","),
        expect![[r#"
            {
              "agent_servers": {
                "a": { "command": "x", "args": ["acp"] }
              }
            }
        "#]],
    );
    // The user added environment variables.
    check(
        wrap("a", "x"),
        |now| now.replace("\"acp\"] }", "\"acp\", \"-v\"], \"env\": {} }"),
        expect![[r#"
            {
              "agent_servers": {
                "a": { "command": "x", "args": ["acp", "-v"], "env": {} }
              }
            }
        "#]],
    );
    // The user removed the proxy by hand.
    check(
        wrap("a", "x"),
        |_| "{ \"agent_servers\": { \"a\": { \"command\": \"x\" } } }".to_owned(),
        expect!["Ok(Nothing)"],
    );
    check(add(), |_| "{}".to_owned(), expect!["Ok(Nothing)"]);
    // The settings can no longer be parsed.
    check(
        add(),
        |now| format!("{now}]"),
        expect![[
            r#"Err(Settings(SettingsError { line: 11, column: 1, message: "invalid JSON: text cannot contain more than one JSON value" }))"#
        ]],
    );
}

/// Long settings are edited quickly, and deeply nested ones are an error instead of a stack overflow.
#[test]
fn long_and_deeply_nested_settings() {
    let line = |n| format!("  \"key{n}\": {{ \"text\": \"{}\" }}, // {n}\n", "x".repeat(200));
    let many = (0..20_000).map(line).collect::<Vec<_>>().concat();
    let text = format!("{{\n{many}  \"agent_servers\": {{}}\n}}\n");
    assert!(text.len() > 4_500_000);
    let start = std::time::Instant::now();
    let result = edit(&document(&text), &ZED, &add()).unwrap();
    assert!(result.text().len() > text.len());
    // This should take much less time, but a quadratic algorithm would take longer.
    assert!(start.elapsed().as_secs() < 30, "{:?}", start.elapsed());
    let deep = "[".repeat(100_000);
    assert!(document(&deep).agents(&ZED).unwrap_err().message.contains("nesting"));
}
