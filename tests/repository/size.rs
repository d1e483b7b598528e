//! The length of files: a file of code fits into a reader's head.

use crate::{assert_none, crate_dirs, files, is_test, read};

/// The maximum number of lines in a file of code, without its tests.
const MAXIMUM: usize = 400;

/// Files that are longer, each with the reason.
const LONGER: [(&str, &str); 0] = [];

/// Returns the number of lines before the tests at the end of a file.
fn lines_of_code(text: &str) -> usize {
    let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    code.lines().count()
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
