//! The definitions of tools, and tools that belong to no skill.

use super::*;

#[test]
fn definitions_have_a_fixed_order() {
    let dir = tempfile::tempdir().unwrap();
    let toolbox = toolbox(dir.path());
    let definitions = toolbox.definitions();
    let names: Vec<_> = definitions.iter().map(|tool| (tool.name.as_ref(), tool.read_only)).collect();
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
    /// The numbers to add.
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
    let schema = r#"<input_schema>{"type":"object","properties":{"numbers":{"type":"array","items":{"type":"number","format":"double"},"description":"The numbers to add."}},"required":["numbers"]}</input_schema>"#;
    assert!(text.contains(schema), "{text}");
    let call = async |input: Value| {
        call(CALL_SKILL_TOOL, json!({ "skill": "math", "tool": "sum", "input": input })).await
    };
    assert_eq!(call(json!({ "numbers": [1, 2.5] })).await, r#"{"sum":3.5}"#);
    expect![[r#"
        InvalidInput: invalid input for "sum": `numbers[1]`: invalid type: string "2", expected f64. Expected schema: {"type":"object","properties":{"numbers":{"type":"array","items":{"type":"number","format":"double"},"description":"The numbers to add."}},"required":["numbers"]}
        InvalidInput: invalid input for "sum": missing field `numbers`. Expected schema: {"type":"object","properties":{"numbers":{"type":"array","items":{"type":"number","format":"double"},"description":"The numbers to add."}},"required":["numbers"]}"#]]
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
        ("sum", "tool name `sum` is already used"),
        (ACTIVATE_SKILL, "tool name `activate_skill` is already used"),
        ("a b", "invalid tool name `a b`: use 1 to 40 of the characters a-z, A-Z, 0-9, `_` and `-`"),
        ("", "invalid tool name ``: use 1 to 40 of the characters a-z, A-Z, 0-9, `_` and `-`"),
    ] {
        let tool = SkillTool::new(name, "x", |_| async { panic!("not called") });
        assert_eq!(skills.add_tool(tool).unwrap_err().to_string(), problem);
    }
    let skills = skills.build();
    assert!(skills.is_empty() && !skills.offers_nothing());
    // If we merge the set with itself, each tool should still be there just once.
    let skills = SkillSet::merged([&skills, &skills]);
    let toolbox = Toolbox::new(skills);
    let definitions = toolbox.definitions();
    let shown: Vec<_> =
        definitions.iter().map(|tool| (tool.name.as_ref(), json!(tool.input_schema))).collect();
    let list = json!({ "type": "array", "description": "The numbers to add.", "items": { "type": "number", "format": "double" } });
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
            "InvalidInput: invalid input for \"shout\": invalid type: map, expected a string. Expected schema: {\"type\":\"string\"}",
        ),
        (
            "shuot",
            json!({}),
            "UnknownTool: no tool \"shuot\" found. Available tools: \"sum\", \"shout\", \"any-thing\".",
        ),
    ] {
        let arguments = arguments.as_object().unwrap().clone();
        let output = toolbox.call(tool, arguments, &CallContext::default()).await;
        assert_eq!(output.to_text(), expected, "{tool}");
    }
}
