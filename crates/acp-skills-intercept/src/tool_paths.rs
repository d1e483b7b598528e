//! The paths in the input of a tool call: the one list of member names that hold them, and the one function that finds them.
//!
//! Each agent names the members of an input differently (`file_path`, `filePath`, `abs_path`). Permission rules need all of
//! them, because an input that names a second place may change a file that the rule doesn't cover. Use
//! [`named_in`] to collect every place that an input names.

use std::borrow::Cow;

use acp_skills_wire::Node;

/// The maximum depth at which an input is searched. Known tools take flatter inputs, and the cost is quadratic in the depth.
const MAX_DEPTH: usize = 16;

/// The maximum length of a path that is compared with globs, in bytes. No system has longer ones, and comparing them takes long.
pub(crate) const MAX_PATH_BYTES: usize = 1024;

/// The members from which known tools take their path.
const TARGETS: [&str; 4] = ["file_path", "path", "notebook_path", "abs_path"];

/// Member names that hold a path if they end in the given word or its plural. Names are compared in lowercase, without punctuation
/// and trailing digits.
const SUFFIXES: [(&str, Role); 12] = [
    ("path", Role::File),
    ("pathname", Role::File),
    ("file", Role::File),
    ("filename", Role::File),
    ("target", Role::File),
    ("destination", Role::File),
    ("uri", Role::Base),
    ("cwd", Role::Base),
    ("dir", Role::Base),
    ("directory", Role::Base),
    ("folder", Role::Base),
    ("root", Role::Base),
];

/// Member names that hold a path only if they are equal to the given word. Longer names that end in one of these words can
/// mean something else (`new_source`).
const WORDS: [&str; 6] = ["dest", "dst", "from", "source", "src", "to"];

/// Suffixes of member names that hold a glob or a regular expression.
const GLOBS: [&str; 6] = ["glob", "globs", "include", "includes", "pattern", "patterns"];

/// The member that holds an object with a key for each changed file (Codex).
const CHANGES: &str = "changes";

/// The role of a place in a tool call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// A file or directory that the tool reads or changes.
    File,
    /// A directory, URI or glob that tells the tool where to work. It doesn't say which file is read or changed.
    Base,
}

/// A place that the input of a tool call names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The path as written in the input. It is not resolved, and it can be empty.
    ///
    /// `None` means that the place is unknown: the text is not valid, a glob can leave the directory in which it starts, or
    /// the input is nested too deeply. Callers should treat an unknown place as forbidden.
    pub path: Option<String>,
    /// The role of the place.
    pub role: Role,
}

/// Returns every place that the JSON text `input` names, in the order in which they appear.
///
/// The result is empty if the input names no place or is not valid JSON.
///
/// ```
/// use acp_skills_intercept::tool_paths::named_in;
///
/// let places = named_in(r#"{ "edits": [{ "filePath": "src/main.rs", "old_string": "/" }], "cwd": "/project" }"#);
/// let paths: Vec<_> = places.iter().filter_map(|place| place.path.as_deref()).collect();
/// assert_eq!(paths, ["src/main.rs", "/project"]);
/// ```
pub fn named_in(input: &str) -> Vec<Place> {
    let mut places = Vec::new();
    if let Some(input) = Node::parse(input.as_bytes()) {
        collect(input, MAX_DEPTH, &mut places);
    }
    places
}

/// Returns the path that an input names, or `None` if it names several places, because then it isn't known which of them the
/// tool uses.
pub(crate) fn only_path(input: Node<'_>) -> Option<String> {
    let mut places = Vec::new();
    collect(input, MAX_DEPTH, &mut places);
    if places.len() != 1 {
        return None;
    }
    TARGETS.iter().find_map(|key| input.str(key)).map(Cow::into_owned)
}

/// Returns true if an input has at least one of the members from which known tools take their path.
pub(crate) fn has_path(input: Node<'_>) -> bool {
    TARGETS.iter().any(|key| input.text(key).is_some())
}

