use std::{fs, path::Path};

use expect_test::{Expect, expect};
use serde_json::json;

use super::*;
use crate::{
    name::SkillName,
    set::SkillSet,
    skill::{Properties, Skill, Source, Stored},
    tool::{CallContext, SkillTool, ToolError, ToolHandler},
};

/// Creates a toolbox with the skill `pdf`, which is stored in `dir`, and several virtual skills.
fn toolbox(dir: &Path) -> Toolbox {
    fs::create_dir_all(dir.join("references")).unwrap();
    fs::write(dir.join("SKILL.md"), "---\nname: PDF\ndescription: x\n---\nRead references/forms.md.\n")
        .unwrap();
    fs::write(dir.join("references/forms.md"), "one\ntwo\nthree\n").unwrap();
    fs::write(dir.join("empty.txt"), "").unwrap();
    fs::write(dir.join("data.bin"), b"\0\x01\x02").unwrap();
    fs::write(dir.join("dot.gif"), b"GIF89a\x01\0\x01\0").unwrap();
    let source = Source::Stored(Stored::new(dir, "SKILL.md"));
    let pdf = Skill::new(SkillName::new("PDF").unwrap(), "Reads PDFs.", source);
    let echo = Skill::builder("echo", "Says it again.")
        .body("Call `say`.")
        .tool("say", "Says the input.", |input: Value| async move { Ok(input) })
        .tool("fail", "Fails.", |_: Value| async { Err::<Value, _>("no luck".into()) })
        .add_tool(SkillTool::new("panic", "Panics.", |_| async { panic!("boom") }))
        .add_tool(SkillTool::new("early", "Panics at once.", EarlyPanic))
        .tool("no-input", "Whether there was none.", |input: Value| async move { Ok(input.is_null()) })
        .build()
        .unwrap();
    let with =
        |name, properties| Skill::builder(name, "x").body("Body.").properties(properties).build().unwrap();
    let hidden = with("hidden", Properties { hide_from_discovery: true, ..Properties::default() });
    let locked = with("locked", Properties { disable_model_invocation: true, ..Properties::default() });
    Toolbox::new([pdf, echo, hidden, locked].into_iter().collect())
}

struct EarlyPanic;

impl ToolHandler for EarlyPanic {
    fn call(
        &self,
        _: Option<Value>,
        _: CallContext,
    ) -> futures::future::BoxFuture<'static, Result<Value, ToolError>> {
        panic!("before the future")
    }
}

async fn call(name: &str, arguments: Value, context: &CallContext) -> ToolOutput {
    let dir = tempfile::tempdir().unwrap();
    let mut output = toolbox(dir.path()).call(name, arguments.as_object().unwrap().clone(), context).await;
    for part in &mut output.content {
        if let Content::Text(text) = part {
            *text = text.replace(&*dir.path().to_string_lossy(), "[DIR]");
        }
    }
    output
}

async fn check(name: &str, arguments: Value, expected: Expect) {
    let output = call(name, arguments, &CallContext::default()).await;
    let shown: Vec<String> = output
        .content
        .iter()
        .map(|part| match part {
            Content::Text(text) => text.clone(),
            Content::Image { media_type, data } => format!("<{media_type}, {} bytes>", data.len()),
        })
        .collect();
    let flag = if output.is_error { "ERROR " } else { "" };
    let structured = output.structured.map(|value| format!("\nstructured: {value}")).unwrap_or_default();
    expected.assert_eq(&format!("{flag}{}{structured}", shown.join("\n")));
}

