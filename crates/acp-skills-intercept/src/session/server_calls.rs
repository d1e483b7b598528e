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

/// The calls of one session.
#[derive(Debug, Default)]
pub(crate) struct ServerCalls {
    /// The agent's requests for permission that the user has not answered.
    asked: VecDeque<(Id, ServerCall, Options)>,
    /// The calls that the user has allowed, and that have not arrived.
    allowed: VecDeque<ServerCall>,
    /// The skills and tools for which the user allows all calls.
    always: HashSet<(String, String)>,
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
    pub(crate) fn asked(&mut self, request: Id, call: ServerCall, options: Options) {
        push(&mut self.asked, (request, call, options));
    }

    /// Handles the user's answer to a request of the agent.
    pub(crate) fn answered(&mut self, request: &Id, option: Option<&str>) {
        let Some(index) = self.asked.iter().position(|(id, ..)| id == request) else { return };
        let (Some((_, call, options)), Some(option)) = (self.asked.remove(index), option) else { return };
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
