//! [`SkillTool::typed`]: tools whose input and output are Rust types.
//!
//! The model sees the JSON schema of the input type. If its input is invalid, the error names the field.

use std::marker::PhantomData;

use futures::future::{BoxFuture, FutureExt, ready};
use schemars::{JsonSchema, generate::SchemaSettings};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

use super::{CallContext, SkillTool, ToolError, ToolHandler};

/// An error that says which field of a tool's input is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[error("{}{problem}", match path.as_str() { "" => String::new(), path => format!("`{path}`: ") })]
pub struct InvalidInput {
    /// The path of the field, for example `lines[2].text`. It is empty if the problem concerns the whole input.
    pub path: String,
    /// A description of the problem.
    pub problem: String,
}

impl SkillTool {
    /// Creates a tool whose input is an `I` and whose output is an `O`.
    ///
    /// Any type that implements [`serde::Deserialize`] and [`JsonSchema`] can be the input type. The tool's schema contains the
    /// doc comments of its fields. The type [`Value`] accepts any input and has no schema. A missing input is passed as `null`
    /// or, if `I` doesn't accept that, as an empty object.
    ///
    /// ```
    /// use schemars::JsonSchema;
    /// use serde::{Deserialize, Serialize};
    /// use skills_core::{SkillTool, ToolError};
    ///
    /// #[derive(Deserialize, JsonSchema)]
    /// struct CountLines {
    ///     /// The text whose lines are counted.
    ///     text: String,
    /// }
    ///
    /// #[derive(Serialize)]
    /// struct LineCount {
    ///     lines: usize,
    /// }
    ///
    /// let tool = SkillTool::typed("count-lines", "Counts lines.", async |input: CountLines| -> Result<_, ToolError> {
    ///     Ok(LineCount { lines: input.text.lines().count() })
    /// });
    /// let schema = tool.input_schema.unwrap();
    /// assert_eq!(schema["properties"]["text"]["description"], "The text whose lines are counted.");
    /// ```
    pub fn typed<I, O, F, Fut>(name: impl Into<String>, description: impl Into<String>, handler: F) -> Self
    where
        I: DeserializeOwned + JsonSchema + 'static,
        O: Serialize + 'static,
        F: Fn(I) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<O, ToolError>> + Send + 'static,
    {
        let handler = Typed { handler, types: PhantomData::<fn(I) -> O> };
        Self { input_schema: schema_of::<I>(), ..Self::new(name, description, handler) }
    }
}

/// Returns the JSON schema of a type for a model: without references and without the type's name.
///
/// Returns `None` if the type accepts any value.
pub fn schema_of<T: JsonSchema>() -> Option<Value> {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.meta_schema = None;
        settings.inline_subschemas = true;
    });
    let mut schema = settings.into_generator().into_root_schema_for::<T>();
    schema.remove("title");
    Some(schema.to_value()).filter(|schema| schema.as_object().is_some_and(|schema| !schema.is_empty()))
}

/// A handler that converts input and output.
struct Typed<I, O, F> {
    handler: F,
    types: PhantomData<fn(I) -> O>,
}

impl<I, O, F, Fut> ToolHandler for Typed<I, O, F>
where
    I: DeserializeOwned,
    O: Serialize,
    F: Fn(I) -> Fut + Send + Sync,
    Fut: Future<Output = Result<O, ToolError>> + Send + 'static,
{
    fn call(
        &self,
        input: Option<Value>,
        _context: CallContext,
    ) -> BoxFuture<'static, Result<Value, ToolError>> {
        match read(input) {
            Ok(input) => (self.handler)(input).map(|output| Ok(serde_json::to_value(output?)?)).boxed(),
            Err(error) => ready(Err(error.into())).boxed(),
        }
    }
}

