//! Permissions by `allowed-tools`. A granted call has to match the pattern according to a second, simpler implementation.

use std::path::{Component, Path, PathBuf};

use acp_skills_intercept::{Policy, ToolPolicy};
use serde_json::{Value, json};

use super::{
    bytes::Bytes,
    fixture::{Fixture, Side, skill},
};

/// Characters that are special to a shell.
const SHELL_CHARACTERS: [char; 14] =
    [';', '|', '&', '$', '`', '<', '>', '(', ')', '{', '}', '\n', '\r', '\\'];

/// A permission request of an agent.
struct Call {
    tool: &'static str,
    input: Value,
    /// The resolved path. `None` if the path resolves to itself.
    leads_to: Option<PathBuf>,
}

type Covers = fn(&Call) -> bool;

/// Patterns, each with a function that returns true for the calls that it allows.
const PATTERNS: [(&str, Covers); 6] = [
    ("Bash(git log:*)", |asked| is_command(asked, "git log")),
    ("Bash(echo hello)", |asked| asked.tool == "Bash" && asked.input["command"] == "echo hello"),
    ("Edit(src/**)", |asked| asked.tool == "Edit" && is_below(asked, "/p/src")),
    ("Read(docs/*.md)", |asked| asked.tool == "Read" && is_below(asked, "/p/docs")),
    ("WebFetch(domain:example.org)", |asked| asked.tool == "WebFetch" && is_at(asked, "example.org")),
    ("Grep", |asked| asked.tool == "Grep"),
];

pub(super) fn run(bytes: &[u8]) {
    let mut bytes = Bytes::new(bytes);
    let (pattern, is_right) = bytes.choose(&PATTERNS);
    let review = skill("review", |properties| properties.allowed_tools = vec![pattern.to_owned()]);
    let policy = Policy { tool_policy: ToolPolicy::Approval, ..Policy::default() };
    let mut fixture = Fixture::with_session(policy, vec![review]);
    let prompt = json!({ "sessionId": "s", "prompt": [{ "type": "text", "text": "/review" }] });
    fixture.send(
        Side::Client,
        &json!({ "jsonrpc": "2.0", "id": 2, "method": "session/prompt", "params": prompt }),
    );
    fixture.settle();
    let asked = ask(&mut bytes);
    fixture.leads_to.clone_from(&asked.leads_to);
    let call = json!({ "toolCallId": "1", "title": asked.tool, "rawInput": asked.input,
        "_meta": { "claudeCode": { "toolName": asked.tool } } });
    let options = json!([{ "optionId": "yes", "name": "Yes", "kind": "allow_once" },
        { "optionId": "no", "name": "No", "kind": "reject_once" }]);
    let before = fixture.to_agent.len();
    fixture.send(
        Side::Agent,
        &json!({ "jsonrpc": "2.0", "id": "p", "method": "session/request_permission",
            "params": { "sessionId": "s", "toolCall": call, "options": options } }),
    );
    fixture.settle();
    let answers: Vec<Value> =
        fixture.to_agent[before..].iter().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let is_granted =
        answers.iter().any(|answer| answer["id"] == "p" && answer["result"]["outcome"]["optionId"] == "yes");
    let is_shown = fixture.to_client.iter().any(|line| line.contains("session/request_permission"));
    assert!(is_granted != is_shown, "either the proxy decides or the user is asked");
    assert!(
        !is_granted || is_right(&asked),
        "{pattern} grants {} {} to {:?}",
        asked.tool,
        asked.input,
        asked.leads_to
    );
}

fn ask(bytes: &mut Bytes<'_>) -> Call {
    let tool = bytes.choose(&["Bash", "Edit", "Read", "WebFetch", "Grep", "bash"]);
    let key = bytes.choose(&["command", "file_path", "url", "path", "cmd"]);
    let mut value = String::new();
    for _ in 0..bytes.below(8) {
        let part = bytes.choose(&[
            "git",
            " ",
            "log",
            "echo hello",
            "-c",
            "core.pager=x",
            ";",
            "--output=x",
            "-nOevil",
            "'",
            "\"",
            "src/",
            "../",
            "/p/",
            "docs/",
            "a.md",
            "https://",
            "http://",
            "file://",
            "example.org",
            "@",
            "/",
            ".",
            ":",
            "\\",
            "#",
        ]);
        value.push_str(part);
        if bytes.below(4) == 0 {
            value.push_str(&bytes.text());
        }
    }
    let leads_to = [None, Some("/etc/passwd"), Some("/p/src/a.rs"), Some("/p/docs/a.md")];
    let leads_to = bytes.choose(&leads_to).map(PathBuf::from);
    Call { tool, input: json!({ key: value }), leads_to }
}

fn is_command(asked: &Call, start: &str) -> bool {
    let Some(command) = asked.input["command"].as_str() else { return false };
    let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let is_start = words(command).starts_with(&words(start));
    // This isn't safe if it can write a file (`--output`), run another program (`-O`), or use special characters to start
    // another command.
    let bare = command.replace(['\'', '"'], "");
    let has_option = words(&bare)
        .iter()
        .any(|word| word.starts_with("--output") || word.starts_with('-') && word.contains('O'));
    is_start && !command.contains(SHELL_CHARACTERS) && !has_option
}

/// Returns an absolute path without `.` and `..`.
fn normalized(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in Path::new("/p").join(path).components() {
        match part {
            Component::ParentDir => {
                plain.pop();
            }
            Component::CurDir => {}
            part => plain.push(part),
        }
    }
    plain
}

fn is_below(asked: &Call, directory: &str) -> bool {
    let named = ["file_path", "path"].iter().find_map(|key| asked.input[key].as_str());
    let is_below = |path: &Path| normalized(path).starts_with(directory);
    named.is_some_and(|path| is_below(Path::new(path))) && asked.leads_to.as_deref().is_none_or(is_below)
}

fn is_at(asked: &Call, domain: &str) -> bool {
    let Some(url) = asked.input["url"].as_str() else { return false };
    let Some(rest) = ["https://", "http://"].iter().find_map(|scheme| {
        let (head, rest) = url.split_at_checked(scheme.len())?;
        head.eq_ignore_ascii_case(scheme).then_some(rest)
    }) else {
        return false;
    };
    let authority = rest.split(['/', '?', '#', '\\']).next().unwrap_or(rest);
    let host = authority.split(':').next().unwrap_or(authority).to_ascii_lowercase();
    !authority.contains('@') && (host == domain || host.ends_with(&format!(".{domain}")))
}
