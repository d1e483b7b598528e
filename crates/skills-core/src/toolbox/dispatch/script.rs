//! The built-in tool `run_skill_script`: its definition and implementation.

use std::sync::Arc;

use serde_json::json;

use super::{
    RUN_SKILL_SCRIPT, ToolDefinition, ToolOutput, Toolbox,
    answers::{Answer, off_thread, skill},
    arguments::Arguments,
    errors,
    schema::object,
};
use crate::{
    exec::{ScriptCall, ScriptError, ScriptResult, run_script},
    tool::CallContext,
};

pub(super) fn definition() -> ToolDefinition {
    ToolDefinition {
        name: RUN_SKILL_SCRIPT.into(),
        title: "Run a script of a skill".into(),
        description: "Runs a script that the instructions of a skill mention. No shell: each argument arrives as it is."
            .to_owned(),
        input_schema: object(
            &json!({
                "skill": { "type": "string" },
                "script": {
                    "type": "string",
                    "description": "Relative to the skill's directory, for example `scripts/check.py`.",
                },
                "args": { "type": "array", "items": { "type": "string" } },
                "stdin": { "type": "string" },
            }),
            &["skill", "script"],
        ),
        read_only: false,
    }
}

pub(super) async fn run_skill_script(
    toolbox: &Toolbox,
    arguments: &Arguments,
    context: &CallContext,
) -> Answer {
    let Some(options) = &toolbox.options().scripts else {
        return Err(errors::unknown_tool(toolbox, RUN_SKILL_SCRIPT));
    };
    let call = ScriptCall {
        script: arguments.required("script")?.to_owned(),
        args: arguments.strings("args")?,
        stdin: arguments.optional("stdin")?.map(str::to_owned),
    };
    let result = match skill(toolbox, arguments, "skill", context) {
        Ok(skill) => {
            let mut result = run_script(skill, call, options, context).await;
            if let (Some(ScriptError::ScriptNotFound | ScriptError::ScriptNotAllowed), Some(message)) =
                (result.error, &mut result.message)
            {
                let skill = Arc::clone(skill);
                let files = off_thread(move || errors::files_of(&skill)).await?;
                let sentence = if message.ends_with('?') { "" } else { "." };
                *message = format!("{message}{sentence} {files}");
            }
            result
        }
        Err(error) if error.code == errors::SKILL_NOT_FOUND => {
            ScriptResult::failed(ScriptError::SkillNotFound, error.message)
        }
        Err(error) => return Err(error),
    };
    let structured = json!(result);
    let text = structured.to_string();
    Ok(ToolOutput {
        structured: Some(structured),
        is_error: !result.success,
        code: result.error.map(ScriptError::code),
        ..ToolOutput::text(text)
    })
}
