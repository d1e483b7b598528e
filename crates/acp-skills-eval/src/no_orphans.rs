//! The same interface as `orphans`, for systems that can't adopt processes. On Windows, the job of an agent ends them anyway.

/// The variable with the mark of an agent.
pub(super) const VARIABLE: &str = "ACP_SKILLS_EVAL_AGENT";

/// Makes this process the parent of processes whose parent has ended. Always returns false, because the system doesn't support it.
pub fn adopt_orphans() -> bool {
    false
}

/// Returns a mark. It has no effect.
pub(super) fn mark() -> String {
    String::new()
}

/// Does nothing.
pub(super) fn end(_mark: &str) {}
