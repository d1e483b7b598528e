//! The runtime of the program `acp-skills-proxy`. It moves messages between the client and the agent, answers the
//! interceptor's queries, and runs the MCP server of each session.
//!
//! **This crate has no stable API.** It changes with the program. Rust programs should use the crate `acp-skills`
//! instead.
//!
//! # Modules
//!
//! | module | responsible for |
//! |---|---|
//! | [`relay`] | moving messages between client and agent, or within a proxy chain |
//! | [`host`] | answering the interceptor's queries, and carrying out its effects |
//! | [`mcp`] | the MCP server of each session and its transports |
//! | [`library`] | the skills of sessions, and watching them for changes |
//! | [`agent`] | the agent's process |
//! | [`paths`] | the file that a path of a tool call refers to |
//! | [`activity`] | the observer that is called with tool calls and events |
//! | [`events`] | the event record: its format, writing it and reading it |
//! | [`activation_store`] | active skills of sessions, on disk |
//! | [`switch_store`] | skills that are turned off in a directory, on disk |
//! | [`agent_store`] | agents that never connect to our MCP server, on disk |
//! | [`direct`] | the MCP server for clients without ACP |
//! | [`demo`] | the built-in scripted agent |
//! | `spans` | the `tracing` spans of sessions and turns |
//! | [`telemetry`] | sending events as spans, logs and metrics of OpenTelemetry |
//! | [`worker`] | a background thread with a bounded queue |

pub mod activation_store;
pub mod activity;
pub mod agent;
pub mod agent_store;
pub mod demo;
pub mod direct;
pub mod events;
pub mod host;
pub mod library;
mod mark_secret;
pub mod mcp;
pub mod paths;
pub mod relay;
mod spans;
pub mod switch_store;
pub mod telemetry;
pub mod worker;
