//! [`ServerCalls`]: the calls of tools of MCP servers behind skills that the user has allowed.

use std::collections::{HashSet, VecDeque};

use acp_skills_wire::Node;
use serde_json::{Map, Value};
use skills_core::json::has_more_values_than;

/// The maximum number of calls that are remembered. If an older one is dropped, the user is asked again.
const MAX_KEPT: usize = 64;
/// The maximum length of the input of a call that is remembered, in bytes, and the maximum number of its values. The user is asked about
/// longer ones when the call arrives.
const MAX_INPUT: usize = 64 * 1024;
const MAX_VALUES: usize = 1_000;

/// A call of a tool behind a skill.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ServerCall {
    pub(crate) skill: String,
    pub(crate) tool: String,
    pub(crate) input: Map<String, Value>,
}

/// A call as the client shows it in a question to the user.
#[derive(Debug, Clone)]
pub(crate) struct Shown {
    /// The id of the call in the client, which the agent can know.
    pub(crate) call_id: String,
    pub(crate) title: String,
    pub(crate) call: ServerCall,
}

/// The calls of one session.
#[derive(Debug, Default)]
pub(crate) struct ServerCalls {
    /// The calls that the user has allowed, and that have not arrived.
    allowed: VecDeque<ServerCall>,
    /// The skills and tools for which the user allows all calls.
    always: HashSet<(String, String)>,
    /// Counts how often permissions were forgotten, because a server can be another one.
    pub(crate) generation: u64,
    /// Counts the turns that have ended.
    pub(crate) turn: u64,
}

/// The ids of the options in a request of the agent.
#[derive(Debug, Clone)]
pub(crate) struct Options {
    /// The option that allows this call only.
    pub(crate) once: String,
    pub(crate) reject: Option<String>,
}

impl Options {
    /// Reads the options of a request for permission. Options that allow more than this call are left out: they allow all calls of our
    /// server, or change a mode of the agent, while the user allows a single tool behind a skill. Returns `None` if it is not certain
    /// which option allows this call.
    pub(crate) fn read(options: Option<Node<'_>>) -> Option<Self> {
        let of = |kind| {
            let offered = options.into_iter().flat_map(|options| options.elements());
            offered.filter(move |option| option.get("kind").is_some_and(|given| given.is_str(kind)))
        };
        let id = |option: Option<Node<'_>>| Some(option?.str("optionId")?.into_owned());
        let mut allowing = of("allow_once");
        let once = id(allowing.next()).filter(|_| allowing.next().is_none())?;
        Some(Self { once, reject: id(of("reject_once").next().or_else(|| of("reject_always").next())) })
    }
}

impl ServerCall {
    /// Reads the input of a call of `call_skill_tool`. Returns `None` if it does not name the skill and the tool, or if it is too large.
    pub(crate) fn read(input: Option<Node<'_>>) -> Option<Self> {
        let input = input?.raw();
        if input.len() > MAX_INPUT || has_more_values_than(input, MAX_VALUES) {
            return None;
        }
        let input: Value = serde_json::from_slice(input).ok()?;
        let text = |key: &str| input[key].as_str().map(str::to_owned);
        let arguments = match &input["input"] {
            Value::Null => Map::new(),
            Value::Object(arguments) => arguments.clone(),
            Value::String(text) if text.trim().is_empty() => Map::new(),
            Value::String(text) => serde_json::from_str(text).ok()?,
            _ => return None,
        };
        Some(Self { skill: text("skill")?, tool: text("tool")?, input: arguments })
    }
}

impl ServerCalls {
    /// Allows one call.
    pub(crate) fn allow(&mut self, call: ServerCall) {
        if self.allowed.len() == MAX_KEPT {
            self.allowed.pop_front();
        }
        self.allowed.push_back(call);
    }

    /// Allows all calls of a tool.
    pub(crate) fn allow_always(&mut self, skill: String, tool: String) {
        self.always.insert((skill, tool));
    }

    /// Returns true if the user has allowed all calls of the tool.
    pub(crate) fn are_allowed(&self, call: &ServerCall) -> bool {
        self.always.contains(&(call.skill.clone(), call.tool.clone()))
    }

    /// Returns true if the user has allowed the call. The permission for a single call is used up.
    pub(crate) fn take(&mut self, call: &ServerCall) -> bool {
        if self.are_allowed(call) {
            return true;
        }
        let index = self.allowed.iter().position(|allowed| allowed == call);
        index.and_then(|index| self.allowed.remove(index)).is_some()
    }

    /// Forgets all permissions, because a server of the same name can be another one when the session is opened again.
    pub(crate) fn reopened(&mut self) {
        *self = Self { generation: self.generation + 1, turn: self.turn + 1, ..Self::default() };
    }

    /// Forgets the permissions for the servers of skills for which `is_other` returns true, because another skill has the name now.
    pub(crate) fn skills_replaced(&mut self, is_other: impl Fn(&str) -> bool) {
        self.generation += 1;
        self.allowed.retain(|call| !is_other(&call.skill));
        self.always.retain(|(skill, _)| !is_other(skill));
    }

