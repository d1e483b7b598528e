//! Agent Skills for every ACP agent, as a library.
//!
//! A skill is a folder with a `SKILL.md`. This crate connects an [ACP](https://agentclientprotocol.com) client to an agent,
//! tells the model which skills are available, and serves the tools for loading and using them. The program
//! `acp-skills-proxy` is built on it.
//!
//! | you have | use |
//! |---|---|
//! | one prompt to send from Rust | [`OneShot`](one_shot::OneShot) |
//! | a program with the ACP SDK, with an agent or a proxy chain | [`SkillsProxy`] |
//! | a `skills.yaml` | [`Config`](config::Config) with [`SkillsProxy::from_config`] |
//! | skills in a store of your own | [`SkillLibrary`](library::SkillLibrary) |
//! | skills to evaluate on agents | the crate [`acp-skills-eval`](https://docs.rs/acp-skills-eval) |
//! | an agent loop without ACP | [`skills_core`] alone |
//!
//! ```
//! use acp_skills::one_shot::OneShot;
//! use acp_skills::skills_core::Skill;
//!
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let skill = Skill::builder("greet", "Greets people.").body("# Greeting\nSay hello.").build()?;
//! // The built-in scripted agent answers. To start a real one, add `.agent(["claude-agent-acp"])`.
//! let answer = OneShot::default().skill(skill).prompt("Greet me").run().await?;
//! assert_eq!(answer.text, "I activated the skill `greet`: Greeting.");
//! # Ok(()) }
//! ```
//!
//! # Modules
//!
//! | module | contains |
//! |---|---|
//! | [`one_shot`] | [`OneShot`](one_shot::OneShot): one prompt, with the answer as a whole, in pieces or as a type |
//! | [`component`] | [`SkillsProxy`], the proxy as a component of the ACP SDK |
//! | [`config`] | [`Config`](config::Config), all settings from a file, from flags or from code |
//! | [`library`] | [`SkillLibrary`](library::SkillLibrary): where the skills of a session come from, and how changes are noticed |
//! | [`agents`] | the agents that can be started by name, and test results for them |
//! | [`elsewhere`] | commands that start the agent in a container or on another machine |
//! | [`client`] | a small ACP client, and the same protocol without I/O |
//! | [`structured_output`] | answers of an agent as Rust types |
//! | [`activity`] | callbacks while the model uses skills |
//! | [`events`] | the record: a file with one event per line |
//! | [`intercept`] | the proxy's policy, from the crate `acp-skills-intercept` |
//! | [`skills_core`] | skills, catalogs and tools, from the crate of that name |
//!
//! Three words describe what happens, and each has one meaning:
//!
//! - An **activity** ([`activity::Activity`]) is reported to a callback in this process as soon as the model uses our MCP
//!   server. It can contain a whole tool call with its input and output.
//! - An **event** ([`events`]) is a line of the **record**, the file for audits and statistics. It says which skill was used
//!   when and with which result, without the contents.
//! - A **trace** ([`one_shot::Trace`]) covers a single prompt and combines activities with the messages between client and
//!   agent, so that a program can show them to the user.
//!
//! # Guarantees
//!
//! 1. A message that isn't changed is forwarded byte for byte, and messages keep their order.
//! 2. The client never sees text that was added for the model. The agent receives all text that the user wrote.
//! 3. Skills, names, paths and models can't make the proxy read files outside of a skill's directory, or run a program that
//!    was not allowed. Permission requests of the agent are refused unless the program or the user allows them.
//! 4. If the proxy ends, the agent and its children end too. If the agent ends, all open requests are answered.
//! 5. A bad skill causes a diagnostic, not an outage. A slow or full disk doesn't delay messages.
//! 6. The MCP server listens on loopback unless the user chooses an address, and each connection needs the token of its session.

pub mod agents;
pub mod client;
pub mod component;
pub mod config;
pub mod elsewhere;
pub mod one_shot;
mod permission;
pub mod structured_output;
mod trace;

#[doc(inline)]
pub use acp_skills_runtime::{activity, events};

/// The skills of sessions: where they come from, and how changes are noticed.
pub mod library {
    pub use acp_skills_intercept::Workspace;
    pub use acp_skills_runtime::library::{
        DirectoryLibrary, Library, MakeToolbox, Reloaded, SkillLibrary, WhenReloaded,
    };
    pub use skills_sources::trust::Decided;
}

#[doc(no_inline)]
pub use acp_skills_intercept as intercept;
#[doc(no_inline)]
pub use skills_core;

pub use self::component::{SkilledAgent, SkillsProxy};

/// Runs the examples of the README as tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadMe;
