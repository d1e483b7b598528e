//! What is kept of a run: `seen` in the program's table of agents, which `setup` and `doctor` read and the README shows.
//!
//! The table is written by people but for that, so its text is changed and not written anew: one line of an agent that is in it.

use std::{env, fs, path::Path};

use serde_json::{Value, json};

use crate::{
    catalogue::Spec,
    verdict::{Row, WANTS_LOGIN},
};

/// Writes what was seen of an agent that came out clean. One that the table does not have is passed over, aloud.
pub(crate) fn write(spec: &Spec, row: &Row) -> Result<(), String> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../acp-skills/src/agents/agents.json");
    let text = fs::read_to_string(&file).map_err(|error| error.to_string())?;
    let table: Value = serde_json::from_str(&text).map_err(|error| error.to_string())?;
    let entries = table.as_array().ok_or("the table is no list")?;
    let Some(entry) = entries.iter().find(|entry| entry["id"] == spec.id) else {
        println!("{} is not in the program's table, so nothing is kept of it", spec.id);
        return Ok(());
    };
    let seen = seen(spec, row, &entry["seen"]);
    let text = with_seen(&text, &spec.id, &seen).ok_or("the table is not written as it should be")?;
    fs::write(file, text).map_err(|error| error.to_string())
}

/// What was seen now. What only a person can have seen stays as it was.
fn seen(spec: &Spec, row: &Row, before: &Value) -> String {
    let mut members: Vec<(&str, Value)> = Vec::new();
    let name = before["as"].as_str().map_or_else(|| spec.package(), str::to_owned);
    members.push(("as", name.into()));
    let version = short(&row.version);
    if let Some(says) = row.says.as_deref().map(short).filter(|says| *says != version) {
        members.push(("says", says.into()));
    }
    members.push(("version", version.into()));
    if row.model == WANTS_LOGIN {
        members.push(("login", true.into()));
    } else {
        let server = match row.server.as_str() {
            "http" => json!("HTTP"),
            "acp" => json!("ACP"),
            "stdio" => json!("stdio"),
            _ => before["server"].clone(),
        };
        let kept = |now: &str, key: &str| if now == "-" { before[key].clone() } else { now.into() };
        members.push(("server", server));
        members.push(("catalog", kept(&row.catalog, "catalog")));
        members.push(("skills", kept(row.model, "skills")));
    }
    let members = members.iter().filter(|(_, value)| !value.is_null());
    let members: Vec<_> = members.map(|(key, value)| format!("\"{key}\": {value}")).collect();
    format!("    \"seen\": {{ {} }}", members.join(", "))
}

/// A version without its last part, unless nothing would be left but zeros, and without a letter in front.
fn short(version: &str) -> String {
    let version = version.trim_start_matches('v');
    let number = version.split([' ', '-', '+']).next().unwrap_or_default();
    let parts: Vec<_> = number.split('.').collect();
    let count = if parts.starts_with(&["0", "0"]) { 3 } else { 2 };
    parts.iter().take(count).copied().collect::<Vec<_>>().join(".")
}

/// The text of the table with this line in the entry of an agent.
fn with_seen(text: &str, id: &str, seen: &str) -> Option<String> {
    let start = text.find(&format!("    \"id\": \"{id}\","))?;
    let end = start + text[start..].find("\n  }")?;
    let entry = &text[start..end];
    let mut lines: Vec<String> = entry.lines().map(str::to_owned).collect();
    let is = |line: &String, key: &str| line.starts_with(&format!("    \"{key}\":"));
    if let Some(at) = lines.iter().position(|line| is(line, "seen")) {
        let comma = if lines[at].ends_with(',') { "," } else { "" };
        lines[at] = format!("{seen}{comma}");
    } else if let Some(at) = lines.iter().position(|line| is(line, "notes")) {
        lines.insert(at, format!("{seen},"));
    } else {
        lines.last_mut()?.push(',');
        lines.push(seen.to_owned());
    }
    Some(format!("{}{}{}", &text[..start], lines.join("\n"), &text[end..]))
}
