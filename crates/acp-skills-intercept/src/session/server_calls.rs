//! [`ServerCalls`]: the calls of tools of MCP servers behind skills that the user has allowed.

use std::collections::{HashSet, VecDeque};

use acp_skills_wire::{Id, Node};
use serde_json::{Map, Value};

/// The maximum number of remembered requests and calls. If an older one is dropped, the user is asked again.
const MAX_KEPT: usize = 64;

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
    /// The agent's requests for permission that the user has not answered.
    asked: VecDeque<(Id, Shown, Options)>,
    /// The calls that the user has allowed, and that have not arrived.
    allowed: VecDeque<ServerCall>,
    /// The skills and tools for which the user allows all calls.
    always: HashSet<(String, String)>,
    /// Counts how often permissions were forgotten, because a server can be another one.
    pub(crate) generation: u64,
}

/// The ids of the options of a request that allow the call.
#[derive(Debug, Clone, Default)]
pub(crate) struct Options {
    once: Vec<String>,
    always: Vec<String>,
}

impl Options {
    /// Reads the options of a request for permission.
    pub(crate) fn read(options: Option<Node<'_>>) -> Self {
        let of = |kind: &str| {
            let offered = options.into_iter().flat_map(|options| options.elements());
            let offered = offered.filter(|option| option.get("kind").is_some_and(|given| given.is_str(kind)));
            offered.filter_map(|option| Some(option.str("optionId")?.into_owned())).collect()
        };
        Self { once: of("allow_once"), always: of("allow_always") }
    }
}

