//! What becomes of a message from the client.

use std::collections::VecDeque;

use acp_skills_wire::{Id, Kind, Message, REQUEST_CANCELLED, build};

use crate::{
    Interceptor,
    client_facts::ClientFacts,
    outputs::{Actions, Pass},
    requests::{OpenRequest, Purpose},
    session::turns::HeldPrompt,
};

impl Interceptor {
    pub(crate) fn client_message(&mut self, message: &Message<'_>, actions: &mut Actions) -> Pass {
        if self.waits_for_setup(message) {
            return Pass::Consumed;
        }
        match message.kind() {
            Kind::Response => self.user_answered(message, actions),
            Kind::Notification => match message.method().as_ref() {
                "session/cancel" => self.cancel(message, actions),
                "$/cancel_request" => self.cancel_request(message, actions),
                _ => Pass::Untouched,
            },
            Kind::Request => self.request(message, actions),
        }
    }

    fn request(&mut self, message: &Message<'_>, actions: &mut Actions) -> Pass {
        let Some(id) = message.id() else { return Pass::Untouched };
        let method = message.method();
        let (purpose, pass) = match method.as_ref() {
            "initialize" => {
                self.client = ClientFacts::read(message);
                (Purpose::Initialize, Pass::Untouched)
            }
            "session/new" | "session/fork" | "session/load" | "session/resume" => {
                match self.begin(message, &id, actions) {
                    Some(begun) => begun,
                    None => return Pass::Consumed,
                }
            }
            "skills/list" | "_skills/list" => match self.list_skills(message, &id, actions) {
                Some(listed) => listed,
                None => return Pass::Consumed,
            },
            "session/close" | "session/delete" => match message.session_id() {
                Some(id) => (Purpose::Leave { id: id.into_owned() }, Pass::Untouched),
                None => (Purpose::Other, Pass::Untouched),
            },
            "session/set_config_option" => match self.set_option(message, &id, actions) {
                Some(set) => set,
                None => return Pass::Consumed,
            },
            "session/list" => (Purpose::List, Pass::Untouched),
            "session/prompt" => {
                let Some(prompt) = self.prompt(message, &id, actions) else {
                    // It is answered already.
                    self.open.remove(&id);
                    return Pass::Consumed;
                };
                prompt
            }
            _ => (Purpose::Other, Pass::Untouched),
        };
        self.open.insert(id, OpenRequest { method: method.into_owned(), purpose });
        pass
    }

    /// A prompt that waits is answered here; the agent has never heard of it.
    fn cancel(&mut self, message: &Message<'_>, actions: &mut Actions) -> Pass {
        let Some(id) = message.session_id() else { return Pass::Untouched };
        self.cancel_asked(&id, actions);
        let waited = self.cancel_waiting_prompts(&id, actions);
        let Some(session) = self.sessions.find(&id) else {
            return if waited { Pass::Consumed } else { Pass::Untouched };
        };
        let held = session.turns.take_held();
        let agent_works = session.turns.agent_works() || (held.is_empty() && !waited);
        self.cancel_held(held, actions);
        if agent_works { Pass::Untouched } else { Pass::Consumed }
    }

    /// Answers prompts that were never sent.
    pub(crate) fn cancel_held(&mut self, held: VecDeque<HeldPrompt>, actions: &mut Actions) {
        for prompt in held {
            self.open.remove(&prompt.id);
            actions.to_client.push(self.agent.version.cancelled(&prompt.id));
        }
    }

    fn cancel_request(&mut self, message: &Message<'_>, actions: &mut Actions) -> Pass {
        let Some(id) = message.param(&["requestId"]).and_then(Id::of) else {
            return Pass::Untouched;
        };
        if self.cancel_waiting_request(&id, actions) {
            return Pass::Consumed;
        }
        let held = self.sessions.iter_mut().find_map(|session| {
            session.turns.take(&id)?;
            Some(session.key())
        });
        let Some(key) = held else { return Pass::Untouched };
        self.open.remove(&id);
        actions.to_client.push(build::error(&id, REQUEST_CANCELLED, "cancelled"));
        // Those behind it may have waited for nothing else.
        self.release(key, actions);
        Pass::Consumed
    }
}
