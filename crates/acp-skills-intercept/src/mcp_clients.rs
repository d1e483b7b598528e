//! Facts about MCP clients that use the skills without ACP, one row each: where their model sees the texts of a server, and where
//! they find skills themselves.
//!
//! The facts were measured with a server whose instructions and descriptions were 12,000 characters long, and a scripted model that
//! recorded each request. A client without a row gets the catalog in the description of a tool, because each client shows that to the
//! model.

use serde::Deserialize;

/// The place of the catalog for a client without ACP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "kebab-case")]
pub enum McpCatalog {
    /// The instructions of the server.
    Instructions,
    /// The description of the tool `activate_skill`.
    Tool,
    /// Both.
    Both,
    /// No catalog. The model can only use skills that it knows by name.
    None,
}

impl McpCatalog {
    /// Returns true if the instructions of the server contain the catalog.
    pub fn is_in_instructions(self) -> bool {
        matches!(self, Self::Instructions | Self::Both)
    }

    /// Returns true if the description of `activate_skill` contains the catalog.
    pub fn is_in_tool(self) -> bool {
        matches!(self, Self::Tool | Self::Both)
    }
}

/// A client that is known by the name in its `clientInfo`.
#[derive(Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct McpClient {
    /// The beginning of `clientInfo.name`. Some clients append the name of the server.
    pub name: &'static str,
    /// The best place of the catalog.
    pub catalog: McpCatalog,
    /// The maximum number of characters of the instructions and of a tool's description. The client cuts off what is longer. `None`
    /// if there is no limit, or if it is longer than 12,000 characters.
    pub limit: Option<usize>,
    /// The directories from which the client loads skills itself, below the home directory and below each directory from the session's
    /// up to the root of its repository.
    pub own_skills: &'static [&'static str],
    /// True if the model may have another tool with the name of one of ours, or has to search for our tools. The catalog then names
    /// our server.
    pub names_server: bool,
}

/// A client without a row.
static UNKNOWN: McpClient =
    McpClient { name: "", catalog: McpCatalog::Tool, limit: None, own_skills: &[], names_server: false };

/// All known clients, with the versions that were measured.
static CLIENTS: &[McpClient] = &[
    // 2.1.197: cuts both texts after 2,048 characters.
    McpClient {
        name: "claude-code",
        catalog: McpCatalog::Instructions,
        limit: Some(2_000),
        own_skills: &[".claude/skills"],
        names_server: false,
    },
    // 0.169.0: the instructions describe the namespace of the tools.
    McpClient {
        name: "codex-mcp-client",
        catalog: McpCatalog::Instructions,
        limit: None,
        own_skills: &[".agents/skills", ".codex/skills"],
        names_server: false,
    },
    // 0.61.0: has a tool `activate_skill` for its own skills.
    McpClient {
        name: "gemini-cli-mcp-client",
        catalog: McpCatalog::Instructions,
        limit: None,
        own_skills: &[".agents/skills", ".gemini/skills"],
        names_server: true,
    },
    // 1.18.33
    McpClient {
        name: "opencode",
        catalog: McpCatalog::Instructions,
        limit: None,
        own_skills: &[
            ".agents/skills",
            ".claude/skills",
            ".opencode/skill",
            ".opencode/skills",
            ".config/opencode/skill",
            ".config/opencode/skills",
        ],
        names_server: false,
    },
    // 1.0.102: does not show the instructions.
    McpClient {
        name: "copilot-cli",
        catalog: McpCatalog::Tool,
        limit: None,
        own_skills: &[".agents/skills", ".claude/skills", ".copilot/skills", ".github/skills"],
        names_server: false,
    },
    // 0.24.4: the model searches for the tools of servers.
    McpClient {
        name: "qwen-cli-mcp-client",
        catalog: McpCatalog::Instructions,
        limit: None,
        own_skills: &[".qwen/skills"],
        names_server: true,
    },
];

/// Returns the facts about the client with this `clientInfo.name`.
///
/// ```
/// use acp_skills_intercept::{McpCatalog, mcp_client};
///
/// assert_eq!(mcp_client("qwen-cli-mcp-client-acp-skills").catalog, McpCatalog::Instructions);
/// assert_eq!(mcp_client("some-client").catalog, McpCatalog::Tool);
/// ```
pub fn mcp_client(name: &str) -> &'static McpClient {
    CLIENTS.iter().find(|client| name.starts_with(client.name)).unwrap_or(&UNKNOWN)
}
