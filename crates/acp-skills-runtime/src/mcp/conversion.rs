//! The server, and definitions and results of tools, as rmcp's types.

use acp_skills_intercept::{SERVER_NAME, events::TraceContext};
use rmcp::model::{
    CallToolResult, ContentBlock, ErrorCode, ErrorData, Implementation, MetaObject, RequestMetaObject,
    ServerCapabilities, ServerConfig, Tool, ToolAnnotations,
};
use serde_json::{Map, Value};
use skills_core::{ToolDefinition, ToolOutput, toolbox::Content};

use super::{TOO_LONG, TOO_MANY_SUBSCRIPTIONS, UNREADABLE};

/// The methods of the requests that the server answers.
const METHODS: [&str; 12] = [
    "initialize",
    "ping",
    "prompts/get",
    "prompts/list",
    "resources/list",
    "resources/read",
    "server/discover",
    "skills/get",
    "skills/list",
    "subscriptions/listen",
    "tools/call",
    "tools/list",
];

/// Returns the name, the version and the capabilities of the server.
pub(crate) fn info() -> ServerConfig {
    let capabilities = ServerCapabilities::builder();
    let capabilities = capabilities.enable_tools().enable_prompts().enable_resources().enable_skills();
    let capabilities = capabilities.enable_tool_list_changed().enable_prompts_list_changed();
    let capabilities = capabilities.enable_resources_list_changed();
    let mut info = ServerConfig::new(capabilities.build());
    info.server_info = Implementation::new(SERVER_NAME, env!("CARGO_PKG_VERSION"));
    info
}

/// Returns the error of a request that no other function answers.
pub(super) fn refusal(method: &str) -> ErrorData {
    let invalid = |why: &'static str| ErrorData::invalid_request(why, None);
    match method {
        TOO_LONG => invalid("message is longer than 4 MiB, or contains too many values"),
        UNREADABLE => {
            invalid("request cannot be read: `jsonrpc` must be \"2.0\", `params` and `_meta` must be objects")
        }
        TOO_MANY_SUBSCRIPTIONS => invalid("too many open subscriptions"),
        // We get here if the params of a known method could not be read.
        _ if METHODS.contains(&method) => {
            ErrorData::invalid_params(format!("`params` of `{method}` cannot be read"), None)
        }
        _ => ErrorData::new(ErrorCode::METHOD_NOT_FOUND, method.to_owned(), None),
    }
}

/// Converts the definition of a tool.
pub(super) fn tool(definition: ToolDefinition) -> Tool {
    // Leave out defaults and don't repeat the title here, because some agents pass the whole definition to the model.
    // Note that if a tool is not read-only, it's destructive by default according to the spec.
    let annotations = ToolAnnotations::new().read_only(definition.read_only);
    let mut tool = Tool::new(definition.name, definition.description, definition.input_schema);
    tool.title = Some(definition.title.into_owned());
    tool.annotations = Some(annotations);
    // Make sure that Claude Code always loads our tools. Otherwise, the model has to use a tool search to find them.
    let mut meta = MetaObject::new();
    meta.insert("anthropic/alwaysLoad".to_owned(), true.into());
    tool.meta = Some(meta);
    tool
}

/// Returns the trace that a request belongs to.
pub(super) fn trace(meta: &RequestMetaObject) -> Option<Box<TraceContext>> {
    TraceContext::parse(meta.get_traceparent()?, meta.get_tracestate()).map(Box::new)
}

/// Returns the members of `_meta` that are passed on to a server that a call uses.
pub(super) fn passed_on(meta: &RequestMetaObject) -> Map<String, Value> {
    let keys = ["traceparent", "tracestate", "baggage"];
    let found = keys.into_iter().filter_map(|key| Some((key.to_owned(), meta.get(key)?.clone())));
    found.collect()
}

/// Converts the result of a call.
pub(super) fn result(output: ToolOutput) -> CallToolResult {
    let content = output.content.into_iter().map(block).collect();
    let mut result =
        if output.is_error { CallToolResult::error(content) } else { CallToolResult::success(content) };
    result.structured_content = output.structured;
    result
}

fn block(content: Content) -> ContentBlock {
    use base64::{Engine, engine::general_purpose::STANDARD};
    match content {
        Content::Text(text) => ContentBlock::text(text),
        Content::Image { media_type, data } => ContentBlock::image(STANDARD.encode(data), media_type),
        Content::Raw(part) => {
            let text = || ContentBlock::text(part.to_string());
            serde_json::from_value(part.clone()).unwrap_or_else(|_| text())
        }
        // In newer versions of `skills-core`, there may be other kinds of content. For these, just send the debug
        // output.
        other => ContentBlock::text(format!("{other:?}")),
    }
}
