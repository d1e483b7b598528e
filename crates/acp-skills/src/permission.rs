//! [`PermissionRequest`]: an agent asks whether it may do something, and a program decides.
//!
//! [ACP: requesting permission](https://agentclientprotocol.com/protocol/tool-calls#requesting-permission)

use std::sync::Arc;

use serde_json::{Value, json};

/// What an agent wants to do, and what it can be answered.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct PermissionRequest {
    /// The title of the tool call, for people: written by the agent, and no proof of anything.
    pub title: Option<String>,
    /// The kind of the tool call, for example `execute` or `edit`; as the agent says.
    pub kind: Option<String>,
    /// The possible answers.
    pub options: Vec<PermissionOption>,
    /// The parameters of the request as they came, with the whole tool call in `toolCall`.
    pub raw: Value,
}

/// One of the answers that an agent offers.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct PermissionOption {
    /// What is sent back.
    pub id: String,
    /// The label for people.
    pub name: String,
    /// `allow_once`, `allow_always`, `reject_once`, `reject_always`, or what a newer protocol has.
    pub kind: String,
}

/// What becomes of a request for permission.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum PermissionDecision {
    /// Refuse: the option `reject_once`, else any that rejects, else the request is answered as cancelled.
    Refuse,
    /// Allow this once. An agent that does not offer just that is refused.
    AllowOnce,
    /// Choose the option with this id. An agent that does not offer it is refused.
    Choose(String),
}

/// Decides about requests for permission. Called by a thread of the client's own, so it may take its time.
pub type PermissionHandler = Arc<dyn Fn(&PermissionRequest) -> PermissionDecision + Send + Sync>;

impl PermissionRequest {
    /// Reads the parameters of `session/request_permission`.
    pub(crate) fn from_params(params: &Value) -> Self {
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

    /// The option that a decision comes to; `None` when the request is to be answered as cancelled.
    pub(crate) fn choose(&self, decision: &PermissionDecision) -> Option<&PermissionOption> {
        let find = |is_meant: &dyn Fn(&PermissionOption) -> bool| {
            self.options.iter().find(|option| is_meant(option))
        };
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

/// The result of a request for permission.
pub(crate) fn result(chosen: Option<&PermissionOption>) -> Value {
    let outcome = match chosen {
        Some(option) => json!({ "outcome": "selected", "optionId": option.id }),
        None => json!({ "outcome": "cancelled" }),
    };
    json!({ "outcome": outcome })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_decisions_come_to() {
        let choose = |decision: &PermissionDecision| decision.clone();
        let (refuse, allow) = (PermissionDecision::Refuse, PermissionDecision::AllowOnce);
        let always = PermissionDecision::Choose("2".to_owned());
        let all = ["allow_once", "allow_always", "reject_once", "reject_always"].as_slice();
        for (kinds, decision, expected) in [
            (all, &refuse, Some("3")),
            (all, &allow, Some("1")),
            (all, &always, Some("2")),
            // In another order.
            (&["reject_always", "reject_once", "allow_once"], &refuse, Some("2")),
            (&["reject_always", "reject_once", "allow_once"], &allow, Some("3")),
            // Nothing is allowed for good that was allowed once, and no option is made up.
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
            let chosen = request.choose(&choose(decision));
            assert_eq!(chosen.map(|option| option.id.as_str()), expected, "{kinds:?} {decision:?}");
        }
    }

    #[test]
    fn a_request_may_be_anything() {
        for params in
            [json!(null), json!([1]), json!({ "options": 1, "toolCall": [] }), json!({ "options": [1, {}] })]
        {
            let request = PermissionRequest::from_params(&params);
            assert_eq!(request.options, []);
            assert_eq!(
                result(request.choose(&PermissionDecision::AllowOnce)),
                json!({ "outcome": { "outcome": "cancelled" } })
            );
        }
    }
}
