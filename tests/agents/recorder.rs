//! Makes the recordings for the replay tests: a conversation without the proxy, and one with the proxy, after which the agent's
//! history holds text of ours. Names, paths and tokens are replaced.
//!
//! A recording has each line as its author wrote it. To see the agent's original lines behind the proxy, this program runs
//! between the proxy and the agent, and writes all lines that it forwards to a file.

use std::{
    env,
    ffi::OsString,
    fs,
    io::{BufRead, BufReader, Write},
    path::{Path, PathBuf},
    process::{Command, ExitCode, Stdio},
    sync::{Arc, Mutex},
    thread,
    time::Duration,
};

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

use crate::{
    catalogue::Spec,
    client::Client,
    conversation::{Fixture, initialize},
    model::Call,
};

/// The first argument that makes this program forward and record lines.
const TEE: &str = "--tee";
/// The maximum length of a text. Longer texts are shortened, unless they contain text of ours.
const MAX_CHARS: usize = 300;

/// Runs a command, forwards lines between it and our stdin and stdout, and records them. Returns `None` if the first argument
/// isn't [`TEE`].
pub(crate) fn run_as_tee() -> Option<ExitCode> {
    let mut words = env::args_os().skip(1);
    if words.next()? != TEE {
        return None;
    }
    let file = fs::File::options().create(true).append(true).open(words.next()?).expect("a file");
    let file = Arc::new(Mutex::new(file));
    let program = words.next()?;
    let mut child = Command::new(program)
        .args(words)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the agent starts");
    let mut to_agent = child.stdin.take().expect("a pipe");
    let from_agent = child.stdout.take().expect("a pipe");
    let kept = Arc::clone(&file);
    thread::spawn(move || pass(std::io::stdin().lock(), &mut to_agent, "client", &kept));
    pass(BufReader::new(from_agent), &mut std::io::stdout().lock(), "agent", &file);
    let code = child.wait().ok().and_then(|status| status.code()).unwrap_or(1);
    // We can't join the other thread, because it might be blocked in a read forever.
    std::process::exit(code);
}

fn pass(from: impl BufRead, to: &mut impl Write, side: &str, file: &Mutex<fs::File>) {
    for line in from.split(b'\n').map_while(Result::ok) {
        let text = String::from_utf8_lossy(&line);
        // We need to write this line to the file before we forward it. Otherwise, we might record the answer first.
        if serde_json::from_str::<Value>(&text).is_ok_and(|message| message.is_object()) {
            let mut file = file.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            let _ = writeln!(file, "{{\"dir\":\"{side}\",\"msg\":{text}}}");
        }
        if to.write_all(&line).and_then(|()| to.write_all(b"\n")).and_then(|()| to.flush()).is_err() {
            return;
        }
    }
}

/// Records an agent without and with the proxy, in the directories `dir/direct` and `dir/proxied`.
pub(crate) fn record(spec: &Spec, installed: &Path, dir: &Path) -> Result<()> {
    for (kind, proxied) in [("direct", false), ("proxied", true)] {
        let fixture = Fixture::new(spec, installed, proxied);
        let kept = fixture.home().join("kept.jsonl");
        let this = env::current_exe()?;
        let wrap: Vec<OsString> = vec![this.into(), TEE.into(), kept.clone().into()];
        let flags = ["--approve", "none", "--titles", "agent", "--catalog-in", "prompt"];
        let start = || fixture.start(&flags, &wrap);
        let calls = [Call { tool: "activate_skill", arguments: json!({ "name": "demo" }) }];
        // If the proxy isn't used, the agent doesn't have our tools, so it can't call them.
        fixture.model.set_calls(if proxied { &calls } else { &[] });
        let messages = converse(&fixture, start, spec.load.is_none())?;
        let text = fs::read_to_string(&kept)?;
        let lines = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let mut originals = messages.into_iter();
        let mut out = String::new();
        for mut line in lines {
            // We've added our text to this line before it was sent to the agent, so use the one that was written by the client
            // instead.
            if line["dir"] == "client" {
                let is_same = |message: &Value| {
                    message["method"] == line["msg"]["method"] && message["id"] == line["msg"]["id"]
                };
                line["msg"] =
                    originals.find(is_same).with_context(|| format!("the client did not write {line}"))?;
            }
            anonymize(&mut line["msg"], &fixture, installed);
            out.extend(["{\"dir\":", &line["dir"].to_string(), ",\"msg\":", &line["msg"].to_string(), "}\n"]);
        }
        let file: PathBuf = dir.join(kind).join(format!("{}.jsonl", spec.id));
        fs::create_dir_all(dir.join(kind))
            .and_then(|()| fs::write(&file, out))
            .with_context(|| format!("cannot write {}", file.display()))?;
        println!("recorded {}", file.display());
    }
    Ok(())
}

