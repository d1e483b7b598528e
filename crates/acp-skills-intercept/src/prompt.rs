//! Prompts: the text that is added to them, the reasons to hold them, and the moment when they are sent.

use acp_skills_wire::{Edit, Id, Message, Node};
use skills_core::{SkillName, catalog::Guide, text::markdown_message};

use crate::{
    Interceptor,
    agent_facts::AgentFacts,
    briefing::Occasion,
    commands::{self, Command},
    expansion, hints,
    keys::{SessionKey, Ticket},
    marks,
    menu::names::SKILLS,
    outputs::{Actions, Effect, Level, Pass},
    pending::{HeldPrompt, Kind, PromptKind, PromptText},
    policy::{Activation, Policy},
    queries::{Fetched, Instructions, NotFetched, Query, Wanted},
    recap, record,
    requests::Purpose,
    restoration,
    session::Session,
    slash_command::SlashCommand,
    trace_context::TraceContext,
    words::{is_command, words},
};

/// The answer to a command if the skill was removed before the text was fetched.
const GONE: &str = "This skill no longer exists. Use `/skills` to list all skills.";

impl Interceptor {
    /// Handles a prompt. Returns `None` if the prompt was answered here.
    pub(crate) fn prompt(
        &mut self,
        message: &Message<'_>,
        id: &Id,
        actions: &mut Actions,
    ) -> Option<(Purpose, Pass)> {
        if self.client.may_repeat_messages()
            && let Some(line) = recap::without_our_answers(message, |text| SlashCommand::is(text, SKILLS))
        {
            let (purpose, pass) = self.prompt(&Message::parse(&line)?, id, actions)?;
            return Some((purpose, if pass == Pass::Untouched { Pass::Edited(line) } else { pass }));
        }
        let session = message.session_id().and_then(|id| self.sessions.find(&id));
        let Some(session) = session else { return Some((Purpose::Other, Pass::Untouched)) };
        let key = session.key();
        session.prompt_mentions(message, actions);
        let invoked = match Command::of(session, message, &self.policy) {
            Some(Command::Agents(line)) => {
                let message = Message::parse(&line)?;
                let (purpose, pass) = self.agents_prompt(&message, id, key, None, actions);
                return Some((purpose, if pass == Pass::Untouched { Pass::Edited(line) } else { pass }));
            }
            Some(Command::Skills(words)) => {
                let waits = self.skills_command(key, message, id, &words, actions);
                return waits.then_some((Purpose::Prompt(key), Pass::Consumed));
            }
            Some(Command::Invoke(skill)) => Some(skill),
            None => None,
        };
        Some(self.agents_prompt(message, id, key, invoked, actions))
    }

    /// Sends a prompt to the agent, or holds it. `invoked` is the skill that the prompt invokes.
    fn agents_prompt(
        &mut self,
        message: &Message<'_>,
        id: &Id,
        key: SessionKey,
        invoked: Option<SkillName>,
        actions: &mut Actions,
    ) -> (Purpose, Pass) {
        let Some(session) = self.sessions.get(key) else { return (Purpose::Other, Pass::Untouched) };
        actions.effects.push(Effect::TurnStarted {
            session: key,
            request: id.to_json().into_owned(),
            trace: TraceContext::of(message),
        });
        let wanted = match &invoked {
            Some(skill) => Some(commands::wanted(session, skill, message)),
            None => wanted(session, message, &self.policy),
        };
        let restores = (invoked.is_none() && restoration::is_due(session, message)).then(Vec::new);
        if invoked.is_none() {
            self.note_command(key, message, id);
        }
        let ticket = self.pending.new_ticket();
        let text = match wanted {
            Some(wanted) => {
                actions.ask(Query::Fetch { session: key, ticket, wanted });
                PromptText::Fetching
            }
            None => PromptText::None,
        };
        let must_wait = self.must_wait_for_tools(key, actions);
        let Some(session) = self.sessions.get(key) else { return (Purpose::Other, Pass::Untouched) };
        let pass = if must_wait || text != PromptText::None || self.pending.has_prompts(key) {
            let kind = invoked.map_or(PromptKind::Ordinary, PromptKind::Invocation);
            let prompt = HeldPrompt { restores, ..HeldPrompt::new(message.line, kind, text) };
            self.pending.insert(ticket, Some(key), Some(id.clone()), Kind::Prompt(prompt));
            Pass::Consumed
        } else {
            session.sent();
            write_prompt(session, message, None, restores, &self.agent, &self.policy, actions)
        };
        (Purpose::Prompt(key), pass)
    }

