//! [`PermissionRequest`]: a permission request of an agent, and the decision about it.
//!
//! [ACP: requesting permission](https://agentclientprotocol.com/protocol/tool-calls#requesting-permission)

use std::sync::Arc;

use serde_json::Value;

/// A permission request: the tool call that the agent wants to make, and the possible answers.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct PermissionRequest {
    /// The title of the tool call. The agent writes it, so it doesn't prove what the call does.
    pub title: Option<String>,
    /// The kind of the tool call according to the agent, for example `execute` or `edit`.
    pub kind: Option<String>,
    /// The possible answers. Options without an id are left out.
    pub options: Vec<PermissionOption>,
    /// The unchanged parameters of the request. `toolCall` holds the whole tool call.
    pub raw: Value,
}

/// An answer that the agent offers.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct PermissionOption {
    /// The id that selects this option.
    pub id: String,
    /// The label for the user.
    pub name: String,
    /// One of `allow_once`, `allow_always`, `reject_once` and `reject_always`, or a kind of a newer version of ACP.
    pub kind: String,
}

/// The decision about a permission request.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum PermissionDecision {
    /// Refuses the request: selects `reject_once`, or another option that rejects. If there is none, the request is answered
    /// as cancelled.
    Refuse,
    /// Allows the call once. If the agent doesn't offer `allow_once`, the request is refused.
    AllowOnce,
    /// Selects the option with this id. If there is no such option, the request is refused.
    Choose(String),
}

/// Decides about permission requests. It is called on the client's own thread and may block.
pub type PermissionHandler = Arc<dyn Fn(&PermissionRequest) -> PermissionDecision + Send + Sync>;

impl PermissionRequest {
    /// Reads the parameters of `session/request_permission`. Missing and malformed members are left out.
    pub fn from_params(params: &Value) -> Self {
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let option = |option: &Value| {
            Some(PermissionOption {
                id: text(&option["optionId"])?,
                name: text(&option["name"]).unwrap_or_default(),
                kind: text(&option["kind"]).unwrap_or_default(),
            })
        };
        let call = &params["toolCall"];
        Self {
            title: text(&call["title"]),
            kind: text(&call["kind"]),
            options: params["options"].as_array().into_iter().flatten().filter_map(option).collect(),
            raw: params.clone(),
        }
    }

    /// Returns the option that `decision` selects, or `None` if the request has to be answered as cancelled.
    pub fn choose(&self, decision: &PermissionDecision) -> Option<&PermissionOption> {
        let find =
            |matches: &dyn Fn(&PermissionOption) -> bool| self.options.iter().find(|option| matches(option));
        let chosen = match decision {
            PermissionDecision::Refuse => None,
            PermissionDecision::AllowOnce => find(&|option| option.kind == "allow_once"),
            PermissionDecision::Choose(id) => find(&|option| option.id == *id),
        };
        chosen
            .or_else(|| find(&|option| option.kind == "reject_once"))
            .or_else(|| find(&|option| option.kind.starts_with("reject")))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_decision_selects_an_option() {
        let refuse = PermissionDecision::Refuse;
        let allow = PermissionDecision::AllowOnce;
        let always = PermissionDecision::Choose("2".to_owned());
        let all = ["allow_once", "allow_always", "reject_once", "reject_always"].as_slice();
        for (kinds, decision, expected) in [
            (all, &refuse, Some("3")),
            (all, &allow, Some("1")),
            (all, &always, Some("2")),
            // The order of the options should not matter.
            (&["reject_always", "reject_once", "allow_once"], &refuse, Some("2")),
            (&["reject_always", "reject_once", "allow_once"], &allow, Some("3")),
            // If the decision is for a single call, we should never select an option that is for all calls.
            (&["allow_always", "reject_once"], &allow, Some("2")),
            (&["allow_always", "reject_always"], &refuse, Some("2")),
            (&["allow_once"], &always, None),
            (&["allow_once", "allow_always"], &refuse, None),
            (&["allow_always"], &allow, None),
            (&["maybe"], &refuse, None),
            (&[], &allow, None),
        ] {
            let options = kinds.iter().zip(1..);
            let options: Vec<_> = options
                .map(|(kind, id)| json!({ "optionId": id.to_string(), "name": "x", "kind": kind }))
                .collect();
            let params = json!({ "toolCall": { "title": "rm", "kind": "execute" }, "options": options });
            let request = PermissionRequest::from_params(&params);
            assert_eq!((request.title.as_deref(), request.kind.as_deref()), (Some("rm"), Some("execute")));
            let chosen = request.choose(decision);
            assert_eq!(chosen.map(|option| option.id.as_str()), expected, "{kinds:?} {decision:?}");
        }
    }

    #[test]
    fn malformed_requests_have_no_options() {
        for params in
            [json!(null), json!([1]), json!({ "options": 1, "toolCall": [] }), json!({ "options": [1, {}] })]
        {
            let request = PermissionRequest::from_params(&params);
            assert_eq!(request.options, []);
            assert_eq!(request.choose(&PermissionDecision::AllowOnce), None);
        }
    }
}