/// Has a conversation with all kinds of messages that agents replay later. Returns the client's messages.
fn converse(fixture: &Fixture<'_>, start: impl Fn() -> Client, can_load: bool) -> Result<Vec<Value>> {
    let mut messages = Vec::new();
    let mut keep = |client: &Client| {
        let lines = client.transcript.iter().filter(|(side, _)| *side == crate::client::Side::Client);
        messages.extend(lines.filter_map(|(_, line)| serde_json::from_str::<Value>(line).ok()));
    };
    let pause = Duration::from_millis(1500);
    let new = json!({ "cwd": fixture.project(), "mcpServers": [] });
    let prompt = |client: &mut Client, session: &Value, texts: &[&str]| {
        let blocks: Vec<_> = texts.iter().map(|text| json!({ "type": "text", "text": text })).collect();
        let answer = client.ask("session/prompt", &json!({ "sessionId": session, "prompt": blocks }));
        client.listen(pause, |_| false);
        answer.map(|_| ())
    };
    let mut client = start();
    let capabilities = initialize(&mut client)?;
    let session = client.ask("session/new", &new)?["sessionId"].clone();
    client.listen(pause, |_| false);
    let first = "Explain \u{201c}na\u{ef}ve\u{201d} code\n\tin  a.txt, please \u{1f642}";
    prompt(&mut client, &session, &[first])?;
    fixture.model.set_calls(&[]);
    prompt(&mut client, &session, &["And now the second turn"])?;
    // Ignore any errors, because some agents return one if they don't know the command.
    let _ = prompt(&mut client, &session, &["/frobnicate it"]);
    keep(&client);
    client.end();
    if can_load && capabilities["agentCapabilities"]["loadSession"] == true {
        let mut client = start();
        initialize(&mut client)?;
        let load = json!({ "cwd": fixture.project(), "mcpServers": [], "sessionId": session });
        client.ask("session/load", &load)?;
        client.listen(pause, |_| false);
        prompt(&mut client, &session, &["Third turn, with two blocks. ", "This is the other."])?;
        // Now load it a second time. Some agents return an error for this, so ignore it.
        let _ = client.ask("session/load", &load);
        client.listen(pause, |_| false);
        let _ = client.ask("session/list", &json!({}));
        keep(&client);
        client.end();
    }
    Ok(messages)
}

/// Replaces paths, host names, addresses and tokens of this machine, and shortens long texts.
fn anonymize(value: &mut Value, fixture: &Fixture<'_>, installed: &Path) {
    match value {
        Value::String(text) => {
            let path = |path: &Path| path.to_string_lossy().into_owned();
            *text = text
                .replace(&path(&fixture.project()), "/home/user/project")
                .replace(&path(&fixture.home()), "/home/user")
                .replace(&path(installed), "/opt/agents")
                .replace(&fixture.model.url(), "http://127.0.0.1:9001");
            if let Some(above) = fixture.project().parent() {
                *text = text.replace(&path(above), "/home/user");
            }
            if text.chars().count() > MAX_CHARS && !text.contains("acp-skills-proxy") {
                *text = text.chars().take(MAX_CHARS).chain(['…']).collect();
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| anonymize(item, fixture, installed)),
        Value::Object(members) => {
            for (key, value) in members.iter_mut() {
                anonymize(value, fixture, installed);
                if key == "hostname" {
                    *value = "host".into();
                }
                if key == "url" && value.as_str().is_some_and(|url| url.starts_with("http://127.0.0.1")) {
                    *value = "http://127.0.0.1:9000/mcp".into();
                }
                if value.as_str().is_some_and(|text| text.starts_with("Bearer ")) {
                    *value = "Bearer token".into();
                }
            }
        }
        _ => {}
    }
}
