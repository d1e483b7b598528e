//! The places that an input names: a pattern for paths says something of a call that names one, and of no other.

use std::borrow::Cow;

use acp_skills_wire::Node;

/// How deep an input is looked into. No tool takes one that is deeper, and a look costs the square of the depth.
const MAX_DEPTH: usize = 16;

/// The names that tools have for the path that they take.
const PATHS: [&str; 4] = ["file_path", "path", "notebook_path", "abs_path"];

/// How names of members end that say where something is.
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

/// Names that say so as a whole; longer ones may end in these words and mean something else (`new_source`).
const SHORT_PLACES: [&str; 6] = ["dest", "dst", "from", "source", "src", "to"];

/// How names of members end that hold globs, or expressions: which files below a place, or which of their lines.
const GLOBS: [&str; 6] = ["glob", "globs", "include", "includes", "pattern", "patterns"];

/// The path that an input names; `None` where it names several, because nobody can say which of them the tool takes.
pub(in crate::permission) fn path(input: Node<'_>) -> Option<String> {
    let mut named = 0;
    count_places(input, MAX_DEPTH, &mut named);
    if named != 1 {
        return None;
    }
    PATHS.iter().find_map(|key| input.str(key)).map(Cow::into_owned)
}

/// Whether an input has a path that its tool takes, or more than one.
pub(super) fn has_path(input: Node<'_>) -> bool {
    PATHS.iter().any(|key| input.text(key).is_some())
}

/// Counts the members that name a place. What is too deep may be any number of them.
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

/// Whether a glob, or one of several, may leave the place that it begins in.
fn leads_elsewhere(value: Node<'_>) -> bool {
    let texts = value.elements().chain(value.is_string().then_some(value));
    texts.into_iter().any(|text| text.as_text().is_none_or(|text| leads(&text)))
}

fn leads(glob: &str) -> bool {
    // What braces stand for: one of the parts between commas, of which some are nothing (`{,x}/etc`) or half of `..`.
    let mut parts = glob.split(['{', ',']);
    let has_empty = glob.contains("}/") && ["{,", ",,", ",}", "{}"].iter().any(|it| glob.contains(it));
    let has_dot = [".{.", "{.,", ",.,", ",.}"].iter().any(|it| glob.contains(it));
    // A single `\\` in front is more likely that of an expression.
    let is_absolute =
        |part: &str| part.starts_with(['/', '~']) || part.starts_with(r"\\") || part.get(1..2) == Some(":");
    parts.any(is_absolute) || has_empty || has_dot || glob.contains("..")
}
