//! [`SkillVariables`]: environment variables with secrets for the scripts and command tools of a skill.

use std::{pin::Pin, time::Duration};

use serde_json::Value;
use skills_core::{CallContext, ToolError, ToolHandler, exec::CommandTool, tool::Variables};

use super::Secrets;
use crate::processes::Processes;

/// The time limit for commands that print secrets.
const LIMIT: Duration = Duration::from_secs(30);

/// Environment variables whose values can contain `${NAME}`. They are resolved each time that a program is started.
#[derive(Debug, Clone)]
pub struct SkillVariables {
    values: Vec<(String, String)>,
    secrets: Secrets,
    processes: Processes,
}

/// A command tool with such variables.
#[derive(Debug, Clone)]
pub struct CommandWithVariables {
    command: CommandTool,
    variables: SkillVariables,
}

impl SkillVariables {
    /// Creates variables with these names and values. Commands that print secrets are registered in `processes`.
    pub fn new(values: Vec<(String, String)>, secrets: Secrets, processes: Processes) -> Self {
        Self { values, secrets, processes }
    }

    /// Adds the variables to a tool.
    pub fn of_tool(self, command: CommandTool) -> CommandWithVariables {
        CommandWithVariables { command, variables: self }
    }
}

impl Variables for SkillVariables {
    fn resolve(&self) -> Pin<Box<dyn Future<Output = Result<Vec<(String, String)>, ToolError>> + Send>> {
        let variables = self.clone();
        Box::pin(async move {
            let resolving = variables.secrets.resolve(&variables.values, &variables.processes, LIMIT);
            Ok(resolving.await?.values)
        })
    }
}

impl ToolHandler for CommandWithVariables {
    fn call(
        &self,
        input: Option<Value>,
        context: CallContext,
    ) -> Pin<Box<dyn Future<Output = Result<Value, ToolError>> + Send>> {
        let Self { mut command, variables } = self.clone();
        Box::pin(async move {
            let values = variables.resolve().await?;
            command.env.extend(values.into_iter().map(|(name, value)| (name.into(), value.into())));
            command.call(input, context).await
        })
    }
}
