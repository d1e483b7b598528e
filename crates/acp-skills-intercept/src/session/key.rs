//! [`SessionKey`]: our own name for a session.

/// The proxy's own name for a session; never reused in one run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SessionKey(pub u64);
