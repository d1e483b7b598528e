//! Messages from the client.

use acp_skills_wire::{Kind, Message};

use crate::{
    Interceptor,
    client_facts::ClientFacts,
    outputs::{Actions, Pass},
    requests::{OpenRequest, Purpose},
};

impl Interceptor {
    /// Decides about a message from the client.
    pub(crate) fn client_message(&mut self, message: &Message<'_>, actions: &mut Actions) -> Pass {
        if self.queue_behind_setup(message) {
            return Pass::Consumed;
        }
        match message.kind() {
            Kind::Response => {
                if let Some(pass) = self.server_question_answered(message, actions) {
                    return pass;
                }
                self.user_answered(message, actions)
            }
            Kind::Notification => match message.method().as_ref() {
                "session/cancel" => self.cancel_turn(message, actions),
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
                (Purpose::Initialize, self.offer_files(message))
            }
            "session/new" | "session/fork" | "session/load" | "session/resume" => {
                match self.setup_request(message, &id, actions) {
                    Some(begun) => begun,
                    None => return Pass::Consumed,
                }
            }
            "skills/list" | "_skills/list" => match self.list_skills(message, &id, actions) {
                Some(listed) => listed,
                None => return Pass::Consumed,
            },
            "session/close" | "session/delete" => match message.session_id() {
                Some(id) => (Purpose::Close { id: id.into_owned() }, Pass::Untouched),
                None => (Purpose::Other, Pass::Untouched),
            },
            "session/set_config_option" => match self.set_option(message, &id, actions) {
                Some(set) => set,
                None => return Pass::Consumed,
            },
            "session/list" => (Purpose::List, Pass::Untouched),
            "session/prompt" => {
                let Some(prompt) = self.prompt(message, &id, actions) else {
                    // This prompt was one of our commands, which we have already answered.
                    self.requests.remove(&id);
                    return Pass::Consumed;
                };
                prompt
            }
            _ => (Purpose::Other, Pass::Untouched),
        };
        self.requests.insert(id, OpenRequest::new(&method, purpose));
        pass
    }
}
