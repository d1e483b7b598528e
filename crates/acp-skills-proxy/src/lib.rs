//! Agent Skills for every ACP agent, in any editor: a proxy between an editor and an agent that adds skills to what the
//! agent can do, and changes nothing else.
//!
//! Most people use the program. In Rust, [`one_shot`] runs one prompt against an agent with skills, also with skills
//! whose tools are functions of yours:
//!
//! ```
//! use acp_skills_proxy::one_shot::OneShot;
//! use skills_core::Skill;
//!
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> anyhow::Result<()> {
//! let skill = Skill::builder("shout", "Makes text louder. Use when something must stand out.")
//!     .body("# Shouting\nCall `upper` with the text.")
//!     .tool("upper", "Gives a text in capital letters.", |input: serde_json::Value| async move {
//!         Ok(input.as_str().ok_or("a text, please")?.to_uppercase())
//!     })
//!     .build()?;
//! // The embedded agent answers; `.agent(["claude-agent-acp"])` asks a real one.
//! let answer = OneShot::new([skill].into_iter().collect()).prompt("shout this").run().await?;
//! assert!(answer.text.contains("SHOUT THIS"));
//! # Ok(()) }
//! ```
//!
//! | module | question |
//! |---|---|
//! | [`wire`] | what is in a line, and how is it changed in place? |
//! | [`intercept`] | what becomes of a message? Pure: no I/O, no clock. |
//! | [`relay`] | how do the bytes move, and when does it end? |
//! | [`mcp`] | how does the agent reach the tools? |
//! | [`agent`] | how does the agent's process live and end? |
//! | [`component`] | how does it fit into programs that are built with the ACP SDK? |
//! | [`events`] | what is recorded of what happens, and how? |
//! | [`report`] | what does a record say when it is added up? |
//! | [`settings`] | what was decided on the command line and in the configuration? |

pub mod activity;
pub mod agent;
mod backlog;
pub mod cli;
mod client;
pub mod commands;
pub mod component;
pub mod config;
pub mod demo;
pub mod events;
pub mod intercept;
pub mod mcp;
pub mod memory;
pub mod one_shot;
mod private;
pub mod relay;
pub mod report;
pub mod session;
pub mod settings;
pub mod stdio;
pub mod wire;

pub use self::component::SkillsProxy;
