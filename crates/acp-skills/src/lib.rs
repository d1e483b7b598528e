//! Agent Skills for every ACP agent, as a library: the runtime behind the program `acp-skills-proxy`.
//!
//! A skill is a folder with a `SKILL.md`. This crate stands between an [ACP](https://agentclientprotocol.com) client and an
//! agent, tells the model which skills there are, and serves the tools with which it loads and uses them.
//!
//! | you have | you use |
//! |---|---|
//! | one prompt to send, from Rust | [`OneShot`](one_shot::OneShot) |
//! | a program with the ACP SDK, an agent or a chain of proxies | [`SkillsProxy`] |
//! | a `skills.yaml` | [`Config`](config::Config), for [`SkillsProxy::from_config`] |
//! | skills in a place of your own | [`SkillLibrary`](library::SkillLibrary) |
//! | an agent loop without ACP | [`skills_core`] alone |
//!
//! ```
//! use acp_skills::one_shot::OneShot;
//! use acp_skills::skills_core::Skill;
//!
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let skill = Skill::builder("greet", "Greets people.").body("# Greeting\nSay hello.").build()?;
//! // `.agent(["claude-agent-acp"])` starts a real one; without it the built-in scripted agent answers.
//! let answer = OneShot::default().skill(skill).prompt("Greet me").run().await?;
//! assert_eq!(answer.text, "I activated the skill `greet`: Greeting.");
//! # Ok(()) }
//! ```
//!
//! # Modules
//!
//! | module | owns |
//! |---|---|
//! | [`one_shot`] | one prompt: the answer as a whole, in pieces, or as a type |
//! | [`component`] | [`SkillsProxy`], the proxy as a component of the ACP SDK |
//! | [`agents`] | agents that are known by name: how they are started, what was seen of them |
//! | [`config`] | everything that can be decided before the start |
//! | [`library`] | where the skills of sessions come from, and how changes of them are noticed |
//! | [`activity`] | what the model does with the skills, as it happens |
//! | [`events`] | the record of that: what an event says, writing it, reading it |
//!
//! # What always holds
//!
//! 1. A message that is not changed leaves as the bytes that came in, and messages keep their order.
//! 2. The client never sees a word that was added for the model; the agent never loses a word that the user wrote.
//! 3. No skill, name, path or model makes the proxy read outside a skill's directory, or run what was not allowed. What an
//!    agent asks permission for is refused unless somebody decides.
//! 4. When the proxy is gone, so are the agent and its children. When the agent is gone, every open request has an answer.
//! 5. A bad skill is a diagnostic and never an outage; a disk that is slow or full holds up no message.
//! 6. The listener is on loopback, and whoever connects needs the token of a session.

pub mod agents;
mod client;
pub mod component;
pub mod config;
pub mod one_shot;
mod permission;
mod trace;

#[doc(inline)]
pub use acp_skills_runtime::{activity, events};

/// Where the skills of sessions come from, and how changes of them are noticed.
pub mod library {
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

/// The examples of the front page.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadMe;
