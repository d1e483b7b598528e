//! Event files that can't be written: a full disk, a pipe without a reader, and a directory. The relay continues.

use std::fs;
#[cfg(target_os = "linux")]
use std::path::Path;

#[cfg(unix)]
use serde_json::{Value, json};

use crate::events::{connected, recording};
#[cfg(unix)]
use crate::events::{documented, of_kind};
use crate::skills::Skills;

crate::trials!(
    #[cfg(target_os = "linux")]
    a_full_disk,
    #[cfg(unix)]
    a_pipe_that_is_not_read,
    a_file_that_cannot_be_opened,
    files_of_other_programs,
    files_of_this_program_are_continued,
);

/// The proxy warns once, and everything else works.
#[cfg(target_os = "linux")]
fn a_full_disk() {
    let skills = Skills::review();
    let (mut fixture, connection) = connected(recording(&skills, Path::new("/dev/full")));
    for _ in 0..20 {
        let (text, failed) = fixture.call(&connection, "activate_skill", json!({ "name": "review" }));
        assert!(!failed && text.contains("# Review"));
    }
    let ended = fixture.finish();
    let warnings: Vec<_> = ended.log.iter().filter(|line| line.contains("events")).collect();
    assert!(warnings.len() == 1 && warnings[0].contains("/dev/full"), "{:#?}", ended.log);
}

/// A pipe without a reader: the relay continues, events that don't fit are counted, and the proxy still exits.
#[cfg(unix)]
fn a_pipe_that_is_not_read() {
    use std::io::Read;
    let skills = Skills::review();
    let file = skills.path().join("pipe");
    let made = std::process::Command::new("mkfifo").arg(&file).status().expect("mkfifo");
    assert!(made.success());
    // We open the pipe for both reading and writing, since otherwise `open` would block until the other end is opened.
    let mut pipe = fs::OpenOptions::new().read(true).write(true).open(&file).expect("a pipe");
    let (mut fixture, _) = connected(recording(&skills, &file).flag("--approve", "none"));
    let options = json!([{ "optionId": "yes", "name": "Yes", "kind": "allow_once" }]);
    let call = json!({ "toolCallId": "1", "name": "mcp__acp-skills__read_skill_file" });
    let params = json!({ "sessionId": "s", "toolCall": call, "options": options });
    let method = "session/request_permission";
    let request = json!({ "jsonrpc": "2.0", "id": "p", "method": method, "params": params }).to_string();
    let lines = vec![request.as_str(); 1000];
    let asked = 20;
    let mut forwarded = 0;
    for _ in 0..asked {
        fixture.agent_writes(&lines);
        // By now, all of the requests must have reached the editor, since the order after them was answered.
        forwarded += fixture.editor.unread().len();
    }
    // Now start to read. We expect the events that were written, and then one that says how many were dropped.
    let reader = std::thread::spawn(move || {
        let mut text = Vec::new();
        let mut buffer = vec![0; 64 * 1024];
        while !text.ends_with(b"}\n") || !String::from_utf8_lossy(&text).contains("\"events_dropped\"") {
            let count = pipe.read(&mut buffer).expect("the pipe is open");
            text.extend_from_slice(&buffer[..count]);
        }
        String::from_utf8(text).expect("text")
    });
    let text = reader.join().expect("the reader is done");
    assert_eq!(forwarded, asked * lines.len());
    fixture.finish();
    let written: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let counts = of_kind(&written, "events_dropped").into_iter().filter_map(|event| event["count"].as_u64());
    let dropped: u64 = counts.sum();
    let permissions = of_kind(&written, "permission").len() as u64;
    assert_eq!(permissions + dropped, forwarded as u64);
    assert!(dropped > 0, "{permissions} were written");
    let (_, kinds) = documented();
    let fields: Vec<_> = kinds["events_dropped"].keys().collect();
    assert_eq!(fields, ["count"]);
}

fn a_file_that_cannot_be_opened() {
    let skills = Skills::review();
    for (flag, path) in [("--events", skills.path().to_owned()), ("--state", skills.config())] {
        let ended = skills.proxy().flag(flag, &path).agent("scripted").finish();
        assert_eq!(ended.code(), Some(2));
        let said = ended.log.join("\n");
        assert!(said.contains("error: cannot") && said.contains(&*path.to_string_lossy()), "{said}");
    }
}

/// A configuration of a project could name the settings of a shell, which would run what a skill's author has written.
fn files_of_other_programs() {
    let skills = Skills::review();
    for flag in ["--events", "--log-file"] {
        for content in ["export A=1\n", "\n", "2026-11-27\n", "{}\n"] {
            let file = skills.path().join("profile");
            fs::write(&file, content).expect("a file");
            let ended = skills.proxy().flag(flag, &file).agent("scripted").finish();
            let said = ended.log.join("\n");
            assert_eq!(ended.code(), Some(2), "{flag} {content:?}: {said}");
            assert!(said.contains("another program has written it"), "{flag} {content:?}: {said}");
            assert_eq!(fs::read_to_string(&file).expect("the file"), content);
        }
    }
}

fn files_of_this_program_are_continued() {
    let skills = Skills::review();
    let [events, log] = ["events", "log"].map(|name| skills.path().join(name));
    let mut lengths = Vec::new();
    for _ in 0..2 {
        let proxy = recording(&skills, &events).flag("--log-file", &log).flag("--log", "debug");
        let (fixture, _connection) = connected(proxy);
        let ended = fixture.finish();
        assert_eq!(ended.code(), Some(0), "{:?}", ended.log);
        lengths.push([&events, &log].map(|file| fs::metadata(file).expect("a file").len()));
    }
    let grows = |(first, second): (&u64, &u64)| *first > 0 && first < second;
    assert!(lengths[0].iter().zip(&lengths[1]).all(grows), "{lengths:?}");
}
