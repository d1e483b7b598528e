//! Parses files that are made to break a parser. Each must return a diagnostic, on a thread with a small stack.
//!
//! `cargo test --release -p skills-core --test skills_core hostile -- --nocapture` prints the time for each file.

#![expect(clippy::print_stderr, reason = "prints times for manual runs")]

use std::{
    fmt::Write as _,
    thread,
    time::{Duration, Instant},
};

use skills_core::{
    Diagnostic,
    frontmatter::{MAX_FRONTMATTER_BYTES, ParseContext, Verdict, parse_bytes, validate_bytes},
};

const STACK_BYTES: usize = 512 * 1024;
/// The size of generated values: the maximum size of the frontmatter, minus room for the other fields.
const FULL: usize = MAX_FRONTMATTER_BYTES - 1024;

/// Creates a file whose frontmatter contains a name, a description, and `yaml`.
fn skill(yaml: &str) -> Vec<u8> {
    format!("---\nname: pdf\ndescription: Reads files.\n{yaml}\n---\nBody\n").into_bytes()
}

/// Repeats `unit` to fill the frontmatter.
fn full(unit: &str) -> String {
    unit.repeat(FULL / unit.len())
}

/// Concatenates `unit(0)`, `unit(1)` and so on to fill the frontmatter.
fn numbered(unit: impl Fn(usize) -> String) -> String {
    let mut text = String::new();
    for number in 0.. {
        let line = unit(number);
        if text.len() + line.len() > FULL {
            break;
        }
        text += &line;
    }
    text
}

/// Repeats `unit` on lines of increasing indentation to fill the frontmatter.
fn staircase(unit: &str) -> String {
    let mut text = String::from("metadata:\n");
    for depth in 1.. {
        if text.len() + depth + unit.len() + 1 > FULL {
            break;
        }
        writeln!(text, "{}{unit}", " ".repeat(depth)).expect("writing to a string cannot fail");
    }
    text
}

fn alias_bomb() -> String {
    let mut text = String::from("metadata:\n  a0: &a0 [x, x, x, x, x, x, x, x, x]\n");
    for level in 1..30 {
        let alias = format!("*a{}", level - 1);
        let aliases = [alias.as_str(); 9].join(", ");
        writeln!(text, "  a{level}: &a{level} [{aliases}]").expect("writing to a string cannot fail");
    }
    text
}

