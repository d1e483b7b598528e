//! Writes the problems as [SARIF 2.1.0], a format that code hosts and editors can read.
//!
//! Paths below the working directory are relative, because code hosts expect paths relative to the repository. Control characters in
//! messages are escaped.
//!
//! [SARIF 2.1.0]: https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html

use std::{
    collections::HashSet,
    ffi::OsStr,
    path::{Component, Path, Prefix},
};

use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use serde::Serialize;
use skills_core::{
    Severity,
    scan::{Risk, Rules},
    text::shown,
};
use skills_sources::disk::patient;

use super::{Checked, problem::Problem};
use crate::{error::UsageError, log};

const SCHEMA: &str =
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json";

/// The characters to escape in a segment of a path.
const SEGMENT: &AsciiSet = &CONTROLS
    .add(b' ')
    .add(b'"')
    .add(b'#')
    .add(b'%')
    .add(b'<')
    .add(b'>')
    .add(b'?')
    .add(b'[')
    .add(b'\\')
    .add(b']')
    .add(b'^')
    .add(b'`')
    .add(b'{')
    .add(b'|')
    .add(b'}');

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Log {
    #[serde(rename = "$schema")]
    schema: &'static str,
    version: &'static str,
    runs: [Run; 1],
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Run {
    tool: Tool,
    column_kind: &'static str,
    results: Vec<Outcome>,
}

#[derive(Serialize)]
struct Tool {
    driver: Driver,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Driver {
    name: &'static str,
    version: &'static str,
    information_uri: &'static str,
    rules: Vec<Descriptor>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Descriptor {
    id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    short_description: Option<Message>,
    #[serde(skip_serializing_if = "Option::is_none")]
    properties: Option<Properties>,
}

/// Properties for GitHub. The severity is a number from 0 to 10 in a string.
#[derive(Serialize)]
struct Properties {
    #[serde(rename = "security-severity")]
    security_severity: &'static str,
    tags: [&'static str; 1],
}

#[derive(Serialize)]
struct Message {
    text: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Outcome {
    rule_id: String,
    rule_index: usize,
    level: &'static str,
    message: Message,
    locations: [Location; 1],
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Location {
    physical_location: PhysicalLocation,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct PhysicalLocation {
    artifact_location: ArtifactLocation,
    #[serde(skip_serializing_if = "Option::is_none")]
    region: Option<Region>,
}

#[derive(Serialize)]
struct ArtifactLocation {
    uri: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Region {
    start_line: u32,
    start_column: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    snippet: Option<Message>,
}

/// Writes the problems of the skills to `file`.
///
/// # Errors
/// Returns an error if the file can't be written.
pub(super) fn write(file: &Path, checked: &[Checked], rules: Option<&Rules>) -> anyhow::Result<()> {
    let here = std::env::current_dir().ok();
    let text = serde_json::to_string_pretty(&log(checked, rules, here.as_deref()))? + "\n";
    let cannot = |error| UsageError::at("cannot write", file, error);
    Ok(log::with_warnings_on_stderr(|| patient::write(file, text)).map_err(cannot)?)
}

fn log(checked: &[Checked], rules: Option<&Rules>, here: Option<&Path>) -> Log {
    let mut descriptors: Vec<Descriptor> = Vec::new();
    // List all of the rules that were used for the scan, even if there are no results for them.
    for (code, risk) in rules.into_iter().flat_map(Rules::codes) {
        let reason = rules.and_then(|rules| rules.reason(code));
        descriptors.push(Descriptor {
            id: code.to_owned(),
            short_description: reason.map(|reason| Message { text: reason.to_owned() }),
            properties: Some(Properties { security_severity: severity(risk), tags: ["security"] }),
        });
    }
    let mut results = Vec::new();
    // If there is a skill within another skill, it's scanned twice, but we only want to report it once.
    let mut seen = HashSet::new();
    for skill in checked {
        for problem in &skill.problems {
            let uri = uri(&problem.file(&skill.path), here);
            let key = (uri.clone(), problem.line, problem.column, problem.code.clone());
            if problem.found.is_some() && !seen.insert(key) {
                continue;
            }
            let known = descriptors.iter().position(|descriptor| descriptor.id == problem.code);
            let index = known.unwrap_or_else(|| {
                let id = problem.code.clone();
                descriptors.push(Descriptor { id, short_description: None, properties: None });
                descriptors.len() - 1
            });
            results.push(outcome(problem, index, uri));
        }
    }
    let driver = Driver {
        name: env!("CARGO_PKG_NAME"),
        version: env!("CARGO_PKG_VERSION"),
        information_uri: env!("CARGO_PKG_REPOSITORY"),
        rules: descriptors,
    };
    // Note that we count columns in characters, not in bytes.
    let run = Run { tool: Tool { driver }, column_kind: "unicodeCodePoints", results };
    Log { schema: SCHEMA, version: "2.1.0", runs: [run] }
}

fn outcome(problem: &Problem, rule_index: usize, uri: String) -> Outcome {
    let level = match (&problem.found, problem.severity) {
        (Some(found), _) if found.risk == Risk::Low => "note",
        (_, Severity::Error) => "error",
        _ => "warning",
    };
    let text = match &problem.help {
        Some(help) => format!("{}. To fix: {help}.", problem.message),
        None => format!("{}.", problem.message),
    };
    let snippet = problem.found.as_ref().map(|found| Message { text: found.excerpt.clone() });
    let region = (problem.line > 0).then(|| Region {
        start_line: problem.line,
        start_column: problem.column.max(1),
        snippet,
    });
    let artifact_location = ArtifactLocation { uri };
    Outcome {
        rule_id: problem.code.clone(),
        rule_index,
        level,
        message: Message { text: shown(&text).into_owned() },
        locations: [Location { physical_location: PhysicalLocation { artifact_location, region } }],
    }
}

fn severity(risk: Risk) -> &'static str {
    match risk {
        Risk::High => "8.0",
        Risk::Medium => "5.0",
        Risk::Low => "2.0",
    }
}

/// Converts `path` to a URI, which is relative if the path is below `here`.
fn uri(path: &Path, here: Option<&Path>) -> String {
    let below =
        here.and_then(|here| path.strip_prefix(here).ok()).filter(|below| !below.as_os_str().is_empty());
    let mut uri = if below.is_some() { String::new() } else { "file://".to_owned() };
    let mut push = |segment: &OsStr| {
        if below.is_none() || !uri.is_empty() {
            uri.push('/');
        }
        uri.extend(utf8_percent_encode(&segment.to_string_lossy(), SEGMENT));
    };
    for part in below.unwrap_or(path).components() {
        match part {
            Component::RootDir => {}
            Component::Prefix(prefix) => match prefix.kind() {
                Prefix::Disk(drive) | Prefix::VerbatimDisk(drive) => {
                    push(OsStr::new(&format!("{}:", char::from(drive))));
                }
                Prefix::UNC(server, share) | Prefix::VerbatimUNC(server, share) => {
                    push(server);
                    push(share);
                }
                Prefix::Verbatim(name) | Prefix::DeviceNS(name) => push(name),
            },
            part => push(part.as_os_str()),
        }
    }
    // If this is a network share, the name of the server is used as the host.
    match uri.strip_prefix("file:///") {
        Some(rest) if is_shared(path) => format!("file://{rest}"),
        _ => uri,
    }
}

/// Returns true if a path is on a network share (Windows).
fn is_shared(path: &Path) -> bool {
    matches!(path.components().next(), Some(Component::Prefix(prefix))
        if matches!(prefix.kind(), Prefix::UNC(..) | Prefix::VerbatimUNC(..)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_as_uris() {
        let cases: &[(&str, Option<&str>, &str)] = if cfg!(windows) {
            &[
                (r"C:\a\b c\SKILL.md", Some(r"c:\a"), "b%20c/SKILL.md"),
                (r"C:\a/é%\x#y", Some(r"C:/a"), "%C3%A9%25/x%23y"),
                (r"C:\a\b", Some(r"D:\a"), "file:///C:/a/b"),
                (r"C:\", None, "file:///C:"),
                (r"\\?\C:\a\b", None, "file:///C:/a/b"),
                (r"\\server\share\a b", None, "file://server/share/a%20b"),
                (r"\\?\UNC\server\share\a", Some(r"C:\"), "file://server/share/a"),
            ]
        } else {
            &[
                ("/a/b c/SKILL.md", Some("/a"), "b%20c/SKILL.md"),
                ("/a/é%/x#y", Some("/a"), "%C3%A9%25/x%23y"),
                ("/a/b", Some("/c"), "file:///a/b"),
                ("/a", Some("/a"), "file:///a"),
                ("/a/x\u{1b}:y", None, "file:///a/x%1B:y"),
            ]
        };
        for &(path, here, expected) in cases {
            assert_eq!(uri(Path::new(path), here.map(Path::new)), expected);
        }
    }
}
