#![doc = include_str!("../README.md")]
//!
//! # Tool calls
//!
//! ```
//! # #[cfg(not(feature = "toolbox"))] fn main() {}
//! # #[cfg(feature = "toolbox")]
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use serde_json::{Value, json};
//! use skills_core::{CallContext, Catalog, CatalogOptions, Guide, Skill, SkillSet, Toolbox, guide, load_dir};
//!
//! # let dir = tempfile::tempdir()?;
//! # let dir = dir.path().join("code-review");
//! # std::fs::create_dir(&dir)?;
//! # let text = "---\nname: code-review\ndescription: Reviews code.\n---\nRead the diff first.\n";
//! # std::fs::write(dir.join("SKILL.md"), text)?;
//! // 1. Load a skill from a directory, and one that is defined in code.
//! let mut skills = SkillSet::builder();
//! let (stored, diagnostics) = load_dir(&dir)?;
//! skills.add(stored, diagnostics);
//! let shout = Skill::builder("shout", "Makes text louder. Use when something must stand out.")
//!     .body("Call the tool `upper` with `{\"text\": …}`.")
//!     .tool("upper", "Gives `text` in capital letters.", |input: Value| async move {
//!         let text = input["text"].as_str().ok_or("`text` must be a string")?;
//!         Ok(text.to_uppercase())
//!     })
//!     .build()?;
//! skills.add(shout, Vec::new());
//! let skills = skills.build();
//!
//! // 2. List the skills in the system prompt, or before the first task.
//! let catalog = Catalog::render(&skills, &CatalogOptions::default()).expect("there are skills");
//! let prompt = format!("{}\n{}", catalog.text, guide(Guide::Tools));
//! assert!(prompt.contains("<name>code-review</name>"));
//!
//! // 3. Offer the tools and answer calls.
//! let toolbox = Toolbox::new(skills);
//! let names: Vec<_> = toolbox.definitions().into_iter().map(|tool| tool.name).collect();
//! assert_eq!(names, ["activate_skill", "call_skill_tool", "read_skill_file"]);
//!
//! let call = async |tool: &str, arguments: Value| {
//!     let arguments = arguments.as_object().cloned().unwrap_or_default();
//!     toolbox.call(tool, arguments, &CallContext::default()).await
//! };
//! let output = call("activate_skill", json!({ "name": "code-review" })).await;
//! assert!(output.to_text().starts_with("<skill_content name=\"code-review\">\nRead the diff first.\n"));
//! let input = json!({ "text": "done" });
//! let output = call("call_skill_tool", json!({ "skill": "shout", "tool": "upper", "input": input })).await;
//! assert_eq!(output.to_text(), "DONE");
//!
//! // An error is a result that tells the model what to do next.
//! let output = call("activate_skill", json!({ "name": "code-reveiw" })).await;
//! assert!(output.is_error);
//! assert!(output.to_text().starts_with("SkillNotFound: no skill \"code-reveiw\" found. Did you mean \"code-review\"?"));
//! # Ok(()) }
//! ```
//!
//! # Modules
//!
//! All features except `clap` are enabled by default; [Features](#features) lists them.
//!
//! | module | contents | feature |
//! |---|---|---|
//! | [`name`] | [`SkillName`] and the specification's rules for names | |
//! | [`skill`] | [`Skill`]: metadata, and the source of the instructions | |
//! | [`frontmatter`] | parser and validator for `SKILL.md` files | |
//! | [`diagnostic`] | [`Diagnostic`]: a problem of a skill, its position, and a hint | |
//! | [`discovery`] | search for skills on disk, with precedence, filters and limits | |
//! | [`evaluation`] | the names of the files of an evaluation | |
//! | [`source`] | [`SkillSource`]: a trait for other places that have skills | |
//! | [`set`] | [`SkillSet`]: an immutable snapshot of skills | |
//! | [`catalog`] | the list of skills for the model, within a budget | |
//! | [`activation`] | the instructions of one skill for the model | |
//! | [`files`] | files of a skill, confined to its directory by the operating system | |
//! | [`search`] | ranked search, for sets that are too large for a catalog | |
//! | [`tool`] | tools that skills define, and the names of the built-in tools | |
//! | [`toolbox`] | definitions and answers of the built-in tools | `toolbox` for answers |
//! | [`exec`] | scripts and programs, with limits and a sandbox | `exec` |
//! | [`fetch`] | small files from the web | `fetch` |
//! | [`scan`] | a scan for suspicious content in skills | `scan` |
//! | [`order`] | sorting with little code | |
//! | [`text`] | untrusted text made safe to display | |

pub mod activation;
mod builder;
pub mod catalog;
pub mod diagnostic;
pub mod discovery;
pub mod evaluation;
#[cfg(feature = "exec")]
pub mod exec;
#[cfg(feature = "fetch")]
pub mod fetch;
pub mod files;
pub mod frontmatter;
mod hash;
pub mod instructions;
pub mod json;
mod last_good;
pub mod name;
pub mod order;
pub mod paths;
#[cfg(feature = "scan")]
pub mod scan;
pub mod search;
pub mod set;
pub mod skill;
pub mod source;
pub mod text;
pub mod tool;
pub mod toolbox;

pub use activation::{Activation, ActivationOptions, activate};
pub use builder::{BuildError, SkillBuilder};
pub use catalog::{Catalog, CatalogOptions, Guide, estimate_tokens, guide};
pub use diagnostic::{Diagnostic, Severity};
pub use discovery::{Discovery, LoadError, load_dir};
pub use files::{FileContent, FileEntry, FileError, Listing, ReadOptions, SkillFiles};
pub use name::{NameRule, SkillName};
pub use schemars;
pub use set::{SkillSet, SkillSetBuilder};
#[cfg(feature = "fetch")]
pub use skill::Remote;
pub use skill::{Instructions, Properties, Scope, Skill, Source, Stored, Virtual};
pub use source::SkillSource;
pub use tool::{CallContext, Caller, InvalidInput, SkillTool, ToolError, ToolHandler, ToolProvider};
pub use toolbox::{ToolDefinition, ToolOutput};
#[cfg(feature = "toolbox")]
pub use toolbox::{Toolbox, ToolboxOptions};
