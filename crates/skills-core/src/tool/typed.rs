//! Tools with types: the model sees the JSON schema of the input's type, and hears which field is wrong when its input
//! does not fit.

use std::marker::PhantomData;

use futures::future::{BoxFuture, FutureExt, ready};
use schemars::{JsonSchema, generate::SchemaSettings};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

use super::{CallContext, SkillTool, ToolError, ToolHandler};

/// Input that is not what a tool takes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[error("{}{problem}", match path.as_str() { "" => String::new(), path => format!("`{path}`: ") })]
pub struct InvalidInput {
    /// Where, for example `lines[2].text`; empty for the whole input.
    pub path: String,
    /// What is wrong there.
    pub problem: String,
}

impl SkillTool {
    /// A tool that takes an `I` and gives an `O`. Its input schema is that of `I`, with the documentation of its fields.
    ///
    /// Any type with [`serde::Deserialize`] and [`JsonSchema`] can be the input, [`Value`] too, which takes everything
    /// and has no schema. No input at all arrives as `null` where `I` takes that, else as an empty object.
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

/// The JSON schema of a type as a model reads it: in one piece and without the type's name; `None` when it takes
/// everything.
pub fn schema_of<T: JsonSchema>() -> Option<Value> {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.meta_schema = None;
        settings.inline_subschemas = true;
    });
    let mut schema = settings.into_generator().into_root_schema_for::<T>();
    schema.remove("title");
    Some(schema.to_value()).filter(|schema| schema.as_object().is_some_and(|schema| !schema.is_empty()))
}

/// A handler with types around it.
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

/// The input as a `T`.
fn read<T: DeserializeOwned>(input: Option<Value>) -> Result<T, InvalidInput> {
    let Some(input) = input else {
        return read_value(Value::Null).or_else(|_| read_value(Value::Object(serde_json::Map::new())));
    };
    // Where anything is allowed, some models send an object as the text of its JSON.
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

    /// Not for the model: types have no place in a schema.
    #[derive(Debug, Deserialize, JsonSchema)]
    struct Order {
        /// What to count.
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
        #[expect(dead_code, reason = "it is only to be there")]
        name: String,
    }

    async fn call(tool: &SkillTool, input: Option<Value>) -> Result<Value, String> {
        tool.handler.call(input, CallContext::default()).await.map_err(|error| error.to_string())
    }

    #[tokio::test]
    async fn input_is_read() {
        let tool = SkillTool::typed("t", "d", async |order: Order| {
            let texts: Vec<_> = order.lines.into_iter().map(|line| line.text).collect();
            Ok((texts, order.limit))
        });
        for (input, expected) in [
            (Some(json!({ "lines": [{ "text": "a" }], "limit": 2 })), Ok(json!([["a"], 2]))),
            (Some(json!({ "limit": null, "more": 1 })), Ok(json!([[], null]))),
            // Nothing where an object of options is taken, and an object as text.
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
    async fn any_value_is_input_too() {
        let tool = SkillTool::typed("t", "d", |input: Value| async move { Ok(input) });
        assert_eq!(tool.input_schema, None);
        for (input, expected) in
            [(None, Value::Null), (Some(json!("{}")), json!("{}")), (Some(json!([1.5])), json!([1.5]))]
        {
            assert_eq!(call(&tool, input).await.unwrap(), expected);
        }
    }

    #[test]
    fn schemas_are_for_models() {
        let schema = schema_of::<Order>().unwrap();
        assert_eq!(schema["properties"]["lines"]["items"]["properties"]["text"], json!({ "type": "string" }));
        assert_eq!(schema["properties"]["lines"]["description"], "What to count.");
        assert!(schema.get("title").is_none() && schema.get("$schema").is_none(), "{schema}");
        assert_eq!(schema_of::<Vec<u8>>().unwrap()["type"], "array");
    }
}
