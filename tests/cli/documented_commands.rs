//! The commands in the README and in the manual. All of them must be command lines that the program understands, and those
//! that are followed by their output must print it.
//!
//! A command is a line in a fenced block of the language `sh` that starts with `acp-skills-proxy` or `cargo run --`. A block
//! runs if a block of the language `text` follows it, with nothing between them but empty lines. Such blocks of a page run
//! one after the other in one directory, which contains a copy of `examples`.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

/// Returns the root of the repository.
fn root() -> PathBuf {
    dunce::canonicalize(Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")).unwrap()
}

/// Returns the paths of the README and of all pages of the manual.
fn pages() -> Vec<PathBuf> {
    let mut pages = vec![root().join("README.md")];
    let mut pending = vec![root().join("crates/acp-skills-proxy/manual/src")];
    while let Some(dir) = pending.pop() {
        for entry in fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                pending.push(path);
            } else if path.extension().is_some_and(|extension| extension == "md") {
                pages.push(path);
            }
        }
    }
    pages.sort();
    pages
}

/// A fenced block of code.
struct Block {
    /// The line number of its first line.
    line: usize,
    language: String,
    lines: Vec<String>,
    /// True if there is no text between the previous block and this one.
    follows: bool,
}

/// Returns the fenced blocks of a page.
fn blocks(text: &str) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    let mut is_inside = false;
    let mut follows = false;
    for (number, line) in text.lines().enumerate() {
        if let Some(language) = line.strip_prefix("```") {
            if is_inside {
                follows = true;
            } else {
                let language = language.trim().to_owned();
                blocks.push(Block { line: number + 2, language, lines: Vec::new(), follows });
            }
            is_inside = !is_inside;
        } else if is_inside {
            blocks.last_mut().unwrap().lines.push(line.to_owned());
        } else if !line.trim().is_empty() {
            follows = false;
        }
    }
    blocks
}

/// Splits a command line into words, as a shell does: quotes keep words together, and `#`, `>` and `|` end the command.
fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    for letter in line.chars() {
        match (letter, quote) {
            (_, Some(open)) if letter == open => quote = None,
            ('"' | '\'', None) => {
                quote = Some(letter);
                word.get_or_insert_default();
            }
            (' ', None) => words.extend(word.take()),
            ('#' | '>' | '|', None) if word.is_none() => return words,
            _ => word.get_or_insert_default().push(letter),
        }
    }
    words.extend(word);
    words
}

/// Returns the arguments if the line is a command of this program.
fn arguments(line: &str) -> Option<Vec<String>> {
    let command = line.strip_prefix("acp-skills-proxy").or_else(|| line.strip_prefix("cargo run --"))?;
    command.starts_with([' ']).then(|| words(command))
}

fn run(arguments: &[String], dir: &Path) -> Output {
    Command::new(env!("CARGO_BIN_EXE_acp-skills-proxy"))
        .args(arguments)
        .current_dir(dir)
        .env("XDG_CONFIG_HOME", dir.join("no-configuration"))
        .env("COLUMNS", "100")
        .env_remove("ACP_SKILLS_LOG")
        .output()
        .unwrap()
}

/// Returns the first line of `expected` that is not in `text`, in order. A line that is `…` matches any number of lines,
/// and a line that ends with `…` matches the beginning of a line.
fn missing_line<'a>(expected: &'a [String], text: &str) -> Option<&'a str> {
    let mut lines = text.lines().map(str::trim_end);
    expected.iter().map(|line| line.trim_end()).filter(|line| !line.is_empty() && *line != "…").find(
        |expected| {
            !lines.any(|line| match expected.strip_suffix('…') {
                Some(start) => line.starts_with(start.trim_end()),
                None => line == *expected,
            })
        },
    )
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

#[test]
fn commands_are_understood() {
    let mut count = 0;
    let dir = tempfile::tempdir().unwrap();
    for page in pages() {
        for block in blocks(&fs::read_to_string(&page).unwrap()).iter().filter(|block| block.language == "sh")
        {
            for (number, line) in block.lines.iter().enumerate() {
                let Some(mut arguments) = arguments(line) else { continue };
                count += 1;
                // We add `--help` here, so that the command is parsed but not run. A subcommand without a parser would fail
                // here as well.
                let at = arguments.iter().position(|word| word == "--").unwrap_or(arguments.len());
                arguments.insert(at, "--help".to_owned());
                let output = run(&arguments, dir.path());
                assert!(
                    output.status.success(),
                    "{}:{}: {line}\n{}",
                    page.display(),
                    block.line + number,
                    String::from_utf8_lossy(&output.stderr)
                );
            }
        }
    }
    assert!(count > 30, "only {count} commands were found");
}

#[test]
fn commands_print_what_the_pages_show() {
    let mut count = 0;
    for page in pages() {
        let dir = tempfile::tempdir().unwrap();
        copy(&root().join("examples"), &dir.path().join("examples"));
        let blocks = blocks(&fs::read_to_string(&page).unwrap());
        for (block, next) in blocks.iter().zip(&blocks[1.min(blocks.len())..]) {
            if block.language != "sh" || next.language != "text" || !next.follows {
                continue;
            }
            let mut text = String::new();
            for line in &block.lines {
                let arguments =
                    arguments(line).unwrap_or_else(|| panic!("{}: cannot run {line}", page.display()));
                let output = run(&arguments, dir.path());
                // Always use `/` in paths, so that we get the expected output on Windows as well.
                text += &String::from_utf8_lossy(&output.stdout).replace('\\', "/");
                let errors = String::from_utf8_lossy(&output.stderr);
                assert!(output.status.success(), "{}:{}: {line}\n{text}{errors}", page.display(), block.line);
            }
            if let Some(line) = missing_line(&next.lines, &text) {
                panic!("{}:{}: the output has no line {line:?} here:\n{text}", page.display(), next.line);
            }
            count += 1;
        }
    }
    assert!(count >= 7, "only {count} blocks were run");
}

#[test]
fn lines_split_like_in_a_shell() {
    let cases: &[(&str, &[&str])] = &[
        ("acp-skills-proxy setup    # shows it", &["setup"]),
        ("cargo run -- try --prompt \"a b\"", &["try", "--prompt", "a b"]),
        ("acp-skills-proxy eval x --agent g='g --acp' > out", &["eval", "x", "--agent", "g=g --acp"]),
        ("acp-skills-proxy add a#b", &["add", "a#b"]),
    ];
    for (line, expected) in cases {
        assert_eq!(arguments(line).unwrap(), *expected, "{line}");
    }
    assert_eq!(arguments("npx -y acp-skills-proxy --version"), None);
}

#[test]
fn output_is_compared_in_order() {
    let lines = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
    let text = "one\ntwo (3 ms)\n\nthree\n";
    assert_eq!(missing_line(&lines("one\n…\nthree"), text), None);
    assert_eq!(missing_line(&lines("two …\n\nthree"), text), None);
    assert_eq!(missing_line(&lines("three\none"), text), Some("one"));
    assert_eq!(missing_line(&lines("two"), text), Some("two"));
}