/// Returns true if an input names at least one place, known or not.
pub(crate) fn names_place(input: Node<'_>) -> bool {
    let mut places = Vec::new();
    collect(input, MAX_DEPTH, &mut places);
    !places.is_empty()
}

/// Returns true if an input names a file, or a place that is not known.
pub(crate) fn names_file(input: Node<'_>) -> bool {
    let mut places = Vec::new();
    collect(input, MAX_DEPTH, &mut places);
    places.iter().any(|place| place.role == Role::File || place.path.is_none())
}

/// Adds the places that `input` names to `places`.
fn collect(input: Node<'_>, depth: usize, places: &mut Vec<Place>) {
    if depth == 0 {
        // We add two of these, so that we never treat a path as the only one.
        places.extend([UNKNOWN, UNKNOWN]);
        return;
    }
    for (key, value) in input.members() {
        let name = normalized(&key.as_text().unwrap_or_default());
        let is_glob = GLOBS.iter().any(|suffix| name.ends_with(suffix));
        if let Some(role) = role(&name).filter(|_| value.is_string() || value.is_array()) {
            collect_values(value, role, depth, places);
        } else if is_glob && (value.is_string() || value.is_array()) && leads_elsewhere(value)
            || is_file_url(value)
        {
            places.push(UNKNOWN);
        } else {
            if name == CHANGES {
                let files = value.members().map(|(file, _)| place(file, Role::File));
                places.extend(files);
            }
            collect_nested(value, depth, places);
        }
    }
    for element in input.elements() {
        collect_nested(element, depth, places);
    }
}

/// Adds the string `value`, or the strings in it. A value without a string still counts as one place.
fn collect_values(value: Node<'_>, role: Role, depth: usize, places: &mut Vec<Place>) {
    let before = places.len();
    if value.is_string() {
        places.push(place(value, role));
    }
    for element in value.elements() {
        if element.is_string() {
            places.push(place(element, role));
        } else {
            collect_nested(element, depth, places);
        }
    }
    if places.len() == before {
        places.push(Place { path: Some(String::new()), role });
    }
}

fn collect_nested(value: Node<'_>, depth: usize, places: &mut Vec<Place>) {
    if value.is_object() || value.is_array() {
        collect(value, depth - 1, places);
    }
}

const UNKNOWN: Place = Place { path: None, role: Role::Base };

fn place(text: Node<'_>, role: Role) -> Place {
    Place { path: text.as_str().map(Cow::into_owned), role }
}

/// Returns a member name in lowercase, without punctuation and trailing digits.
fn normalized(name: &str) -> String {
    let name: String = name.chars().filter(|c| c.is_alphanumeric()).collect();
    name.to_lowercase().trim_end_matches(|c: char| c.is_ascii_digit()).to_owned()
}

/// Returns the role of the place that a member with this normalized name holds.
fn role(name: &str) -> Option<Role> {
    let one = name.strip_suffix('s').unwrap_or(name);
    let suffix = SUFFIXES.iter().find(|(suffix, _)| name.ends_with(suffix) || one.ends_with(suffix));
    let is_word = WORDS.contains(&name) || WORDS.contains(&one);
    suffix.map(|&(_, role)| role).or_else(|| is_word.then_some(Role::File))
}

/// Returns true for a URL of a local file, whatever the name of the member is.
fn is_file_url(value: Node<'_>) -> bool {
    value
        .as_text()
        .is_some_and(|text| text.get(..5).is_some_and(|scheme| scheme.eq_ignore_ascii_case("file:")))
}

/// Returns true if a glob, or one of several, can match a path outside of the directory in which it starts.
fn leads_elsewhere(value: Node<'_>) -> bool {
    let mut texts = value.elements().chain(value.is_string().then_some(value));
    texts.any(|text| text.as_text().is_none_or(|text| leaves_directory(&text)))
}

