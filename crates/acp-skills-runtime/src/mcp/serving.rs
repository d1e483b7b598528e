//! [`Serving`]: the tools of a session's server at one moment.

use skills_core::{tool::CallContext, toolbox::Toolbox};

/// The tools of a server and the context of its callers. A running call keeps the value with which it started, even
/// if the skills change.
#[derive(Clone)]
pub(super) struct Serving {
    pub(super) toolbox: Toolbox,
    pub(super) context: CallContext,
}