/// Deserializes the input.
fn read<T: DeserializeOwned>(input: Option<Value>) -> Result<T, InvalidInput> {
    let Some(input) = input else {
        return read_value(Value::Null).or_else(|_| read_value(Value::Object(serde_json::Map::new())));
    };
    // The schema of `call_skill_tool` allows any input, so some models send an object as JSON text. We accept that, too.
    let inner = input.as_str().and_then(|text| serde_json::from_str(text).ok()).filter(Value::is_object);
    read_value(input).or_else(|error| inner.map_or(Err(error), read_value))
}

fn read_value<T: DeserializeOwned>(value: Value) -> Result<T, InvalidInput> {
    serde_path_to_error::deserialize(value).map_err(|error| {
        let path = error.path().to_string();
        let path = if path == "." { String::new() } else { path };
        InvalidInput { path, problem: error.into_inner().to_string() }
    })
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use serde_json::json;

    use super::*;

    /// A comment that the model must not see.
    #[derive(Debug, Deserialize, JsonSchema)]
    struct Order {
        /// The lines to count.
        #[serde(default)]
        lines: Vec<Line>,
        limit: Option<u32>,
    }

    #[derive(Debug, Deserialize, JsonSchema)]
    struct Line {
        text: String,
    }

    #[derive(Debug, Deserialize, JsonSchema)]
    struct Named {
        #[expect(dead_code, reason = "only deserialized")]
        name: String,
    }

    async fn call(tool: &SkillTool, input: Option<Value>) -> Result<Value, String> {
        tool.handler.call(input, CallContext::default()).await.map_err(|error| error.to_string())
    }

    #[tokio::test]
    async fn input_is_deserialized_and_errors_name_the_field() {
        let tool = SkillTool::typed("t", "d", async |order: Order| {
            let texts: Vec<_> = order.lines.into_iter().map(|line| line.text).collect();
            Ok((texts, order.limit))
        });
        for (input, expected) in [
            (Some(json!({ "lines": [{ "text": "a" }], "limit": 2 })), Ok(json!([["a"], 2]))),
            (Some(json!({ "limit": null, "more": 1 })), Ok(json!([[], null]))),
            // If all fields are optional, the input may be missing. An object may also be passed as JSON text.
            (None, Ok(json!([[], null]))),
            (Some(json!("{\"limit\":3}")), Ok(json!([[], 3]))),
            (
                Some(json!({ "lines": [{ "text": "a" }, { "text": 3 }] })),
                Err("`lines[1].text`: invalid type: integer `3`, expected a string"),
            ),
            (Some(json!({ "lines": [{}] })), Err("`lines[0]`: missing field `text`")),
            (Some(json!({ "limit": -1 })), Err("`limit`: invalid value: integer `-1`, expected u32")),
            (Some(json!("all")), Err("invalid type: string \"all\", expected struct Order")),
        ] {
            let output = call(&tool, input.clone()).await;
            assert_eq!(output, expected.map_err(str::to_owned), "{input:?}");
        }
        let tool = SkillTool::typed("t", "d", async |_: Named| Ok("ok"));
        assert_eq!(call(&tool, None).await.unwrap_err(), "missing field `name`");
    }

    #[tokio::test]
    async fn a_value_accepts_any_input() {
        let tool = SkillTool::typed("t", "d", |input: Value| async move { Ok(input) });
        assert_eq!(tool.input_schema, None);
        for (input, expected) in
            [(None, Value::Null), (Some(json!("{}")), json!("{}")), (Some(json!([1.5])), json!([1.5]))]
        {
            assert_eq!(call(&tool, input).await.unwrap(), expected);
        }
    }

    #[test]
    fn schemas_are_inlined_and_have_no_title() {
        let schema = schema_of::<Order>().unwrap();
        assert_eq!(schema["properties"]["lines"]["items"]["properties"]["text"], json!({ "type": "string" }));
        assert_eq!(schema["properties"]["lines"]["description"], "The lines to count.");
        assert!(schema.get("title").is_none() && schema.get("$schema").is_none(), "{schema}");
        assert_eq!(schema_of::<Vec<u8>>().unwrap()["type"], "array");
    }
}