fn leaves_directory(glob: &str) -> bool {
    // Braces contain alternatives, which are separated by commas. Note that an alternative may be empty (`{,x}/etc`), or just
    // one half of `..` (`.{.,x}`).
    let mut parts = glob.split(['{', ',']);
    let has_empty = glob.contains("}/") && ["{,", ",,", ",}", "{}"].iter().any(|empty| glob.contains(empty));
    let has_dot = [".{.", "{.,", ",.,", ",.}"].iter().any(|dot| glob.contains(dot));
    // With only one `\\` at the start, it's more likely to be a regular expression.
    let is_absolute =
        |part: &str| part.starts_with(['/', '~']) || part.starts_with(r"\\") || part.get(1..2) == Some(":");
    parts.any(is_absolute) || has_empty || has_dot || glob.contains("..")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_place_in_an_input() {
        use Role::{Base, File};
        for (input, expected) in [
            (r#"{"file_path":"a"}"#, &[(Some("a"), File)][..]),
            (r#"{"filePath2":"a"}"#, &[(Some("a"), File)]),
            (r#"{"ABS-PATH":"a"}"#, &[(Some("a"), File)]),
            (r#"{"notebook_path":"a","new_source":"/x"}"#, &[(Some("a"), File)]),
            (
                r#"{"from":"a","to":"b","src":"c","dst":"d","dest":"e","source":"f"}"#,
                &[
                    (Some("a"), File),
                    (Some("b"), File),
                    (Some("c"), File),
                    (Some("d"), File),
                    (Some("e"), File),
                    (Some("f"), File),
                ],
            ),
            (
                r#"{"target":"a","destination":"b","fileName":"c"}"#,
                &[(Some("a"), File), (Some("b"), File), (Some("c"), File)],
            ),
            (
                r#"{"cwd":"a","base_dir":"b","directory":"c","folder":"d","root":"e","uri":"f"}"#,
                &[
                    (Some("a"), Base),
                    (Some("b"), Base),
                    (Some("c"), Base),
                    (Some("d"), Base),
                    (Some("e"), Base),
                    (Some("f"), Base),
                ],
            ),
            (
                r#"{"paths":["a","b"],"files":[{"path":"c"}]}"#,
                &[(Some("a"), File), (Some("b"), File), (Some("c"), File)],
            ),
            (r#"{"paths":[],"file":""}"#, &[(Some(""), File), (Some(""), File)]),
            (r#"{"changes":{"/etc/x":{"move_path":"y"}}}"#, &[(Some("/etc/x"), File), (Some("y"), File)]),
            (r#"{"edits":[{"filePath":"a"}]}"#, &[(Some("a"), File)]),
            (r#"{"path":"\ud800/etc"}"#, &[(None, File)]),
            (r#"{"pattern":"*.rs","glob":["src/**"]}"#, &[]),
            (r#"{"pattern":"../*"}"#, &[(None, Base)]),
            (r#"{"command":"cat /etc/passwd","content":"/etc","path":7}"#, &[]),
            (r#"["a"]"#, &[]),
            ("no JSON", &[]),
        ] {
            let found = named_in(input);
            let found: Vec<_> = found.iter().map(|place| (place.path.as_deref(), place.role)).collect();
            assert_eq!(found, expected, "{input}");
        }
    }

    #[test]
    fn an_input_that_is_nested_too_deeply_names_unknown_places() {
        let input = format!("{}1{}", r#"{"a":"#.repeat(100), "}".repeat(100));
        assert_eq!(named_in(&input), [UNKNOWN, UNKNOWN]);
    }

    #[test]
    fn a_second_place_hides_the_path() {
        for (input, expected) in [
            (r#"{"file_path":"a"}"#, Some("a")),
            (r#"{"file_path":"a","cwd":"b"}"#, None),
            (r#"{"file_path":"a","paths":[]}"#, None),
            (r#"{"file_path":"a","changes":{"b":{}}}"#, None),
            (r#"{"filePath":"a"}"#, None),
        ] {
            let path = Node::parse(input.as_bytes()).and_then(only_path);
            assert_eq!(path.as_deref(), expected, "{input}");
        }
    }
}
