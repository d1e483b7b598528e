use std::time::Duration;

use expect_test::expect;
use serde_json::{Value, json};

use super::{
    read::{Line, line, lines},
    *,
};

fn end() -> End {
    End {
        outcome: Outcome::Error,
        error: Some("FileNotFound".to_owned()),
        bytes: 120,
        ms: Duration::from_micros(1_234_567).into(),
        trace: None,
    }
}

/// One event of each kind.
fn all() -> Vec<EventKind> {
    let some = |text: &str| Some(text.to_owned());
    let list = |texts: &[&str]| texts.iter().map(|&text| text.to_owned()).collect::<Vec<_>>();
    vec![
        EventKind::SessionStarted {
            how: SessionOrigin::Fork,
            agent: some("a"),
            proxy: "1".to_owned(),
            skills: list(&["x", "y"]),
            saved_tokens: Some(7),
        },
        EventKind::SkillActivated {
            skill: some("x"),
            path: some("/x"),
            root: some("/r"),
            by: ActivatedBy::Prompt,
            tokens: 3,
            end: end(),
        },
        EventKind::FileRead { skill: some("x"), file: None, end: end() },
        EventKind::ToolCalled { skill: None, tool: some("t"), end: end() },
        EventKind::ScriptRun { skill: some("x"), script: some("s"), exit_code: Some(-1), end: end() },
        EventKind::Search { found: 7, end: End { error: None, outcome: Outcome::Ok, ..end() } },
        EventKind::Permission {
            tool: some("Bash"),
            decision: Decision::Refused,
            rule: Some(Rule::AllowedTools),
        },
        EventKind::Reload {
            skills: 2,
            skipped: 1,
            added: list(&["y"]),
            removed: list(&[]),
            changed: list(&["x"]),
            ms: Duration::from_micros(1_250).into(),
        },
        EventKind::Fallback { reason: FallbackReason::NotConnected, ms: Some(Duration::from_secs(2).into()) },
        EventKind::SkillsJoined { skills: list(&["x"]) },
        EventKind::Restored { skills: list(&["x"]), tokens: 9, signal: CompactionSignal::ToolCall },
        EventKind::Refused { reason: "r".to_owned() },
        EventKind::EventsDropped { count: u64::MAX },
    ]
}

#[test]
fn written_events_can_be_read() {
    for what in all() {
        let event = Event::now(Some("s".to_owned()), what);
        let text = serde_json::to_string(&event).unwrap();
        assert_eq!(line(text.as_bytes()), Some(Line::Event(Box::new(event.clone()))), "{text}");
        // Newer versions can add fields, but they should be ignored here.
        let mut newer: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(newer["event"], event.what.name());
        newer["new"] = json!({ "a": [1] });
        assert_eq!(line(newer.to_string().as_bytes()), Some(Line::Event(Box::new(event))));
    }
}

#[test]
fn an_event_is_written_as_one_line() {
    let event = Event {
        time: "2026-11-22T01:02:03.004Z".parse().unwrap(),
        ..Event::now(Some("s".to_owned()), all().swap_remove(1))
    };
    let text = serde_json::to_string(&event).unwrap();
    expect![[r#"{"v":1,"time":"2026-11-22T01:02:03.004Z","event":"skill_activated","skill":"x","path":"/x","root":"/r","by":"prompt","tokens":3,"outcome":"error","error":"FileNotFound","bytes":120,"ms":1234.567,"session":"s"}"#]].assert_eq(&text);
}

#[test]
fn invalid_lines_are_reported() {
    let good = r#"{"v":1,"time":"2026-11-22T01:02:03Z","event":"events_dropped","count":3}"#;
    let text = [
        good,
        "",
        "nonsense",
        "{\"v\":1}",
        &good.replace("3}", "-3}"),
        &good.replace("events_dropped", "moon_landing"),
        &good.replace("\"v\":1", "\"v\":2"),
        &good.replace("\"v\":1", "\"v\":2").replace("count", "number"),
        &good.replace("01:02", "77:02"),
        &good[..30],
    ]
    .join("\r\n");
    let mut seen = Vec::new();
    let source = [text.as_bytes(), b"\n\xff\xfe\n".as_slice(), good.as_bytes()].concat();
    lines(source.as_slice(), |number, line| {
        seen.push(match line {
            Line::Event(event) => format!("{number} {}", event.what.name()),
            Line::Unknown { event, version } => format!("{number} unknown {event} of {version}"),
            Line::Bad(why) => format!("{number} bad: {}", why.split(':').next().unwrap_or_default()),
        });
    })
    .unwrap();
    expect![[r#"
        1 events_dropped
        3 bad: expected ident, at column 2
        4 bad: missing field `time`, at column 7
        5 bad: invalid value
        6 unknown moon_landing of 1
        7 unknown events_dropped of 2
        8 unknown events_dropped of 2
        9 bad: failed to parse two digit integer as hour
        10 bad: EOF while parsing a string, at column 30
        11 bad: expected value, at column 1
        12 events_dropped"#]]
    .assert_eq(&seen.join("\n"));
}

#[test]
fn a_very_long_line_is_skipped() {
    struct Endless(u64);
    impl std::io::Read for Endless {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            let count = buffer.len().min(usize::try_from(self.0).unwrap());
            buffer[..count].fill(b'x');
            self.0 -= count as u64;
            Ok(count)
        }
    }
    let mut seen = Vec::new();
    let source = std::io::Read::chain(Endless(40 * 1024 * 1024), b"\n{}\n".as_slice());
    lines(source, |number, line| seen.push((number, matches!(line, Line::Bad(_))))).unwrap();
    assert_eq!(seen, [(1, true), (2, true)]);
}

#[test]
fn ids_of_sessions_are_cut() {
    let id =
        |bytes: usize| Event::now(Some("é".repeat(bytes / 2)), EventKind::EventsDropped { count: 1 }).session;
    assert_eq!(id(256).map(|id| id.len()), Some(256));
    assert_eq!(id(10_000).map(|id| id.len()), Some(256));
}
