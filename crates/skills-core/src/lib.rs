//! Agent Skills as a library.

pub mod activation;
mod builder;
pub mod catalog;
pub mod diagnostic;
pub mod discovery;
pub mod exec;
#[cfg(feature = "fetch")]
pub mod fetch;
pub mod files;
pub mod frontmatter;
pub mod name;
pub mod search;
pub mod set;
pub mod skill;
pub mod toolbox;

pub use activation::{Activation, ActivationOptions, activate};
pub use builder::{BuildError, SkillBuilder};
pub use catalog::{Catalog, CatalogOptions, Guide, estimate_tokens, guide};
pub use diagnostic::{Diagnostic, Severity};
pub use discovery::{Discovery, LoadError, load_dir};
pub use files::{FileContent, FileEntry, FileError, Listing, ReadOptions, SkillFiles};
pub use name::{NameRule, SkillName};
pub use set::{SkillSet, SkillSetBuilder};
pub use skill::{
    CallContext, Instructions, Properties, Scope, Skill, SkillTool, Source, Stored, ToolError, ToolHandler,
    Virtual,
};
pub use toolbox::{ToolDefinition, ToolOutput, Toolbox, ToolboxOptions};
