//! What becomes of a request for permission: nobody is there to ask, so what was not allowed beforehand is refused, and told.
//!
//! An edit outside of the run's directory is refused whatever was allowed, and so is one that does not say where it is. A
//! request is only what the agent tells of itself: an agent that does not ask is held by a sandbox alone.

use std::path::{Component, Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// What an agent may do without a person.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of its own")]
pub struct Allow {
    /// Read and write files in the run's directory.
    pub edits: bool,
    /// Run commands.
    pub commands: bool,
    /// Anything else that it asks for.
    pub others: bool,
    /// The commands of assertions are run; they are the skill's author's, not the agent's.
    pub checks: bool,
}

impl Allow {
    /// Everything.
    pub const ALL: Self = Self { edits: true, commands: true, others: true, checks: true };
}

/// A request for permission, and what became of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct PermissionRequest {
    /// What the agent calls it.
    pub title: String,
    /// The kind of tool: `edit`, `execute` …
    pub kind: String,
    /// Whether it was granted.
    pub granted: bool,
    /// Why, or why not.
    pub why: String,
}

/// Decides about `session/request_permission` with these parameters, in a run in `directory`.
pub(super) fn decide(params: &Value, directory: &Path, allow: Allow) -> PermissionRequest {
    let call = &params["toolCall"];
    let kind = call["kind"].as_str().unwrap_or("other");
    let title = call["title"].as_str().or(call["toolCallId"].as_str()).unwrap_or("a tool call").to_owned();
    let (granted, why) = verdict(kind, call, directory, allow);
    PermissionRequest { title, kind: kind.to_owned(), granted, why }
}

fn verdict(kind: &str, call: &Value, directory: &Path, allow: Allow) -> (bool, String) {
    let paths = paths(call);
    let outside = paths.iter().find(|path| !is_below(path, directory));
    match (kind, outside) {
        ("edit" | "delete" | "move", Some(path)) => {
            (false, format!("{} is outside of the run's directory", path.display()))
        }
        ("edit" | "delete" | "move", None) if paths.is_empty() => {
            (false, "the request does not say which file is edited".to_owned())
        }
        ("edit" | "delete" | "move", None) => (allow.edits, "--allow edits".to_owned()),
        ("execute", _) => (allow.commands, "--allow commands".to_owned()),
        ("read" | "search", None) if !paths.is_empty() && allow.edits => (true, "--allow edits".to_owned()),
        _ => (allow.others, "--allow all".to_owned()),
    }
}

/// The answer to a request with these parameters: only this once, and only what was offered for it.
pub(super) fn answer(params: &Value, granted: bool) -> Value {
    let kinds: &[&str] = if granted { &["allow_once"] } else { &["reject_once", "reject_always"] };
    let options = || params["options"].as_array().into_iter().flatten();
    let chosen = kinds.iter().find_map(|kind| options().find(|option| option["kind"] == *kind));
    match chosen {
        Some(option) => json!({ "outcome": { "outcome": "selected", "optionId": option["optionId"] } }),
        None => json!({ "outcome": { "outcome": "cancelled" } }),
    }
}

/// Which files a tool call names, in every way that agents have.
pub(super) fn paths(call: &Value) -> Vec<PathBuf> {
    let list = |key: &str| call[key].as_array().into_iter().flatten();
    let located = list("locations").map(|location| &location["path"]);
    let differing = list("content").filter(|it| it["type"] == "diff").map(|diff| &diff["path"]);
    let mut found: Vec<PathBuf> =
        located.chain(differing).filter_map(Value::as_str).map(PathBuf::from).collect();
    arguments(&call["rawInput"], &mut found);
    found
}

