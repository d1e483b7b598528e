//! What differs between the versions of the protocol that the two sides may settle on.
//!
//! `initialize` settles it, and the proxy follows: it never alters `protocolVersion`. Nothing else in `intercept` asks
//! for a version by number. Version 1 ([prompt turn](https://agentclientprotocol.com/protocol/v1/prompt-turn)) answers
//! a prompt when its turn is over; version 2, a draft
//! ([prompt lifecycle](https://agentclientprotocol.com/protocol/v2/prompt-lifecycle)), answers as soon as the message is
//! part of the conversation, and `state_update` tells the rest.

use serde_json::{Value, json};

use acp_skills_wire::{Edit, Id, Message, Node, REQUEST_CANCELLED, build};

/// A version of the protocol.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Version {
    /// What editors speak today.
    #[default]
    One,
    /// The draft.
    Two,
}

/// Where the result of `initialize` says what: paths of member names.
pub(crate) struct Paths {
    /// What the agent calls itself.
    pub(crate) name: &'static [&'static str],
    /// Which version of itself it is.
    pub(crate) release: &'static [&'static str],
    /// The transports of MCP servers.
    pub(crate) mcp: &'static [&'static str],
    /// The draft field for system prompts.
    pub(crate) system_prompt: &'static [&'static str],
    /// What it can do with sessions.
    pub(crate) session: &'static [&'static str],
}

/// What the answer to a prompt says of its turn.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// It begins, or goes on with this prompt too.
    Accepted,
    /// It is over; `forgotten` when the agent may have forgotten the prompt with it.
    Over { forgotten: bool },
}

/// An answer of ours, in the place of the agent's.
pub(crate) struct Reply<'a> {
    /// The agent's id of the session.
    pub(crate) session: Option<&'a str>,
    /// Whether the agent says that it works.
    pub(crate) is_busy: bool,
    /// What goes on in the background, as the agent told it last: a JSON array.
    pub(crate) background: Option<&'a [u8]>,
    /// The prompt that is answered.
    pub(crate) prompt: &'a Message<'a>,
    /// An id that no other message of the session has.
    pub(crate) message_id: &'a str,
    /// Markdown.
    pub(crate) text: &'a str,
}

impl Version {
    /// The version that the result of `initialize` settles on.
    pub(crate) fn settled(result: Node<'_>) -> Self {
        let number = result.get("protocolVersion").and_then(|number| std::str::from_utf8(number.raw()).ok());
        // Versions to come are likelier to go on from the last one than to return to the first.
        if number.and_then(|number| number.parse().ok()) >= Some(2_u32) { Self::Two } else { Self::One }
    }

