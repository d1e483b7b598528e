//! All fields except name and description.

use std::fmt::Write as _;

use expect_test::{Expect, expect};

use crate::frontmatter::*;

/// Parses `yaml` as a part of the frontmatter, and compares the properties and the diagnostics.
fn check(yaml: &str, expect: Expect) {
    let text = format!("---\nname: pdf\ndescription: d\n{yaml}\n---\nBody");
    let parsed = parse(&text, &ParseContext::in_directory("pdf"));
    let properties = parsed.frontmatter.expect("the frontmatter is valid").properties;
    let mut actual = String::new();
    for (name, text) in [
        ("license", &properties.license),
        ("compatibility", &properties.compatibility),
        ("version", &properties.version),
        ("hint", &properties.argument_hint),
    ] {
        if let Some(text) = text {
            writeln!(actual, "{name} {text:?}").unwrap();
        }
    }
    let Properties { allowed_tools: tools, tags, metadata, .. } = &properties;
    if !tools.is_empty() {
        writeln!(actual, "tools {tools:?}").unwrap();
    }
    if !tags.is_empty() {
        writeln!(actual, "tags {tags:?}").unwrap();
    }
    if let Some(metadata) = metadata {
        writeln!(actual, "metadata {metadata}").unwrap();
    }
    for (name, changed) in [
        ("not user-invocable", !properties.user_invocable),
        ("not for models", properties.disable_model_invocation),
        ("hidden", properties.hide_from_discovery),
    ] {
        if changed {
            writeln!(actual, "{name}").unwrap();
        }
    }
    if properties.priority != 0 {
        writeln!(actual, "priority {}", properties.priority).unwrap();
    }
    if let Some(extra) = &properties.extra {
        writeln!(actual, "extra {extra}").unwrap();
    }
    for diagnostic in parsed.diagnostics {
        writeln!(actual, "{diagnostic}").unwrap();
    }
    expect.assert_eq(&actual);
}

