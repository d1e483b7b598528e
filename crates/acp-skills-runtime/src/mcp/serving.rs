//! [`Serving`]: the tools of a session's server at one moment.

use skills_core::{Skill, tool::CallContext, toolbox::Toolbox};
use tokio_util::sync::CancellationToken;

/// The tools of a server and the context of its callers. A running call keeps the value with which it started, even
/// if the skills change.
#[derive(Clone)]
pub(super) struct Serving {
    pub(super) toolbox: Toolbox,
    pub(super) context: CallContext,
    /// Is cancelled when other skills are served.
    pub(super) replaced: CancellationToken,
}

impl Serving {
    pub(super) fn new(toolbox: Toolbox, context: CallContext) -> Self {
        Self { toolbox, context, replaced: CancellationToken::new() }
    }

    /// Returns true if this skill is served. Another skill of the same name doesn't count, but a new version does.
    pub(super) fn has(&self, skill: &Skill) -> bool {
        self.toolbox.skills().get(skill.name.as_str()).is_some_and(|served| served.dir() == skill.dir())
    }
}
