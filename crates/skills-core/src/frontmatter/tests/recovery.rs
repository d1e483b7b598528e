//! Invalid YAML: the fields that are recovered, and the diagnostics.

use expect_test::expect;

use super::check_pdf as check;

#[test]
fn invalid_text_becomes_literal_text() {
    check(
        "---\nname: pdf\ndescription: Use when: the user asks.\nlicense: MIT\n---\nBody",
        expect![[r#"
            "pdf": "Use when: the user asks."
            Properties { license: Some("MIT")
            3:22: warning[invalid-yaml]: invalid YAML value for `description`: mapping values are not allowed in this context
        "#]],
    );
    check(
        "---\nname: pdf\ndescription: Reads files.\n  Use when: asked.\n\n  Second: paragraph.\nlicense: MIT\n---\nBody",
        expect![[r#"
            "pdf": "Reads files. Use when: asked.\nSecond: paragraph."
            Properties { license: Some("MIT")
            4:11: warning[invalid-yaml]: invalid YAML value for `description`: mapping values are not allowed in this context
        "#]],
    );
    check(
        "---\nname: pdf\ndescription: Reads files\nand continues: without indentation here.\n---\nBody",
        expect![[r#"
            "pdf": "Reads files"
            extra: Some("{\"and continues\":\"without indentation here.\"}") }
        "#]],
    );
    check(
        "---\nname: pdf\ndescription: Reads files\nand goes on unindented.\nlicense: a: b\n---\nBody",
        expect![[r#"
            "pdf": "Reads files and goes on unindented."
            Properties { license: Some("a: b")
            4:1: warning[invalid-yaml]: invalid YAML value for `description`: simple key expected ':'
            5:11: warning[invalid-yaml]: invalid YAML value for `license`: mapping values are not allowed in this context
        "#]],
    );
    check(
        "---\nname: pdf\ndescription: \"Reads \\d files\"\n---\nBody",
        expect![[r#"
            "pdf": "Reads \\d files"
            3:14: warning[invalid-yaml]: invalid YAML value for `description`: while parsing a quoted scalar, found unknown escape character
        "#]],
    );
    check(
        "---\nname: pdf\ndescription: \"a\" and \"b\"\n---\nBody",
        expect![[r#"
            "pdf": "\"a\" and \"b\""
            3:18: warning[invalid-yaml]: invalid YAML value for `description`: invalid trailing content after double-quoted scalar
        "#]],
    );
    check(
        "---\nname: pdf\ndescription: 'It's here'\n---\nBody",
        expect![[r#"
            "pdf": "It's here"
            3:18: warning[invalid-yaml]: invalid YAML value for `description`: invalid trailing content after single-quoted scalar
        "#]],
    );
    check(
        "---\nname: pdf\ndescription: \"never closed\nlicense: MIT\n---\nBody",
        expect![[r#"
            "pdf": "never closed"
            Properties { license: Some("MIT")
            4:1: warning[invalid-yaml]: invalid YAML value for `description`: invalid indentation in multiline quoted scalar
        "#]],
    );
    check(
        "---\nname:pdf\ndescription:Reads files.\n---\nBody",
        expect![[r#"
            "pdf": "Reads files."
            2:1: warning[invalid-yaml]: invalid YAML value for `name`: expected a space after the colon
            3:1: warning[invalid-yaml]: invalid YAML value for `description`: expected a space after the colon
        "#]],
    );
}

#[test]
fn invalid_values_are_recovered_or_ignored() {
    check(
        "---\nname: pdf\ndescription: |\n\tTab: one\n\tTab: two\nx: y: z\n---\nBody",
        expect![[r#"
            "pdf": "Tab: one\n\tTab: two"
            extra: Some("{\"x\":\"y: z\"}") }
            3:14: warning[invalid-yaml]: invalid YAML value for `description`: a block scalar content cannot start with a tab
            6:5: warning[invalid-yaml]: invalid YAML value for `x`: mapping values are not allowed in this context
        "#]],
    );
    check(
        "---\nname: pdf\ndescription: @mention and `code`\n---\nBody",
        expect![[r#"
            "pdf": "@mention and `code`"
            3:14: warning[invalid-yaml]: invalid YAML value for `description`: unexpected character: `@'
        "#]],
    );
    check(
        "---\nname: pdf\ndescription: d\nmetadata: {a: b\n---\nBody",
        expect![[r#"
            "pdf": "d"
            4:11: warning[field-left-out]: ignoring invalid value for `metadata`: unclosed bracket '{'
        "#]],
    );
    check(
        "---\nname: pdf\ndescription: d\nmetadata:\n  author: me: you\n  version: 1.10\n  list: [1, 2]\n---\nBody",
        expect![[r#"
            "pdf": "d"
            version: Some("1.10"), metadata: Some("{\"author\":\"me: you\",\"version\":\"1.10\",\"list\":[1,2]}")
            5:13: warning[invalid-yaml]: invalid YAML value for `author`: mapping values are not allowed in this context
        "#]],
    );
    check(
        "---\nname: pdf\ndescription: d\nmetadata: *x\n---\nBody",
        expect![[r#"
            "pdf": "d"
            metadata: Some("\"*x\"")
            4:11: warning[invalid-yaml]: invalid YAML value for `metadata`: while parsing node, found unknown anchor
            4:1: warning[metadata-not-a-mapping]: `metadata` should be a mapping
        "#]],
    );
    check(
        "---\n  name: pdf\n  description: a: b\n---\nBody",
        expect![[r#"
            "pdf": "a: b"
            3:17: warning[invalid-yaml]: invalid YAML value for `description`: mapping values are not allowed in this context
        "#]],
    );
    check(
        "---\nstray line\nname: pdf\ndescription: a: b\n---\nBody",
        expect![[r#"
            "pdf": "a: b"
            2: warning[not-a-field]: ignoring line: expected a `key: value` pair
            4:15: warning[invalid-yaml]: invalid YAML value for `description`: mapping values are not allowed in this context
        "#]],
    );
    check(
        "---\n%YAML 1.2\nname: pdf\ndescription: d\n---\nBody",
        expect![[r#"
            "pdf": "d"
            2: warning[not-a-field]: ignoring line: expected a `key: value` pair
        "#]],
    );
    check(
        "---\nname: pdf\ndescription: d\n...\nname: other\n---\nBody",
        expect![[r#"
            "pdf": "d"
            5:1: warning[duplicate-key]: duplicate field `name`; using the first value
        "#]],
    );
}

#[test]
fn duplicate_fields_are_reported() {
    check(
        "---\nname: pdf\nname: other\ndescription: d\n---\nBody",
        expect![[r#"
            "pdf": "d"
            3:1: warning[duplicate-key]: duplicate field `name`; using the first value
        "#]],
    );
    check(
        "---\nname: pdf\ndescription: d\nmetadata:\n  a: 1\n  a: 2\n---\nBody",
        expect![[r#"
            "pdf": "d"
            metadata: Some("{\"a\":1}")
            6:3: warning[duplicate-key]: duplicate field `a`; using the first value
        "#]],
    );
    check(
        "---\nname: pdf\ndescription: a: b\nname: other\n---\nBody",
        expect![[r#"
            "pdf": "a: b"
            3:15: warning[invalid-yaml]: invalid YAML value for `description`: mapping values are not allowed in this context
            4:1: warning[duplicate-key]: duplicate field `name`; using the first value
        "#]],
    );
}
