//! What flags let choose from; a configuration file uses the same words.

use clap::ValueEnum;
use tracing_subscriber::filter::LevelFilter;

use crate::intercept::{Approve, CatalogIn, McpMode, ToolPolicy};

macro_rules! choices {
    ($(#[$meta:meta])* $name:ident { $($variant:ident),+ $(,)? }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, serde::Deserialize)]
        #[serde(rename_all = "kebab-case")]
        #[expect(missing_docs, reason = "the flags explain their values")]
        pub enum $name { $($variant),+ }
    };
}

choices!(
    /// `--catalog-in`
    CatalogPlace { Auto, System, Prompt, Off }
);
choices!(
    /// `--catalog-format`
    CatalogFormat { Xml, Json, Markdown }
);
choices!(
    /// `--catalog-detail`
    CatalogDetail { Full, Names }
);
choices!(
    /// `--location`
    LocationKind { None, Absolute }
);
choices!(
    /// `--mcp`
    McpTransport { Auto, Acp, Http, Stdio, Off }
);
choices!(
    /// `--activation`
    ActivationBy { Model, Prompt, Hybrid }
);
choices!(
    /// `--search`
    SearchWhen { Auto, On, Off }
);
choices!(
    /// `--script-cwd`
    ScriptDirectory { Session, Skill }
);
choices!(
    /// `--script-env`
    ScriptVariables { Inherit, Clean }
);
choices!(
    /// `--sandbox`
    SandboxKind { Bwrap }
);
choices!(
    /// `--approve`
    ApproveKind { Own, None }
);
choices!(
    /// `--tool-policy`
    ToolPolicyKind { Permissive, Approval, Strict }
);
choices!(
    /// `--log`
    LogLevel { Off, Error, Warn, Info, Debug, Trace }
);

impl From<CatalogPlace> for CatalogIn {
    fn from(place: CatalogPlace) -> Self {
        match place {
            CatalogPlace::Auto => Self::Auto,
            CatalogPlace::System => Self::System,
            CatalogPlace::Prompt => Self::Prompt,
            CatalogPlace::Off => Self::Off,
        }
    }
}

impl From<McpTransport> for McpMode {
    fn from(transport: McpTransport) -> Self {
        match transport {
            McpTransport::Auto => Self::Auto,
            McpTransport::Acp => Self::Acp,
            McpTransport::Http => Self::Http,
            McpTransport::Stdio => Self::Stdio,
            McpTransport::Off => Self::Off,
        }
    }
}

impl From<ApproveKind> for Approve {
    fn from(kind: ApproveKind) -> Self {
        match kind {
            ApproveKind::Own => Self::Own,
            ApproveKind::None => Self::None,
        }
    }
}

impl From<ToolPolicyKind> for ToolPolicy {
    fn from(kind: ToolPolicyKind) -> Self {
        match kind {
            ToolPolicyKind::Permissive => Self::Permissive,
            ToolPolicyKind::Approval => Self::Approval,
            ToolPolicyKind::Strict => Self::Strict,
        }
    }
}

impl From<LogLevel> for LevelFilter {
    fn from(level: LogLevel) -> Self {
        match level {
            LogLevel::Off => Self::OFF,
            LogLevel::Error => Self::ERROR,
            LogLevel::Warn => Self::WARN,
            LogLevel::Info => Self::INFO,
            LogLevel::Debug => Self::DEBUG,
            LogLevel::Trace => Self::TRACE,
        }
    }
}