fn cases() -> Vec<(&'static str, Vec<u8>)> {
    let mut cases: Vec<(&str, Vec<u8>)> = [
        ("nested lists", format!("metadata: {}", full("["))),
        ("nested lists, closed", format!("metadata: {}{}", "[".repeat(FULL / 2), "]".repeat(FULL / 2))),
        ("nested mappings", format!("metadata: {}", full("{a: "))),
        ("nested both", format!("metadata: {}", full("[{"))),
        ("nested dashes", format!("metadata:\n  {}", full("- "))),
        ("nested questions", format!("metadata:\n  {}", full("? "))),
        ("stairs of mappings", staircase("a:")),
        ("stairs of lists", staircase("-")),
        ("alias bomb", alias_bomb()),
        ("anchors", numbered(|number| format!("a{number}: &a{number} b\n"))),
        ("aliases", format!("x: &x y\nmetadata: [{}]", full("*x, "))),
        ("merge keys", format!("x: &x {{a: b}}\nmetadata:\n{}", full("  <<: *x\n"))),
        ("tags", format!("metadata: {}", full("!a "))),
        ("long tag", format!("metadata: !<{}> x", full("a"))),
        ("keys", numbered(|number| format!("a{number}:\n"))),
        ("keys and a colon", format!("license: a: b\n{}", numbered(|number| format!("a{number}:\n")))),
        ("bad values", numbered(|number| format!("a{number}: b: c\n"))),
        ("the same key", full("a: b\n")),
        ("the same key, badly", format!("license: a: b\n{}", full("a: b\n"))),
        ("values in a list", format!("tags: [{}]", full("a,"))),
        ("values in metadata", format!("metadata:\n{}", numbered(|number| format!("  a{number}: b: c\n")))),
        ("open quotes", numbered(|number| format!("a{number}: \"b\n"))),
        ("one open quote", format!("a: \"{}", full("b\n"))),
        ("quoted lines", format!("a: \"{}\"", full("b\n"))),
        ("colons", format!("a: {}", full(": "))),
        ("comments", full("#\n")),
        ("comments and a colon", format!("license: a: b\n{}", full("#\n"))),
        ("prose", full("word word\n")),
        ("indented fences", format!("a: b: c\n{}", full("  ---\n"))),
        ("block scalars", numbered(|number| format!("a{number}: |9\n x\n"))),
        ("escapes", format!("a: \"{}\"", full("\\x01"))),
        ("control characters", format!("a: {}", full("\u{1}"))),
        ("wide characters", format!("a: {}", full("\u{10FFFF}"))),
        ("blank lines", full("\n")),
        ("carriage returns", full("\r")),
        ("tabs", full("\t")),
        ("tools", format!("allowed-tools: {}", full("a("))),
        ("commas", format!("tags: {}", full(","))),
        ("directives", full("%YAML 1.2\n")),
        ("documents", full("...\n")),
    ]
    .into_iter()
    .map(|(name, yaml)| (name, skill(&yaml)))
    .collect();
    cases.push(("50 MB text", skill(&format!("metadata: {}", "x".repeat(50 * 1024 * 1024)))));
    cases.push(("50 MB quoted text", skill(&format!("metadata: \"{}\"", "x\n ".repeat(16 * 1024 * 1024)))));
    cases.push((
        "50 MB of invalid UTF-8",
        skill("").into_iter().chain(std::iter::repeat_n(0xFF, 50 << 20)).collect(),
    ));
    let keys: String = (0..500_000).fold(String::new(), |mut keys, number| {
        writeln!(keys, "a{number}: b").expect("writing to a string cannot fail");
        keys
    });
    cases.push(("500,000 keys", skill(&keys)));
    cases.push((
        "1 MB of invalid UTF-8",
        skill("").into_iter().chain(std::iter::repeat_n(0xFF, 1_000_000)).collect(),
    ));
    cases.push(("1 MB of blank lines", vec![b'\n'; 1_000_000]));
    cases.push(("1 MB of fences", b"---\n".repeat(250_000)));
    cases.push(("zeros", vec![0; 60_000]));
    cases
}

#[test]
fn each_hostile_file_has_a_diagnostic() {
    let slowest = thread::Builder::new()
        .stack_size(STACK_BYTES)
        .spawn(|| {
            let mut slowest = Duration::ZERO;
            for (name, bytes) in cases() {
                let context = ParseContext::in_directory("other");
                let start = Instant::now();
                let parsed = parse_bytes(&bytes, &context);
                let load = start.elapsed();
                eprintln!("{load:>12.2?}  {name}: {}", parsed.diagnostics.len());
                assert!(!parsed.diagnostics.is_empty(), "{name}");
                assert!(parsed.diagnostics.len() <= 101, "{name}");

                let start = Instant::now();
                assert!(
                    validate_bytes(&bytes, &context, Verdict::Spec).iter().any(Diagnostic::is_error),
                    "{name}"
                );
                let spec = start.elapsed();
                let start = Instant::now();
                assert!(!validate_bytes(&bytes, &context, Verdict::Reference).is_empty(), "{name}");
                eprintln!("{:>12.2?}  as specification, {:.2?} as reference", spec, start.elapsed());
                slowest = slowest.max(load);
            }
            slowest
        })
        .expect("the thread should start")
        .join()
        .expect("the parser should not panic or overflow the stack");
    eprintln!("slowest load: {slowest:.2?}");
}