    /// The member of a configuration option that is its id.
    pub(crate) fn option_id(self) -> &'static str {
        match self {
            Self::One => "id",
            Self::Two => "configId",
        }
    }

    /// Whether every client knows options that are on or off.
    pub(crate) fn has_booleans(self) -> bool {
        self == Self::Two
    }

    pub(crate) fn paths(self) -> Paths {
        match self {
            Self::One => Paths {
                name: &["agentInfo", "name"],
                release: &["agentInfo", "version"],
                mcp: &["agentCapabilities", "mcpCapabilities"],
                system_prompt: &["agentCapabilities", "sessionCapabilities", "systemPrompt"],
                session: &["agentCapabilities", "sessionCapabilities"],
            },
            Self::Two => Paths {
                name: &["info", "name"],
                release: &["info", "version"],
                mcp: &["capabilities", "session", "mcp"],
                system_prompt: &["capabilities", "session", "systemPrompt"],
                session: &["capabilities", "session"],
            },
        }
    }

    /// Whether every agent has to take MCP servers over stdio, without saying so.
    pub(crate) fn requires_stdio(self) -> bool {
        self == Self::One
    }

    /// The `type` of an MCP server over stdio.
    pub(crate) fn stdio_type(self) -> Option<&'static str> {
        match self {
            // It is known by its having none.
            Self::One => None,
            Self::Two => Some("stdio"),
        }
    }

    /// A command in the menu.
    pub(crate) fn command(self, name: &str, description: &str, hint: Option<&str>) -> Value {
        let mut entry = match self {
            Self::One => json!({ "name": name, "description": description }),
            Self::Two => json!({ "type": "command", "name": name, "description": description }),
        };
        if let Some(hint) = hint {
            entry["input"] = match self {
                Self::One => json!({ "hint": hint }),
                Self::Two => json!({ "type": "text", "hint": hint }),
            };
        }
        entry
    }

    /// Whether the response that sets up a session lists its first commands.
    pub(crate) fn has_menu_in_response(self) -> bool {
        self == Self::Two
    }

    /// The tool call that a request for permission is about.
    pub(crate) fn tool_call<'a>(self, request: &Message<'a>) -> Option<Node<'a>> {
        match self {
            Self::One => request.param(&["toolCall"]),
            Self::Two => {
                let subject = request.param(&["subject"])?;
                subject.get("type").filter(|kind| kind.is_str("tool_call"))?;
                subject.get("toolCall")
            }
        }
    }

    /// The kind of update that announces a tool call.
    pub(crate) fn announcement(self) -> &'static str {
        match self {
            Self::One => "tool_call",
            // There is no other, and the first one of a call announces it.
            Self::Two => "tool_call_update",
        }
    }

    /// What the response to a prompt says of its turn.
    pub(crate) fn turn(self, response: &Message<'_>) -> Turn {
        match self {
            _ if response.error.is_some() => Turn::Over { forgotten: true },
            Self::One => Turn::Over { forgotten: response.result.is_some_and(forgets) },
            Self::Two => Turn::Accepted,
        }
    }

    /// The response to a prompt that was cancelled before the agent had it.
    pub(crate) fn cancelled(self, prompt: &Id) -> Vec<u8> {
        match self {
            Self::One => build::result(prompt, &json!({ "stopReason": "cancelled" })),
            Self::Two => build::error(prompt, REQUEST_CANCELLED, "cancelled"),
        }
    }

    /// Everything that an agent says for a turn in which it says `reply`.
    pub(crate) fn reply(self, id: &Id, reply: &Reply<'_>) -> Vec<Vec<u8>> {
        let text = json!({ "type": "text", "text": reply.text });
        let update = |update: Value| {
            build::notification("session/update", &json!({ "sessionId": reply.session, "update": update }))
        };
        match self {
            Self::One => vec![
                update(json!({ "sessionUpdate": "agent_message_chunk", "content": text })),
                build::result(id, &json!({ "stopReason": "end_turn" })),
            ],
            Self::Two => {
                let message = |kind: &str| json!({ "sessionUpdate": kind, "messageId": reply.message_id });
                let mut said = message("agent_message");
                said["content"] = json!([text]);
                let mut lines = vec![
                    echo(update(with(message("user_message"), "content", json!([]))), reply.prompt),
                    build::result(id, &json!({ "messageId": reply.message_id })),
                    update(said),
                ];
                // The state is that of all that goes on: while the agent works, that is for the agent to tell.
                if !reply.is_busy {
                    let state = |state: &str| {
                        let state = json!({ "sessionUpdate": "state_update", "state": state });
                        match background(reply) {
                            // An agent that reports it has to do so each time.
                            Some(background) => with(state, "background", background),
                            None => state,
                        }
                    };
                    lines.insert(2, update(state("running")));
                    lines.push(update(with(state("idle"), "stopReason", "end_turn".into())));
                }
                lines
            }
        }
    }
}

/// Whether a turn that ended like this may have been forgotten with all it said: a prompt that was refused is not part
/// of the conversation ([stop reasons](https://agentclientprotocol.com/protocol/v1/prompt-turn#stop-reasons)), and some
/// agents forget one that was cancelled or failed. `end` is what holds `stopReason`.
pub(crate) fn forgets(end: Node<'_>) -> bool {
    matches!(end.str("stopReason").as_deref(), Some("refusal" | "cancelled" | "error"))
}

fn with(mut object: Value, key: &str, value: Value) -> Value {
    object[key] = value;
    object
}

/// Puts what the user wrote into an update with an empty `content`: as it was written, whatever it is.
fn echo(update: Vec<u8>, prompt: &Message<'_>) -> Vec<u8> {
    let content = Message::parse(&update).and_then(|message| message.param(&["update", "content"]));
    let (Some(content), Some(blocks)) = (content, prompt.param(&["prompt"])) else { return update };
    let mut edit = Edit::new();
    edit.replace(content.span(), blocks.raw());
    edit.apply(&update)
}

/// What goes on in the background, as the agent told it last.
fn background(reply: &Reply<'_>) -> Option<Value> {
    serde_json::from_slice(reply.background?).ok()
}
