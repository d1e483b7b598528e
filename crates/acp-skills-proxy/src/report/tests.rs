use expect_test::expect;
use serde_json::{Value, json};

use super::*;
use acp_skills::events::read::lines;

fn summary(events: &[Value]) -> Summary {
    let text: Vec<_> = events.iter().map(ToString::to_string).collect();
    let mut summary = Summary::default();
    lines(text.join("\n").as_bytes(), |number, line| summary.add("x.jsonl", number, line)).unwrap();
    summary
}

/// Returns an event `number` minutes after the first one.
fn event(number: i64, kind: &str, mut fields: Value) -> Value {
    fields["v"] = 1.into();
    fields["time"] = Timestamp::from_second(1_800_000_000 + number * 60).unwrap().to_string().into();
    fields["event"] = kind.into();
    fields
}

fn activation(number: i64, skill: &str, by: &str, outcome: &str) -> Value {
    let fields =
        json!({ "skill": skill, "by": by, "tokens": 10, "outcome": outcome, "bytes": 40, "ms": number });
    event(number, "skill_activated", fields)
}

fn started(skills: &[&str]) -> Value {
    let fields = json!({ "how": "new", "agent": "a", "proxy": "1", "skills": skills, "session": "s" });
    event(0, "session_started", fields)
}

