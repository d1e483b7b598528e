//! What is put in front of a prompt, and which prompts wait.
//!
//! A prompt waits when the agent is still fetching our tools (a model that starts without them does not see them), when
//! a text for it is being fetched, or when one before it in its session waits.

use super::{
    Actions, Activation, AgentFacts, Effect, Interceptor, Pass, Policy, Purpose, Wanted,
    commands::{self, Command},
    expansion, placement,
    placement::Placement,
    record, reload, strip,
};
use crate::{
    events::{EventKind, Reason},
    session::{Held, Mcp, Session, SessionKey, Teller, Text, Told},
};
use acp_skills_wire::{Edit, Id, Message, Node};

impl Interceptor {
    pub(super) fn prompt(
        &mut self,
        message: &Message<'_>,
        id: &Id,
        actions: &mut Actions,
    ) -> (Purpose, Pass) {
        let Some(session) = message.session_id().and_then(|id| self.sessions.find(&id)) else {
            return (Purpose::Other, Pass::Untouched);
        };
        let key = session.key;
        let invokes = match Command::of(session, message, &self.policy) {
            Some(Command::Skills(words)) => {
                self.skills_command(key, message, id, &words, actions);
                return (Purpose::Answered, Pass::Consumed);
            }
            Some(Command::Invoke(skill)) => Some(skill),
            None => None,
        };
        let wanted = match &invokes {
            Some(skill) => Some(commands::wanted(session, skill, message)),
            None => wanted(session, message, &self.policy),
        };
        let text = match wanted {
            Some(wanted) => {
                self.tickets += 1;
                actions.effects.push(Effect::Fetch { session: key, ticket: self.tickets, wanted });
                Text::Pending(self.tickets)
            }
            None => Text::None,
        };
        let tools_awaited = session.mcp == Mcp::Expected && !self.policy.mcp_wait.is_zero();
        if tools_awaited && session.held.is_empty() {
            actions.effects.push(Effect::Wait(key, self.policy.mcp_wait));
        }
        let pass = if tools_awaited || text != Text::None || !session.held.is_empty() {
            session.held.push_back(Held {
                id: id.clone(),
                line: message.line.to_vec(),
                text,
                invokes,
                activations: Vec::new(),
            });
            Pass::Consumed
        } else {
            session.in_flight += 1;
            write_prompt(session, message, None, &self.agent, &self.policy)
        };
        (Purpose::Prompt(key), pass)
    }

    pub(super) fn tools_listed(&mut self, key: SessionKey, actions: &mut Actions) {
        let Some(session) = self.sessions.get(key) else { return };
        session.mcp = Mcp::Listed;
        self.release(key, actions);
    }

    pub(super) fn wait_over(&mut self, key: SessionKey, actions: &mut Actions) {
        let Some(session) = self.sessions.get(key) else { return };
        if session.mcp == Mcp::Expected {
            session.mcp = Mcp::Missing;
            for index in 0..session.held.len() {
                let Some(message) = Message::parse(&session.held[index].line) else { continue };
                let wanted = match &session.held[index].invokes {
                    // This was to say how to use the tools.
                    Some(skill) => {
                        let arguments = commands::arguments(&message);
                        Some(Wanted::Skill { name: skill.as_str().to_owned(), arguments, tools: false })
                    }
                    // Without tools the proxy may have to do it.
                    None if session.held[index].text == Text::None => wanted(session, &message, &self.policy),
                    None => None,
                };
                if let Some(wanted) = wanted {
                    let held = &mut session.held[index];
                    self.tickets += 1;
                    held.text = Text::Pending(self.tickets);
                    actions.effects.push(Effect::Fetch { session: key, ticket: self.tickets, wanted });
                }
            }
            let what =
                EventKind::Fallback { reason: Reason::NotConnected, ms: Some(self.policy.mcp_wait.into()) };
            actions.effects.push(Effect::Record { session: session.id.clone(), what });
            Self::warn(
                actions,
                "the agent did not connect to the skills server in time; it is told where the files are instead",
            );
        }
        self.release(key, actions);
    }

    pub(super) fn fetched(
        &mut self,
        key: SessionKey,
        ticket: u64,
        text: Option<String>,
        activations: Vec<EventKind>,
        actions: &mut Actions,
    ) {
        let Some(session) = self.sessions.get(key) else { return };
        let waits = session.held.iter_mut().find(|held| held.text == Text::Pending(ticket));
        if let Some(held) = waits {
            let invokes = held.invokes.clone();
            if invokes.is_some() && text.is_none() {
                let why = "The skill is not there any more; `/skills` lists those that are.";
                return self.not_fetched(key, ticket, why, None, actions);
            }
            held.text = text.map_or(Text::None, Text::Ready);
            held.activations = activations;
            if let Some(skill) = invokes {
                self.invoked(key, &skill, actions);
            }
        }
        self.release(key, actions);
    }

    /// The client is gone: nothing is worth waiting for, and the agent is to have all that the user wrote.
    pub(super) fn release_all(&mut self, actions: &mut Actions) {
        let sessions = self.sessions.iter_mut().map(|session| {
            session.held.iter_mut().for_each(|held| {
                if matches!(held.text, Text::Pending(_)) {
                    held.text = Text::None;
                }
            });
            if session.mcp == Mcp::Expected {
                session.mcp = Mcp::Missing;
            }
            session.key
        });
        for key in sessions.collect::<Vec<_>>() {
            self.release(key, actions);
        }
    }

