//! [`ConfigurableClient`]: the MCP clients that `setup mcp` supports, the paths of their settings, and the format of a server in these.
//!
//! Sources: [Claude Code](https://code.claude.com/docs/en/mcp), [Codex](https://developers.openai.com/codex/mcp),
//! [Gemini CLI](https://geminicli.com/docs/tools/mcp-server/), [Qwen Code](https://qwenlm.github.io/qwen-code-docs/en/features/mcp),
//! [Cursor](https://cursor.com/docs/context/mcp), [VS Code](https://code.visualstudio.com/docs/copilot/customization/mcp-servers),
//! [OpenCode](https://opencode.ai/docs/mcp-servers), [Goose](https://block.github.io/goose/docs/getting-started/using-extensions).
//!
//! | file | owns |
//! |---|---|
//! | `json` | a server in settings that are JSON with comments |
//! | `toml` | a server in the settings of Codex |
//! | `yaml` | a server in the settings of Goose |

mod json;
#[cfg(test)]
mod tests;
mod toml;
mod yaml;

use std::{
    env,
    path::{Path, PathBuf},
};

use super::{document::SettingsError, home::Home};
use crate::SetupError;

pub use self::json::{Shape, servers};

/// The name of our server in settings.
pub const SERVER: &str = "acp-skills";

/// An MCP client with settings that we can edit.
#[derive(Debug)]
pub struct ConfigurableClient {
    /// The name on the command line.
    pub id: &'static str,
    /// Other names for the same client.
    pub aliases: &'static [&'static str],
    /// The name for messages.
    pub name: &'static str,
    /// True if the client is started from a desktop, where `PATH` may differ from that of a terminal.
    pub is_desktop: bool,
    /// The format of the settings.
    pub format: Format,
    /// The settings of the user. The first one that exists is used, or else the first one. If a variable is set, only its places count.
    user: &'static [Place],
    /// The settings of a project, relative to its directory. `None` if we don't write these.
    project: Option<&'static str>,
    /// True if the client loads skills itself, so that these are left out.
    pub has_own_skills: bool,
    /// A sentence that tells users what to do next.
    pub then: &'static str,
}

/// The format of a server in settings.
#[derive(Debug, Clone, Copy)]
pub enum Format {
    /// JSON with comments: the key of the object with all servers, and the shape of a server.
    Json(&'static str, Shape),
    /// The `config.toml` of Codex.
    Toml,
    /// The `config.yaml` of Goose.
    Yaml,
}

/// The path of settings.
#[derive(Debug, Clone, Copy)]
enum Place {
    /// Below the home directory.
    Home(&'static str),
    /// Below the user's directory for settings.
    Config(&'static str),
    /// Below the directory in an environment variable. Skipped if the variable is not set.
    Variable(&'static str, &'static str),
}

const SERVERS: &str = "mcpServers";

/// All supported clients.
pub const ALL: &[ConfigurableClient] = &[
    ConfigurableClient {
        id: "claude-code",
        aliases: &["claude"],
        name: "Claude Code",
        is_desktop: false,
        format: Format::Json(SERVERS, Shape::Typed),
        user: &[Place::Variable("CLAUDE_CONFIG_DIR", ".claude.json"), Place::Home(".claude.json")],
        project: Some(".mcp.json"),
        has_own_skills: true,
        then: "Start `claude` again; `/mcp` shows the server.",
    },
    ConfigurableClient {
        id: "codex",
        aliases: &["codex-cli"],
        name: "Codex",
        is_desktop: false,
        format: Format::Toml,
        user: &[Place::Variable("CODEX_HOME", "config.toml"), Place::Home(".codex/config.toml")],
        project: None,
        has_own_skills: true,
        then: "Start `codex` again; `/mcp` shows the server.",
    },
    ConfigurableClient {
        id: "gemini",
        aliases: &["gemini-cli"],
        name: "Gemini CLI",
        is_desktop: false,
        format: Format::Json(SERVERS, Shape::Plain),
        user: &[Place::Home(".gemini/settings.json")],
        project: Some(".gemini/settings.json"),
        has_own_skills: true,
        then: "Start `gemini` again; `/mcp` shows the server.",
    },
    ConfigurableClient {
        id: "qwen",
        aliases: &["qwen-code"],
        name: "Qwen Code",
        is_desktop: false,
        format: Format::Json(SERVERS, Shape::Plain),
        user: &[Place::Home(".qwen/settings.json")],
        project: Some(".qwen/settings.json"),
        has_own_skills: true,
        then: "Start `qwen` again; `/mcp` shows the server.",
    },
    ConfigurableClient {
        id: "cursor",
        aliases: &[],
        name: "Cursor",
        is_desktop: true,
        format: Format::Json(SERVERS, Shape::Plain),
        user: &[Place::Home(".cursor/mcp.json")],
        project: Some(".cursor/mcp.json"),
        has_own_skills: false,
        then: "Turn the server on in Cursor's settings, under MCP.",
    },
    ConfigurableClient {
        id: "vscode",
        aliases: &["code", "vs-code"],
        name: "VS Code",
        is_desktop: true,
        format: Format::Json("servers", Shape::Typed),
        user: &[Place::Config("Code/User/mcp.json")],
        project: Some(".vscode/mcp.json"),
        has_own_skills: false,
        then: "Start the server with the command `MCP: List Servers`.",
    },
    ConfigurableClient {
        id: "opencode",
        aliases: &[],
        name: "OpenCode",
        is_desktop: false,
        format: Format::Json("mcp", Shape::Local),
        user: &[
            Place::Variable("XDG_CONFIG_HOME", "opencode/opencode.json"),
            Place::Variable("XDG_CONFIG_HOME", "opencode/opencode.jsonc"),
            Place::Home(".config/opencode/opencode.json"),
            Place::Home(".config/opencode/opencode.jsonc"),
        ],
        project: Some("opencode.json"),
        has_own_skills: true,
        then: "Start `opencode` again.",
    },
    ConfigurableClient {
        id: "goose",
        aliases: &[],
        name: "Goose",
        is_desktop: false,
        format: Format::Yaml,
        user: if cfg!(windows) {
            &[Place::Config("Block/goose/config/config.yaml")]
        } else {
            &[
                Place::Variable("XDG_CONFIG_HOME", "goose/config.yaml"),
                Place::Home(".config/goose/config.yaml"),
            ]
        },
        project: None,
        has_own_skills: false,
        then: "Start `goose` again.",
    },
];

/// Returns the client with this name. Case is ignored.
///
/// # Errors
/// Returns an error that names all clients if none has the name.
pub fn find(name: &str) -> Result<&'static ConfigurableClient, SetupError> {
    let name = name.to_lowercase();
    let has_name =
        |client: &&ConfigurableClient| client.id == name || client.aliases.contains(&name.as_str());
    ALL.iter().find(has_name).ok_or_else(|| {
        let near = ALL.iter().find(|client| strsim::osa_distance(&name, client.id) <= 2);
        let all: Vec<_> = ALL.iter().map(|client| client.id).collect();
        SetupError::new(format!("unknown MCP client `{name}`")).with_hint(match near {
            Some(client) => format!("did you mean `{}`?", client.id),
            None => format!(
                "supported clients are {}; in the settings of other clients, add a server with the command `acp-skills-proxy mcp`",
                all.join(", ")
            ),
        })
    })
}

impl ConfigurableClient {
    /// Returns the path of the user's settings. The file may not exist.
    pub fn user_file(&self, home: &Home) -> PathBuf {
        let is_variable = |place: &Place| matches!(place, Place::Variable(..));
        let moved = self.user.iter().any(|place| is_variable(place) && place.path(home).is_some());
        let places = self.user.iter().filter(|place| is_variable(place) == moved);
        let paths: Vec<PathBuf> = places.filter_map(|place| place.path(home)).collect();
        let existing = paths.iter().find(|path| path.symlink_metadata().is_ok());
        existing.or(paths.first()).cloned().unwrap_or_default()
    }

