//! Calls of the built-in tools.

mod definitions;

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
            Content::Raw(part) => part.to_string(),
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
        expect![[r#"ERROR SkillNotFound: no skill "locked" found. Available skills: "PDF", "echo"."#]],
    )
    .await;
    check(tool, json!({"name": "ehco"}), expect![[r#"ERROR SkillNotFound: no skill "ehco" found. Did you mean "echo"? Available skills: "PDF", "echo"."#]]).await;
    check(tool, json!({"name": "pdf-reader"}), expect![[r#"ERROR SkillNotFound: no skill "pdf-reader" found. Did you mean "PDF"? Available skills: "PDF", "echo"."#]]).await;
    check(tool, json!({}), expect!["ERROR InvalidArguments: missing `name`: expected a string"]).await;
    check(
        tool,
        json!({"name": 7}),
        expect!["ERROR InvalidArguments: expected a string for `name`, but got 7"],
    )
    .await;
    check(tool, json!({"name": "  "}), expect!["ERROR InvalidArguments: `name` must not be empty"]).await;
    check(
        tool,
        json!({"name": format!("a\n\u{202e}{}", "x".repeat(5000))}),
        expect![[r#"ERROR SkillNotFound: no skill "a xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx…" found. Available skills: "PDF", "echo"."#]],
    )
    .await;
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
        expect![[r#"ERROR ToolFailed: tool "panic" crashed (boom)."#]],
    )
    .await;
    check(
        tool,
        json!({"skill": "echo", "tool": "early"}),
        expect![[r#"ERROR ToolFailed: tool "early" crashed (before the future)."#]],
    )
    .await;
    check(tool, json!({"skill": "echo", "tool": "sya"}), expect![[r#"ERROR ToolNotFound: skill "echo" has no tool "sya". Did you mean "say"? Available tools: "say", "fail", "panic", "early", "no-input"."#]]).await;
    check(
        tool,
        json!({"skill": "echo"}),
        expect!["ERROR InvalidArguments: missing `tool`: expected a string"],
    )
    .await;
    check(tool, json!({"skill": "pdf", "tool": "say"}), expect![[r#"ERROR ToolNotFound: skill "PDF" has no tools. Use `activate_skill` and follow the instructions instead."#]]).await;
    check(
        tool,
        json!({"skill": "locked", "tool": "say"}),
        expect![[r#"ERROR SkillNotFound: no skill "locked" found. Available skills: "PDF", "echo"."#]],
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
        [Lines 2 to 2 of 3; to read the next lines, use `offset` 3.]"#]],
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
            "`data.bin` is a binary file (application/octet-stream, 3 bytes) and cannot be shown as text."
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
}

#[tokio::test]
async fn read_skill_file_explains_errors() {
    let tool = READ_SKILL_FILE;
    check(tool, json!({"skill": "pdf", "path": "references/form.md"}), expect![[r#"ERROR FileNotFound: could not find file `references/form.md` in the skill; did you mean `references/forms.md`? Available files: "data.bin", "dot.gif", "empty.txt", "references/forms.md"."#]]).await;
    check(tool, json!({"skill": "pdf", "path": "../secret"}), expect![[r#"ERROR FileNotAllowed: `../secret` is outside of the skill directory, but only files inside can be read. Available files: "data.bin", "dot.gif", "empty.txt", "references/forms.md"."#]]).await;
    check(tool, json!({"skill": "pdf", "path": "/etc/passwd"}), expect![[r#"ERROR FileNotAllowed: invalid path `/etc/passwd`: use a path relative to the skill directory instead of an absolute path. Available files: "data.bin", "dot.gif", "empty.txt", "references/forms.md"."#]]).await;
    check(
        tool,
        json!({"skill": "pdf", "path": "references"}),
        expect!["ERROR NotAFile: `references` is a directory with `forms.md`."],
    )
    .await;
    check(
        tool,
        json!({"skill": "pdf", "path": "references/forms.md", "offset": 9}),
        expect!["ERROR PastEnd: `offset` is 9, but `references/forms.md` has only 3 lines."],
    )
    .await;
    check(
        tool,
        json!({"skill": "pdf", "path": "a", "offset": -1}),
        expect!["ERROR InvalidArguments: expected an integer of at least 0 for `offset`, but got -1"],
    )
    .await;
    check(
        tool,
        json!({"skill": "pdf", "path": "a", "limit": [1]}),
        expect!["ERROR InvalidArguments: expected an integer of at least 0 for `limit`, but got a list"],
    )
    .await;
    check(tool, json!({"skill": "echo", "path": "a"}), expect![[r#"ERROR SkillHasNoFiles: skill `echo` is defined in code or configuration and has no files. Tools for `call_skill_tool`: "say", "fail", "panic", "early", "no-input"."#]]).await;
    check(
        tool,
        json!({"skill": "hidden", "path": "a"}),
        expect![
            "ERROR SkillHasNoFiles: skill `hidden` is defined in code or configuration and has no files."
        ],
    )
    .await;
    check("read_file", json!({}), expect![[r#"ERROR UnknownTool: no tool "read_file" found. Available tools: "activate_skill", "call_skill_tool", "read_skill_file"."#]]).await;
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
    let names: Vec<_> = toolbox.definitions().into_iter().map(|tool| tool.name).collect();
    assert_eq!(names, [ACTIVATE_SKILL, CALL_SKILL_TOOL, READ_SKILL_FILE, SEARCH_SKILLS]);
    let search = async |arguments: Value| {
        let arguments = arguments.as_object().unwrap().clone();
        let output = toolbox.call(SEARCH_SKILLS, arguments, &CallContext::default()).await;
        let text = output.to_text();
        output.structured.map(|value| format!("\n{value}")).unwrap_or_default() + "\n" + &text
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
          1 more skill found; to show all skills, increase `limit`.
        </search_results>"#]]
    .assert_eq(&search(json!({"query": "says reads", "limit": 1})).await);
    expect![[r#"

        No skill found. Use fewer or different words, or continue without a skill."#]]
    .assert_eq(&search(json!({"query": "hidden locked x"})).await);
    expect![[r#"

        No skill found. Use fewer or different words, or continue without a skill."#]]
    .assert_eq(&search(json!({"query": "pdf", "tags": ["none"]})).await);
    expect![[r#"

        InvalidArguments: missing `query`: expected a string"#]]
    .assert_eq(&search(json!({})).await);
}
