//! Runs third-party clients against an agent, directly and through the proxy, and requires the same result both times. The
//! clients are `acplint`, which checks that an agent conforms to the protocol, and `yopo`, which sends a single prompt.
//!
//!     AGENTS_CLIENTS=1 AGENTS_HOME=… cargo test -p acp-skills-proxy --test agents -- acplint

use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

use crate::{catalogue::Spec, conversation::Fixture};

/// The names of the clients.
pub(crate) const CLIENTS: [&str; 2] = ["acplint", "yopo"];

/// The checks of acplint that depend on the session updates it receives: that it receives any, and that they're valid.
const UPDATE_CHECKS: [&str; 3] = [
    "streaming/session_update_received",
    "streaming/session_update_schema_valid",
    "schema_validation/schema_all_notifications_valid",
];

/// The prefix of acplint's checks of a single notification. The number of the notification follows it.
const ONE_NOTIFICATION: &str = "schema_notification_";

/// The timeout of acplint for an answer, in seconds.
const TIMEOUT: &str = "5";

/// Returns the path of a client's executable.
fn program(client: &str, home: &Path) -> PathBuf {
    match client {
        "acplint" => home.join("acplint/bin/acplint"),
        _ => home.join("cargo/bin").join(client),
    }
}

/// Returns true if the client is installed and gives comparable results for this agent.
///
/// `yopo` is excluded for agents without a scripted model: they repeat the prompt in their answer, and the prompt is longer
/// behind the proxy.
pub(crate) fn fits(client: &str, spec: &Spec, home: &Path) -> bool {
    program(client, home).exists() && (client != "yopo" || spec.model)
}

/// Runs a client against an agent, directly and through the proxy. Returns a summary of the result.
///
/// # Errors
/// Returns an error that lists the differences if the two results differ.
pub(crate) fn compare(client: &str, spec: &Spec, home: &Path) -> Result<String> {
    let mut direct = run(client, &Fixture::new(spec, home, false), home)?;
    let mut proxied = run(client, &Fixture::new(spec, home, true), home)?;
    // If the agent doesn't send any updates, the client will only see ours, which is the list of commands.
    let has_updates = |results: &BTreeMap<String, String>| {
        results.get(UPDATE_CHECKS[0]).map(String::as_str) == Some("PASS")
    };
    if has_updates(&proxied) && !has_updates(&direct) {
        direct.retain(|check, _| !UPDATE_CHECKS.contains(&check.as_str()));
        proxied.retain(|check, status| status != "PASS" || !UPDATE_CHECKS.contains(&check.as_str()));
    }
    let differs: Vec<_> = direct
        .iter()
        .filter(|(check, status)| proxied.get(*check) != Some(status))
        .map(|(check, status)| format!("{check}: {:?}, directly {status:?}", proxied.get(check)))
        .chain(proxied.keys().filter(|check| !direct.contains_key(*check)).cloned())
        .collect();
    if !differs.is_empty() {
        bail!(differs.join("\n"));
    }
    let passed = direct.values().filter(|status| *status == "PASS").count();
    Ok(if client == "acplint" {
        format!("{passed} of {} checks", direct.len())
    } else {
        format!("{direct:?}")
    })
}

/// Runs a client once, and returns the status of each check by its name, or the answer and the exit code of `yopo`.
fn run(client: &str, fixture: &Fixture<'_>, home: &Path) -> Result<BTreeMap<String, String>> {
    let (words, environment) = fixture.command(&[], &[]);
    let quoted = words.iter().map(|word| format!("'{}'", word.to_string_lossy().replace('\'', r"'\''")));
    let script = fixture.home().join("agent");
    let text = format!("#!/bin/sh\nexec {}\n", quoted.collect::<Vec<_>>().join(" "));
    fs::write(&script, text)
        .and_then(|()| fs::set_permissions(&script, fs::Permissions::from_mode(0o755)))
        .with_context(|| format!("cannot write {}", script.display()))?;
    let mut command = Command::new(program(client, home));
    command.env_clear().envs(environment).current_dir(fixture.project()).stdin(Stdio::null());
    if client == "acplint" {
        command.arg("--agent").arg(&script).arg("--cwd").arg(fixture.project());
        command.args(["--timeout", TIMEOUT, "--output", "json"]);
    } else {
        command.arg("Hello there").arg(&script);
    }
    let output = command.output().with_context(|| format!("cannot run {client}"))?;
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    if client != "acplint" {
        let code = format!("{:?}", output.status.code());
        return Ok([("answer".to_owned(), stdout), ("exit code".to_owned(), code)].into());
    }
    let report: Value = serde_json::from_str(&stdout).with_context(|| {
        format!("{client} printed no report: {stdout}{}", String::from_utf8_lossy(&output.stderr))
    })?;
    let results =
        report["results"].as_array().with_context(|| format!("the report of {client} has no results"))?;
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    // The number in this name is off by one when using the proxy, because we send an extra notification. Remove the number, so
    // that the names can be compared.
    let name = |check: &Value| match text(&check["name"]) {
        name if name.starts_with(ONE_NOTIFICATION) => ONE_NOTIFICATION.to_owned(),
        name => name,
    };
    let verdict =
        |check: &Value| (format!("{}/{}", text(&check["category"]), name(check)), text(&check["status"]));
    Ok(results.iter().map(verdict).collect())
}