#[test]
fn texts_and_allowed_tools() {
    check(
        "license: MIT\ncompatibility: Needs git\nversion: 1.10",
        expect![[r#"
        license "MIT"
        compatibility "Needs git"
        version "1.10"
    "#]],
    );
    check(
        "compatibility:",
        expect![[r#"
            4:1: warning[compatibility-empty]: `compatibility` is empty
              help: add the requirements of the skill, or remove the field
        "#]],
    );
    check(
        "version: 2.0.1\nargument-hint: [file] [--fast]",
        expect![[r#"
            version "2.0.1"
            hint "[file] [--fast]"
            5:23: warning[invalid-yaml]: invalid YAML value for `argument-hint`: while parsing a block mapping, did not find expected key
              help: put the text in quotes, or in indented lines after `>-`; using the literal text for now
        "#]],
    );
    check(
        "argument-hint: [file]",
        expect![[r#"
        hint "[file]"
    "#]],
    );
    check(
        "allowed-tools: Bash(gh issue:*) Read",
        expect![[r#"
        tools ["Bash(gh issue:*)", "Read"]
    "#]],
    );
    check(
        "allowed-tools: Read, Bash(a b)",
        expect![[r#"
        tools ["Read", "Bash(a b)"]
    "#]],
    );
    check(
        "allowed-tools:\n  - Read\n  - Bash(a b)",
        expect![[r#"
        tools ["Read", "Bash(a b)"]
    "#]],
    );
    check(
        "allowed-tools: [Read, Write]",
        expect![[r#"
        tools ["Read", "Write"]
    "#]],
    );
    check(
        "allowed-tools: *",
        expect![[r#"
            tools ["*"]
            4:16: warning[invalid-yaml]: invalid YAML value for `allowed-tools`: while scanning an anchor or alias, did not find expected alphabetic or numeric character
              help: put the text in quotes, or in indented lines after `>-`; using the literal text for now
        "#]],
    );
    check(
        "allowed-tools:\n  a: b",
        expect![[r#"
            5:3: warning[field-left-out]: ignoring `allowed-tools`: expected a list of tools
        "#]],
    );
}

#[test]
fn flags_and_their_spellings() {
    check(
        "user-invocable: false\ndisable-model-invocation: yes\nhide-from-discovery: \"true\"",
        expect![[r#"
        not user-invocable
        not for models
        hidden
    "#]],
    );
    check(
        "userInvocable: no\ndisable_model_invocation: on\nhideFromDiscovery: 1\nargumentHint: x",
        expect![[r#"
            hint "x"
            not user-invocable
            not for models
            hidden
        "#]],
    );
    check(
        "metadata:\n  userInvocable: false\n  priority: 3\n  tags: [a, b]\n  version: 1.10",
        expect![[r#"
        version "1.10"
        tags ["a", "b"]
        metadata {"userInvocable":false,"priority":3,"tags":["a","b"],"version":"1.10"}
        not user-invocable
        priority 3
    "#]],
    );
    check(
        "user-invocable: true\nmetadata:\n  user-invocable: false",
        expect![[r#"
        metadata {"user-invocable":false}
    "#]],
    );
    check(
        "user-invocable: maybe\npriority: high\ntags:\n  a: b",
        expect![[r#"
            7:3: warning[field-left-out]: ignoring `tags`: expected a list of words
            5:11: warning[field-left-out]: ignoring `priority`: expected a whole number
            4:17: warning[field-left-out]: ignoring `user-invocable`: expected `true` or `false`
        "#]],
    );
    check(
        "priority: -5\ntags: one, two words",
        expect![[r#"
        tags ["one", "two words"]
        priority -5
    "#]],
    );
}

#[test]
fn metadata_and_unknown_fields() {
    check(
        "metadata:\n  a: [1, 2.5, 1.0, 0x1, true, null, ~, {b: c}]\n  d: \"1\"",
        expect![[r#"
        metadata {"a":[1,2.5,1.0,"0x1",true,null,null,{"b":"c"}],"d":"1"}
    "#]],
    );
    check(
        "metadata: text",
        expect![[r#"
            metadata "text"
            4:11: warning[metadata-not-a-mapping]: `metadata` should be a mapping
              help: use indented `key: value` lines after `metadata:`
        "#]],
    );
    check(
        "zebra: 1\nhomepage: https://example.com\napple: [a]\n? [x, y]\n: z",
        expect![[r#"
        extra {"zebra":1,"homepage":"https://example.com","apple":["a"],"[\"x\",\"y\"]":"z"}
    "#]],
    );
}

#[test]
fn parameters_and_examples_are_read_from_the_metadata() {
    let text = "---\nname: a\ndescription: b\nmetadata:\n  parameters:\n    - name: path\n      required: true\n    - depth\n  examples:\n    - scenario: A review.\n      expected: A list.\n---\nBody\n";
    let parsed = crate::frontmatter::parse(text, &crate::frontmatter::ParseContext::default());
    assert!(parsed.diagnostics.is_empty(), "{:?}", parsed.diagnostics);
    let usage = parsed.frontmatter.unwrap().properties.usage.unwrap();
    assert_eq!((usage.parameters.len(), usage.examples[0].expected.as_str()), (2, "A list."));
    // The specification only allows strings here, so there should be a warning.
    let verdict = crate::frontmatter::Verdict::Spec;
    let found = crate::frontmatter::validate(text, &crate::frontmatter::ParseContext::default(), verdict);
    assert!(
        found.iter().all(|finding| !finding.is_error() && finding.code == "metadata-not-text")
            && found.len() == 2,
        "{found:?}"
    );
    let broken = text.replace("name: path", "title: path");
    let parsed = crate::frontmatter::parse(&broken, &crate::frontmatter::ParseContext::default());
    assert_eq!(parsed.diagnostics.iter().map(|finding| finding.code).collect::<Vec<_>>(), ["field-left-out"]);
}
