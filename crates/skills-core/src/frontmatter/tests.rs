//! Tests of the parser and the validator. The modules have the tables of cases.

mod fields;
mod malformed;
mod recovery;

use std::fmt::Write as _;

use expect_test::{Expect, expect};

use super::*;
use crate::name::MAX_LOADED_NAME_CHARS;

/// Parses the `SKILL.md` of a directory `pdf`, and compares the fields that differ from the default, and the diagnostics.
fn check_pdf(text: &str, expect: Expect) {
    let context = ParseContext::in_directory("pdf");
    let parsed = parse(text, &context);
    let mut actual = String::new();
    if let Some(frontmatter) = &parsed.frontmatter {
        writeln!(actual, "{:?}: {:?}", frontmatter.name.as_str(), frontmatter.description).unwrap();
        let properties = format!("{:?}", frontmatter.properties);
        let default = format!("{:?}", Properties::default());
        if properties != default {
            let differs = |line: &&str| !default.contains(*line);
            writeln!(actual, "{}", properties.split(", ").filter(differs).collect::<Vec<_>>().join(", "))
                .unwrap();
        }
        if parsed.body(text) != "Body" {
            writeln!(actual, "body {:?}", parsed.body(text)).unwrap();
        }
    }
    for diagnostic in &parsed.diagnostics {
        let short = Diagnostic { help: None, ..diagnostic.clone() };
        writeln!(actual, "{short}").unwrap();
    }
    expect.assert_eq(&actual);
    // An error means that nothing was loaded. Parsing the bytes gives the same result.
    let has_error = parsed.diagnostics.iter().any(Diagnostic::is_error);
    assert_eq!(
        parsed.frontmatter.is_none(),
        has_error,
        "there is an error if and only if nothing was loaded"
    );
    assert_eq!(parse_bytes(text.as_bytes(), &context).frontmatter, parsed.frontmatter);
}

/// Validates the `SKILL.md` of a directory `pdf` against the specification.
fn check_spec(text: &str, expect: Expect) {
    let found = validate(text, &ParseContext::in_directory("pdf"), Verdict::Spec);
    let lines: Vec<String> = found.iter().map(ToString::to_string).collect();
    expect.assert_eq(&lines.join("\n"));
}

