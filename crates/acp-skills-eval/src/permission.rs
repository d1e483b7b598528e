//! Decides permission requests of a run. There is no user to ask, so all requests that were not allowed beforehand are refused
//! and noted in the transcript.
//!
//! An edit outside of the run's directory is always refused, and so is an edit that doesn't name a file. This relies on the
//! agent: it describes its own request, and an agent that doesn't ask is only held back by a sandbox.

use std::path::{Path, PathBuf};

use acp_skills::{
    client::{PermissionDecision, PermissionRequest},
    intercept::{
        Workspace,
        tool_paths::{self, Place, Role},
    },
};
use acp_skills_runtime::paths::resolve;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Permissions that agents have without asking a user. The default allows nothing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[expect(clippy::struct_excessive_bools, reason = "fields are independent switches")]
pub struct Allow {
    /// Reading and writing files in the run's directory.
    pub edits: bool,
    /// Running commands.
    pub commands: bool,
    /// All other requests.
    pub others: bool,
    /// Running the commands of assertions. The author of the skill wrote them, not the agent.
    pub checks: bool,
    /// Copying files of a task that agents read as their settings, which can name programs to run. The author of the skill wrote them.
    #[serde(default)]
    pub settings: bool,
}

impl Allow {
    /// Allows everything.
    pub const ALL: Self = Self { edits: true, commands: true, others: true, checks: true, settings: true };
}

/// A permission request of a run, and the answer to it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct PermissionAnswer {
    /// The title of the tool call. If it has no title, its id, or else `a tool call`.
    pub title: String,
    /// The kind of the tool call, such as `edit` or `execute`.
    pub kind: String,
    /// True if the request was granted.
    pub granted: bool,
    /// The flag that grants such requests, or the reason for the refusal.
    pub why: String,
}

impl PermissionAnswer {
    /// Decides about a request in a run that works in `directory`, which has to be canonical.
    pub(super) fn to(request: &PermissionRequest, directory: &Path, allow: Allow) -> Self {
        let call = &request.raw["toolCall"];
        let kind = request.kind.as_deref().unwrap_or("other");
        let title = request.title.as_deref().or(call["toolCallId"].as_str()).unwrap_or("a tool call");
        let (granted, why) = decide(kind, &CallPaths::of(call), directory, allow);
        Self { title: title.to_owned(), kind: kind.to_owned(), granted, why }
    }

    /// Returns the decision that the client sends. A granted request is allowed once, never for the whole session.
    pub(super) fn decision(&self) -> PermissionDecision {
        if self.granted { PermissionDecision::AllowOnce } else { PermissionDecision::Refuse }
    }
}

/// Returns true if the tool call is allowed, and the flag or the reason for it.
fn decide(kind: &str, paths: &CallPaths, directory: &Path, allow: Allow) -> (bool, String) {
    let names_file = !paths.files.is_empty();
    match (kind, paths.outside(directory)) {
        ("edit" | "delete" | "move", Some(place)) => (false, format!("{place} is outside the run directory")),
        ("edit" | "delete" | "move", None) if !names_file => {
            (false, "request does not name the edited file".to_owned())
        }
        ("edit" | "delete" | "move", None) => (allow.edits, "--allow edits".to_owned()),
        ("execute", _) => (allow.commands, "--allow commands".to_owned()),
        ("read" | "search", None) if names_file && allow.edits => (true, "--allow edits".to_owned()),
        _ => (allow.others, "--allow all".to_owned()),
    }
}

/// The paths that a tool call names.
#[derive(Debug, Default)]
pub(super) struct CallPaths {
    /// The files that the call reads or changes.
    pub(super) files: Vec<PathBuf>,
    /// The directories in which it works. `None` is a place that can't be determined.
    bases: Vec<Option<PathBuf>>,
}

impl CallPaths {
    /// Collects the paths in the locations, the diffs and the input of a tool call.
    pub(super) fn of(call: &Value) -> Self {
        let list = |key: &str| call[key].as_array().into_iter().flatten();
        let locations = list("locations").map(|location| &location["path"]);
        let diffs = list("content").filter(|block| block["type"] == "diff").map(|diff| &diff["path"]);
        let files = locations.chain(diffs).filter_map(Value::as_str).map(PathBuf::from);
        let mut paths = Self { files: files.collect(), bases: Vec::new() };
        for Place { path, role } in tool_paths::named_in(&call["rawInput"].to_string()) {
            // Skip empty strings, which some agents use for optional members.
            if path.as_deref() == Some("") {
                continue;
            }
            match (path, role) {
                (Some(path), Role::File) => paths.files.push(path.into()),
                (path, _) => paths.bases.push(path.map(|path| local(&path))),
            }
        }
        paths
    }

