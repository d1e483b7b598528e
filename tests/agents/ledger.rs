//! Writes the results of a run to the `.seen(…)` calls in the program's table of agents, which `setup`, `doctor` and the README
//! show.
//!
//! The rest of the table is written by hand, so we edit the source text in place and run `rustfmt` on the file.

use std::{env, fmt::Write as _, fs, path::Path, process::Command};

use anyhow::{Context as _, Result, ensure};

use acp_skills::agents::{self, Means, Seen};

use crate::{
    catalogue::Spec,
    verdict::{Row, WANTS_LOGIN},
};

/// Writes the results of a run without problems. If the table has no row for the agent, prints a line and writes nothing.
///
/// # Errors
/// Returns an error if the table cannot be read, edited or written, or if `rustfmt` fails.
pub(crate) fn write(spec: &Spec, row: &Row) -> Result<()> {
    let file =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../acp-skills-intercept/src/known_agents/table.rs");
    let text = fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?;
    let Some(agent) = agents::all().iter().find(|agent| agent.id == spec.id) else {
        println!("cannot write the results of {}: the program's table has no row for it", spec.id);
        return Ok(());
    };
    let call = call(spec, row, agent.seen.as_ref());
    let text = with_call(&text, &spec.id, &call)
        .with_context(|| format!("cannot find the row of {} in {}", spec.id, file.display()))?;
    fs::write(&file, text).with_context(|| format!("cannot write {}", file.display()))?;
    let status = Command::new("rustfmt").args(["--edition", "2024"]).arg(&file).status();
    let status = status.context("cannot run rustfmt")?;
    ensure!(status.success(), "rustfmt {} failed: {status}", file.display());
    Ok(())
}

/// Returns the `.seen(…)` call for the results of this run. Facts that this run could not observe are taken from `before`.
fn call(spec: &Spec, row: &Row, before: Option<&Seen>) -> String {
    let program = before.map_or_else(|| spec.package(), |before| before.program.to_owned());
    let version = short(&row.version);
    let mut call = format!("        .seen(Seen::of({program:?}).version({version:?})");
    if let Some(says) = row.says.as_deref().map(short).filter(|says| *says != version) {
        let _ = write!(call, ".says({says:?})");
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

/// Replaces the `.seen(…)` call in the row of the agent `id`, or inserts it. Returns `None` if the row cannot be found.
fn with_call(text: &str, id: &str, call: &str) -> Option<String> {
    let start = text.find(&format!("    Agent::new(\"{id}\","))?;
    let row = &text[start..];
    let end = [row[1..].find("\n    Agent::new(").map(|at| at + 1), row.find("\n];")]
        .into_iter()
        .flatten()
        .min()?;
    let row = row[..end].strip_suffix(',')?;
    let (from, to) = if let Some(at) = row.find("\n        .seen(") {
        (at, at + closing(&row[at..])? + 1)
    } else {
        let at =
            row.find("\n        .notes(").or_else(|| row.find("\n        .quirks(")).unwrap_or(row.len());
        (at, at)
    };
    Some(format!("{}{}\n{call}{}{}", &text[..start], &row[..from], &row[to..], &text[start + row.len()..]))
}

/// Returns the position of the parenthesis that closes the first one in `text`.
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

/// Shortens a version to `major.minor`, or to three parts if it starts with `0.0`. A leading `v` and any suffix are dropped.
fn short(version: &str) -> String {
    let version = version.trim_start_matches('v');
    let number = version.split([' ', '-', '+']).next().unwrap_or_default();
    let parts: Vec<_> = number.split('.').collect();
    let count = if parts.starts_with(&["0", "0"]) { 3 } else { 2 };
    parts.iter().take(count).copied().collect::<Vec<_>>().join(".")
}