#[test]
fn rules_for_fields() {
    let check = check_spec;
    let long = "long ".repeat(300);
    check("---\nname: pdf\ndescription: d\n---\nBody", expect![""]);
    check(
        &format!("---\nname: pdf\ndescription: {long}\ncompatibility: {long}\n---\nBody"),
        expect![[r#"
            3:14: error[description-too-long]: `description` has 1499 characters, but should have at most 1024
              help: move details from this field to the body
            4:16: error[compatibility-too-long]: `compatibility` has 1499 characters, but should have at most 500
              help: move details from this field to the body"#]],
    );
    check(&format!("---\nname: pdf\ndescription: {}\n---\nBody", "é".repeat(1024)), expect![""]);
    check(
        &format!("---\nname: {}\ndescription: d\n---\nBody", "é".repeat(65)),
        expect![[r#"
            2:7: error[name-too-long]: name has 65 characters, but should have at most 64
              help: use at most 64 lower-case letters, digits and single hyphens
            2:7: error[name-not-directory]: name `ééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééé` should match the directory name `pdf`
              help: change the name to `pdf`"#]],
    );
    check(
        "---\nName: PDF\n---\nBody",
        expect![[r#"
            1: error[description-missing]: skill has no description
              help: add `description:` to describe the skill and when to use it
            2:1: error[field-spelling]: field `Name` should be spelled `name`
              help: use `name:`
            2:7: error[name-not-lowercase]: name `PDF` contains upper-case letters
              help: use `pdf`
            2:7: error[name-not-directory]: name `PDF` should match the directory name `pdf`
              help: rename the directory to `pdf`, or change the name to match"#]],
    );
    check(
        "---\nname: pdf\ndescription: d\nallowed-tools: [Read, Write]\nmetadata:\n  a:\n    b: c\n---\nBody",
        expect![[r#"
            4:16: error[allowed-tools-format]: `allowed-tools` should be a string with tools separated by spaces
              help: use `allowed-tools: Read Write`
            7:5: error[metadata-not-text]: `metadata.a` should be a string
              help: put the value in quotes, because `metadata` should only contain strings"#]],
    );
    check(
        "---\nname: pdf\ndescription: d\nversion: 1\nuserInvocable: false\n---\nBody",
        expect![[r#"
            4:1: warning[unknown-field]: field `version` is not in the specification
              help: move this field to `metadata`, because some clients reject unknown fields: `metadata:` / `  version: …`
            5:1: warning[unknown-field]: field `userInvocable` is not in the specification
              help: move this field to `metadata`, because some clients reject unknown fields: `metadata:` / `  userInvocable: …`"#]],
    );
}

#[test]
fn rules_for_the_layout_and_yaml() {
    let check = check_spec;
    check(
        "\n---\nname: pdf\ndescription: a: b",
        expect![[r#"
            1: error[leading-blank-lines]: found blank lines before frontmatter
              help: remove blank lines to start the file with `---`
            4:15: error[invalid-yaml]: invalid YAML value for `description`: mapping values are not allowed in this context
              help: put the text in quotes, or in indented lines after `>-`; using the literal text for now
            5: error[frontmatter-not-closed]: frontmatter is not closed, but probably ends here
              help: add a line `---` to separate the frontmatter from the body
            5: warning[body-empty]: skill has no instructions
              help: add instructions after the frontmatter"#]],
    );
    check(
        "---\nname: pdf\ndescription: 'a\nb'\n---\nBody",
        expect![[r#"
            4:1: error[invalid-yaml]: quoted text continues without indentation
              help: indent all lines of the text, or use a single line"#]],
    );
    check("---\nname: ｐｄｆ\ndescription: d\n---\nBody", expect![""]);
    check(
        "---\nname: हिन्दी\ndescription: d\n---\nBody",
        expect![[r#"
            2:7: error[name-invalid-characters]: name `हिन्दी` contains "ि", but this character is not allowed
              help: use at most 64 lower-case letters, digits and single hyphens
            2:7: error[name-not-directory]: name `हिन्दी` should match the directory name `pdf`
              help: change the name to `pdf`"#]],
    );
}

#[test]
fn bytes_are_decoded_and_limited() {
    let check = |bytes: &[u8], expect: Expect| {
        let parsed = parse_bytes(bytes, &ParseContext::default());
        let description = parsed.frontmatter.map(|frontmatter| frontmatter.description);
        let found: Vec<String> = parsed.diagnostics.iter().map(ToString::to_string).collect();
        expect.assert_eq(&format!("{description:?} {}", found.join("\n")));
    };
    check(
        b"---\nname: a\ndescription: caf\xE9\n---\nBody",
        expect![[r#"
            Some("caf�") 3: warning[invalid-utf8]: invalid UTF-8 was replaced by U+FFFD
              help: save the file as UTF-8"#]],
    );
    check(
        b"---\nname: a\ndescription: d\n---\nBody\nca\xFF",
        expect![[r#"
            Some("d") 6: warning[invalid-utf8]: invalid UTF-8 was replaced by U+FFFD
              help: save the file as UTF-8"#]],
    );
    check(b"---\nname: a\ndescription: d\n---\nBody \xC3", expect![[r#"Some("d") "#]]);
    let utf16: Vec<u8> = "\u{FEFF}---\r\nname: a\r\ndescription: é\r\n---\r\nBody"
        .encode_utf16()
        .flat_map(u16::to_le_bytes)
        .collect();
    check(
        &utf16,
        expect![[r#"
            Some("é") warning[utf16]: file is encoded as UTF-16
              help: save the file as UTF-8"#]],
    );
    check(
        &vec![b'-'; MAX_FILE_BYTES + 1],
        expect![[r#"
            None error[file-too-large]: file has 1048577 bytes, but at most 1048576 are allowed
              help: move details to files in `references/`"#]],
    );
}

/// Catalogs don't shorten names, so there is a maximum.
#[test]
fn a_very_long_name_is_an_error() {
    let check = |count: usize, expect: Expect| {
        let name = "é".repeat(count);
        let parsed =
            parse(&format!("---\nname: {name}\ndescription: d\n---\nBody"), &ParseContext::default());
        let found: Vec<String> = parsed.diagnostics.iter().map(ToString::to_string).collect();
        expect.assert_eq(&format!("{} {}", parsed.frontmatter.is_some(), found.join("\n")));
    };
    check(
        MAX_LOADED_NAME_CHARS,
        expect![[r#"
            true 2:7: warning[name-too-long]: name has 256 characters, but should have at most 64
              help: use at most 64 lower-case letters, digits and single hyphens"#]],
    );
    check(
        MAX_LOADED_NAME_CHARS + 1,
        expect![[r#"
            false 2:7: error[name-too-long]: name has 257 characters, but should have at most 64
              help: use at most 64 lower-case letters, digits and single hyphens"#]],
    );
}

#[test]
fn the_beginning_of_a_larger_file() {
    let context = ParseContext { file_bytes: Some(100_000), ..ParseContext::default() };
    let parsed = parse("---\nname: a\ndescription: d\n---\n", &context);
    assert!(
        parsed.frontmatter.is_some() && parsed.diagnostics.is_empty(),
        "the rest of the file has the body"
    );
    let cut = parse("---\nname: a\ndescription: d\n", &context);
    assert_eq!(cut.diagnostics[0].code, "frontmatter-too-large");
    let huge = ParseContext { file_bytes: Some(MAX_FILE_BYTES as u64 + 1), ..ParseContext::default() };
    let parsed = parse("---\nname: a\ndescription: d\n---\n", &huge);
    assert_eq!((parsed.frontmatter, parsed.diagnostics[0].code), (None, "file-too-large"));
}

#[test]
fn parsed_files_become_skills() {
    let text = "---\nname: a\ndescription: d\nlicense: MIT\n---\n\n\n    code\nBody\n";
    let (skill, _) = parse(text, &ParseContext::default()).into_virtual(text);
    let Some(Skill { source: Source::Virtual(skill), .. }) = &skill else { panic!("{skill:?}") };
    assert_eq!(skill.instructions, Instructions::Inline("    code\nBody\n".into()));
    let dir = Path::new("/skills/a");
    let (skill, diagnostics) = parse(text, &ParseContext::default()).into_stored(dir, "SKILL.md");
    let skill = skill.expect("the skill is valid");
    assert_eq!((skill.dir(), skill.properties.license.as_deref()), (Some(dir), Some("MIT")));
    assert!(diagnostics.is_empty());
}
