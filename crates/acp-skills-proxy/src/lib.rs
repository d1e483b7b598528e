//! Agent Skills for every ACP agent, in any editor.

pub mod activity;
pub mod agent;
pub mod cli;
mod client;
pub mod commands;
pub mod config;
pub mod demo;
pub mod intercept;
pub mod mcp;
pub mod one_shot;
pub mod relay;
pub mod session;
pub mod settings;
pub mod stdio;
pub mod wire;