    /// Returns the first path that is not below `directory`, or `None` if there is none.
    fn outside(&self, directory: &Path) -> Option<String> {
        let files = self.files.iter().map(Some);
        files.chain(self.bases.iter().map(Option::as_ref)).find_map(|place| match place {
            Some(path) if is_below(path, directory) => None,
            Some(path) => Some(path.display().to_string()),
            None => Some("an unclear path".to_owned()),
        })
    }
}

/// Returns the path in a `file` URI, and any other text as a path.
fn local(place: &str) -> PathBuf {
    place.strip_prefix("file://").unwrap_or(place).into()
}

/// Returns true if `path` is certainly below `directory`, which has to be canonical: it contains neither links nor `..`. A relative path
/// starts at `directory`.
pub(super) fn is_below(path: &Path, directory: &Path) -> bool {
    resolve(path, &Workspace::of(directory)).is_some_and(|path| path.starts_with(directory))
}

#[cfg(test)]
mod tests {
    use acp_skills::client::Incoming;
    use serde_json::json;

    use super::*;

    const EDITS: Allow =
        Allow { edits: true, commands: false, others: false, checks: false, settings: false };
    const COMMANDS: Allow =
        Allow { edits: false, commands: true, others: false, checks: false, settings: false };

    #[test]
    fn requests_that_were_not_allowed_are_refused() {
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
            // A working directory is not the edited file. So it can be a reason to refuse an edit, but not to allow it.
            (json!({ "kind": "edit", "rawInput": { "path": "x", "cwd": "/etc" } }), Allow::ALL, false),
            (
                json!({ "kind": "edit", "rawInput": { "path": "x", "uri": "file:///etc/x" } }),
                Allow::ALL,
                false,
            ),
            (json!({ "kind": "edit", "rawInput": { "path": "x", "cwd": &*dir } }), EDITS, true),
            (json!({ "kind": "edit", "rawInput": { "cwd": &*dir } }), Allow::ALL, false),
            (json!({ "kind": "edit", "rawInput": { "paths": ["x", "/etc/x"] } }), Allow::ALL, false),
            (json!({ "kind": "edit", "rawInput": { "path": "" } }), Allow::ALL, false),
            (json!({ "kind": "search", "rawInput": { "path": "sub", "pattern": "../*" } }), EDITS, false),
            (json!({ "kind": "search", "rawInput": { "path": "sub", "pattern": "*.md" } }), EDITS, true),
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
            let request = PermissionRequest::from_params(&json!({ "toolCall": call }));
            let answer = PermissionAnswer::to(&request, &dir, allow);
            assert_eq!(answer.granted, granted, "{call} {allow:?}: {}", answer.why);
        }
    }

    #[cfg(unix)]
    #[test]
    fn paths_with_links_are_outside() {
        let scratch = tempfile::tempdir().unwrap();
        let dir = dunce::canonicalize(scratch.path()).unwrap();
        std::os::unix::fs::symlink("/etc", dir.join("etc")).unwrap();
        std::os::unix::fs::symlink("/nowhere/at/all", dir.join("dangling")).unwrap();
        for path in ["etc/x", "etc/../x", "new/../etc/x", "x/../y", "dangling", "/"] {
            assert!(!is_below(Path::new(path), &dir), "{path}");
        }
        for path in ["x", "./x/y"] {
            assert!(is_below(Path::new(path), &dir), "{path}");
        }
    }

    #[test]
    fn only_offered_options_are_selected() {
        let answer = |options: &Value, granted| {
            let params = json!({ "options": options });
            let message = json!({ "id": 1, "method": "session/request_permission", "params": params });
            let Incoming::Permission(call) = Incoming::from_message(message) else {
                panic!("it is a request")
            };
            let answer =
                PermissionAnswer { title: String::new(), kind: String::new(), granted, why: String::new() };
            call.answer(&answer.decision()).0["result"]["outcome"].take()
        };
        let all = json!([
            { "optionId": "always", "kind": "allow_always" },
            { "optionId": "yes", "kind": "allow_once" },
            { "optionId": "no", "kind": "reject_once" },
        ]);
        assert_eq!(answer(&all, true)["optionId"], "yes");
        assert_eq!(answer(&all, false)["optionId"], "no");
        let always = json!([{ "optionId": "always", "kind": "allow_always" }]);
        assert_eq!(answer(&always, true)["outcome"], "cancelled");
        assert_eq!(answer(&json!(null), false)["outcome"], "cancelled");
    }
}
