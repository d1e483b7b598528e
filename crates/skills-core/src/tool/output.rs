//! [`ToolOutput`]: the result of a tool call.

use serde_json::Value;

/// The result of a tool call. Errors are results too, so that the model can react to them.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ToolOutput {
    /// The content for the model, in order.
    pub content: Vec<Content>,
    /// The content as JSON, if the tool has a structured result.
    pub structured: Option<Value>,
    /// True if the call failed.
    pub is_error: bool,
    /// The code of the failure, for programs. The text starts with the same code, for example `SkillNotFound`.
    pub code: Option<&'static str>,
}

/// A part of a tool's result.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Content {
    /// Text.
    Text(String),
    /// An image.
    Image {
        /// The media type, for example `image/png`.
        media_type: &'static str,
        /// The bytes of the image file.
        data: Vec<u8>,
    },
    /// A part in the format of the host's protocol, from one of its [tool providers](super::ToolProvider). It is passed on
    /// as it is.
    Raw(Value),
}

impl ToolOutput {
    /// Creates a successful result with one text.
    pub fn text(text: impl Into<String>) -> Self {
        Self { content: vec![Content::Text(text.into())], structured: None, is_error: false, code: None }
    }

    /// Returns all texts, joined by line breaks. Other parts are left out.
    pub fn to_text(&self) -> String {
        let texts = self.content.iter().filter_map(|part| match part {
            Content::Text(text) => Some(text.as_str()),
            Content::Raw(part) => part["text"].as_str(),
            Content::Image { .. } => None,
        });
        texts.collect::<Vec<_>>().join("\n")
    }

    /// Creates a failed result. The text should say what failed and what the model can do next.
    pub fn error(text: impl Into<String>) -> Self {
        Self { is_error: true, ..Self::text(text) }
    }
}
