//! Third-party clients in front of an agent, with and without the proxy: `acplint`, which checks agents against the
//! protocol, and `yopo`, which sends a single prompt. Both have to see the same results.
//!
//!     AGENTS_CLIENTS=1 AGENTS_HOME=… cargo test -p acp-skills-proxy --test agents -- acplint

use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use serde_json::Value;

use crate::{catalogue::Spec, visit::Place};

/// The clients, and whether each is installed.
pub(crate) const CLIENTS: [&str; 2] = ["acplint", "yopo"];

/// What acplint says of what it hears of a session: whether it hears anything, and whether that is right.
const HEARD: [&str; 3] = [
    "streaming/session_update_received",
    "streaming/session_update_schema_valid",
    "schema_validation/schema_all_notifications_valid",
];

/// What the name of a check of one notification begins with; its number follows.
const OF_ONE: &str = "schema_notification_";

/// The time that acplint waits for an answer, in seconds.
const PATIENCE: &str = "5";

/// Returns the path of a client.
fn program(client: &str, home: &Path) -> PathBuf {
    match client {
        "acplint" => home.join("acplint/bin/acplint"),
        _ => home.join("cargo/bin").join(client),
    }
}

/// Whether a client is installed, and sees the same of this agent each time: an agent without a model answers what it was told,
/// and that is more behind the proxy.
pub(crate) fn fits(client: &str, spec: &Spec, home: &Path) -> bool {
    program(client, home).exists() && (client != "yopo" || spec.model)
}

/// Runs a client against an agent, bare and proxied. Returns its output, or the differences as an error.
pub(crate) fn compare(client: &str, spec: &Spec, home: &Path) -> Result<String, String> {
    let [bare, proxied] = [false, true].map(|proxied| look(client, &Place::new(spec, home, proxied), home));
    let mut bare = bare?;
    let mut proxied = proxied?;
    // Of an agent that says nothing by itself, the client hears the list of commands, which is the proxy's.
    let hears = |seen: &BTreeMap<String, String>| seen.get(HEARD[0]).map(String::as_str) == Some("PASS");
    if hears(&proxied) && !hears(&bare) {
        bare.retain(|check, _| !HEARD.contains(&check.as_str()));
        proxied.retain(|check, said| said != "PASS" || !HEARD.contains(&check.as_str()));
    }
    let differs: Vec<_> = bare
        .iter()
        .filter(|(what, said)| proxied.get(*what) != Some(said))
        .map(|(what, said)| format!("{what}: {:?}, bare {said:?}", proxied.get(what)))
        .chain(proxied.iter().filter(|(what, _)| !bare.contains_key(*what)).map(|(what, _)| what.clone()))
        .collect();
    if !differs.is_empty() {
        return Err(differs.join("\n"));
    }
    let passed = bare.values().filter(|said| *said == "PASS").count();
    Ok(if client == "acplint" { format!("{passed} of {} checks", bare.len()) } else { format!("{bare:?}") })
}

/// Returns the results of a client for an agent.
fn look(client: &str, place: &Place<'_>, home: &Path) -> Result<BTreeMap<String, String>, String> {
    let (words, environment) = place.command(&[], &[]);
    let quoted = words.iter().map(|word| format!("'{}'", word.to_string_lossy().replace('\'', r"'\''")));
    let script = place.home().join("agent");
    let text = format!("#!/bin/sh\nexec {}\n", quoted.collect::<Vec<_>>().join(" "));
    fs::write(&script, text)
        .and_then(|()| fs::set_permissions(&script, fs::Permissions::from_mode(0o755)))
        .map_err(|error| error.to_string())?;
    let mut command = Command::new(program(client, home));
    command.env_clear().envs(environment).current_dir(place.project()).stdin(Stdio::null());
    if client == "acplint" {
        command.arg("--agent").arg(&script).arg("--cwd").arg(place.project());
        command.args(["--timeout", PATIENCE, "--output", "json"]);
    } else {
        command.arg("Hello there").arg(&script);
    }
    let output = command.output().map_err(|error| format!("{client}: {error}"))?;
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    if client != "acplint" {
        let code = format!("{:?}", output.status.code());
        return Ok([("answer".to_owned(), said), ("exit code".to_owned(), code)].into());
    }
    let report: Value = serde_json::from_str(&said)
        .map_err(|error| format!("{error}: {said}{}", String::from_utf8_lossy(&output.stderr)))?;
    let results = report["results"].as_array().ok_or("there are no results")?;
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    // A check of one notification has the notification's number, and there is one more behind the proxy.
    let name = |check: &Value| match text(&check["name"]) {
        name if name.starts_with(OF_ONE) => OF_ONE.to_owned(),
        name => name,
    };
    let verdict =
        |check: &Value| (format!("{}/{}", text(&check["category"]), name(check)), text(&check["status"]));
    Ok(results.iter().map(verdict).collect())
}
