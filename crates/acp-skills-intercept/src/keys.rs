//! The proxy's own names for sessions, queries and timers.

/// The proxy's own name for a session. A key is never reused in one run.
///
/// The agent's id of a session is not known until the agent has answered `session/new`, and may change when a session is
/// loaded, so everything inside the proxy uses this key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SessionKey(pub u64);

/// The number of a [`Query`](crate::Query), which its answer repeats. Unique in one run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Ticket(pub u64);

/// The number of a timer that a [`Task`](crate::Task) starts. Unique in its session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Timer(pub u64);