/// Paths in the arguments of a tool: members whose names say so, and the files that a list of changes is keyed by.
fn arguments(value: &Value, found: &mut Vec<PathBuf>) {
    match value {
        Value::Object(members) => {
            for (name, value) in members {
                let name = name.to_ascii_lowercase();
                match value {
                    Value::String(path) if !path.is_empty() && names_path(&name) => found.push(path.into()),
                    Value::Object(changes) if name == "changes" => {
                        found.extend(changes.keys().map(PathBuf::from));
                        changes.values().for_each(|value| arguments(value, found));
                    }
                    value => arguments(value, found),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|value| arguments(value, found)),
        _ => {}
    }
}

fn names_path(name: &str) -> bool {
    let name: String = name.chars().filter(char::is_ascii_alphanumeric).collect();
    ["path", "file", "filename", "target", "destination", "source", "dest", "to", "from"]
        .contains(&name.as_str())
        || name.ends_with("path")
        || name.ends_with("file")
}

/// Whether `path` is below `directory` (canonical), also once links are followed.
pub(super) fn is_below(path: &Path, directory: &Path) -> bool {
    let absolute = directory.join(path);
    let mut plain = PathBuf::new();
    for component in absolute.components() {
        match component {
            Component::ParentDir => {
                // What the system makes of `link/..` depends on the link.
                plain = dunce::canonicalize(&plain).unwrap_or(plain);
                plain.pop();
            }
            Component::CurDir => {}
            component => plain.push(component),
        }
    }
    // The file may not exist yet; the nearest directory that does decides.
    let mut existing = plain.as_path();
    let mut rest = Vec::new();
    loop {
        // A link that leads nowhere yet would be written through.
        if existing.symlink_metadata().is_ok() {
            return dunce::canonicalize(existing).is_ok_and(|real| {
                let real = rest.iter().rev().fold(real, |path, name| path.join(name));
                real.starts_with(directory)
            });
        }
        match (existing.parent(), existing.file_name()) {
            (Some(parent), Some(name)) => {
                rest.push(name.to_owned());
                existing = parent;
            }
            _ => return false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EDITS: Allow = Allow { edits: true, commands: false, others: false, checks: false };
    const COMMANDS: Allow = Allow { edits: false, commands: true, others: false, checks: false };

    #[test]
    fn what_was_not_allowed_is_refused() {
        let scratch = tempfile::tempdir().unwrap();
        let dir = dunce::canonicalize(scratch.path()).unwrap();
        std::fs::create_dir(dir.join("sub")).unwrap();
        let inside = dir.join("sub/new/x.txt");
        let outside = std::env::temp_dir().join("elsewhere.txt");
        let nothing = Allow::default();
        for (call, allow, granted) in [
            (json!({ "kind": "edit", "locations": [{ "path": inside }] }), nothing, false),
            (json!({ "kind": "edit", "locations": [{ "path": inside }] }), COMMANDS, false),
            (json!({ "kind": "edit", "locations": [{ "path": inside }] }), EDITS, true),
            (json!({ "kind": "edit", "rawInput": { "file_path": "x.txt" } }), EDITS, true),
            (json!({ "kind": "edit", "rawInput": { "file_path": "../x.txt" } }), Allow::ALL, false),
            (json!({ "kind": "edit", "rawInput": { "file_path": "sub/../../x.txt" } }), Allow::ALL, false),
            (json!({ "kind": "edit", "locations": [{ "path": outside }] }), Allow::ALL, false),
            (
                json!({ "kind": "delete", "rawInput": { "edits": [{ "filePath": outside }] } }),
                Allow::ALL,
                false,
            ),
            (
                json!({ "kind": "edit", "locations": [{ "path": inside }], "content": [{ "type": "diff", "path": outside }] }),
                Allow::ALL,
                false,
            ),
            (json!({ "kind": "edit", "rawInput": { "changes": { "/etc/x": {} } } }), Allow::ALL, false),
            (json!({ "kind": "move", "rawInput": { "from": "a", "to": "/etc/x" } }), Allow::ALL, false),
            (json!({ "kind": "edit" }), Allow::ALL, false),
            (json!({ "kind": "execute", "rawInput": { "command": "ls" } }), EDITS, false),
            (json!({ "kind": "execute", "rawInput": { "command": "ls" } }), COMMANDS, true),
            (json!({ "kind": "read", "locations": [{ "path": inside }] }), nothing, false),
            (json!({ "kind": "read", "locations": [{ "path": inside }] }), EDITS, true),
            (json!({ "kind": "read", "locations": [{ "path": outside }] }), EDITS, false),
            (json!({ "kind": "fetch" }), EDITS, false),
            (json!({ "kind": "fetch" }), Allow::ALL, true),
            (json!({}), EDITS, false),
        ] {
            let decision = decide(&json!({ "toolCall": call }), &dir, allow);
            assert_eq!(decision.granted, granted, "{call} {allow:?}: {}", decision.why);
        }
    }

    #[cfg(unix)]
    #[test]
    fn links_lead_outside() {
        let scratch = tempfile::tempdir().unwrap();
        let dir = dunce::canonicalize(scratch.path()).unwrap();
        std::os::unix::fs::symlink("/etc", dir.join("etc")).unwrap();
        std::os::unix::fs::symlink("/nowhere/at/all", dir.join("dangling")).unwrap();
        for path in ["etc/x", "etc/../x", "dangling", "/"] {
            assert!(!is_below(Path::new(path), &dir), "{path}");
        }
        for path in ["x", "./x/y", "x/../y"] {
            assert!(is_below(Path::new(path), &dir), "{path}");
        }
    }

    #[test]
    fn answers_only_with_what_is_offered() {
        let params = json!({ "options": [
            { "optionId": "always", "kind": "allow_always" },
            { "optionId": "yes", "kind": "allow_once" },
            { "optionId": "no", "kind": "reject_once" },
        ] });
        assert_eq!(answer(&params, true)["outcome"]["optionId"], "yes");
        assert_eq!(answer(&params, false)["outcome"]["optionId"], "no");
        let always = json!({ "options": [{ "optionId": "always", "kind": "allow_always" }] });
        assert_eq!(answer(&always, true)["outcome"]["outcome"], "cancelled");
        assert_eq!(answer(&json!({}), false)["outcome"]["outcome"], "cancelled");
    }
}