    /// Holds a `/skills` command until the answer to the query with this ticket.
    pub(crate) fn hold_command(
        &mut self,
        session: SessionKey,
        ticket: Ticket,
        id: &Id,
        command: &Message<'_>,
    ) {
        let prompt = HeldPrompt::new(command.line, PromptKind::Command, PromptText::Fetching);
        self.pending.insert(ticket, Some(session), Some(id.clone()), Kind::Prompt(prompt));
    }

    /// Answers the `/skills` command that was held for this ticket. Returns false if it was cancelled, or there is none.
    pub(crate) fn answer_command(
        &mut self,
        session: SessionKey,
        ticket: Ticket,
        text: &str,
        actions: &mut Actions,
    ) -> bool {
        let Some((id, prompt)) = self.pending.take_fetching_prompt(ticket) else { return false };
        self.answer_held(session, &id, &prompt, text, actions);
        self.release(session, actions);
        true
    }

    /// Stores the text that a prompt waits for.
    pub(crate) fn fetched(
        &mut self,
        key: SessionKey,
        ticket: Ticket,
        fetched: Fetched,
        actions: &mut Actions,
    ) {
        if let Some(held) = self.pending.fetching_prompt(ticket) {
            let Fetched { text, activations, skills, hint } = fetched;
            let hint = hint.and_then(|name| self.sessions.get(key)?.hint(&name));
            let kind = held.kind.clone();
            if kind == PromptKind::Command {
                return self.active_listed(key, ticket, &skills, actions);
            }
            if text.is_none() && matches!(kind, PromptKind::Invocation(_)) {
                let why = NotFetched { why: GONE.to_owned(), failed: None };
                return self.not_fetched(key, ticket, why, actions);
            }
            held.text = text.or(hint).map_or(PromptText::None, PromptText::Ready);
            held.activations = activations;
            if held.restores.is_some() {
                held.restores = Some(skills);
            }
            if let PromptKind::Invocation(skill) = kind {
                let client = self.client;
                let is_alone =
                    Message::parse(&held.line).is_some_and(|prompt| SlashCommand::is_alone(&prompt, client));
                self.invoked(key, &skill, is_alone, actions);
            }
        }
        self.release(key, actions);
    }

    /// Handles a text that cannot be fetched. A command is answered with the reason, and the agent does not get it. Any other
    /// prompt is sent without the text.
    pub(crate) fn not_fetched(
        &mut self,
        key: SessionKey,
        ticket: Ticket,
        why: NotFetched,
        actions: &mut Actions,
    ) {
        let NotFetched { why, failed } = why;
        let Some(session) = self.sessions.get(key) else { return };
        let id = session.id().map(str::to_owned);
        let Some(held) = self.pending.fetching_prompt(ticket) else { return };
        actions.effects.extend(failed.map(|kind| Effect::Record { session: id, kind }));
        let level = if held.kind == PromptKind::Ordinary {
            held.text = PromptText::None;
            Level::Warn
        } else {
            if let Some((id, prompt)) = self.pending.take_fetching_prompt(ticket) {
                self.answer_held(key, &id, &prompt, &markdown_message(&why), actions);
            }
            // We don't need a warning here, because the user will see the reason in the response.
            Level::Info
        };
        actions.log(level, why);
        self.release(key, actions);
    }

    /// Answers a held prompt instead of the agent.
    fn answer_held(
        &mut self,
        key: SessionKey,
        id: &Id,
        prompt: &HeldPrompt,
        text: &str,
        actions: &mut Actions,
    ) {
        self.requests.remove(id);
        if let Some(message) = Message::parse(&prompt.line) {
            self.reply(key, &message, id, text, actions);
        }
        self.end_turn_if_idle(key, actions);
    }