    /// Forgets single calls and requests without an answer, because the turn was cancelled. A late answer to a question of the proxy
    /// is not remembered for later calls.
    pub(crate) fn cancelled(&mut self) {
        self.generation += 1;
        self.turn_over();
    }

    /// Forgets single calls, because the turn has ended. A late answer to a question of the agent does not count, either.
    pub(crate) fn turn_over(&mut self) {
        self.turn += 1;
        self.allowed.clear();
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// A step, and the expected result. Calls have a tool and an input.
    #[derive(Debug, Clone, Copy)]
    enum Step {
        /// The user allows one call.
        Allows(&'static str, u64),
        /// The user allows all calls of a tool.
        AllowsAlways(&'static str),
        /// A call arrives. True if it is allowed.
        Arrives(&'static str, u64, bool),
        TurnEnds,
    }
    use Step::{Allows, AllowsAlways, Arrives, TurnEnds};

    fn call(tool: &str, input: u64) -> ServerCall {
        let Value::Object(input) = json!({ "n": input }) else { unreachable!() };
        ServerCall { skill: "kit".to_owned(), tool: tool.to_owned(), input }
    }

    fn check(steps: &[Step]) {
        let mut calls = ServerCalls::default();
        for (number, step) in steps.iter().enumerate() {
            match *step {
                Allows(tool, input) => calls.allow(call(tool, input)),
                Arrives(tool, input, expected) => {
                    let is_allowed = calls.take(&call(tool, input));
                    assert_eq!(is_allowed, expected, "step {number} of {steps:?}");
                }
                AllowsAlways(tool) => calls.allow_always("kit".to_owned(), tool.to_owned()),
                TurnEnds => calls.turn_over(),
            }
        }
    }

    #[test]
    fn an_answer_allows_one_call() {
        check(&[Arrives("a", 1, false)]);
        // Exactly one call is allowed, with the same tool and input.
        check(&[Allows("a", 1), Arrives("a", 1, true), Arrives("a", 1, false)]);
        check(&[Allows("a", 1), Arrives("a", 2, false), Arrives("b", 1, false), Arrives("a", 1, true)]);
        // Two answers about the same call allow two calls.
        check(&[
            Allows("a", 1),
            Allows("a", 1),
            Arrives("a", 1, true),
            Arrives("a", 1, true),
            Arrives("a", 1, false),
        ]);
        // The end of a turn ends single permissions.
        check(&[Allows("a", 1), TurnEnds, Arrives("a", 1, false)]);
    }

    #[test]
    fn permissions_for_all_calls_last() {
        // A permission for all calls is about a tool with any input.
        check(&[
            AllowsAlways("a"),
            Arrives("a", 1, true),
            Arrives("a", 2, true),
            Arrives("b", 1, false),
            TurnEnds,
            Arrives("a", 3, true),
        ]);
        check(&[Allows("a", 1), AllowsAlways("a"), Arrives("a", 1, true), Arrives("a", 1, true)]);
    }

    #[test]
    fn old_calls_are_dropped() {
        let mut calls = ServerCalls::default();
        let last = MAX_KEPT as u64;
        for number in 0..=last {
            calls.allow(call("a", number));
        }
        assert!(!calls.take(&call("a", 0)) && calls.take(&call("a", 1)) && calls.take(&call("a", last)));
    }

    #[test]
    fn large_inputs_are_not_read() {
        let input = |values: usize| {
            json!({ "skill": "a", "tool": "b", "input": { "x": vec![1; values] } }).to_string()
        };
        let read = |text: &str| ServerCall::read(Node::parse(text.as_bytes())).is_some();
        assert!(read(&input(900)) && !read(&input(20_000)));
        let long = json!({ "skill": "a", "tool": "b", "input": { "x": "y".repeat(MAX_INPUT) } }).to_string();
        assert!(!read(&long));
    }

    #[test]
    fn only_an_option_for_one_call_allows() {
        let never = json!({ "optionId": "never", "kind": "reject_always" });
        let always = json!({ "optionId": "always", "kind": "allow_always" });
        let once = json!({ "optionId": "once", "kind": "allow_once" });
        let mode = json!({ "optionId": "mode", "kind": "allow_once" });
        for (options, expected) in [
            (
                json!([never, { "optionId": "odd", "kind": "something" }, always, once]),
                Some(("once", Some("never"))),
            ),
            (json!([once]), Some(("once", None))),
            (json!([never, once, mode]), None),
            (json!([never, always]), None),
            (json!({}), None),
        ] {
            let read = Options::read(Node::parse(options.to_string().as_bytes()));
            let read = read.as_ref().map(|Options { once, reject }| (once.as_str(), reject.as_deref()));
            assert_eq!(read, expected, "{options}");
        }
    }
}
