//! The ledger of a run: the lines `.seen(…)` in the program's table of agents, which `setup`, `doctor` and the README show.
//!
//! Apart from these lines, the table is written by hand. So its text is edited, and formatted again.

use std::{env, fs, path::Path, process::Command};

use acp_skills::agents::{self, Means, Seen};

use crate::{
    catalogue::Spec,
    verdict::{Row, WANTS_LOGIN},
};

/// Writes the results of an agent whose run was clean. Prints a line if the table does not have the agent.
pub(crate) fn write(spec: &Spec, row: &Row) -> Result<(), String> {
    let file =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../acp-skills-intercept/src/known_agents/table.rs");
    let text = fs::read_to_string(&file).map_err(|error| error.to_string())?;
    let Some(agent) = agents::all().iter().find(|agent| agent.id == spec.id) else {
        println!("{} is not in the program's table, so its results are not written", spec.id);
        return Ok(());
    };
    let call = call(spec, row, agent.seen.as_ref());
    let text = with_call(&text, &spec.id, &call).ok_or("the table does not have the expected form")?;
    fs::write(&file, text).map_err(|error| error.to_string())?;
    match Command::new("rustfmt").args(["--edition", "2024"]).arg(&file).status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("rustfmt {}: {status}", file.display())),
        Err(error) => Err(format!("rustfmt: {error}")),
    }
}

/// Returns the call `.seen(…)` for the results of this run. What only a person can have seen stays as it was `before`.
fn call(spec: &Spec, row: &Row, before: Option<&Seen>) -> String {
    let program = before.map_or_else(|| spec.package(), |before| before.program.to_owned());
    let version = short(&row.version);
    let mut call = format!("        .seen(Seen::of({program:?}).version({version:?})");
    if let Some(says) = row.says.as_deref().map(short).filter(|says| *says != version) {
        call += &format!(".says({says:?})");
    }
    if row.model == WANTS_LOGIN {
        return call + ".login())";
    }
    let server = match row.server.as_str() {
        "http" => Some("HTTP"),
        "acp" => Some("ACP"),
        "stdio" => Some("stdio"),
        _ => before.and_then(|before| before.server),
    };
    let catalog = match row.catalog.as_str() {
        "-" => before.and_then(|before| before.catalog),
        place => Some(place),
    };
    let means = match row.model {
        "-" => before.and_then(|before| before.skills).map(|means| match means {
            Means::Files => "files",
            _ => "tools",
        }),
        means => Some(means),
    };
    call += &server.map(|server| format!(".server({server:?})")).unwrap_or_default();
    call += &catalog.map(|place| format!(".catalog({place:?})")).unwrap_or_default();
    call += &means.map(|means| format!(".{means}()")).unwrap_or_default();
    call + ")"
}

/// Returns the table's text with this `.seen(…)` in the row of an agent.
fn with_call(text: &str, id: &str, call: &str) -> Option<String> {
    let start = text.find(&format!("    Agent::new(\"{id}\","))?;
    let row = &text[start..];
    let end = [row[1..].find("\n    Agent::new(").map(|at| at + 1), row.find("\n];")]
        .into_iter()
        .flatten()
        .min()?;
    let row = row[..end].strip_suffix(',')?;
    let (from, to) = match row.find("\n        .seen(") {
        Some(at) => (at, at + closing(&row[at..])? + 1),
        None => {
            let at =
                row.find("\n        .notes(").or_else(|| row.find("\n        .quirks(")).unwrap_or(row.len());
            (at, at)
        }
    };
    Some(format!("{}{}\n{call}{}{}", &text[..start], &row[..from], &row[to..], &text[start + row.len()..]))
}

/// Returns the place of the parenthesis that closes the first one in `text`.
fn closing(text: &str) -> Option<usize> {
    let mut depth = 0;
    text.char_indices().find_map(|(at, c)| {
        match c {
            '(' => depth += 1,
            ')' => {
                depth -= 1;
                if depth == 0 {
                    return Some(at);
                }
            }
            _ => {}
        }
        None
    })
}

/// Returns a version without its last part, unless only zeros would remain, and without a letter in front.
fn short(version: &str) -> String {
    let version = version.trim_start_matches('v');
    let number = version.split([' ', '-', '+']).next().unwrap_or_default();
    let parts: Vec<_> = number.split('.').collect();
    let count = if parts.starts_with(&["0", "0"]) { 3 } else { 2 };
    parts.iter().take(count).copied().collect::<Vec<_>>().join(".")
}
