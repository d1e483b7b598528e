//! Malformed files: the metadata that is loaded, and the diagnostics.

use expect_test::expect;

use super::check_pdf as check;

#[test]
fn well_formed_files_have_no_diagnostics() {
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
fn line_ends_and_marks_and_unclosed_frontmatter() {
    check(
        "\u{FEFF}---\nname: pdf\ndescription: d\n---\nBody",
        expect![[r#"
            "pdf": "d"
            1:1: warning[byte-order-mark]: file starts with a byte order mark
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
            1: warning[leading-blank-lines]: found blank lines before frontmatter
        "#]],
    );
    check(
        "---\nname: pdf\ndescription: d\n\n# Title\n\nBody: text",
        expect![[r##"
            "pdf": "d"
            body "# Title\n\nBody: text"
            5: warning[frontmatter-not-closed]: frontmatter is not closed, but probably ends here
        "##]],
    );
    check(
        "---\nname: pdf\ndescription: d\n",
        expect![[r#"
            "pdf": "d"
            body ""
            4: warning[frontmatter-not-closed]: frontmatter is not closed, but probably ends here
            4: warning[body-empty]: skill has no instructions
        "#]],
    );
}

#[test]
fn indented_fences_and_missing_parts() {
    check(
        "  ---\n  name: pdf\n  description: d\n  ---\nBody",
        expect![[r#"
        "pdf": "d"
        1:1: warning[indented-fence]: opening `---` is indented
        4:1: warning[indented-fence]: closing `---` is indented
    "#]],
    );
    check(
        "---\nname: pdf\ndescription: d\n  ---\n\n# Title\nSome: thing: else\n\n---\nMore",
        expect![[r##"
        "pdf": "d"
        body "# Title\nSome: thing: else\n\n---\nMore"
        4:1: warning[indented-fence]: closing `---` is indented
    "##]],
    );
    check(
        "---\nname: pdf\ndescription: d\n---\n \n",
        expect![[r#"
        "pdf": "d"
        body ""
        4: warning[body-empty]: skill has no instructions
    "#]],
    );
    check(
        "# Title\n\nNo frontmatter.\n",
        expect![[r#"
            1:1: error[frontmatter-missing]: file does not start with frontmatter
        "#]],
    );
    check(
        "",
        expect![[r#"
            1:1: error[frontmatter-missing]: file does not start with frontmatter
        "#]],
    );
    check(
        "---\n---\nBody",
        expect![[r#"
            1: warning[name-missing]: skill has no name
            1: error[description-missing]: skill has no description
        "#]],
    );
    check(
        "---\n# nothing\n---\nBody",
        expect![[r#"
            1: warning[name-missing]: skill has no name
            1: error[description-missing]: skill has no description
        "#]],
    );
    check(
        "---\njust text\n---\nBody",
        expect![[r#"
            2: warning[not-a-field]: ignoring line: expected a `key: value` pair
            2:1: error[frontmatter-not-a-mapping]: frontmatter has no `key: value` line: expected a mapping
        "#]],
    );
    check(
        "---\n- a\n- b\n---\nBody",
        expect![[r#"
            2: warning[not-a-field]: ignoring line: expected a `key: value` pair
            2:1: error[frontmatter-not-a-mapping]: frontmatter has no `key: value` line: expected a mapping
        "#]],
    );
}

#[test]
fn unquoted_text_stays_literal() {
    check(
        "---\nname: 1.10\ndescription: yes\nversion: 1.10\n---\nBody",
        expect![[r#"
            "1.10": "yes"
            version: Some("1.10")
            2:7: warning[name-invalid-characters]: name `1.10` contains ".", but this character is not allowed
            2:7: warning[name-not-directory]: name `1.10` should match the directory name `pdf`
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
            3:19: warning[not-text]: `description` contains a YAML tag or anchor; using the literal text instead
        "#]],
    );
    check(
        "---\nname: pdf\ndescription: !tag some text\n---\nBody",
        expect![[r#"
            "pdf": "!tag some text"
            3:19: warning[not-text]: `description` contains a YAML tag or anchor; using the literal text instead
        "#]],
    );
    check(
        "---\nname: pdf\ndescription: *all files\n---\nBody",
        expect![[r#"
            "pdf": "*all files"
            3:14: warning[invalid-yaml]: invalid YAML value for `description`: while parsing node, found unknown anchor
        "#]],
    );
    check(
        "---\nname: pdf\ndescription: [Beta] Reads files.\n---\nBody",
        expect![[r#"
            "pdf": "[Beta] Reads files."
            3:21: warning[invalid-yaml]: invalid YAML value for `description`: while parsing a block mapping, did not find expected key
        "#]],
    );
    check(
        "---\nname: pdf\ndescription: [Beta, New]\n---\nBody",
        expect![[r#"
            "pdf": "[Beta, New]"
            3:14: warning[not-text]: `description` should be a string; using the literal text instead
        "#]],
    );
    check(
        "---\nname: {{name}}\ndescription: {{x}}\n---\nBody",
        expect![[r#"
            "{{name}}": "{{x}}"
            2:7: warning[not-text]: `name` should be a string; using the literal text instead
            2:7: warning[name-invalid-characters]: name `{{name}}` contains "{", but this character is not allowed
            2:7: warning[name-not-directory]: name `{{name}}` should match the directory name `pdf`
            3:14: warning[not-text]: `description` should be a string; using the literal text instead
        "#]],
    );
}

#[test]
fn comments_and_control_characters() {
    check(
        "---\nname: pdf\ndescription: issue #12 is fixed\n---\nBody",
        expect![[r#"
            "pdf": "issue"
            3:14: warning[cut-by-comment]: `description`: value ends before `#`, because `#` after a space starts a comment in YAML
        "#]],
    );
    check(
        "---\nname: pdf\ndescription: #1 tool\n---\nBody",
        expect![[r##"
            "pdf": "#1 tool"
            3:12: warning[cut-by-comment]: `description`: value is empty, because `#` after a space starts a comment in YAML
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
            3: warning[control-character]: ignoring control character in frontmatter
        "#]],
    );
    check(
        "---\nname: pdf\ndescription: \"a \\u202E b\"\n---\nBody",
        expect![[r#"
            "pdf": "a \u{202e} b"
            3:14: warning[deceptive-characters]: description contains invisible or text-reordering characters, which are removed from catalogs
        "#]],
    );
}

#[test]
fn missing_and_invalid_names() {
    check(
        "---\ndescription: d\n---\nBody",
        expect![[r#"
            "pdf": "d"
            1: warning[name-missing]: skill has no name
        "#]],
    );
    check(
        "---\nname:\ndescription: d\n---\nBody",
        expect![[r#"
            "pdf": "d"
            1: warning[name-missing]: skill has no name
        "#]],
    );
    check(
        "---\nname: ~\ndescription: d\n---\nBody",
        expect![[r#"
            "pdf": "d"
            1: warning[name-missing]: skill has no name
        "#]],
    );
    check(
        "---\nname: \"\\u200B\"\ndescription: d\n---\nBody",
        expect![[r#"
            "pdf": "d"
            1: warning[name-missing]: skill has no name
        "#]],
    );
    check(
        "---\nname: PDF Reader\ndescription: d\n---\nBody",
        expect![[r#"
            "PDF Reader": "d"
            2:7: warning[name-not-lowercase]: name `PDF Reader` contains upper-case letters
            2:7: warning[name-invalid-characters]: name `PDF Reader` contains " ", but this character is not allowed
            2:7: warning[name-not-directory]: name `PDF Reader` should match the directory name `pdf`
        "#]],
    );
    check(
        "---\nname: -pdf--x_y-\ndescription: d\n---\nBody",
        expect![[r#"
            "-pdf--x_y-": "d"
            2:7: warning[name-edge-hyphen]: name `-pdf--x_y-` starts or ends with a hyphen
            2:7: warning[name-consecutive-hyphens]: name `-pdf--x_y-` has consecutive hyphens
            2:7: warning[name-invalid-characters]: name `-pdf--x_y-` contains "_", but this character is not allowed
            2:7: warning[name-not-directory]: name `-pdf--x_y-` should match the directory name `pdf`
        "#]],
    );
    check(
        "---\nname: [pdf]\ndescription: d\n---\nBody",
        expect![[r#"
            "[pdf]": "d"
            2:7: warning[not-text]: `name` should be a string; using the literal text instead
            2:7: warning[name-invalid-characters]: name `[pdf]` contains "[", but this character is not allowed
            2:7: warning[name-not-directory]: name `[pdf]` should match the directory name `pdf`
        "#]],
    );
    check(
        "---\nName: pdf\nDescription: d\n---\nBody",
        expect![[r#"
            "pdf": "d"
            2:1: warning[field-spelling]: field `Name` should be spelled `name`
            3:1: warning[field-spelling]: field `Description` should be spelled `description`
        "#]],
    );
}

#[test]
fn missing_descriptions() {
    check(
        "---\nname: pdf\n---\nBody",
        expect![[r#"
            1: error[description-missing]: skill has no description
        "#]],
    );
    check(
        "---\nname: pdf\ndescription:\n---\nBody",
        expect![[r#"
        3:1: error[description-missing]: skill has no description
    "#]],
    );
    check(
        "---\nname: pdf\ndescription: \"\"\n---\nBody",
        expect![[r#"
        3:1: error[description-missing]: skill has no description
    "#]],
    );
    check(
        "---\nname: pdf\ndescription: \"\\0 \\a\"\n---\nBody",
        expect![[r#"
        3:1: error[description-missing]: skill has no description
    "#]],
    );
    check(
        "---\nname: pdf\ndescription: null\n---\nBody",
        expect![[r#"
        3:1: error[description-missing]: skill has no description
    "#]],
    );
}
