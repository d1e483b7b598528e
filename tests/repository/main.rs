//! Rules about the repository itself, which the compiler does not know. Each test prints the file and the line of what it
//! finds.
//!
//! | file | checks |
//! |---|---|
//! | `map` | that the map in `crates/README.md` lists every module, and no other |
//! | `links` | that the links between Markdown files lead to files and headings, and that the manual's contents are complete |
//! | `wording` | that doc comments avoid a few constructions that are hard to read |
//! | `imports` | that imports don't form a circle; `imports/reader` finds the paths in a file |
//! | `size` | that no crate, file or function is too long |

mod imports;
mod links;
mod map;
mod size;
mod wording;

use std::{
    fs,
    path::{Path, PathBuf},
};

/// Returns the root of the repository.
fn root() -> PathBuf {
    dunce::canonicalize(Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")).unwrap()
}

/// Returns the directory of each crate, relative to the root and in order.
fn crate_dirs() -> Vec<String> {
    let mut crates: Vec<_> = fs::read_dir(root().join("crates"))
        .unwrap()
        .map(|entry| entry.unwrap())
        .filter(|entry| entry.path().join("Cargo.toml").exists())
        .map(|entry| format!("crates/{}", entry.file_name().to_str().unwrap()))
        .collect();
    crates.sort();
    crates
}

/// Returns the files below a directory whose names end with `ending`, relative to the root and in order. Skips hidden
/// directories and the directories of build outputs.
fn files(dir: &str, ending: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut pending = vec![dir.to_owned()];
    while let Some(dir) = pending.pop() {
        let Ok(entries) = fs::read_dir(root().join(&dir)) else { continue };
        for entry in entries {
            let entry = entry.unwrap();
            let name = entry.file_name().into_string().unwrap_or_default();
            let path = if dir.is_empty() { name.clone() } else { format!("{dir}/{name}") };
            if entry.file_type().unwrap().is_dir() {
                let skipped = ["target", "node_modules", "corpus", "reached", "recordings", ".git"];
                if !skipped.contains(&name.as_str()) {
                    pending.push(path);
                }
            } else if name.ends_with(ending) {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// Reads a file by its path relative to the root.
fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Returns true if the file contains tests only.
fn is_test(path: &str) -> bool {
    path.ends_with("/tests.rs") || path.contains("/tests/")
}

/// Fails with a list of findings, one a line, if there are any.
#[track_caller]
fn assert_none(findings: &[String], hint: &str) {
    assert!(findings.is_empty(), "\n{}\n\n{} findings. {hint}\n", findings.join("\n"), findings.len());
}
