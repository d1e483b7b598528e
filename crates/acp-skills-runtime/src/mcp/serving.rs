//! [`Serving`]: what the server of a session serves at a moment.

use skills_core::{tool::CallContext, toolbox::Toolbox};

/// What is served at a moment. A call that runs keeps what it began with.
#[derive(Clone)]
pub(super) struct Serving {
    pub(super) toolbox: Toolbox,
    pub(super) context: CallContext,
}
