//! What the commands that play the editor answer when the agent asks for permission, and how they tell.

use acp_skills::one_shot::{PermissionDecision, PermissionOption, PermissionRequest};

/// Allows everything once (`--yes`), or nothing.
pub(super) fn decide(yes: bool) -> impl Fn(&PermissionRequest) -> PermissionDecision {
    move |_| if yes { PermissionDecision::AllowOnce } else { PermissionDecision::Refuse }
}

/// What was asked, and what was answered.
pub(super) fn describe(request: &PermissionRequest, chosen: Option<&PermissionOption>) -> String {
    let title = request.title.as_deref().unwrap_or("something without a title");
    let kind = request.kind.as_ref().map(|kind| format!(" ({kind})")).unwrap_or_default();
    let answer = match chosen {
        Some(option) if option.kind.starts_with("allow") => "allowed",
        Some(_) if request.options.iter().any(|it| it.kind == "allow_once") => "refused; --yes allows it",
        Some(_) => "refused: it offers no option to allow it once",
        None => "cancelled: it offers no option to refuse",
    };
    format!("the agent asks permission for: {title}{kind}: {answer}")
}
