//! The generated pages of the manual: flags and commands from `--help`, and configuration keys from the schema. And the
//! schema of the configuration file for editors.

use std::{
    fmt::Write,
    path::{Path, PathBuf},
    process::Command,
};

use expect_test::expect_file;
use serde_json::{Map, Value};

const HEAD: &str = "\
# Flags and commands

This page contains the help of the program and of each command, as `--help` prints it. A flag can also be a key in the
[configuration file](configuration.md).

<!-- Generated: UPDATE_EXPECT=1 cargo test -p acp-skills-proxy --test cli reference -->
";

const KEYS_HEAD: &str = "\
# Configuration keys

This page lists all keys of `skills.yaml`. [Flags and commands](reference.md) explains the keys that are also flags.
Editors can use the
[JSON schema](https://github.com/acp-skills/acp-skills-proxy/blob/main/crates/acp-skills-proxy/skills.schema.json).

<!-- Generated: UPDATE_EXPECT=1 cargo test -p acp-skills-proxy --test cli reference -->
";

/// Returns the path of a page of the manual.
fn page(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("manual/src").join(name)
}

fn help(arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_acp-skills-proxy"))
        .args(arguments)
        .env("COLUMNS", "100")
        .env_remove("ACP_SKILLS_LOG")
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap().replace("acp-skills-proxy.exe", "acp-skills-proxy");
    let lines: Vec<_> = text.lines().map(str::trim_end).collect();
    lines.join("\n").trim().to_owned()
}

/// Compares the schema of `skills.yaml`, which editors use.
#[test]
fn schema() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("skills.schema.json");
    let schema = serde_json::to_string_pretty(&acp_skills::config::schema()).unwrap();
    expect_file![path].assert_eq(&(schema + "\n"));
}

#[test]
fn reference() {
    let mut text = HEAD.to_owned();
    for command in [
        "",
        "help flags",
        "try",
        "doctor",
        "list",
        "check",
        "search",
        "why",
        "trust",
        "untrust",
        "init",
        "eval",
        "eval history",
        "eval merge",
        "eval improve",
        "eval cases",
        "add",
        "update",
        "outdated",
        "remove",
        "sources",
        "sources pin",
        "sources unpin",
        "report",
        "policy",
        "policy show",
        "policy check",
        "setup",
        "mcp",
        "completions",
    ] {
        let arguments = match command {
            "" => vec!["--help"],
            "help flags" => vec!["help", "flags"],
            command => command.split(' ').chain(["--help"]).collect(),
        };
        let title = format!("acp-skills-proxy {command}");
        let _ = write!(text, "\n## `{}`\n\n```text\n{}\n```\n", title.trim(), help(&arguments));
    }
    expect_file![page("reference.md")].assert_eq(&text);
}

/// Returns the values that a schema allows, in Markdown. Types with keys of their own become links.
fn values(schema: &Value, definitions: &Map<String, Value>) -> String {
    let joined = |schemas: &Value| {
        let schemas = schemas.as_array().into_iter().flatten();
        let mut all: Vec<_> = schemas.map(|schema| values(schema, definitions)).collect();
        all.retain(|text| text != "null");
        all.dedup();
        // If all of these are constants, they are the names of a single type. Otherwise, the value can have several
        // types.
        all.join(if all.iter().all(|text| text.starts_with('`')) { ", " } else { " or " })
    };
    if let Some(name) = schema["$ref"].as_str().and_then(|path| path.strip_prefix("#/definitions/")) {
        let definition = &definitions[name];
        return if definition["properties"].is_object() {
            format!("[{name}](#{})", name.to_lowercase())
        } else {
            values(definition, definitions)
        };
    }
    if let Some(constant) = schema.get("const") {
        return format!("`{}`", constant.as_str().map_or_else(|| constant.to_string(), str::to_owned));
    }
    if let Some(names) = schema["enum"].as_array() {
        let names: Vec<_> = names.iter().filter_map(Value::as_str).map(|name| format!("`{name}`")).collect();
        return names.join(", ");
    }
    for several in ["allOf", "anyOf", "oneOf"] {
        if schema[several].is_array() {
            return joined(&schema[several]);
        }
    }
    let types: Vec<_> = match &schema["type"] {
        Value::Array(names) => {
            names.iter().filter_map(Value::as_str).filter(|name| *name != "null").collect()
        }
        name => name.as_str().into_iter().collect(),
    };
    match types.as_slice() {
        ["array"] => {
            format!("list of {}", values(&schema["items"], definitions).replace("string", "strings"))
        }
        ["boolean"] => "`true`, `false`".to_owned(),
        ["object"] => "mapping".to_owned(),
        [] => "any value".to_owned(),
        types => types.join(" or "),
    }
}

/// Returns the first paragraph of a schema's description as a single line. The other paragraphs are for Rust programs.
fn summary(schema: &Value) -> String {
    let description = schema["description"].as_str().unwrap_or_default();
    description.split("\n\n").next().unwrap_or_default().replace('\n', " ")
}

/// Writes the table of an object's keys.
fn write_keys(text: &mut String, schema: &Value, definitions: &Map<String, Value>) {
    text.push_str("\n| key | value | description |\n|---|---|---|\n");
    for (key, value) in schema["properties"].as_object().into_iter().flatten() {
        let row = format!("| `{key}` | {} | {} |", values(value, definitions), summary(value));
        let _ = writeln!(text, "{}", row.replace("  |", " |"));
    }
}

#[test]
fn configuration_keys() {
    let schema = serde_json::to_value(acp_skills::config::schema()).unwrap();
    let definitions = schema["definitions"].as_object().unwrap();
    let mut text = KEYS_HEAD.to_owned();
    text.push_str("\n## At the top level\n");
    write_keys(&mut text, &schema, definitions);
    for (name, definition) in
        definitions.iter().filter(|(_, definition)| definition["properties"].is_object())
    {
        let _ = write!(text, "\n## {name}\n");
        let _ = write!(text, "\n{}\n", summary(definition));
        write_keys(&mut text, definition, definitions);
    }
    expect_file![page("configuration-keys.md")].assert_eq(&text);
}
