//! Texts of skills in what the client shows: they cannot hide or reorder text, and they have no effect as Markdown.

use pulldown_cmark::{Event, Options, Parser, Tag};
use skills_core::{
    Diagnostic, Properties,
    set::{Skipped, Unapproved},
};

use super::*;

/// Reorders text, hides text, and contains an image, a link, HTML, and other Markdown.
const HOSTILE: &str = "\u{202e}a\u{200b}b\u{e0041}\u{2066} ![i](https://a.example/i) [l](https://a.example) <img src=x> **b** `c` _d_ \\";

/// The name without its hidden characters, which are not a part of any name.
const NAME: &str = "x` ![i](https://a.example/i) `y";

fn hostile() -> SkillSet {
    let skill = |name: &str| {
        let mut properties = Properties::default();
        properties.license = Some(HOSTILE.into());
        properties.compatibility = Some(HOSTILE.into());
        properties.allowed_tools = vec![HOSTILE.to_owned()];
        properties.argument_hint = Some(HOSTILE.into());
        Skill::builder(name, HOSTILE).body("x").properties(properties).build().unwrap()
    };
    let mut all = SkillSet::builder();
    let finding =
        Diagnostic::error("code", format!("the value `{HOSTILE}` is wrong: {HOSTILE}")).help(HOSTILE);
    all.add(skill(&format!("{NAME} 1")), vec![finding.clone()]);
    all.add(skill(&format!("{NAME} 2")), Vec::new());
    let source = Diagnostic::error("source-x", HOSTILE).help(HOSTILE);
    all.skip(Skipped::new(PathBuf::from(format!("/p/{HOSTILE}/$(touch x)/SKILL.md")), vec![finding]));
    all.skip(Skipped::new(PathBuf::from("/p"), vec![source]));
    for number in 3..5 {
        all.add_unapproved(Unapproved::new(skill(&format!("{NAME} {number}")).into(), number.to_string()));
    }
    all.build()
}

/// Calls `see` with each string.
fn strings(value: &Value, see: &mut dyn FnMut(&str)) {
    match value {
        Value::String(text) => see(text),
        Value::Array(items) => items.iter().for_each(|item| strings(item, see)),
        Value::Object(members) => members.values().for_each(|member| strings(member, see)),
        _ => {}
    }
}

/// Fails if a string contains a hidden character. Returns the number of strings with an escaped one.
fn no_string_hides_text(lines: &[Value]) -> usize {
    let mut escaped = 0;
    for line in lines {
        strings(line, &mut |text| {
            assert_eq!(skills_core::text::shown_lines(text), text, "{line}");
            escaped += usize::from(text.contains(r"\u{202e}") || text.contains(r"\\u{202e}"));
        });
    }
    escaped
}

/// Fails if Markdown contains more than the elements that we use ourselves.
fn has_only_our_markdown(text: &str) {
    let options =
        Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_MATH | Options::ENABLE_GFM;
    for event in Parser::new_ext(text, options) {
        let is_ours = match &event {
            Event::Text(_) | Event::Code(_) | Event::SoftBreak | Event::End(_) => true,
            Event::Start(tag) => {
                matches!(tag, Tag::Paragraph | Tag::List(_) | Tag::Item | Tag::Strong | Tag::Emphasis)
            }
            _ => false,
        };
        assert!(is_ours, "{event:?} in {text}");
    }
}

fn fixture() -> Fixture {
    let policy = Policy { toggles: true, drafts: true, ..policy() };
    let mut fixture = Fixture::with_skills(policy, hostile());
    let capabilities =
        json!({ "elicitation": { "form": {} }, "session": { "configOptions": { "boolean": {} } } });
    fixture.request(0, "initialize", &json!({ "protocolVersion": 1, "clientCapabilities": capabilities }));
    let about = json!({ "name": "@agentclientprotocol/claude-agent-acp" });
    fixture.respond(
        0,
        &json!({ "protocolVersion": 1, "agentInfo": about, "agentCapabilities": { "mcpCapabilities": { "http": true } } }),
    );
    fixture
}