    /// Sends the held prompts of a session up to the first one that still has to wait.
    pub(crate) fn release(&mut self, key: SessionKey, actions: &mut Actions) {
        let Some(session) = self.sessions.get(key) else { return };
        if session.server.is_awaited() && !self.policy.mcp_wait.is_zero() {
            return;
        }
        while let Some((id, held)) = self.pending.take_ready_prompt(key) {
            let text = match held.text {
                PromptText::Ready(text) => Some(text),
                PromptText::None | PromptText::Fetching => None,
            };
            // We have to wait until here to record activations, since a text may be fetched twice, or may never be sent.
            for kind in held.activations {
                if held.kind == PromptKind::Ordinary {
                    record::put_in_front(session, &kind, Some(id.clone()), actions);
                }
                actions.effects.push(Effect::Record { session: session.id().map(str::to_owned), kind });
            }
            session.sent();
            let pass = Message::parse(&held.line).map(|message| match &held.kind {
                PromptKind::Invocation(skill) => {
                    if let Some(words) = words(&message) {
                        session.first_words.begin_with(&words);
                    }
                    if text.is_some() {
                        record::received(session, skill, Some(id), actions);
                    }
                    expansion::write(session, &message, skill, text.as_deref(), &self.agent, &self.policy)
                }
                _ => write_prompt(
                    session,
                    &message,
                    text.as_deref(),
                    held.restores,
                    &self.agent,
                    &self.policy,
                    actions,
                ),
            });
            actions.to_agent.push(match pass {
                Some(Pass::Edited(line)) => line,
                _ => held.line,
            });
        }
    }
}

impl Session {
    /// Notes that a prompt is sent to the agent.
    fn sent(&mut self) {
        self.turns.sent();
        self.compaction.prompt_sent();
    }
}

/// Returns the text to fetch for a prompt that is not a command.
pub(crate) fn wanted(session: &Session, message: &Message<'_>, policy: &Policy) -> Option<Wanted> {
    let matching = text_of_matching_skills(session, message, policy);
    let restored = restoration::wanted(session, message, matching.as_ref());
    restored.or(matching).or_else(|| hints::wanted(session, message, policy))
}

/// Returns the text of the skills that match a prompt, if it is the proxy that activates skills.
pub(crate) fn text_of_matching_skills(
    session: &Session,
    message: &Message<'_>,
    policy: &Policy,
) -> Option<Wanted> {
    let by_proxy = match policy.activation {
        // If the model can't activate skills, the proxy does it.
        Activation::Model => session.guide() == Guide::Prompts,
        Activation::Prompt => true,
        Activation::Hybrid => !session.server.has_tools(),
    };
    let blocks = message.param(&["prompt"])?;
    if !by_proxy || session.skills.is_empty() || is_command(blocks) {
        return None;
    }
    words(message).map(|words| Wanted::BestFor { words, guide: session.guide() })
}

/// Adds the catalog, what the prompt restores, and `text` to a prompt, before or after the user's text, depending on the agent.
fn write_prompt(
    session: &mut Session,
    message: &Message<'_>,
    text: Option<&str>,
    restores: Option<Instructions>,
    agent: &AgentFacts,
    policy: &Policy,
    actions: &mut Actions,
) -> Pass {
    let Some(blocks) = message.param(&["prompt"]).filter(Node::is_array) else { return Pass::Untouched };
    if is_command(blocks) {
        return Pass::Untouched;
    }
    let mut edit = Edit::new();
    let add = if agent.quirks.words_first { Edit::push } else { Edit::unshift };
    let restored =
        restores.and_then(|instructions| session.restore(message, instructions, agent, policy, actions));
    let ours = restored.unwrap_or_else(|| {
        session.brief_in_prompt(message, agent, policy, Occasion::Ordinary).into_iter().collect()
    });
    for text in ours {
        add(&mut edit, blocks, &marks::block(&text).to_string());
    }
    if let Some(text) = text {
        add(&mut edit, blocks, &marks::block(&session.marks.wrap(text)).to_string());
    }
    if edit.is_empty() {
        return Pass::Untouched;
    }
    if let Some(words) = words(message) {
        session.first_words.begin_with(&words);
    }
    Pass::Edited(edit.apply(message.line))
}
