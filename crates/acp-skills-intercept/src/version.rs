//! Differences between the versions of the protocol.
//!
//! The client and the agent negotiate the version in `initialize`. The proxy never alters `protocolVersion`. No other file of
//! this crate compares version numbers. In version 1 ([prompt turn](https://agentclientprotocol.com/protocol/v1/prompt-turn)),
//! the agent responds to a prompt at the end of the turn. In version 2, a draft ([prompt
//! lifecycle](https://agentclientprotocol.com/protocol/v2/prompt-lifecycle)), it responds as soon as the message is part of the
//! conversation, and reports the rest with `state_update`.

use serde_json::{Value, json};

use acp_skills_wire::{Edit, Id, Message, Node, REQUEST_CANCELLED, build};

/// A version of the protocol.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Version {
    /// Version 1, which all editors use today.
    #[default]
    One,
    /// Version 2, a draft.
    Two,
}

/// Paths in the result of `initialize`.
pub(crate) struct Paths {
    /// The agent's name.
    pub(crate) name: &'static [&'static str],
    /// The version of the agent, not of the protocol.
    pub(crate) release: &'static [&'static str],
    /// The supported transports of MCP servers.
    pub(crate) mcp: &'static [&'static str],
    /// The draft field for system prompts.
    pub(crate) system_prompt: &'static [&'static str],
    /// The capabilities for sessions.
    pub(crate) session: &'static [&'static str],
}

/// The state of a turn after the response to its prompt.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// The turn begins, or continues with this prompt.
    Accepted,
    /// The turn is over. `forgotten` is true if the agent may have removed the prompt from the conversation.
    Over { forgotten: bool },
}

/// An answer to a prompt that is sent by the proxy instead of the agent.
pub(crate) struct Reply<'a> {
    /// The agent's id of the session.
    pub(crate) session: Option<&'a str>,
    /// True if the agent reported that it is running.
    pub(crate) is_busy: bool,
    /// The latest background work reported by the agent, as a JSON array.
    pub(crate) background: Option<&'a [u8]>,
    /// The prompt to answer.
    pub(crate) prompt: &'a Message<'a>,
    /// A message id that is unique in the session.
    pub(crate) message_id: &'a str,
    /// The text, in Markdown.
    pub(crate) text: &'a str,
}

impl Version {
    /// Reads the negotiated version from the result of `initialize`.
    pub(crate) fn settled(result: Node<'_>) -> Self {
        let number = result.get("protocolVersion").and_then(|number| number.as_number());
        // We expect later versions to be closer to version 2 than to version 1.
        if number >= Some(2_u32) { Self::Two } else { Self::One }
    }

    /// Reads the version that the client offers in the params of `initialize`.
    pub(crate) fn offered(params: Node<'_>) -> Self {
        Self::settled(params)
    }

    /// Returns the name of the member with the id of a configuration option.
    pub(crate) fn option_id(self) -> &'static str {
        match self {
            Self::One => "id",
            Self::Two => "configId",
        }
    }

    /// Returns true if every client supports boolean options.
    pub(crate) fn has_booleans(self) -> bool {
        self == Self::Two
    }

    /// Returns the paths in the result of `initialize`.
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

    /// Returns true if every agent has to support MCP servers over stdio without advertising it.
    pub(crate) fn requires_stdio(self) -> bool {
        self == Self::One
    }

    /// Returns the `type` of an MCP server over stdio.
    pub(crate) fn stdio_type(self) -> Option<&'static str> {
        match self {
            // If there is no type, it's a server over stdio.
            Self::One => None,
            Self::Two => Some("stdio"),
        }
    }

    /// Builds an entry of the list of commands.
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

    /// Returns true if the response that sets up a session lists the first commands.
    pub(crate) fn has_menu_in_response(self) -> bool {
        self == Self::Two
    }

    /// Returns the tool call of a request for permission.
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

    /// Builds the params of a request for permission.
    pub(crate) fn permission(self, session: &str, title: &str, call: Value, options: Value) -> Value {
        match self {
            Self::One => json!({ "sessionId": session, "toolCall": call, "options": options }),
            Self::Two => json!({
                "sessionId": session,
                "title": title,
                "subject": { "type": "tool_call", "toolCall": call },
                "options": options,
            }),
        }
    }

    /// Returns the kind of the update that announces a tool call.
    pub(crate) fn announcement(self) -> &'static str {
        match self {
            Self::One => "tool_call",
            // There is no separate kind for this. A call is announced by the first update about it.
            Self::Two => "tool_call_update",
        }
    }

    /// Reads the state of the turn from the response to a prompt.
    pub(crate) fn turn(self, response: &Message<'_>) -> Turn {
        match self {
            _ if response.error.is_some() => Turn::Over { forgotten: true },
            Self::One => Turn::Over { forgotten: response.result.is_some_and(forgets) },
            Self::Two => Turn::Accepted,
        }
    }

    /// Builds the response to a prompt that was cancelled before we sent it to the agent.
    pub(crate) fn cancelled(self, prompt: &Id) -> Vec<u8> {
        match self {
            Self::One => build::result(prompt, &json!({ "stopReason": "cancelled" })),
            Self::Two => build::error(prompt, REQUEST_CANCELLED, "cancelled"),
        }
    }

    /// Builds all messages that should be sent for a turn with this reply.
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
                // The state applies to the whole session, so we should only report it when the agent is idle. Otherwise, the
                // agent will report it.
                if !reply.is_busy {
                    let state = |state: &str| {
                        let state = json!({ "sessionUpdate": "state_update", "state": state });
                        match background(reply) {
                            // If the agent reports background work, it has to be included in every update.
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

/// Returns true if the agent may have removed a turn with this end from the conversation. A refused prompt is not part of the
/// conversation ([stop reasons](https://agentclientprotocol.com/protocol/v1/prompt-turn#stop-reasons)), and some agents also
/// remove a prompt that was cancelled or failed. `end` is the object with the `stopReason`.
pub(crate) fn forgets(end: Node<'_>) -> bool {
    matches!(end.str("stopReason").as_deref(), Some("refusal" | "cancelled" | "error"))
}

fn with(mut object: Value, key: &str, value: Value) -> Value {
    object[key] = value;
    object
}

/// Inserts the blocks of the user's prompt, unchanged, into an update with an empty `content`.
fn echo(update: Vec<u8>, prompt: &Message<'_>) -> Vec<u8> {
    let content = Message::parse(&update).and_then(|message| message.param(&["update", "content"]));
    let (Some(content), Some(blocks)) = (content, prompt.param(&["prompt"])) else { return update };
    let mut edit = Edit::new();
    edit.replace(content.span(), blocks.raw());
    edit.apply(&update)
}

/// Returns the latest background work reported by the agent.
fn background(reply: &Reply<'_>) -> Option<Value> {
    serde_json::from_slice(reply.background?).ok()
}
