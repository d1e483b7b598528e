//! The definitions of the built-in tools, and of tools that belong to no skill.

use serde_json::{Value, json};

use super::{
    ACTIVATE_SKILL, CALL_SKILL_TOOL, READ_SKILL_FILE, SEARCH_SKILLS, ToolDefinition, Toolbox,
    arguments::Arguments, schema::object,
};
use crate::{
    search::{DEFAULT_LIMIT, MAX_LIMIT},
    skill::{Skill, Source},
    tool::SkillTool,
};

/// The maximum number of names that the schema of `activate_skill` lists.
const MAX_ENUM_NAMES: usize = 100;

/// Returns the built-in tools that can be used with the skills of the set. Others are left out, because each definition takes
/// space in the model's context in every turn.
pub(super) fn definitions(toolbox: &Toolbox) -> Vec<ToolDefinition> {
    let skills = toolbox.skills();
    let any = |is: fn(&Skill) -> bool| skills.iter().any(|skill| is(skill));
    let mut definitions = Vec::new();
    if any(Skill::is_model_invocable) {
        definitions.push(activate_skill(toolbox));
    }
    if any(Skill::has_tools) {
        definitions.push(call_skill_tool());
    }
    if any(|skill| !matches!(skill.source, Source::Virtual(_))) {
        definitions.push(read_skill_file());
    }
    if toolbox.options().search && !skills.is_empty() {
        definitions.push(search_skills());
    }
    #[cfg(feature = "exec")]
    if toolbox.runs_scripts() && any(|skill| skill.dir().is_some()) {
        definitions.push(super::script::definition());
    }
    definitions
}

fn activate_skill(toolbox: &Toolbox) -> ToolDefinition {
    ToolDefinition {
        name: ACTIVATE_SKILL.into(),
        title: "Activate a skill".into(),
        description: "Loads the instructions of a skill. Call it before a task that the skill fits."
            .to_owned(),
        input_schema: object(&json!({ "name": names(toolbox) }), &["name"]),
        read_only: true,
    }
}

fn call_skill_tool() -> ToolDefinition {
    ToolDefinition {
        name: CALL_SKILL_TOOL.into(),
        title: "Call a tool of a skill".into(),
        description: "Runs a tool that an activated skill describes.".to_owned(),
        input_schema: object(
            &json!({
                "skill": { "type": "string" },
                "tool": { "type": "string" },
                "input": { "description": "What the tool takes: any JSON, or nothing." },
            }),
            &["skill", "tool"],
        ),
        read_only: false,
    }
}

fn read_skill_file() -> ToolDefinition {
    ToolDefinition {
        name: READ_SKILL_FILE.into(),
        title: "Read a file of a skill".into(),
        description: "Reads a file that a skill mentions, or `limit` lines of it from line `offset`."
            .to_owned(),
        input_schema: object(
            &json!({
                "skill": { "type": "string" },
                "path": { "type": "string", "description": "Relative to the skill's directory." },
                "offset": { "type": "integer", "minimum": 1 },
                "limit": { "type": "integer", "minimum": 1 },
            }),
            &["skill", "path"],
        ),
        read_only: true,
    }
}

fn search_skills() -> ToolDefinition {
    ToolDefinition {
        name: SEARCH_SKILLS.into(),
        title: "Find skills".into(),
        description: "Finds skills for a task, also those that are not listed. Then call `activate_skill`."
            .to_owned(),
        input_schema: object(
            &json!({
                "query": { "type": "string", "description": "A few words on what the skill should do." },
                "limit": {
                    "type": "integer",
                    "minimum": 1,
                    "maximum": MAX_LIMIT,
                    "description": format!("{DEFAULT_LIMIT} unless told."),
                },
                "tags": {
                    "type": "array",
                    "items": { "type": "string" },
                    "description": "Only skills with all of these.",
                },
            }),
            &["query"],
        ),
        read_only: true,
    }
}

/// Returns the definition of a tool that belongs to no skill.
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

/// Returns the input for a tool that belongs to no skill: the arguments themselves if it takes an object, or else the argument
/// [`INPUT`].
pub(super) fn plain_input(tool: &SkillTool, mut arguments: Arguments) -> Option<Value> {
    if takes_object(tool) {
        return Some(Value::Object(arguments.into_object()));
    }
    arguments.take(INPUT)
}

/// The name of the argument that contains an input that is not an object. The arguments of a tool are always an object.
const INPUT: &str = "input";

fn takes_object(tool: &SkillTool) -> bool {
    tool.input_schema.as_ref().is_none_or(|schema| schema["type"] == "object")
}

fn names(toolbox: &Toolbox) -> Value {
    let mut schema = json!({ "type": "string" });
    let names: Vec<&str> = toolbox.skills().listed().map(|skill| skill.name.as_str()).collect();
    // An empty `enum` would be an invalid schema.
    if !toolbox.has_open_names && (1..=MAX_ENUM_NAMES).contains(&names.len()) {
        schema["enum"] = names.into();
    }
    schema
}