#[test]
fn events_are_summarized() {
    let mut first = started(&["used", "failed", "never", "other"]);
    first["saved_tokens"] = 2500.into();
    let summary = summary(&[
        first,
        activation(1, "used", "model", "ok"),
        activation(2, "used", "user", "ok"),
        activation(3, "used", "prompt", "ok"),
        activation(4, "failed", "model", "error"),
        activation(5, "used", "model", "cancelled"),
        event(
            6,
            "file_read",
            json!({ "skill": "other", "file": "a", "outcome": "ok", "bytes": 1, "ms": 1.5 }),
        ),
        event(
            7,
            "search",
            json!({ "found": 0, "outcome": "error", "error": "InvalidArguments", "bytes": 1, "ms": 1 }),
        ),
        event(8, "permission", json!({ "tool": "Bash", "decision": "asked" })),
        event(
            9,
            "reload",
            json!({ "skills": 5, "skipped": 0, "added": ["late"], "removed": [], "changed": [], "ms": 1 }),
        ),
        event(9, "fallback", json!({ "reason": "not_connected", "ms": 2000 })),
        event(9, "restored", json!({ "skills": ["used"], "tokens": 900, "signal": "usage", "session": "s" })),
        event(9, "restored", json!({ "skills": [], "tokens": 50, "signal": "command", "session": "s" })),
        event(9, "restored", json!({ "skills": [], "tokens": 1, "signal": "message", "session": "t" })),
        event(9, "events_dropped", json!({ "count": 7 })),
        event(9, "moon_landing", json!({})),
        json!("nonsense"),
    ]);
    let used: Vec<_> = summary
        .used()
        .iter()
        .map(|(name, skill)| (*name, skill.activations, skill.used(), skill.errors))
        .collect();
    assert_eq!(used, [("used", [1, 1, 1], 3, 0), ("other", [0, 0, 0], 1, 0), ("failed", [0, 0, 0], 0, 1)]);
    // If all calls to a skill failed, it should be counted as unused.
    assert_eq!(summary.never_used(), ["failed", "late", "never"]);
    assert_eq!(summary.calls[0].outcomes, [3, 1, 1]);
    assert_eq!((summary.events, summary.sessions.len(), summary.started), (15, 2, 1));
    // Calls that were cancelled should not be included in the durations.
    assert_eq!(summary.calls[0].time.shown(100), "4.0 ms");
    assert_eq!(
        summary.failures(),
        [("activations", "Error", "failed", 1), ("searches", "InvalidArguments", "", 1)]
    );
    let notes: Vec<_> = summary.notes().iter().map(|(what, count)| format!("{count} {what}")).collect();
    expect![[r#"
        1 permission left to the user
        1 session whose agent did not fetch the tools in time
        1 restoration after a compaction by `(unnamed)`, with about 1 token
        2 restorations after a compaction by `a`, with about 950 tokens
        1 session without the tools of MCP servers, which saved about 2500 tokens at the start
        1 reload of skills during a session
        7 events that were dropped
        1 unknown event `moon_landing` of a newer version
        1 line that is not an event"#]]
    .assert_eq(&notes.join("\n"));
    assert!(summary.bad.0[0].starts_with("x.jsonl:17: "), "{:?}", summary.bad);
}

/// Checks that each element is closed, except for void ones.
fn check_markup(page: &str) {
    const VOID: [&str; 2] = ["meta", "!doctype"];
    let mut open = Vec::new();
    let (_, mut rest) = page.split_once('<').unwrap();
    loop {
        let (tag, after) = rest.split_once('>').unwrap();
        assert!(!tag.contains('<'), "a tag within a tag: {tag}");
        let name = tag.trim_start_matches('/').split([' ', '/']).next().unwrap();
        if tag.starts_with('/') {
            assert_eq!(open.pop(), Some(name), "{tag}");
        } else if !tag.ends_with('/') && !VOID.contains(&name) {
            open.push(name);
        }
        match after.split_once('<') {
            Some((_, next)) => rest = next,
            None => break,
        }
    }
    assert!(open.is_empty(), "{open:?}");
}

#[test]
fn hostile_text_is_escaped() {
    let evil = "</title></style><script>alert(1)</script>\"'&\u{1b}[31m\u{202e}{{sections}}";
    let mut events = vec![started(&[evil, "unused <b>"])];
    events.extend([activation(1, evil, "model", "ok"), activation(2, evil, "user", "error")]);
    events.push(json!(evil));
    events.push(event(3, evil, json!({})));
    let summary = summary(&events);
    let page = page(&summary, &[evil.to_owned()]);
    check_markup(&page);
    for forbidden in [
        "<script", "<img", "<link", "<iframe", " style=", " on", "href=", "src=", "url(", "http:", "https:",
        "@import", "\u{1b}", "\u{202e}",
    ] {
        // It's fine for text to contain ` on`, but no attribute should start with it.
        let found = match forbidden {
            " on" => page.split('<').any(|tag| tag.split('>').next().unwrap_or_default().contains(" on")),
            _ => page.contains(forbidden),
        };
        assert!(!found, "{forbidden:?} is in the page");
    }
    assert!(page.contains("&lt;script&gt;") && !page.contains("<b>&"), "the text is shown as text");
    assert_eq!(page.matches("<h1>").count(), 1, "text is not a template");
}

#[test]
fn the_policy_allows_the_style_of_the_page() {
    use base64::{Engine, engine::general_purpose::STANDARD};
    use skills_core::skill::Sha256;
    let page = page(&summary(&[started(&["a"]), activation(1, "a", "user", "ok")]), &["x".to_owned()]);
    let (_, rest) = page.split_once("<style>").unwrap();
    let (style, _) = rest.split_once("</style>").unwrap();
    let digest = STANDARD.encode(Sha256::of(style.as_bytes()).as_bytes());
    assert!(
        page.contains(&format!("default-src 'none'; style-src 'sha256-{digest}'")),
        "the hash is that of the style"
    );
    assert!(style.contains("prefers-color-scheme: dark"));
}

#[test]
fn each_chart_has_a_table() {
    let mut events = vec![started(&["a"])];
    events.extend((0..5).map(|number| activation(number, "a", "user", "ok")));
    let page = page(&summary(&events), &["x".to_owned()]);
    let sections: Vec<_> = page.split("<section>").filter(|section| section.contains("<svg")).collect();
    assert_eq!(sections.len(), 4);
    for section in sections {
        let labelled = section.contains("role=\"img\" aria-label=\"") && section.contains("<title>");
        assert!(labelled && section.contains("<caption>") && section.contains("scope=\"row\""), "{section}");
    }
}

#[test]
fn pages_with_many_events_and_with_none() {
    let names: Vec<_> = (0..400).map(|number| format!("skill-{number}")).collect();
    let mut events = vec![started(&names.iter().map(String::as_str).collect::<Vec<_>>())];
    for number in 0..5000_i64 {
        let skill = &names[usize::try_from(number % 250).unwrap()];
        events.push(activation(number * 30, skill, "model", "ok"));
    }
    let many = page(&summary(&events), &["x".to_owned()]);
    check_markup(&many);
    let (shown, rest) = many.split_once("<details>").unwrap();
    assert!(shown.matches("<rect").count() < 40, "the chart shows some of the skills only");
    assert!(
        rest.contains("The other 235 skills") && rest.contains("skill-249") && rest.contains("skill-399")
    );
    let none = page(&Summary::default(), &["x".to_owned()]);
    check_markup(&none);
    assert!(none.contains("No events yet") && !none.contains("<svg"));
    // Use two events that are far apart, and then just one.
    for events in
        [&[activation(0, "a", "user", "ok"), activation(9_000_000, "a", "user", "ok")][..], &events[..2]]
    {
        check_markup(&page(&summary(events), &[]));
    }
}
