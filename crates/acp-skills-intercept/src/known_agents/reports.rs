//! [`CallReports`]: the format that an agent uses to report calls to MCP tools. This is used to recognize calls to skill tools.
//!
//! Since a recognized call may be allowed without asking the user, entries should only use values that are written by the agent.
//! A title is not sufficient if the agent shows titles of commands in the same way, because a command can use any title.

/// The format in which an agent reports calls to MCP tools.
///
/// Texts are templates: `{server}` is replaced with the name of the skills server, and `{tool}` with the name of the tool.
/// `{server_}` is like `{server}`, but uses `_` instead of characters that are not ASCII letters or digits.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct CallReports {
    /// The path to the tool name in a call, used in addition to the member `name`. Empty if the agent doesn't use this.
    pub(crate) name_at: &'static [&'static str],
    /// Two members of `rawInput`: if the first is present, the second is used as tool input. Otherwise, this is the whole
    /// `rawInput`.
    pub(crate) input_in: Option<(&'static str, &'static str)>,
    /// True if the agent reports calls to all MCP tools as kind `execute`, even if a tool is read-only.
    pub(crate) always_executes: bool,
    /// True if only the update that announces a call matches `updates`. Later updates may show another title.
    pub(crate) only_first: bool,
    /// The clues in an update about a call. All of them must match.
    pub(crate) updates: &'static [Clue],
    /// The clues in a request for permission. All of them must match.
    pub(crate) requests: &'static [Clue],
}

/// A property that should be present in a call to a skill tool.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Clue {
    /// The call was announced as a call of this tool. This is for requests only.
    Announced,
    /// The tool name is this text. If several names are given, all should be equal.
    Name(&'static str),
    /// The title is this text.
    Title(&'static str),
    /// The kind is this text.
    Kind(&'static str),
    /// The id begins with this text.
    IdStart(&'static str),
    /// This member of `rawInput` is this text.
    Input(&'static str, &'static str),
    /// The first content block has this text.
    Text(&'static str),
    /// The text of the first content block begins with this text.
    TextStart(&'static str),
    /// This flag in the `_meta` of the call, or of the request, is true.
    Flag(&'static str),
    /// The request offers an option with this id, and this text is in the option's name.
    Option(&'static str, &'static str),
}

use Clue::{Announced, Flag, IdStart, Input, Kind, Name, Text, TextStart, Title};

/// An empty report, used as default by the entries below.
const NONE: CallReports = CallReports {
    name_at: &[],
    input_in: None,
    always_executes: false,
    only_first: false,
    updates: &[],
    requests: &[],
};

/// Agentao uses the name of the tool as the title. The kind `other` means that the tool is not one of its own. The title does not
/// separate the server's name from the tool's name, so in a request the description has to name the server, too.
pub(super) static AGENTAO: CallReports = CallReports {
    only_first: true,
    updates: &[Kind("other"), Title("mcp_{server_}_{tool}")],
    requests: &[Kind("other"), Title("mcp_{server_}_{tool}"), TextStart("[MCP:{server}] ")],
    ..NONE
};

/// Claude's adapter gives the name of the tool in the metadata.
pub(super) static CLAUDE: CallReports = CallReports {
    name_at: &["_meta", "claudeCode", "toolName"],
    updates: &[Name("mcp__{server}__{tool}")],
    requests: &[Name("mcp__{server}__{tool}")],
    ..NONE
};

/// Codex names no tool. It flags calls of MCP tools, and writes the titles of such requests itself.
pub(super) static CODEX: CallReports = CallReports {
    input_in: Some(("arguments", "arguments")),
    always_executes: true,
    updates: &[Flag("is_mcp_tool_call"), Input("server", "{server}"), Input("tool", "{tool}")],
    requests: &[Flag("is_mcp_tool_approval"), Title("mcp.{server}.{tool}")],
    ..NONE
};

/// Copilot announces a call with the name of the tool, before it asks for permission. In the request, the title is the title of
/// the tool, which does not name the server. The kind `other` means that the call is no command, edit or read: those have a title
/// that the model can choose. Copilot's own `sql` and `task` have such a title and this kind, but their inputs differ from ours.
pub(super) static COPILOT: CallReports = CallReports {
    only_first: true,
    updates: &[Kind("other"), Title("{server}-{tool}")],
    requests: &[Kind("other"), Announced],
    ..NONE
};

/// Droid uses the name of the tool as the title when it announces a call; its own tools have names of another form. In a request
/// for permission to call an MCP tool, it also offers to allow all tools of that server.
pub(super) static DROID: CallReports = CallReports {
    only_first: true,
    updates: &[Title("{server}___{tool}")],
    requests: &[Title("{server}___{tool}"), Clue::Option("proceed_always_server", "\"{server}\"")],
    ..NONE
};

/// fast-agent uses `SERVER/TOOL` as the title of every call of an MCP tool. Its own tools have no server.
pub(super) static FAST_AGENT: CallReports =
    CallReports { updates: &[Title("{server}/{tool}")], requests: &[Title("{server}/{tool}")], ..NONE };

/// Gemini names no tool. It begins the id of a call with the name of the function that the model called, by which it also finds
/// the tool. That name does not separate the server's name from the tool's name, so the title has to match, too.
pub(super) static GEMINI: CallReports = CallReports {
    updates: &[IdStart("mcp_{server}_{tool}__"), Title("{tool} ({server} MCP Server)")],
    requests: &[IdStart("mcp_{server}_{tool}__"), Title("{tool} ({server} MCP Server)")],
    ..NONE
};

/// Grok calls the tools of MCP servers through one tool of its own, and the input names the server and the tool. The metadata
/// contains the name of Grok's own tool, so a shell command can't be mistaken for such a call.
pub(super) static GROK: CallReports = CallReports {
    name_at: &["_meta", "x.ai/tool", "name"],
    input_in: Some(("tool_name", "tool_input")),
    updates: &[Name("use_tool"), Input("tool_name", "{server}__{tool}")],
    requests: &[Name("use_tool"), Input("tool_name", "{server}__{tool}")],
    ..NONE
};

/// Kimi Code uses the name of the tool, with its server, as the title when it announces a call. In a request the text repeats the
/// name, because the title of a command can be anything. The older Kimi CLI names no server, so its calls never match.
pub(super) static KIMI: CallReports = CallReports {
    only_first: true,
    updates: &[Kind("other"), Title("mcp__{server}__{tool}")],
    requests: &[Title("mcp__{server}__{tool}"), Text("Requesting approval to Approve mcp__{server}__{tool}")],
    ..NONE
};

/// OpenCode uses the name of the tool as the title of a request, and of a call that it announces. Later the title may be the
/// model's own description of the call. The kind `other` means that the tool is not one of OpenCode's own.
pub(super) static OPENCODE: CallReports = CallReports {
    only_first: true,
    updates: &[Kind("other"), Title("{server}_{tool}")],
    requests: &[Kind("other"), Title("{server}_{tool}")],
    ..NONE
};

/// Qwen Code gives the name of the tool in the metadata.
pub(super) static QWEN: CallReports = CallReports {
    name_at: &["_meta", "toolName"],
    updates: &[Name("mcp__{server}__{tool}")],
    requests: &[Name("mcp__{server}__{tool}")],
    ..NONE
};