/// Opens a session. Returns all lines for the client.
fn open(fixture: &mut Fixture) -> Vec<Value> {
    fixture.request(1, "session/new", &json!({ "cwd": "/project", "mcpServers": [] }));
    let mut lines = fixture.respond(1, &json!({ "sessionId": "s" })).to_client;
    lines.extend(fixture.handle(Input::MenuTimerEnded(SessionKey(1))).to_client);
    lines
}

#[test]
fn lists_hide_nothing() {
    let mut fixture = fixture();
    let lines = open(&mut fixture);
    let methods: Vec<_> = lines.iter().map(|line| line["method"].as_str().unwrap_or("result")).collect();
    let expected = ["result", "session/update", "elicitation/create", "session/update"];
    assert_eq!(methods, expected, "options, the list of skills, the form and the menu");
    // Count the strings: two in the options, four for each skill, one in the form, and four in two commands with a hint each.
    assert_eq!(no_string_hides_text(&lines), 2 + 2 * 4 + 1 + 4);
    has_only_our_markdown(lines[2]["params"]["message"].as_str().unwrap());
    let out = fixture.request(2, "skills/list", &json!({ "sessionId": "s" }));
    assert_eq!(no_string_hides_text(&out.to_client), 2 * 4);
}

#[test]
fn answers_contain_only_our_markdown() {
    let mut fixture = fixture();
    open(&mut fixture);
    let one = format!("{NAME} 1");
    for (words, expected) in [
        (String::new(), "Waiting for your trust"),
        ("search a.example".to_owned(), "1. "),
        (format!("off {one}"), "To undo"),
        (format!("on {one}"), "is on"),
        (format!("off {one} --here"), "is off"),
        (String::new(), "**Off**"),
        (format!("off {HOSTILE}"), "No skill "),
        (format!("trust {HOSTILE}"), "is not waiting"),
        (format!("trust {NAME} 3"), "until the next change"),
        ("trust".to_owned(), "until the next change"),
        ("reload".to_owned(), "Loaded"),
    ] {
        let out = fixture.prompt(3, "s", &[&format!("/skills {words}")]);
        let said: Vec<_> = out
            .to_client
            .iter()
            .filter_map(|line| line["params"]["update"]["content"]["text"].as_str())
            .collect();
        assert!(said.len() == 1 && said[0].contains(expected), "{words}: {said:?}");
        no_string_hides_text(&out.to_client);
        has_only_our_markdown(said[0]);
        assert!(!said[0].contains("check /p/"), "no command with a path that a shell could run: {said:?}");
    }
}

/// The model chooses the input of a call, and the client shows it in the title.
#[test]
fn titles_contain_no_markdown() {
    let mut fixture = fixture();
    open(&mut fixture);
    let name = "mcp__acp-skills__read_skill_file";
    let call = json!({
        "sessionUpdate": "tool_call", "toolCallId": "1", "title": name, "name": name, "kind": "other", "status": "pending",
        "rawInput": { "skill": "x", "path": "![i](https://a.example/i)\u{202e}" },
    });
    let out = fixture.update("s", &call);
    assert_eq!(out.client()["params"]["update"]["title"], r"x: !\[i](https://a.example/i)\u{202e}");
}

/// An activation that fails is answered with the reason.
#[test]
fn reasons_contain_no_markdown() {
    let mut fixture = fixture();
    open(&mut fixture);
    let words = crate::menu::spelling::spelled(&fixture.host.skills);
    let word = words.iter().next().unwrap().0;
    let out = fixture.prompt(2, "s", &[&format!("/{word}")]);
    let ticket = out.ticket();
    let why = NotFetched { why: format!("the skill `{NAME}` is gone: {HOSTILE}"), failed: None };
    let out = fixture.handle(Input::NotFetched { session: SessionKey(1), ticket, why });
    assert_eq!(no_string_hides_text(&out.to_client), 1);
    has_only_our_markdown(out.to_client[0]["params"]["update"]["content"]["text"].as_str().unwrap());
}
