//! [`SkillBuilder`]: skills defined in code.

use std::{path::PathBuf, sync::Arc};

use schemars::JsonSchema;
use serde::{Serialize, de::DeserializeOwned};

use crate::{
    name::SkillName,
    skill::{Example, Instructions, Parameter, Properties, Skill, Source, Virtual},
    text::shown,
    tool::{SkillTool, ToolError},
};

/// Builds a virtual skill; see [`Skill::builder`].
#[derive(Debug)]
#[must_use]
pub struct SkillBuilder {
    name: String,
    description: String,
    instructions: Option<Instructions>,
    tools: Vec<SkillTool>,
    properties: Properties,
}

/// Why a skill cannot be built.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// The name has no visible character.
    #[error("a skill needs a name")]
    NoName,
    /// The description is empty: nothing would tell the model when to use the skill.
    #[error("skill `{0}` needs a description")]
    NoDescription(SkillName),
    /// There is nothing to activate.
    #[error("skill `{0}` needs a body, a body file or a body URL")]
    NoBody(SkillName),
    /// Two tools have the same name.
    #[error("skill `{0}` has two tools named `{tool}`", tool = shown(.1))]
    DuplicateTool(SkillName, String),
}

impl Skill {
    /// A builder for a skill that is defined in code.
    ///
    /// ```
    /// use skills_core::Skill;
    /// use serde_json::{Value, json};
    ///
    /// let skill = Skill::builder("line-count", "Counts lines. Use when the user asks how long a text is.")
    ///     .body("Call the tool `count` with `{\"text\": …}`.")
    ///     .tool("count", "Counts the lines of `text`.", |input: Value| async move {
    ///         let text = input["text"].as_str().ok_or("`text` must be a string")?;
    ///         Ok(json!({ "lines": text.lines().count() }))
    ///     })
    ///     .build()?;
    /// assert_eq!(skill.tools().len(), 1);
    /// # Ok::<(), skills_core::BuildError>(())
    /// ```
    pub fn builder(name: impl Into<String>, description: impl Into<String>) -> SkillBuilder {
        SkillBuilder::new(name.into(), description.into())
    }
}

impl SkillBuilder {
    fn new(name: String, description: String) -> Self {
        Self { name, description, instructions: None, tools: Vec::new(), properties: Properties::default() }
    }

    /// The instructions, as Markdown.
    pub fn body(self, markdown: impl Into<Arc<str>>) -> Self {
        self.instructions(Instructions::Inline(markdown.into()))
    }

    /// The file with the instructions; it is read at each activation.
    pub fn body_file(self, path: impl Into<PathBuf>) -> Self {
        self.instructions(Instructions::File(path.into()))
    }

    /// The address of the instructions (https, or http on loopback); fetched at the first activation.
    pub fn body_url(self, url: impl Into<String>) -> Self {
        self.instructions(Instructions::Url(url.into()))
    }

    /// Where the instructions come from.
    pub fn instructions(mut self, instructions: Instructions) -> Self {
        self.instructions = Some(instructions);
        self
    }

    /// The optional fields.
    pub fn properties(mut self, properties: Properties) -> Self {
        self.properties = properties;
        self
    }

    /// Adds something that a user may say behind the command.
    pub fn parameter(mut self, parameter: Parameter) -> Self {
        self.properties.usage.get_or_insert_default().parameters.push(parameter);
        self
    }

    /// Adds an example: what somebody wants, and what the skill then does.
    pub fn example(mut self, scenario: impl Into<String>, expected: impl Into<String>) -> Self {
        let example = Example::new(scenario, expected);
        self.properties.usage.get_or_insert_default().examples.push(example);
        self
    }

    /// Adds a tool that runs a function, which says by its types what the tool takes and gives; see
    /// [`SkillTool::typed`]. A [`Value`](serde_json::Value) takes any input, and no input as `null`.
    pub fn tool<I, O, F, Fut>(
        self,
        name: impl Into<String>,
        description: impl Into<String>,
        handler: F,
    ) -> Self
    where
        I: DeserializeOwned + JsonSchema + 'static,
        O: Serialize + 'static,
        F: Fn(I) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<O, ToolError>> + Send + 'static,
    {
        self.add_tool(SkillTool::typed(name, description, handler))
    }

    /// Adds a tool.
    pub fn add_tool(mut self, tool: SkillTool) -> Self {
        self.tools.push(tool);
        self
    }

    /// The finished skill.
    ///
    /// # Errors
    /// When the name, the description or the instructions are missing, or two tools share a name.
    pub fn build(self) -> Result<Skill, BuildError> {
        let name = SkillName::new(&self.name).ok_or(BuildError::NoName)?;
        if self.description.trim().is_empty() {
            return Err(BuildError::NoDescription(name));
        }
        let Some(instructions) = self.instructions else {
            return Err(BuildError::NoBody(name));
        };
        for (index, tool) in self.tools.iter().enumerate() {
            if self.tools[..index].iter().any(|earlier| earlier.name == tool.name) {
                return Err(BuildError::DuplicateTool(name, tool.name.clone()));
            }
        }
        let source = Source::Virtual(Virtual { instructions, tools: self.tools });
        let mut skill = Skill::new(name, self.description.trim(), source);
        skill.properties = self.properties;
        Ok(skill)
    }
}
