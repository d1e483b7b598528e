//! Other people's clients in front of an agent, bare and behind the proxy: `acplint`, which judges agents by the protocol, and
//! `yopo`, which asks one question. Both have to see the same.
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

/// How long acplint waits for an answer, in seconds.
const PATIENCE: &str = "5";

/// Where a client is.
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

/// Has a client look at an agent, bare and proxied. Returns what it said, or what differs.
pub(crate) fn compare(client: &str, spec: &Spec, home: &Path) -> Result<String, String> {
    let [bare, proxied] = [false, true].map(|proxied| look(client, &Place::new(spec, home, proxied), home));
    let (bare, proxied) = (bare?, proxied?);
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

/// What a client says of the agent of a place.
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
    let verdict =
        |it: &Value| (format!("{}/{}", text(&it["category"]), text(&it["name"])), text(&it["status"]));
    Ok(results.iter().map(verdict).collect())
}
