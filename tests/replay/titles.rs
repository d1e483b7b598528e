//! Checks the titles and the results of calls of our tools.

use std::collections::HashSet;

use acp_skills_intercept::{Approve, CatalogIn, McpMode, Policy, Titles};
use expect_test::expect;
use serde_json::Value;

use super::{
    play::{Proxy, policy},
    recording::{Side, recordings},
};

/// Calls of our tools have readable titles, and loaded instructions are one line, both live and in a replayed history. All other
/// messages stay the same.
#[test]
fn calls_of_our_tools_have_readable_titles() {
    let mut seen_titles = HashSet::new();
    for recording in &recordings("proxied") {
        let policy = policy(McpMode::Auto, CatalogIn::Off);
        let new = |titles| Proxy::new(&Policy { approve: Approve::None, titles, ..policy.clone() }, "demo");
        let mut people = new(Titles::People);
        let mut agent = new(Titles::Agent);
        for (side, line) in &recording.lines {
            if *side == Side::Client && line.contains("\"initialize\"") {
                people = new(Titles::People);
                agent = new(Titles::Agent);
            }
            let edited = people.play(*side, line).to_client;
            let original = agent.play(*side, line).to_client;
            assert_eq!(edited.len(), original.len(), "{line}");
            for (edited, original) in
                edited.iter().zip(&original).filter(|(edited, original)| edited != original)
            {
                let mut edited: Value = serde_json::from_str(edited).unwrap();
                let mut original: Value = serde_json::from_str(original).unwrap();
                let paths = ["/params/update", "/params/toolCall", "/params/subject/toolCall"];
                let mut loaded = Vec::new();
                let mut call = |message: &mut Value| {
                    let path = paths.iter().find(|path| message.pointer(path).is_some()).expect("a call");
                    let call = message.pointer_mut(path).unwrap().as_object_mut().unwrap();
                    for key in ["content", "rawOutput"] {
                        call.get_mut(key).into_iter().for_each(|result| mask(result, &mut loaded));
                    }
                    (call.remove("title"), call.remove("kind"))
                };
                let (title, _) = call(&mut edited);
                call(&mut original);
                assert_eq!(edited, original, "{}", recording.name);
                for line in &loaded {
                    seen_titles.insert(format!("{}: {line}", recording.name));
                }
                let title = title.and_then(|title| Some(title.as_str()?.to_owned()));
                assert!(title.is_some() || !loaded.is_empty(), "a changed call has a title or a result");
                seen_titles.extend(title.map(|title| format!("{}: {title}", recording.name)));
            }
        }
    }
    let mut titles: Vec<_> = seen_titles.into_iter().collect();
    titles.sort();
    expect![[r#"
        agentao: Skill: demo
        claude-v2: Loaded the instructions (2 words)
        claude-v2: Skill
        claude-v2: Skill: demo
        claude: Loaded the instructions (6 words)
        claude: Skill
        claude: Skill: demo
        codex: Loaded the instructions (6 words)
        codex: Skill: demo
        factory-droid: Skill
        factory-droid: Skill: demo
        fast-agent: Loaded the instructions (6 words)
        fast-agent: Skill
        fast-agent: Skill: demo
        gemini: Loaded the instructions (6 words)
        gemini: Skill: demo
        github-copilot-cli: Skill: demo
        grok-build: Skill: demo
        kilo: Skill
        kilo: Skill: demo
        kimi-code: Skill: demo
        opencode: Skill
        opencode: Skill: demo
        qwen-code: Skill: demo"#]]
    .assert_eq(&titles.join("\n"));
}

/// Replaces loaded instructions and the line that stands for them. Adds this line to `loaded`.
fn mask(value: &mut Value, loaded: &mut Vec<String>) {
    match value {
        Value::String(text) if text.starts_with("<skill_content ") => "LOADED".clone_into(text),
        Value::String(text) if text.starts_with("Loaded the instructions (") => {
            loaded.push(std::mem::replace(text, "LOADED".to_owned()));
        }
        Value::Array(items) => items.iter_mut().for_each(|item| mask(item, loaded)),
        Value::Object(members) => members.values_mut().for_each(|member| mask(member, loaded)),
        _ => {}
    }
}
