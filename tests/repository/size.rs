//! The length of crates, files and functions: each of them fits into a reader's head. Blank lines and
//! comments count, tests don't.

use crate::{assert_none, crate_dirs, files, is_test, read};

/// The maximum number of lines in a crate.
const MAXIMUM_OF_CRATE: usize = 18_000;

/// The maximum number of lines in a file of code.
const MAXIMUM: usize = 400;

/// The maximum number of lines in a function, from its name to its closing brace.
const MAXIMUM_OF_FUNCTION: usize = 80;

/// Files that are longer, each with the reason.
const LONGER: [(&str, &str); 0] = [];

/// Returns the part of a file before the tests at its end.
fn code(text: &str) -> &str {
    let tests = ["#[cfg(test)]\nmod tests {", "#[cfg(all(test, unix))]\nmod tests {"];
    tests.iter().fold(text, |text, tests| text.split(tests).next().unwrap_or_default())
}

/// Returns the number of lines before the tests at the end of a file.
fn lines_of_code(text: &str) -> usize {
    code(text).lines().count()
}

/// Returns the line, the declaration and the number of lines of each function. Expects the layout of `cargo fmt`, in which the closing
/// brace is below the start of the declaration.
fn functions(text: &str) -> Vec<(usize, &str, usize)> {
    let lines: Vec<&str> = code(text).lines().collect();
    let mut found = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let declaration = line.trim_start();
        let before_name = declaration.split_once("fn ").map(|(before, _)| before);
        let is_function = before_name.is_some_and(|before| {
            before.split_whitespace().all(|word| {
                word.starts_with("pub") || ["async", "const", "default", "unsafe", "extern"].contains(&word)
            })
        });
        let closing = format!("{}}}", &line[..line.len() - declaration.len()]);
        // A declaration without a body has no closing brace of its own.
        let has_body = lines[at..].iter().find_map(|line| match line.chars().last() {
            Some('{') => Some(true),
            Some(';' | '}') => Some(false),
            _ => None,
        });
        if is_function && has_body == Some(true) {
            let length = lines[at..].iter().position(|line| *line == closing).map_or(0, |end| end + 1);
            found.push((at + 1, declaration, length));
        }
    }
    found
}

#[test]
fn crates_are_small() {
    let mut findings = Vec::new();
    for dir in crate_dirs() {
        let src = format!("{dir}/src");
        let lines: usize = files(&src, ".rs")
            .iter()
            .filter(|path| !is_test(path))
            .map(|path| lines_of_code(&read(path)))
            .sum();
        if lines > MAXIMUM_OF_CRATE {
            findings.push(format!(
                "{dir}: the crate has {lines} lines of code, {} too many",
                lines - MAXIMUM_OF_CRATE
            ));
        }
    }
    assert_none(&findings, "Move a concern to another crate.");
}

#[test]
fn functions_are_short() {
    let mut findings = Vec::new();
    for path in crate_dirs().iter().flat_map(|dir| files(dir, ".rs")).filter(|path| !is_test(path)) {
        for (at, declaration, lines) in functions(&read(&path)) {
            if lines > MAXIMUM_OF_FUNCTION {
                findings.push(format!("{path}:{at}: `{declaration}` has {lines} lines"));
            }
        }
    }
    assert_none(&findings, "Name a part of the function, and make it a function of its own.");
}

#[test]
fn functions_are_measured_by_their_indentation() {
    let text = "\
pub(crate) async fn long(
    argument: u8,
) {
    if argument > 1 {
    }
}

trait Named {
    fn name(&self) -> String;
    fn other(
        &self,
    );
    fn upper(&self) -> String {
        self.name()
    }
}

/// A fn in a comment.
const fn one() {}
";
    assert_eq!(
        functions(text),
        [(1, "pub(crate) async fn long(", 6), (13, "fn upper(&self) -> String {", 3)]
    );
}

#[test]
fn files_of_code_are_short() {
    let mut findings = Vec::new();
    for path in crate_dirs().iter().flat_map(|dir| files(dir, ".rs")).filter(|path| !is_test(path)) {
        let lines = lines_of_code(&read(&path));
        let is_listed = LONGER.iter().any(|(longer, _)| *longer == path);
        if lines > MAXIMUM && !is_listed {
            findings.push(format!("{path}:{MAXIMUM}: the file has {lines} lines of code"));
        }
        if lines <= MAXIMUM && is_listed {
            findings.push(format!("{path}:{lines}: no longer too long; remove it from LONGER"));
        }
    }
    assert_none(&findings, "Split a file by what its parts are responsible for.");
}

#[test]
fn tests_at_the_end_do_not_count() {
    assert_eq!(lines_of_code("fn f() {}\n\n#[cfg(test)]\nmod tests {\n    fn g() {}\n}\n"), 2);
    assert_eq!(lines_of_code("#[cfg(test)]\nmod tests;\nfn f() {}\n"), 3);
}
