//! The map in `crates/README.md`: a section for each crate, with a table of its modules.

use std::collections::BTreeSet;

use crate::{assert_none, crate_dirs, read, root};

const MAP: &str = "crates/README.md";

/// A module that the map lists, such as `relay` or `relay/hub`.
struct Row<'a> {
    line: usize,
    crate_name: &'a str,
    module: &'a str,
}

/// Returns the modules in the first column of each crate's tables.
fn rows(map: &str) -> Vec<Row<'_>> {
    let mut crate_name = None;
    let mut rows = Vec::new();
    for (number, line) in map.lines().enumerate() {
        if line.starts_with('#') {
            crate_name = line.strip_prefix("### `").and_then(|rest| rest.strip_suffix('`'));
        }
        let Some(crate_name) = crate_name else { continue };
        let Some((first, _)) = line.strip_prefix("| ").and_then(|rest| rest.split_once(" | ")) else {
            continue;
        };
        for module in first.split('`').skip(1).step_by(2) {
            rows.push(Row { line: number + 1, crate_name, module: module.trim_end_matches('/') });
        }
    }
    rows
}

/// Returns the modules directly below a crate's root, by their files and directories.
fn modules(dir: &str) -> BTreeSet<String> {
    let entries = std::fs::read_dir(root().join(dir).join("src")).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names
        .filter(|name| name.split_once('.').is_none_or(|(_, extension)| extension == "rs"))
        .map(|name| name.trim_end_matches(".rs").to_owned())
        .filter(|name| !["lib", "main", "tests"].contains(&name.as_str()))
        .collect()
}

#[test]
fn the_map_lists_every_module() {
    let map = read(MAP);
    let rows = rows(&map);
    let mut findings = Vec::new();
    for row in &rows {
        let file = format!("crates/{}/src/{}.rs", row.crate_name, row.module);
        if !root().join(&file).exists() && !root().join(file.trim_end_matches(".rs")).is_dir() {
            findings.push(format!("{MAP}:{}: {file} does not exist", row.line));
        }
    }
    for dir in crate_dirs() {
        let crate_name = dir.trim_start_matches("crates/");
        let listed: Vec<_> =
            rows.iter().filter(|row| row.crate_name == crate_name).map(|row| row.module).collect();
        for module in modules(&dir) {
            match listed.iter().filter(|listed| **listed == module).count() {
                0 => findings.push(format!("{dir}/src/{module}.rs: not in the map of {MAP}")),
                1 => {}
                _ => findings.push(format!("{dir}/src/{module}.rs: more than once in the map of {MAP}")),
            }
        }
    }
    assert_none(
        &findings,
        "Add a row for each module to its crate's table, and remove rows of modules that are gone.",
    );
}

#[test]
fn rows_are_read_from_the_tables_of_crates() {
    let map = "# Title\n\n| `not` | here |\n\n### `one`\n\n| module | x |\n|---|---|\n| `a` | `b` |\n| `c`, `d/` | e |\n\n## Else\n\n| `f` | g |\n";
    let read: Vec<_> =
        rows(map).iter().map(|row| format!("{}:{}:{}", row.line, row.crate_name, row.module)).collect();
    assert_eq!(read, ["9:one:a", "10:one:c", "10:one:d"]);
}
