//! What a model is told about the tools.

use serde_json::{Value, json};

use super::{
    ACTIVATE_SKILL, CALL_SKILL_TOOL, READ_SKILL_FILE, SEARCH_SKILLS, ToolDefinition, Toolbox,
    arguments::Arguments, schema::object,
};
use crate::{
    search::{DEFAULT_LIMIT, MAX_LIMIT},
    skill::SkillTool,
};

/// Up to this many names are spelled out in the schema of `activate_skill`.
const MAX_ENUM_NAMES: usize = 100;

pub(super) fn definitions(toolbox: &Toolbox) -> Vec<ToolDefinition> {
    let mut definitions = always(toolbox);
    if toolbox.options().search {
        definitions.push(search_skills());
    }
    #[cfg(feature = "exec")]
    if toolbox.runs_scripts() {
        definitions.push(super::script::definition());
    }
    definitions
}

fn always(toolbox: &Toolbox) -> Vec<ToolDefinition> {
    vec![
        ToolDefinition {
            name: ACTIVATE_SKILL.into(),
            title: "Activate a skill".into(),
            description:
                "Loads the instructions of a skill. Call it before you begin a task that matches the \
                          description of a skill, then follow the instructions."
                    .to_owned(),
            input_schema: object(&json!({ "name": names(toolbox) }), &["name"]),
            read_only: true,
        },
        ToolDefinition {
            name: CALL_SKILL_TOOL.into(),
            title: "Call a tool of a skill".into(),
            description: "Runs a tool that the instructions of an activated skill describe.".to_owned(),
            input_schema: object(
                &json!({
                    "skill": { "type": "string", "description": "The name of the skill." },
                    "tool": { "type": "string", "description": "The name of the tool." },
                    "input": { "description": "What the tool takes: any JSON, or nothing." },
                }),
                &["skill", "tool"],
            ),
            read_only: false,
        },
        ToolDefinition {
            name: READ_SKILL_FILE.into(),
            title: "Read a file of a skill".into(),
            description:
                "Reads a file that belongs to a skill, when its instructions mention the file and the task \
                          needs it."
                    .to_owned(),
            input_schema: object(
                &json!({
                    "skill": { "type": "string", "description": "The name of the skill." },
                    "path": {
                        "type": "string",
                        "description": "The path below the skill's directory, for example `references/api.md`.",
                    },
                    "offset": {
                        "type": "integer",
                        "minimum": 1,
                        "description": "The first line to read, from 1.",
                    },
                    "limit": { "type": "integer", "minimum": 1, "description": "How many lines to read." },
                }),
                &["skill", "path"],
            ),
            read_only: true,
        },
    ]
}

fn search_skills() -> ToolDefinition {
    ToolDefinition {
        name: SEARCH_SKILLS.into(),
        title: "Find skills".into(),
        description:
            "Finds skills for a task, also those that were not listed. Then activate the one that fits with \
                      `activate_skill`."
                .to_owned(),
        input_schema: object(
            &json!({
                "query": { "type": "string", "description": "A few words on what the skill should do." },
                "limit": {
                    "type": "integer",
                    "minimum": 1,
                    "maximum": MAX_LIMIT,
                    "description": format!("How many skills at most; {DEFAULT_LIMIT} unless told."),
                },
                "tags": {
                    "type": "array",
                    "items": { "type": "string" },
                    "description": "Only skills with all of these tags.",
                },
            }),
            &["query"],
        ),
        read_only: true,
    }
}

/// A tool that belongs to no skill.
pub(super) fn plain(tool: &SkillTool) -> ToolDefinition {
    let mut description = tool.description.clone();
    if let Some(missing) = &tool.missing {
        description = format!("{description} It does not work: {missing}.");
    }
    let input_schema = match &tool.input_schema {
        Some(Value::Object(schema)) if takes_object(tool) => schema.clone(),
        Some(schema) => object(&json!({ INPUT: schema }), &[INPUT]),
        None => [("type".to_owned(), "object".into())].into_iter().collect(),
    };
    ToolDefinition {
        name: tool.name.clone().into(),
        title: tool.name.clone().into(),
        description,
        input_schema,
        read_only: false,
    }
}

/// What a tool that belongs to no skill gets: the arguments themselves, where they can be its input.
pub(super) fn plain_input(tool: &SkillTool, mut arguments: Arguments) -> Option<Value> {
    if takes_object(tool) {
        return Some(Value::Object(arguments.into_object()));
    }
    arguments.take(INPUT)
}

/// The argument that holds an input that is no object: the arguments of a tool always are one.
const INPUT: &str = "input";

fn takes_object(tool: &SkillTool) -> bool {
    tool.input_schema.as_ref().is_none_or(|schema| schema["type"] == "object")
}

fn names(toolbox: &Toolbox) -> Value {
    let mut schema = json!({ "type": "string", "description": "The name of the skill." });
    let names: Vec<&str> = toolbox.skills().listed().map(|skill| skill.name.as_str()).collect();
    // An empty `enum` is no valid schema.
    if (1..=MAX_ENUM_NAMES).contains(&names.len()) {
        schema["enum"] = names.into();
    }
    schema
}