impl ServerCall {
    /// Reads the input of a call of `call_skill_tool`. Returns `None` if it does not name the skill and the tool.
    pub(crate) fn read(input: Option<Node<'_>>) -> Option<Self> {
        let input: Value = serde_json::from_slice(input?.raw()).ok()?;
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
    /// Remembers that the agent asks the user about a call.
    pub(crate) fn asked(&mut self, request: Id, shown: Shown, options: Options) {
        push(&mut self.asked, (request, shown, options));
    }

    /// Returns the call with this id if the user is being asked about it in a request of the agent.
    pub(crate) fn shown(&self, call_id: &str) -> Option<&Shown> {
        self.asked.iter().map(|(_, shown, _)| shown).find(|shown| shown.call_id == call_id)
    }

    /// Handles the user's answer to a request of the agent.
    pub(crate) fn answered(&mut self, request: &Id, option: Option<&str>) {
        let Some(index) = self.asked.iter().position(|(id, ..)| id == request) else { return };
        let (Some((_, Shown { call, .. }, options)), Some(option)) = (self.asked.remove(index), option)
        else {
            return;
        };
        let is_in = |ids: &[String]| ids.iter().any(|id| id == option);
        if is_in(&options.always) {
            self.allow_always(call.skill.clone(), call.tool.clone());
        }
        if is_in(&options.once) {
            push(&mut self.allowed, call);
        }
    }

    /// Allows all calls of a tool.
    pub(crate) fn allow_always(&mut self, skill: String, tool: String) {
        self.always.insert((skill, tool));
    }

    /// Returns true if the user has allowed the call. The permission for a single call is used up.
    pub(crate) fn take(&mut self, call: &ServerCall) -> bool {
        if self.always.contains(&(call.skill.clone(), call.tool.clone())) {
            return true;
        }
        let index = self.allowed.iter().position(|allowed| allowed == call);
        index.and_then(|index| self.allowed.remove(index)).is_some()
    }

    /// Forgets all permissions, because a server of the same name can be another one when the session is opened again.
    pub(crate) fn reopened(&mut self) {
        *self = Self { generation: self.generation + 1, ..Self::default() };
    }

    /// Forgets the permissions for the servers of skills for which `is_other` returns true, because another skill has the name now.
    pub(crate) fn skills_replaced(&mut self, is_other: impl Fn(&str) -> bool) {
        self.generation += 1;
        self.asked.retain(|(_, shown, _)| !is_other(&shown.call.skill));
        self.allowed.retain(|call| !is_other(&call.skill));
        self.always.retain(|(skill, _)| !is_other(skill));
    }

    /// Forgets single calls and requests without an answer, because the turn was cancelled. A late answer to a question of the proxy
    /// is not remembered for later calls.
    pub(crate) fn cancelled(&mut self) {
        self.generation += 1;
        self.turn_over();
    }

    /// Forgets single calls and requests without an answer, because the turn has ended.
    pub(crate) fn turn_over(&mut self) {
        self.asked.clear();
        self.allowed.clear();
    }
}

fn push<T>(queue: &mut VecDeque<T>, value: T) {
    if queue.len() == MAX_KEPT {
        queue.pop_front();
    }
    queue.push_back(value);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// A step, and the expected result. Calls have a tool and an input.
    #[derive(Debug, Clone, Copy)]
    enum Step {
        /// The agent asks about a call in the request with this id.
        Asks(u64, &'static str, u64),
        /// The user selects an option of the request, or cancels it.
        Answers(u64, Option<&'static str>),
        /// A call arrives. True if it is allowed.
        Arrives(&'static str, u64, bool),
        /// The user allows all calls of a tool in a request of the proxy.
        AllowsAlways(&'static str),
        TurnEnds,
    }
    use Step::{AllowsAlways, Answers, Arrives, Asks, TurnEnds};

    const ONCE: Option<&str> = Some("once");
    const ALWAYS: Option<&str> = Some("always");

    fn call(tool: &str, input: u64) -> ServerCall {
        let Value::Object(input) = json!({ "n": input }) else { unreachable!() };
        ServerCall { skill: "kit".to_owned(), tool: tool.to_owned(), input }
    }

    fn shown(tool: &str, input: u64) -> Shown {
        Shown { call_id: "c".to_owned(), title: "kit: x".to_owned(), call: call(tool, input) }
    }

    fn check(steps: &[Step]) {
        let options = json!([
            { "optionId": "once", "kind": "allow_once" },
            { "optionId": "always", "kind": "allow_always" },
            { "optionId": "no", "kind": "reject_once" },
            { "optionId": "never", "kind": "reject_always" },
            { "optionId": "odd", "kind": "something" },
        ]);
        let options = options.to_string();
        let mut calls = ServerCalls::default();
        for (number, step) in steps.iter().enumerate() {
            match *step {
                Asks(id, tool, input) => {
                    let options = Options::read(Node::parse(options.as_bytes()));
                    calls.asked(Id::Raw(id.to_string()), shown(tool, input), options);
                }
                Answers(id, option) => calls.answered(&Id::Raw(id.to_string()), option),
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
        // Nothing is allowed without an answer.
        check(&[Arrives("a", 1, false)]);
        check(&[Asks(1, "a", 1), Arrives("a", 1, false), Answers(1, ONCE), Arrives("a", 1, true)]);
        // An answer allows exactly one call, with the same tool and input.
        check(&[Asks(1, "a", 1), Answers(1, ONCE), Arrives("a", 1, true), Arrives("a", 1, false)]);
        check(&[
            Asks(1, "a", 1),
            Answers(1, ONCE),
            Arrives("a", 2, false),
            Arrives("b", 1, false),
            Arrives("a", 1, true),
        ]);
        check(&[
            Asks(1, "a", 1),
            Answers(1, ONCE),
            Answers(1, ONCE),
            Arrives("a", 1, true),
            Arrives("a", 1, false),
        ]);
        // Two requests about the same call allow two calls, and the order of answers does not matter.
        check(&[
            Asks(1, "a", 1),
            Asks(2, "a", 1),
            Answers(2, ONCE),
            Answers(1, ONCE),
            Arrives("a", 1, true),
            Arrives("a", 1, true),
            Arrives("a", 1, false),
        ]);
        check(&[
            Asks(1, "a", 1),
            Asks(2, "b", 1),
            Answers(2, ONCE),
            Arrives("a", 1, false),
            Arrives("b", 1, true),
        ]);
        // Other options, and answers to other requests, allow no call, and use up the request.
        check(&[
            Asks(1, "a", 1),
            Answers(1, Some("no")),
            Arrives("a", 1, false),
            Answers(1, ONCE),
            Arrives("a", 1, false),
        ]);
        check(&[Asks(1, "a", 1), Answers(1, Some("never")), Arrives("a", 1, false)]);
        check(&[Asks(1, "a", 1), Answers(1, Some("odd")), Arrives("a", 1, false)]);
        check(&[Asks(1, "a", 1), Answers(1, Some("?")), Arrives("a", 1, false)]);
        check(&[
            Asks(1, "a", 1),
            Answers(1, None),
            Arrives("a", 1, false),
            Answers(1, ONCE),
            Arrives("a", 1, false),
        ]);
        check(&[Asks(1, "a", 1), Answers(2, ONCE), Arrives("a", 1, false)]);
    }

    #[test]
    fn permissions_for_all_calls_last_and_others_end_with_the_turn() {
        // A permission for all calls is about a tool with any input, and lasts.
        check(&[
            Asks(1, "a", 1),
            Answers(1, ALWAYS),
            Arrives("a", 1, true),
            Arrives("a", 2, true),
            Arrives("b", 1, false),
            TurnEnds,
            Arrives("a", 3, true),
        ]);
        check(&[
            AllowsAlways("a"),
            Arrives("a", 1, true),
            TurnEnds,
            Arrives("a", 1, true),
            Arrives("b", 1, false),
        ]);
        // A permission for one call that was not used stays valid until the end of the turn.
        check(&[
            Asks(1, "a", 1),
            Answers(1, ONCE),
            AllowsAlways("a"),
            Arrives("a", 1, true),
            Arrives("a", 1, true),
        ]);
        // The end of a turn ends single permissions, and requests without an answer.
        check(&[Asks(1, "a", 1), Answers(1, ONCE), TurnEnds, Arrives("a", 1, false)]);
        check(&[Asks(1, "a", 1), TurnEnds, Answers(1, ONCE), Arrives("a", 1, false)]);
        check(&[Asks(1, "a", 1), TurnEnds, Answers(1, ALWAYS), Arrives("a", 1, false)]);
        check(&[TurnEnds, Asks(1, "a", 1), Answers(1, ONCE), Arrives("a", 1, true)]);
    }

    #[test]
    fn old_requests_and_calls_are_dropped() {
        let options = Options { once: vec!["once".to_owned()], always: Vec::new() };
        let mut calls = ServerCalls::default();
        let last = MAX_KEPT as u64;
        for number in 0..=last {
            calls.asked(Id::Raw(number.to_string()), shown("a", number), options.clone());
        }
        for number in 0..=last {
            calls.answered(&Id::Raw(number.to_string()), ONCE);
        }
        assert!(!calls.take(&call("a", 0)) && calls.take(&call("a", 1)) && calls.take(&call("a", last)));
        for number in 0..=last {
            calls.asked(Id::Raw("0".to_owned()), shown("b", number), options.clone());
            calls.answered(&Id::Raw("0".to_owned()), ONCE);
        }
        assert!(!calls.take(&call("b", 0)) && calls.take(&call("b", last)));
    }
}
