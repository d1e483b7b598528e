//! One table a kind of malformation: what is loaded of it, and what is said about it.

#![expect(clippy::too_many_lines, reason = "a table of cases is as long as it is")]

use std::fmt::Write as _;

use expect_test::{Expect, expect};

use crate::frontmatter::*;

fn check(text: &str, expect: Expect) {
    let context = ParseContext::in_directory("pdf");
    let parsed = parse(text, &context);
    let mut actual = String::new();
    if let Some(it) = &parsed.frontmatter {
        writeln!(actual, "{:?}: {:?}", it.name.as_str(), it.description).unwrap();
        let properties = format!("{:?}", it.properties);
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
    // Whoever reads only the beginning of a file knows the same.
    let has_error = parsed.diagnostics.iter().any(Diagnostic::is_error);
    assert_eq!(parsed.frontmatter.is_none(), has_error, "an error, if and only if nothing loads");
    assert_eq!(parse_bytes(text.as_bytes(), &context).frontmatter, parsed.frontmatter);
}

#[test]
fn well_formed() {
    check(
        "---\nname: pdf\ndescription: Reads PDF files.\n---\n\nBody\n",
        expect![[r#"
        "pdf": "Reads PDF files."
        body "Body\n"
    "#]],
    );
    check(
        "---\nname: \"pdf\"\ndescription: >-\n  Reads\n  files.\nlicense: MIT\n---\nBody",
        expect![[r#"
        "pdf": "Reads files."
        Properties { license: Some("MIT")
    "#]],
    );
    check(
        "---\ndescription: |\n  One.\n  Two.\nname: pdf\n---\nBody",
        expect![[r#"
        "pdf": "One.\nTwo."
    "#]],
    );
}

#[test]
fn surroundings() {
    check(
        "\u{FEFF}---\nname: pdf\ndescription: d\n---\nBody",
        expect![[r#"
            "pdf": "d"
            1:1: warning[byte-order-mark]: the file starts with a byte order mark
        "#]],
    );
    check(
        "---\r\nname: pdf\r\ndescription: a\r\n  b\r\n---\r\nBody",
        expect![[r#"
        "pdf": "a b"
    "#]],
    );
    check(
        "---\rname: pdf\rdescription: d\r---\rBody",
        expect![[r#"
        "pdf": "d"
    "#]],
    );
    check(
        "\n\n---\nname: pdf\ndescription: d\n---\nBody",
        expect![[r#"
            "pdf": "d"
            1: warning[leading-blank-lines]: there are blank lines before the frontmatter
        "#]],
    );
    check(
        "---\nname: pdf\ndescription: d\n\n# Title\n\nBody: text",
        expect![[r##"
            "pdf": "d"
            body "# Title\n\nBody: text"
            5: warning[frontmatter-not-closed]: the frontmatter is not closed; it probably ends here
        "##]],
    );
    check(
        "---\nname: pdf\ndescription: d\n",
        expect![[r#"
            "pdf": "d"
            body ""
            4: warning[frontmatter-not-closed]: the frontmatter is not closed; it probably ends here
            4: warning[body-empty]: the skill has no instructions
        "#]],
    );
    check(
        "  ---\n  name: pdf\n  description: d\n  ---\nBody",
        expect![[r#"
        "pdf": "d"
        1:1: warning[indented-fence]: the opening `---` is indented
        4:1: warning[indented-fence]: the closing `---` is indented
    "#]],
    );
    check(
        "---\nname: pdf\ndescription: d\n  ---\n\n# Title\nSome: thing: else\n\n---\nMore",
        expect![[r##"
        "pdf": "d"
        body "# Title\nSome: thing: else\n\n---\nMore"
        4:1: warning[indented-fence]: the closing `---` is indented
    "##]],
    );
    check(
        "---\nname: pdf\ndescription: d\n---\n \n",
        expect![[r#"
        "pdf": "d"
        body ""
        4: warning[body-empty]: the skill has no instructions
    "#]],
    );
    check(
        "# Title\n\nNo frontmatter.\n",
        expect![[r#"
            1:1: error[frontmatter-missing]: the file does not start with frontmatter
        "#]],
    );
    check(
        "",
        expect![[r#"
            1:1: error[frontmatter-missing]: the file does not start with frontmatter
        "#]],
    );
    check(
        "---\n---\nBody",
        expect![[r#"
            1: warning[name-missing]: the skill has no name
            1: error[description-missing]: the skill has no description
        "#]],
    );
    check(
        "---\n# nothing\n---\nBody",
        expect![[r#"
            1: warning[name-missing]: the skill has no name
            1: error[description-missing]: the skill has no description
        "#]],
    );
    check(
        "---\njust text\n---\nBody",
        expect![[r#"
            2: warning[not-a-field]: the line is not a `key: value` pair and is ignored
            2:1: error[frontmatter-not-a-mapping]: the frontmatter has no `key: value` line: it is not a mapping
        "#]],
    );
    check(
        "---\n- a\n- b\n---\nBody",
        expect![[r#"
            2: warning[not-a-field]: the line is not a `key: value` pair and is ignored
            2:1: error[frontmatter-not-a-mapping]: the frontmatter has no `key: value` line: it is not a mapping
        "#]],
    );
}

#[test]
fn text_stays_literal() {
    check(
        "---\nname: 1.10\ndescription: yes\nversion: 1.10\n---\nBody",
        expect![[r#"
            "1.10": "yes"
            version: Some("1.10")
            2:7: warning[name-invalid-characters]: the name `1.10` contains the character ".", which is not allowed
            2:7: warning[name-not-directory]: the name `1.10` differs from the name of its directory, `pdf`
        "#]],
    );
    check(
        "---\nname: pdf\ndescription: 0x10\nlicense: ~\n---\nBody",
        expect![[r#"
        "pdf": "0x10"
    "#]],
    );
    check(
        "---\nname: pdf\ndescription: &foo bar\n---\nBody",
        expect![[r#"
            "pdf": "&foo bar"
            3:19: warning[not-text]: a part of `description` is a YAML tag or anchor; the literal text is used
        "#]],
    );
    check(
        "---\nname: pdf\ndescription: !tag some text\n---\nBody",
        expect![[r#"
            "pdf": "!tag some text"
            3:19: warning[not-text]: a part of `description` is a YAML tag or anchor; the literal text is used
        "#]],
    );
    check(
        "---\nname: pdf\ndescription: *all files\n---\nBody",
        expect![[r#"
            "pdf": "*all files"
            3:14: warning[invalid-yaml]: the value of `description` is invalid YAML: while parsing node, found unknown anchor
        "#]],
    );
    check(
        "---\nname: pdf\ndescription: [Beta] Reads files.\n---\nBody",
        expect![[r#"
            "pdf": "[Beta] Reads files."
            3:21: warning[invalid-yaml]: the value of `description` is invalid YAML: while parsing a block mapping, did not find expected key
        "#]],
    );
    check(
        "---\nname: pdf\ndescription: [Beta, New]\n---\nBody",
        expect![[r#"
            "pdf": "[Beta, New]"
            3:14: warning[not-text]: `description` must be a text; the literal text is used
        "#]],
    );
    check(
        "---\nname: {{name}}\ndescription: {{x}}\n---\nBody",
        expect![[r#"
            "{{name}}": "{{x}}"
            2:7: warning[not-text]: `name` must be a text; the literal text is used
            2:7: warning[name-invalid-characters]: the name `{{name}}` contains the character "{", which is not allowed
            2:7: warning[name-not-directory]: the name `{{name}}` differs from the name of its directory, `pdf`
            3:14: warning[not-text]: `description` must be a text; the literal text is used
        "#]],
    );
    check(
        "---\nname: pdf\ndescription: issue #12 is fixed\n---\nBody",
        expect![[r#"
            "pdf": "issue"
            3:14: warning[cut-by-comment]: `description`: in YAML, `#` after a space starts a comment, so the value ends there
        "#]],
    );
    check(
        "---\nname: pdf\ndescription: #1 tool\n---\nBody",
        expect![[r##"
            "pdf": "#1 tool"
            3:12: warning[cut-by-comment]: `description`: in YAML, `#` after a space starts a comment, so the value is empty
        "##]],
    );
    check(
        "---\nname: pdf\ndescription: \"a\\0b\\x07c\\u0085d\"\n---\nBody",
        expect![[r#"
        "pdf": "abcd"
    "#]],
    );
    check(
        "---\nname: pdf\ndescription: a\0b\u{7}c\n---\nBody",
        expect![[r#"
            "pdf": "abc"
            3: warning[control-character]: the frontmatter contains a control character, which is ignored
        "#]],
    );
    check(
        "---\nname: pdf\ndescription: \"a \\u202E b\"\n---\nBody",
        expect![[r#"
            "pdf": "a \u{202e} b"
            3:14: warning[deceptive-characters]: the description contains invisible or text-reordering characters; catalogs remove them
        "#]],
    );
}

#[test]
fn invalid_yaml() {
    check(
        "---\nname: pdf\ndescription: Use when: the user asks.\nlicense: MIT\n---\nBody",
        expect![[r#"
            "pdf": "Use when: the user asks."
            Properties { license: Some("MIT")
            3:22: warning[invalid-yaml]: the value of `description` is invalid YAML: mapping values are not allowed in this context
        "#]],
    );
    check(
        "---\nname: pdf\ndescription: Reads files.\n  Use when: asked.\n\n  Second: paragraph.\nlicense: MIT\n---\nBody",
        expect![[r#"
            "pdf": "Reads files. Use when: asked.\nSecond: paragraph."
            Properties { license: Some("MIT")
            4:11: warning[invalid-yaml]: the value of `description` is invalid YAML: mapping values are not allowed in this context
        "#]],
    );
    check(
        "---\nname: pdf\ndescription: Reads files\nand continues: without indentation here.\n---\nBody",
        expect![[r#"
        "pdf": "Reads files"
        extra: Some({"and continues": String("without indentation here.")}) }
    "#]],
    );
    check(
        "---\nname: pdf\ndescription: Reads files\nand goes on unindented.\nlicense: a: b\n---\nBody",
        expect![[r#"
            "pdf": "Reads files and goes on unindented."
            Properties { license: Some("a: b")
            4:1: warning[invalid-yaml]: the value of `description` is invalid YAML: simple key expected ':'
            5:11: warning[invalid-yaml]: the value of `license` is invalid YAML: mapping values are not allowed in this context
        "#]],
    );
    check(
        "---\nname: pdf\ndescription: \"Reads \\d files\"\n---\nBody",
        expect![[r#"
            "pdf": "Reads \\d files"
            3:14: warning[invalid-yaml]: the value of `description` is invalid YAML: while parsing a quoted scalar, found unknown escape character
        "#]],
    );
    check(
        "---\nname: pdf\ndescription: \"a\" and \"b\"\n---\nBody",
        expect![[r#"
            "pdf": "\"a\" and \"b\""
            3:18: warning[invalid-yaml]: the value of `description` is invalid YAML: invalid trailing content after double-quoted scalar
        "#]],
    );
    check(
        "---\nname: pdf\ndescription: 'It's here'\n---\nBody",
        expect![[r#"
            "pdf": "It's here"
            3:18: warning[invalid-yaml]: the value of `description` is invalid YAML: invalid trailing content after single-quoted scalar
        "#]],
    );
    check(
        "---\nname: pdf\ndescription: \"never closed\nlicense: MIT\n---\nBody",
        expect![[r#"
            "pdf": "never closed"
            Properties { license: Some("MIT")
            4:1: warning[invalid-yaml]: the value of `description` is invalid YAML: invalid indentation in multiline quoted scalar
        "#]],
    );
    check(
        "---\nname:pdf\ndescription:Reads files.\n---\nBody",
        expect![[r#"
            "pdf": "Reads files."
            2:1: warning[invalid-yaml]: the value of `name` is invalid YAML: there is no space after the colon
            3:1: warning[invalid-yaml]: the value of `description` is invalid YAML: there is no space after the colon
        "#]],
    );
    check(
        "---\nname: pdf\ndescription: |\n\tTab: one\n\tTab: two\nx: y: z\n---\nBody",
        expect![[r#"
            "pdf": "Tab: one\n\tTab: two"
            extra: Some({"x": String("y: z")}) }
            3:14: warning[invalid-yaml]: the value of `description` is invalid YAML: a block scalar content cannot start with a tab
            6:5: warning[invalid-yaml]: the value of `x` is invalid YAML: mapping values are not allowed in this context
        "#]],
    );
    check(
        "---\nname: pdf\ndescription: @mention and `code`\n---\nBody",
        expect![[r#"
            "pdf": "@mention and `code`"
            3:14: warning[invalid-yaml]: the value of `description` is invalid YAML: unexpected character: `@'
        "#]],
    );
    check(
        "---\nname: pdf\ndescription: d\nmetadata: {a: b\n---\nBody",
        expect![[r#"
            "pdf": "d"
            4:11: warning[field-left-out]: the value of `metadata` is invalid and is ignored: unclosed bracket '{'
        "#]],
    );
    check(
        "---\nname: pdf\ndescription: d\nmetadata:\n  author: me: you\n  version: 1.10\n  list: [1, 2]\n---\nBody",
        expect![[r#"
            "pdf": "d"
            version: Some("1.10"), metadata: Some(Object {"author": String("me: you"), "version": String("1.10"), "list": Array [Number(1), Number(2)]})
            5:13: warning[invalid-yaml]: the value of `author` is invalid YAML: mapping values are not allowed in this context
        "#]],
    );
    check(
        "---\nname: pdf\ndescription: d\nmetadata: *x\n---\nBody",
        expect![[r#"
            "pdf": "d"
            metadata: Some(String("*x"))
            4:11: warning[invalid-yaml]: the value of `metadata` is invalid YAML: while parsing node, found unknown anchor
            4:1: warning[metadata-not-a-mapping]: `metadata` must be a mapping
        "#]],
    );
    check(
        "---\n  name: pdf\n  description: a: b\n---\nBody",
        expect![[r#"
            "pdf": "a: b"
            3:17: warning[invalid-yaml]: the value of `description` is invalid YAML: mapping values are not allowed in this context
        "#]],
    );
    check(
        "---\nstray line\nname: pdf\ndescription: a: b\n---\nBody",
        expect![[r#"
            "pdf": "a: b"
            2: warning[not-a-field]: the line is not a `key: value` pair and is ignored
            4:15: warning[invalid-yaml]: the value of `description` is invalid YAML: mapping values are not allowed in this context
        "#]],
    );
    check(
        "---\n%YAML 1.2\nname: pdf\ndescription: d\n---\nBody",
        expect![[r#"
            "pdf": "d"
            2: warning[not-a-field]: the line is not a `key: value` pair and is ignored
        "#]],
    );
    check(
        "---\nname: pdf\ndescription: d\n...\nname: other\n---\nBody",
        expect![[r#"
            "pdf": "d"
            5:1: warning[duplicate-key]: duplicate field `name`; the first one is used
        "#]],
    );
}

#[test]
fn duplicates() {
    check(
        "---\nname: pdf\nname: other\ndescription: d\n---\nBody",
        expect![[r#"
            "pdf": "d"
            3:1: warning[duplicate-key]: duplicate field `name`; the first one is used
        "#]],
    );
    check(
        "---\nname: pdf\ndescription: d\nmetadata:\n  a: 1\n  a: 2\n---\nBody",
        expect![[r#"
            "pdf": "d"
            metadata: Some(Object {"a": Number(1)})
            6:3: warning[duplicate-key]: duplicate field `a`; the first one is used
        "#]],
    );
    check(
        "---\nname: pdf\ndescription: a: b\nname: other\n---\nBody",
        expect![[r#"
            "pdf": "a: b"
            3:15: warning[invalid-yaml]: the value of `description` is invalid YAML: mapping values are not allowed in this context
            4:1: warning[duplicate-key]: duplicate field `name`; the first one is used
        "#]],
    );
}

#[test]
fn names() {
    check(
        "---\ndescription: d\n---\nBody",
        expect![[r#"
            "pdf": "d"
            1: warning[name-missing]: the skill has no name
        "#]],
    );
    check(
        "---\nname:\ndescription: d\n---\nBody",
        expect![[r#"
            "pdf": "d"
            1: warning[name-missing]: the skill has no name
        "#]],
    );
    check(
        "---\nname: ~\ndescription: d\n---\nBody",
        expect![[r#"
            "pdf": "d"
            1: warning[name-missing]: the skill has no name
        "#]],
    );
    check(
        "---\nname: \"\\u200B\"\ndescription: d\n---\nBody",
        expect![[r#"
            "pdf": "d"
            1: warning[name-missing]: the skill has no name
        "#]],
    );
    check(
        "---\nname: PDF Reader\ndescription: d\n---\nBody",
        expect![[r#"
            "PDF Reader": "d"
            2:7: warning[name-not-lowercase]: the name `PDF Reader` contains upper-case letters
            2:7: warning[name-invalid-characters]: the name `PDF Reader` contains the character " ", which is not allowed
            2:7: warning[name-not-directory]: the name `PDF Reader` differs from the name of its directory, `pdf`
        "#]],
    );
    check(
        "---\nname: -pdf--x_y-\ndescription: d\n---\nBody",
        expect![[r#"
            "-pdf--x_y-": "d"
            2:7: warning[name-edge-hyphen]: the name `-pdf--x_y-` starts or ends with a hyphen
            2:7: warning[name-consecutive-hyphens]: the name `-pdf--x_y-` has consecutive hyphens
            2:7: warning[name-invalid-characters]: the name `-pdf--x_y-` contains the character "_", which is not allowed
            2:7: warning[name-not-directory]: the name `-pdf--x_y-` differs from the name of its directory, `pdf`
        "#]],
    );
    check(
        "---\nname: [pdf]\ndescription: d\n---\nBody",
        expect![[r#"
            "[pdf]": "d"
            2:7: warning[not-text]: `name` must be a text; the literal text is used
            2:7: warning[name-invalid-characters]: the name `[pdf]` contains the character "[", which is not allowed
            2:7: warning[name-not-directory]: the name `[pdf]` differs from the name of its directory, `pdf`
        "#]],
    );
    check(
        "---\nName: pdf\nDescription: d\n---\nBody",
        expect![[r#"
            "pdf": "d"
            2:1: warning[field-spelling]: the field `Name` must be spelled `name`
            3:1: warning[field-spelling]: the field `Description` must be spelled `description`
        "#]],
    );
}

#[test]
fn descriptions() {
    check(
        "---\nname: pdf\n---\nBody",
        expect![[r#"
            1: error[description-missing]: the skill has no description
        "#]],
    );
    check(
        "---\nname: pdf\ndescription:\n---\nBody",
        expect![[r#"
        3:1: error[description-missing]: the skill has no description
    "#]],
    );
    check(
        "---\nname: pdf\ndescription: \"\"\n---\nBody",
        expect![[r#"
        3:1: error[description-missing]: the skill has no description
    "#]],
    );
    check(
        "---\nname: pdf\ndescription: \"\\0 \\a\"\n---\nBody",
        expect![[r#"
        3:1: error[description-missing]: the skill has no description
    "#]],
    );
    check(
        "---\nname: pdf\ndescription: null\n---\nBody",
        expect![[r#"
        3:1: error[description-missing]: the skill has no description
    "#]],
    );
}
