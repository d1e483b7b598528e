//! [`Serving`]: what the server of a session serves at a moment.

use skills_core::{CallContext, Toolbox};

/// The tools, and what a call of them needs to know. A call that is under way keeps what it began with.
#[derive(Clone)]
pub(super) struct Serving {
    pub(super) toolbox: Toolbox,
    pub(super) context: CallContext,
}
