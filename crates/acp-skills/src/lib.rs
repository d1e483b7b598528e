//! Agent Skills for every ACP agent, as a library.

pub mod activity;
pub mod agent;
mod backlog;
pub mod client;
pub mod component;
pub mod config;
pub mod demo;
pub mod evaluation;
pub mod events;
pub mod host;
pub mod library;
pub mod mcp;
pub mod memory;
pub mod one_shot;
mod private;
pub mod relay;

pub use acp_skills_intercept as intercept;
pub use skills_core;

pub use self::component::SkillsProxy;