    /// Returns the path of the settings of the project in this directory. `None` if we don't write these.
    pub fn project_file(&self, dir: &Path) -> Option<PathBuf> {
        self.project.map(|file| dir.join(file))
    }

    /// Returns the command of the server with this name. `None` if there is no such server.
    ///
    /// # Errors
    /// Returns an error if the settings can't be parsed, or if the server has no command.
    pub fn server(&self, text: &str, name: &str) -> Result<Option<Vec<String>>, SettingsError> {
        match self.format {
            Format::Json(key, _) => json::server(text, key, name),
            Format::Toml => toml::server(text, name),
            Format::Yaml => yaml::server(text, name),
        }
    }

    /// Returns the text with a server. If there is one with this name, only its command is replaced. All other settings, comments and the
    /// order are kept.
    ///
    /// # Errors
    /// Returns an error if the settings can't be parsed, or if more than this server would change.
    pub fn with_server(&self, text: &str, name: &str, command: &[String]) -> Result<String, SettingsError> {
        match self.format {
            Format::Json(key, shape) => json::with_server(text, key, shape, name, command),
            Format::Toml => toml::with_server(text, name, command),
            Format::Yaml => yaml::with_server(text, name, command),
        }
    }

    /// Returns the text without a server.
    ///
    /// # Errors
    /// Returns an error if the settings can't be parsed, or if more than this server would change.
    pub fn without_server(&self, text: &str, name: &str) -> Result<String, SettingsError> {
        match self.format {
            Format::Json(key, _) => json::without_server(text, key, name),
            Format::Toml => toml::without_server(text, name),
            Format::Yaml => yaml::without_server(text, name),
        }
    }
}

impl Place {
    fn path(self, home: &Home) -> Option<PathBuf> {
        let path = match self {
            Self::Home(path) => home.dir.join(path),
            Self::Config(path) => home.config.join(path),
            Self::Variable(variable, path) => {
                let dir = env::var_os(variable).map(PathBuf::from).filter(|dir| dir.is_absolute())?;
                dir.join(path)
            }
        };
        // Collect the components into a new path, so that it uses the separators of the system.
        Some(path.components().collect())
    }
}

/// Returns the error for settings that would lose something. This is a bug, or settings that we don't understand.
fn unsafe_edit(name: &str) -> SettingsError {
    SettingsError {
        line: 1,
        column: 1,
        message: format!("cannot change the server `{name}` without changing other settings"),
    }
}

/// Returns the end of the lines in a text.
fn line_end(text: &str) -> &'static str {
    if text.contains("\r\n") { "\r\n" } else { "\n" }
}

/// Returns a string literal, which is valid in JSON, in YAML and in TOML.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string().replace('\u{7f}', "\\u007f")
}

/// Returns a list of string literals.
fn list(words: &[String]) -> String {
    let words: Vec<_> = words.iter().map(|word| quoted(word)).collect();
    format!("[{}]", words.join(", "))
}