#[tokio::test]
async fn activate_skill_returns_instructions() {
    let tool = ACTIVATE_SKILL;
    check(
        tool,
        json!({"name": " pdf "}),
        expect![[r#"
        <skill_content name="PDF">
        Read references/forms.md.

        Skill directory: [DIR]
        Relative paths in this skill start there; read its files with `read_skill_file`.

        <skill_resources>
          <file bytes="3">data.bin</file>
          <file bytes="10">dot.gif</file>
          <file bytes="0">empty.txt</file>
          <file bytes="14">references/forms.md</file>
        </skill_resources>
        </skill_content>"#]],
    )
    .await;
    check(
        tool,
        json!({"name": "hidden"}),
        expect![[r#"
        <skill_content name="hidden">
        Body.
        </skill_content>"#]],
    )
    .await;
    check(
        tool,
        json!({"name": "locked"}),
        expect![[r#"ERROR SkillNotFound: there is no skill "locked". The skills are: "PDF", "echo"."#]],
    )
    .await;
    check(tool, json!({"name": "ehco"}), expect![[r#"ERROR SkillNotFound: there is no skill "ehco". Did you mean "echo"? The skills are: "PDF", "echo"."#]]).await;
    check(tool, json!({"name": "pdf-reader"}), expect![[r#"ERROR SkillNotFound: there is no skill "pdf-reader". Did you mean "PDF"? The skills are: "PDF", "echo"."#]]).await;
    check(tool, json!({}), expect!["ERROR InvalidArguments: `name` is missing; it must be a string"]).await;
    check(tool, json!({"name": 7}), expect!["ERROR InvalidArguments: `name` must be a string, not 7"]).await;
    check(tool, json!({"name": "  "}), expect!["ERROR InvalidArguments: `name` must not be empty"]).await;
    check(tool, json!({"name": format!("a\n\u{202e}{}", "x".repeat(5000))}), expect![[r#"ERROR SkillNotFound: there is no skill "a xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx…". The skills are: "PDF", "echo"."#]]).await;
}

#[tokio::test]
async fn call_skill_tool_runs_tools() {
    let tool = CALL_SKILL_TOOL;
    check(
        tool,
        json!({"skill": "ECHO", "tool": "say", "input": "as it is\n"}),
        expect![[r#"
        as it is
    "#]],
    )
    .await;
    check(
        tool,
        json!({"skill": "echo", "tool": "say", "input": {"b": 1, "a": [null]}}),
        expect![[r#"
        {"b":1,"a":[null]}
        structured: {"b":1,"a":[null]}"#]],
    )
    .await;
    check(tool, json!({"skill": "echo", "tool": "say", "input": null}), expect!["null"]).await;
    check(tool, json!({"skill": "echo", "tool": "no-input"}), expect!["true"]).await;
    check(tool, json!({"skill": "echo", "tool": "fail"}), expect!["ERROR ToolFailed: no luck"]).await;
    check(
        tool,
        json!({"skill": "echo", "tool": "panic"}),
        expect![[r#"ERROR ToolFailed: the tool "panic" crashed (boom)."#]],
    )
    .await;
    check(
        tool,
        json!({"skill": "echo", "tool": "early"}),
        expect![[r#"ERROR ToolFailed: the tool "early" crashed (before the future)."#]],
    )
    .await;
    check(tool, json!({"skill": "echo", "tool": "sya"}), expect![[r#"ERROR ToolNotFound: skill "echo" has no tool "sya". Did you mean "say"? Its tools are: "say", "fail", "panic", "early", "no-input"."#]]).await;
    check(
        tool,
        json!({"skill": "echo"}),
        expect!["ERROR InvalidArguments: `tool` is missing; it must be a string"],
    )
    .await;
    check(tool, json!({"skill": "pdf", "tool": "say"}), expect![[r#"ERROR ToolNotFound: skill "PDF" has no tools. Activate it with `activate_skill` and follow its instructions."#]]).await;
    check(
        tool,
        json!({"skill": "locked", "tool": "say"}),
        expect![[r#"ERROR SkillNotFound: there is no skill "locked". The skills are: "PDF", "echo"."#]],
    )
    .await;
}

#[tokio::test]
async fn read_skill_file_returns_contents() {
    let tool = READ_SKILL_FILE;
    check(
        tool,
        json!({"skill": "pdf", "path": "references/forms.md"}),
        expect![[r#"
        one
        two
        three
    "#]],
    )
    .await;
    let part = json!({"skill": "pdf", "path": "references/forms.md", "offset": 2, "limit": "1"});
    check(
        tool,
        part,
        expect![[r#"
        two
        [These are lines 2 to 2 of 3; read on with `offset` 3.]"#]],
    )
    .await;
    check(
        tool,
        json!({"skill": "pdf", "path": "SKILL.md", "offset": null}),
        expect![[r#"
        ---
        name: PDF
        description: x
        ---
        Read references/forms.md.
    "#]],
    )
    .await;
    check(tool, json!({"skill": "pdf", "path": "empty.txt"}), expect!["[The file is empty.]"]).await;
    check(
        tool,
        json!({"skill": "pdf", "path": "data.bin"}),
        expect![
            "`data.bin` is a binary file (application/octet-stream, 3 bytes); its content cannot be shown."
        ],
    )
    .await;
    check(
        tool,
        json!({"skill": "pdf", "path": "dot.gif"}),
        expect![[r#"
        `dot.gif` is an image (image/gif, 10 bytes).
        <image/gif, 10 bytes>"#]],
    )
    .await;
    check(tool, json!({"skill": "pdf", "path": "references/form.md"}), expect![[r#"ERROR FileNotFound: the skill has no file `references/form.md`; did you mean `references/forms.md`? Its files are: "data.bin", "dot.gif", "empty.txt", "references/forms.md"."#]]).await;
    check(tool, json!({"skill": "pdf", "path": "../secret"}), expect![[r#"ERROR FileNotAllowed: `../secret` leads outside of the skill's directory, and only files inside can be read. Its files are: "data.bin", "dot.gif", "empty.txt", "references/forms.md"."#]]).await;
    check(tool, json!({"skill": "pdf", "path": "/etc/passwd"}), expect![[r#"ERROR FileNotAllowed: `/etc/passwd` is not a path to a file of the skill: it is absolute; give it relative to the skill's directory. Its files are: "data.bin", "dot.gif", "empty.txt", "references/forms.md"."#]]).await;
    check(
        tool,
        json!({"skill": "pdf", "path": "references"}),
        expect!["ERROR NotAFile: `references` is a directory; it has `forms.md`."],
    )
    .await;
    check(
        tool,
        json!({"skill": "pdf", "path": "references/forms.md", "offset": 9}),
        expect!["ERROR PastEnd: `references/forms.md` has 3 lines, so nothing can be read from line 9 on."],
    )
    .await;
    check(
        tool,
        json!({"skill": "pdf", "path": "a", "offset": -1}),
        expect!["ERROR InvalidArguments: `offset` must be a whole number from 0, not -1"],
    )
    .await;
    check(
        tool,
        json!({"skill": "pdf", "path": "a", "limit": [1]}),
        expect!["ERROR InvalidArguments: `limit` must be a whole number from 0, not a list"],
    )
    .await;
    check(tool, json!({"skill": "echo", "path": "a"}), expect![[r#"ERROR SkillHasNoFiles: skill `echo` is defined in code or configuration and has no files. Its tools, for `call_skill_tool`, are: "say", "fail", "panic", "early", "no-input"."#]]).await;
    check(
        tool,
        json!({"skill": "hidden", "path": "a"}),
        expect![
            "ERROR SkillHasNoFiles: skill `hidden` is defined in code or configuration and has no files."
        ],
    )
    .await;
    check("read_file", json!({}), expect![[r#"ERROR UnknownTool: there is no tool "read_file". The tools are: "activate_skill", "call_skill_tool", "read_skill_file"."#]]).await;
}

#[tokio::test]
async fn the_model_can_use_skills_that_the_user_activated() {
    let context = CallContext::default().unlock([SkillName::new("Locked").unwrap()]);
    let output = call(ACTIVATE_SKILL, json!({"name": "locked"}), &context).await;
    assert!(!output.is_error, "{output:?}");
    let output = call(READ_SKILL_FILE, json!({"skill": "locked", "path": "a"}), &context).await;
    assert!(output.to_text().starts_with("SkillHasNoFiles: "), "{output:?}");
}

#[tokio::test]
async fn search_skills_returns_descriptions() {
    let dir = tempfile::tempdir().unwrap();
    let skills = toolbox(dir.path()).skills().clone();
    let options = ToolboxOptions { search: true, ..ToolboxOptions::default() };
    let toolbox = Toolbox::with_options(skills, options);
    let names: Vec<_> = toolbox.definitions().into_iter().map(|it| it.name).collect();
    assert_eq!(names, [ACTIVATE_SKILL, CALL_SKILL_TOOL, READ_SKILL_FILE, SEARCH_SKILLS]);
    let search = async |arguments: Value| {
        let arguments = arguments.as_object().unwrap().clone();
        let output = toolbox.call(SEARCH_SKILLS, arguments, &CallContext::default()).await;
        let text = output.to_text();
        output.structured.map(|it| format!("\n{it}")).unwrap_or_default() + "\n" + &text
    };
    expect![[r#"

        {"skills":[{"name":"PDF","description":"Reads PDFs."}],"total":1}
        <search_results>
          <skill>
            <name>PDF</name>
            <description>Reads PDFs.</description>
          </skill>
        </search_results>"#]]
    .assert_eq(&search(json!({"query": "read a pdf"})).await);
    expect![[r#"

        {"skills":[{"name":"PDF","description":"Reads PDFs."}],"total":2}
        <search_results>
          <skill>
            <name>PDF</name>
            <description>Reads PDFs.</description>
          </skill>
          1 more skill was found; a higher `limit` shows it.
        </search_results>"#]]
    .assert_eq(&search(json!({"query": "says reads", "limit": 1})).await);
    expect![[r#"

        No skill was found. Try other or fewer words, or do the task without a skill."#]]
    .assert_eq(&search(json!({"query": "hidden locked x"})).await);
    expect![[r#"

        No skill was found. Try other or fewer words, or do the task without a skill."#]]
    .assert_eq(&search(json!({"query": "pdf", "tags": ["none"]})).await);
    expect![[r#"

        InvalidArguments: `query` is missing; it must be a string"#]]
    .assert_eq(&search(json!({})).await);
}

#[test]
fn definitions_have_a_fixed_order() {
    let dir = tempfile::tempdir().unwrap();
    let toolbox = toolbox(dir.path());
    let definitions = toolbox.definitions();
    let names: Vec<_> = definitions.iter().map(|it| (it.name.as_ref(), it.read_only)).collect();
    assert_eq!(names, [(ACTIVATE_SKILL, true), (CALL_SKILL_TOOL, false), (READ_SKILL_FILE, true)]);
    assert_eq!(
        Value::from(definitions[0].input_schema.clone()),
        json!({
            "type": "object",
            "properties": {
                "name": {
                    "type": "string",
                    "enum": ["PDF", "echo"],
                },
            },
            "required": ["name"],
        })
    );
    assert_eq!(definitions[1].input_schema["required"], json!(["skill", "tool"]));
    assert_eq!(definitions[1].input_schema["properties"]["input"].get("type"), None);
    assert_eq!(definitions[2].input_schema["required"], json!(["skill", "path"]));
}

/// Each definition takes space in the model's context, so unusable tools are left out.
#[test]
fn a_tool_is_offered_if_a_skill_needs_it() {
    let dir = tempfile::tempdir().unwrap();
    let all = toolbox(dir.path());
    let only = |names: &[&str]| -> Vec<_> {
        let skills = all.skills().iter().filter(|skill| names.contains(&skill.name.as_str()));
        let skills: SkillSet = skills.map(|skill| Skill::clone(skill)).collect();
        all.with_skills(skills).definitions().into_iter().map(|tool| tool.name).collect()
    };
    assert_eq!(only(&["PDF"]), [ACTIVATE_SKILL, READ_SKILL_FILE]);
    assert_eq!(only(&["echo"]), [ACTIVATE_SKILL, CALL_SKILL_TOOL]);
    assert_eq!(only(&["PDF", "echo"]), [ACTIVATE_SKILL, CALL_SKILL_TOOL, READ_SKILL_FILE]);
    assert_eq!(only(&["hidden"]), [ACTIVATE_SKILL], "the body of another skill may name it");
    assert!(only(&["locked"]).is_empty(), "the model can do nothing with it");
}

/// Limits the text that the model reads before it activates a skill: the catalog, the guide and the tool definitions.
#[test]
fn stored_skills_add_little_text() {
    let dir = tempfile::tempdir().unwrap();
    let description = "Reviews code changes for bugs, security holes, missing tests and unclear names.";
    let stored = Source::Stored(Stored::new(dir.path(), "SKILL.md"));
    let skills: SkillSet =
        [Skill::new(SkillName::new("code-review").unwrap(), description, stored)].into_iter().collect();
    let catalog = crate::Catalog::render(&skills, &crate::CatalogOptions::default()).unwrap().text;
    let guide = crate::catalog::guide(crate::catalog::Guide::Tools);
    let tools: usize =
        Toolbox::new(skills).definitions().iter().map(|tool| tool.for_model().chars().count()).sum();
    let sum = catalog.chars().count() + guide.chars().count() + tools;
    assert!(sum <= 1_200, "{sum} characters, {tools} of them tools");
}

#[tokio::test]
async fn an_empty_set_has_no_tools_and_a_large_one_no_enum() {
    let empty = Toolbox::new(SkillSet::default());
    assert_eq!(empty.definitions(), []);
    let output = empty.call(ACTIVATE_SKILL, Map::new(), &CallContext::default()).await;
    assert!(output.is_error);

    let many = |count: usize| -> Toolbox {
        let skills = (0..count).map(|n| Skill::builder(format!("s{n}"), "x").body("x").build().unwrap());
        empty.with_skills(skills.collect())
    };
    let names =
        |toolbox: &Toolbox| toolbox.definitions()[0].input_schema["properties"]["name"].get("enum").cloned();
    assert_eq!(names(&many(100)).unwrap().as_array().unwrap().len(), 100);
    assert_eq!(names(&many(101)), None);
    let arguments = json!({"name": "s1000"}).as_object().unwrap().clone();
    let text = many(101).call(ACTIVATE_SKILL, arguments, &CallContext::default()).await.to_text();
    assert!(text.ends_with("\"s19\" and 81 more."), "{text}");
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Sum {
    /// What is added up.
    numbers: Vec<f64>,
}

fn sum() -> SkillTool {
    let add = async |input: Sum| Ok(json!({ "sum": input.numbers.iter().sum::<f64>() }));
    SkillTool::typed("sum", "Adds numbers up.", add)
}

#[tokio::test]
async fn typed_tools_have_schemas_and_results() {
    let skill = Skill::builder("math", "Counts.").body("Use `sum`.").add_tool(sum()).build().unwrap();
    let toolbox = Toolbox::new([skill].into_iter().collect());
    let call = async |tool: &str, arguments: Value| {
        let arguments = arguments.as_object().unwrap().clone();
        toolbox.call(tool, arguments, &CallContext::default()).await.to_text()
    };
    let text = call(ACTIVATE_SKILL, json!({ "name": "math" })).await;
    let schema = r#"<input_schema>{"type":"object","properties":{"numbers":{"type":"array","items":{"type":"number","format":"double"},"description":"What is added up."}},"required":["numbers"]}</input_schema>"#;
    assert!(text.contains(schema), "{text}");
    let call = async |input: Value| {
        call(CALL_SKILL_TOOL, json!({ "skill": "math", "tool": "sum", "input": input })).await
    };
    assert_eq!(call(json!({ "numbers": [1, 2.5] })).await, r#"{"sum":3.5}"#);
    expect![[r#"
        InvalidInput: the input of "sum" does not fit: `numbers[1]`: invalid type: string "2", expected f64. Its schema is {"type":"object","properties":{"numbers":{"type":"array","items":{"type":"number","format":"double"},"description":"What is added up."}},"required":["numbers"]}
        InvalidInput: the input of "sum" does not fit: missing field `numbers`. Its schema is {"type":"object","properties":{"numbers":{"type":"array","items":{"type":"number","format":"double"},"description":"What is added up."}},"required":["numbers"]}"#]]
    .assert_eq(&format!("{}\n{}", call(json!({ "numbers": [1, "2"] })).await, call(json!({})).await));
}

#[tokio::test]
async fn tools_that_belong_to_no_skill() {
    let mut skills = SkillSet::builder();
    let shout = async |text: String| Ok(text.to_uppercase());
    let anything = |input: Value| async move { Ok(input) };
    for tool in
        [sum(), SkillTool::typed("shout", "Shouts.", shout), SkillTool::typed("any-thing", "x", anything)]
    {
        skills.add_tool(tool).unwrap();
    }
    for (name, problem) in [
        ("sum", "the tool name `sum` is already taken"),
        (ACTIVATE_SKILL, "the tool name `activate_skill` is already taken"),
        ("a b", "invalid tool name `a b`: use 1 to 40 of the characters a-z, A-Z, 0-9, `_` and `-`"),
        ("", "invalid tool name ``: use 1 to 40 of the characters a-z, A-Z, 0-9, `_` and `-`"),
    ] {
        let tool = SkillTool::new(name, "x", |_| async { panic!("not called") });
        assert_eq!(skills.add_tool(tool).unwrap_err().to_string(), problem);
    }
    let skills = skills.build();
    assert!(skills.is_empty() && !skills.offers_nothing());
    // Merging the set with itself keeps each tool once.
    let skills = SkillSet::merged([&skills, &skills]);
    let toolbox = Toolbox::new(skills);
    let definitions = toolbox.definitions();
    let shown: Vec<_> =
        definitions.iter().map(|tool| (tool.name.as_ref(), json!(tool.input_schema))).collect();
    let list = json!({ "type": "array", "description": "What is added up.", "items": { "type": "number", "format": "double" } });
    let text = json!({ "type": "string" });
    assert_eq!(
        shown,
        [
            ("sum", json!({ "type": "object", "properties": { "numbers": list }, "required": ["numbers"] })),
            ("shout", json!({ "type": "object", "properties": { "input": text }, "required": ["input"] })),
            ("any-thing", json!({ "type": "object" })),
        ]
    );
    for (tool, arguments, expected) in [
        ("sum", json!({ "numbers": [1, 2] }), r#"{"sum":3.0}"#),
        ("shout", json!({ "input": "hey" }), "HEY"),
        ("any-thing", json!({ "a": 1 }), r#"{"a":1}"#),
        (
            "shout",
            json!({}),
            "InvalidInput: the input of \"shout\" does not fit: invalid type: map, expected a string. Its schema is {\"type\":\"string\"}",
        ),
        (
            "shuot",
            json!({}),
            "UnknownTool: there is no tool \"shuot\". The tools are: \"sum\", \"shout\", \"any-thing\".",
        ),
    ] {
        let arguments = arguments.as_object().unwrap().clone();
        let output = toolbox.call(tool, arguments, &CallContext::default()).await;
        assert_eq!(output.to_text(), expected, "{tool}");
    }
}