    /// Sends the prompts of a session that need not wait any longer.
    pub(super) fn release(&mut self, key: SessionKey, actions: &mut Actions) {
        let Some(session) = self.sessions.get(key) else { return };
        if session.mcp == Mcp::Expected && !self.policy.mcp_wait.is_zero() {
            return;
        }
        while let Some(held) = session.held.pop_front_if(|held| !matches!(held.text, Text::Pending(_))) {
            let text = match held.text {
                Text::Ready(text) => Some(text),
                Text::None | Text::Pending(_) => None,
            };
            // Only now: a text may be fetched again, or never be sent.
            for what in held.activations {
                if held.invokes.is_none() {
                    record::fits(session, &what, actions);
                }
                actions.effects.push(Effect::Record { session: session.id.clone(), what });
            }
            session.in_flight += 1;
            let pass = Message::parse(&held.line).map(|message| match &held.invokes {
                Some(skill) => {
                    expansion::write(session, &message, skill, text.as_deref(), &self.agent, &self.policy)
                }
                None => write_prompt(session, &message, text.as_deref(), &self.agent, &self.policy),
            });
            actions.to_agent.push(match pass {
                Some(Pass::Edited(line)) => line,
                _ => held.line,
            });
        }
    }
}

/// The text that the prompt needs and that has to be fetched.
fn wanted(session: &Session, message: &Message<'_>, policy: &Policy) -> Option<Wanted> {
    let has_tools = matches!(session.mcp, Mcp::Expected | Mcp::Listed);
    let by_proxy = match policy.activation {
        Activation::Model => false,
        Activation::Prompt => true,
        Activation::Hybrid => !has_tools,
    };
    let blocks = message.param(&["prompt"])?;
    if !by_proxy || session.skills.is_empty() || is_command(blocks) {
        return None;
    }
    words(message).map(Wanted::BestFor)
}

/// Puts what the model has to be told in front of the prompt: the catalog, and `text`.
fn write_prompt(
    session: &mut Session,
    message: &Message<'_>,
    text: Option<&str>,
    agent: &AgentFacts,
    policy: &Policy,
) -> Pass {
    let Some(blocks) = message.param(&["prompt"]).filter(Node::is_array) else { return Pass::Untouched };
    if is_command(blocks) {
        return Pass::Untouched;
    }
    let mut edit = Edit::new();
    if let Some(text) = news_in(session, message, agent, policy, Occasion::Ordinary) {
        edit.unshift(blocks, &placement::block(&text).to_string());
    }
    if let Some(text) = text {
        edit.unshift(blocks, &placement::block(&placement::wrap(text)).to_string());
    }
    if edit.is_empty() {
        return Pass::Untouched;
    }
    if let Some(words) = words(message) {
        session.begins_with(&words);
    }
    Pass::Edited(edit.apply(message.line))
}

/// What a prompt is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Occasion {
    /// Words for the model.
    Ordinary,
    /// A command, which is no place for small talk.
    Command,
}

/// What this prompt has to tell the model about the skills.
pub(super) fn news_in(
    session: &mut Session,
    message: &Message<'_>,
    agent: &AgentFacts,
    policy: &Policy,
    occasion: Occasion,
) -> Option<String> {
    let (told, known) = (session.told, session.known.clone());
    let news = news(session, agent, policy, occasion)?;
    session.teller = message.id().map(|id| Teller { id, told, known, accepted: false });
    Some(news)
}

/// What the model has not been told yet about the skills and how to use them.
fn news(session: &mut Session, agent: &AgentFacts, policy: &Policy, occasion: Occasion) -> Option<String> {
    if placement::choose(policy.catalog_in, agent) == Placement::Off {
        return None;
    }
    let now = how_to_tell(session);
    // Skills without files were not in the list.
    let late = (session.told, now) == (Told::Files, Told::Tools)
        && session.skills.listed().all(|skill| skill.dir().is_some());
    if session.told != now && !late {
        let text = placement::text(session, agent, &policy.catalog, now)?;
        session.told = now;
        session.known = Some(session.skills.clone());
        return Some(text);
    }
    session.told = now;
    let change = match occasion {
        Occasion::Ordinary => reload::change(session, &policy.catalog),
        Occasion::Command => None,
    };
    let lines: Vec<_> = late.then(|| LATE.to_owned()).into_iter().chain(change).collect();
    (!lines.is_empty()).then(|| placement::wrap(&lines.join("\n")))
}

/// How the model can use the skills of this session.
pub(super) fn how_to_tell(session: &Session) -> Told {
    match session.mcp {
        Mcp::Off | Mcp::Missing => Told::Files,
        Mcp::Expected | Mcp::Listed => Told::Tools,
    }
}

/// What the model is told when the tools come after all.
const LATE: &str = "The skill tools are available now: prefer `activate_skill` and `read_skill_file` to reading the \
                    files of skills yourself.";

/// Whether the prompt is a command of the agent's, which must stay as it is: agents look for it in the first block, in
/// the last one, or in all of them joined.
pub(super) fn is_command(blocks: Node<'_>) -> bool {
    let mut texts = blocks.elements().filter_map(|block| block.str("text"));
    texts.any(|text| text.trim_start().starts_with(['/', '$']))
}

/// The user's words on one line, without what a proxy before us has added; `None` when there are none.
pub(super) fn words(message: &Message<'_>) -> Option<String> {
    let blocks = message.param(&["prompt"])?;
    let texts: Vec<_> = blocks.elements().filter_map(|block| block.str("text")).collect();
    let text = texts.join(" ");
    let words = strip::title(&text).unwrap_or_else(|| text.split_whitespace().collect::<Vec<_>>().join(" "));
    (!words.is_empty()).then_some(words)
}
