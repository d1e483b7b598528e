//! The proxy.

pub mod intercept;
pub mod session;
pub mod wire;
