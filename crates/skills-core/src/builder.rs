//! [`SkillBuilder`]: builds skills that are defined in code.

use std::{path::PathBuf, sync::Arc};

use schemars::JsonSchema;
use serde::{Serialize, de::DeserializeOwned};

use crate::{
    name::SkillName,
    skill::{Example, Instructions, Parameter, Properties, Skill, Source, Virtual},
    text::shown,
    tool::{SkillTool, ToolError},
};

/// Builds a virtual skill. See [`Skill::builder`].
#[derive(Debug)]
#[must_use]
pub struct SkillBuilder {
    name: String,
    description: String,
    instructions: Option<Instructions>,
    tools: Vec<SkillTool>,
    properties: Properties,
}

/// An error of [`SkillBuilder::build`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// The name has no visible characters.
    #[error("missing name for skill")]
    NoName,
    /// The description is empty, so the model would not know when to use the skill.
    #[error("missing description for skill `{0}`")]
    NoDescription(SkillName),
    /// The skill has no instructions.
    #[error("missing instructions for skill `{0}`: set a body, a body file or a body URL")]
    NoBody(SkillName),
    /// Two tools have the same name.
    #[error("duplicate tool `{tool}` in skill `{0}`", tool = shown(.1))]
    DuplicateTool(SkillName, String),
}

impl Skill {
    /// Returns a builder for a skill that is defined in code.
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

    /// Sets the instructions, as Markdown.
    pub fn body(self, markdown: impl Into<Arc<str>>) -> Self {
        self.instructions(Instructions::Inline(markdown.into()))
    }

    /// Sets the file that contains the instructions. It is read at each activation.
    pub fn body_file(self, path: impl Into<PathBuf>) -> Self {
        self.instructions(Instructions::File(path.into()))
    }

    /// Sets the URL of the instructions (`https`, or `http` on loopback). They are fetched at the first activation.
    pub fn body_url(self, url: impl Into<String>) -> Self {
        self.instructions(Instructions::Url(url.into()))
    }

    /// Sets the source of the instructions.
    pub fn instructions(mut self, instructions: Instructions) -> Self {
        self.instructions = Some(instructions);
        self
    }

    /// Replaces all optional fields, including parameters and examples that were added before.
    pub fn properties(mut self, properties: Properties) -> Self {
        self.properties = properties;
        self
    }

    /// Adds a parameter that users can pass after the skill's slash command.
    pub fn parameter(mut self, parameter: Parameter) -> Self {
        self.properties.usage.get_or_insert_default().parameters.push(parameter);
        self
    }

    /// Adds an example: a scenario, and the expected result.
    pub fn example(mut self, scenario: impl Into<String>, expected: impl Into<String>) -> Self {
        let example = Example::new(scenario, expected);
        self.properties.usage.get_or_insert_default().examples.push(example);
        self
    }

    /// Adds a tool that runs an async function. The types of the function define the input and the output of the tool
    /// ([`SkillTool::typed`]).
    ///
    /// If the function takes a [`Value`](serde_json::Value), the tool accepts any input. A missing input is passed as `null`.
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

    /// Adds a tool. Its name must be unique within the skill.
    pub fn add_tool(mut self, tool: SkillTool) -> Self {
        self.tools.push(tool);
        self
    }

    /// Returns the finished skill.
    ///
    /// # Errors
    /// Returns [`BuildError::NoName`], [`BuildError::NoDescription`] or [`BuildError::NoBody`] if the name, the description
    /// or the instructions are missing, and [`BuildError::DuplicateTool`] if two tools have the same name.
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
