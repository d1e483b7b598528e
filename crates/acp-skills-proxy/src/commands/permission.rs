//! Answers the agent's permission requests in commands that act as the client.

use acp_skills::one_shot::{PermissionDecision, PermissionOption, PermissionRequest};

/// Returns a function that grants each request once if `yes` is true, and refuses it otherwise.
pub(super) fn decide(yes: bool) -> impl Fn(&PermissionRequest) -> PermissionDecision {
    move |_| if yes { PermissionDecision::AllowOnce } else { PermissionDecision::Refuse }
}

/// Describes a request and its answer.
pub(super) fn describe(request: &PermissionRequest, chosen: Option<&PermissionOption>) -> String {
    let title = request.title.as_deref().unwrap_or("tool call without title");
    let kind = request.kind.as_ref().map(|kind| format!(" ({kind})")).unwrap_or_default();
    let answer = match chosen {
        Some(option) if option.kind.starts_with("allow") => "allowed",
        Some(_) if request.options.iter().any(|option| option.kind == "allow_once") => {
            "refused (use `--yes` to allow)"
        }
        Some(_) => "refused, because the agent offers no option to allow once",
        None => "cancelled, because the agent offers no option to refuse",
    };
    format!("agent asks for permission: {title}{kind}: {answer}")
}
