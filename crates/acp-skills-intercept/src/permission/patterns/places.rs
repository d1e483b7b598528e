//! Finds the path in an input. A pattern for paths can decide about a call only if its input contains exactly one path.

use std::borrow::Cow;

use acp_skills_wire::Node;

/// The maximum depth of an input that is searched. No tool takes a deeper one, and the cost is quadratic in the depth.
const MAX_DEPTH: usize = 16;

/// The names of the members from which tools take a path.
const PATHS: [&str; 4] = ["file_path", "path", "notebook_path", "abs_path"];

/// Endings of names of members that contain a location.
const PLACES: [&str; 13] = [
    "path",
    "paths",
    "file",
    "files",
    "filename",
    "uri",
    "cwd",
    "dir",
    "directory",
    "folder",
    "root",
    "target",
    "destination",
];

/// Complete names of members that contain a location. Longer names with these endings can mean something else (`new_source`).
const SHORT_PLACES: [&str; 6] = ["dest", "dst", "from", "source", "src", "to"];

/// Endings of names of members that contain globs or expressions, which select files or lines.
const GLOBS: [&str; 6] = ["glob", "globs", "include", "includes", "pattern", "patterns"];

/// Returns the path in an input. Returns `None` if there are several, because we can't know which of them the tool uses.
pub(in crate::permission) fn path(input: Node<'_>) -> Option<String> {
    let mut named = 0;
    count_places(input, MAX_DEPTH, &mut named);
    if named != 1 {
        return None;
    }
    PATHS.iter().find_map(|key| input.str(key)).map(Cow::into_owned)
}

/// Returns true if an input has at least one path.
pub(super) fn has_path(input: Node<'_>) -> bool {
    PATHS.iter().any(|key| input.text(key).is_some())
}

/// Counts the members that contain a location. A part below the maximum depth counts as two.
fn count_places(input: Node<'_>, depth: usize, named: &mut usize) {
    if depth == 0 {
        *named += 2;
        return;
    }
    for (key, value) in input.members() {
        if value.is_string() || value.is_array() {
            let name: String =
                key.as_text().unwrap_or_default().chars().filter(|c| c.is_alphanumeric()).collect();
            let name = name.to_lowercase();
            let name = name.trim_end_matches(|c: char| c.is_ascii_digit());
            let is_place = PLACES.iter().any(|end| name.ends_with(end)) || SHORT_PLACES.contains(&name);
            if is_place || (GLOBS.iter().any(|end| name.ends_with(end)) && leads_elsewhere(value)) {
                *named += 1;
                continue;
            }
        }
        if value.is_object() || value.is_array() {
            count_places(value, depth - 1, named);
        }
    }
    let nested = input.elements().filter(|element| element.is_object() || element.is_array());
    nested.for_each(|element| count_places(element, depth - 1, named));
}

/// Returns true if a glob, or one of several, may match files outside of its directory.
fn leads_elsewhere(value: Node<'_>) -> bool {
    let texts = value.elements().chain(value.is_string().then_some(value));
    texts.into_iter().any(|text| text.as_text().is_none_or(|text| leads(&text)))
}

fn leads(glob: &str) -> bool {
    // Braces expand to each part between commas. A part may be empty (`{,x}/etc`) or one half of `..`.
    let mut parts = glob.split(['{', ',']);
    let has_empty =
        glob.contains("}/") && ["{,", ",,", ",}", "{}"].iter().any(|braces| glob.contains(braces));
    let has_dot = [".{.", "{.,", ",.,", ",.}"].iter().any(|braces| glob.contains(braces));
    // A single `\\` at the start probably belongs to a regular expression.
    let is_absolute =
        |part: &str| part.starts_with(['/', '~']) || part.starts_with(r"\\") || part.get(1..2) == Some(":");
    parts.any(is_absolute) || has_empty || has_dot || glob.contains("..")
}
