//! Requests that wait until there is what their session needs, and what the client says meanwhile about the same session.

use std::{collections::VecDeque, mem, path::PathBuf};

use acp_skills_wire::{Id, Kind, Message, REQUEST_CANCELLED, build};
use skills_core::SkillSet;

use crate::{
    Interceptor,
    keys::{SessionKey, Ticket},
    outputs::{Actions, Pass},
    queries::Transport,
    requests::{OpenRequest, Purpose},
};

/// Requests that wait for what their session needs.
#[derive(Debug, Default)]
pub(crate) struct WaitingSetups {
    setups: VecDeque<WaitingSetup>,
    last_ticket: u64,
}

/// One of them.
#[derive(Debug)]
pub(super) struct WaitingSetup {
    pub(super) ticket: Ticket,
    pub(super) id: Id,
    pub(super) method: String,
    pub(super) line: Vec<u8>,
    pub(super) target: Target,
    /// The session that it is a copy of.
    pub(super) parent: Option<SessionKey>,
    pub(super) transport: Option<Transport>,
    /// How often the skills of all sessions had been looked up when this was asked for.
    pub(super) refreshes: u64,
    /// The skills that the client brings for it.
    pub(super) brought: Option<SkillSet>,
    /// The agent's id of the session whose later messages wait.
    pub(super) about: Option<String>,
    /// Those messages, in order.
    pub(super) behind: VecDeque<Vec<u8>>,
}

/// Whose setup it is.
#[derive(Debug)]
pub(super) enum Target {
    /// A session that is not known yet, and where it works.
    New(SessionKey, Option<PathBuf>),
    /// One that goes on meanwhile.
    Known(SessionKey),
}

impl Target {
    pub(super) fn key(&self) -> SessionKey {
        match self {
            Self::New(key, _) | Self::Known(key) => *key,
        }
    }
}

impl WaitingSetups {
    pub(crate) fn is_empty(&self) -> bool {
        self.setups.is_empty()
    }

    /// A number that no other request has.
    pub(super) fn new_ticket(&mut self) -> Ticket {
        self.last_ticket += 1;
        Ticket(self.last_ticket)
    }

    /// Keeps a request.
    pub(super) fn push(&mut self, setup: WaitingSetup) {
        self.setups.push_back(setup);
    }

    /// Nobody can be asked any more.
    pub(crate) fn forget(&mut self) {
        self.setups.clear();
    }

    /// Takes a message whose session waits. Returns whether it did.
    fn hold_back(&mut self, message: &Message<'_>) -> bool {
        let about = message.session_id();
        let mut waiting = self.setups.iter_mut().rev();
        let found = waiting.find(|setup| about.is_some() && setup.about.as_deref() == about.as_deref());
        let is_held = found.is_some();
        if let Some(setup) = found {
            setup.behind.push_back(message.line.to_vec());
        }
        is_held
    }

    /// Takes out the prompts that wait for this session. Returns their ids.
    fn take_prompts(&mut self, session: &str) -> Vec<Id> {
        let mut ids = Vec::new();
        for setup in self.setups.iter_mut().filter(|setup| setup.about.as_deref() == Some(session)) {
            setup.behind.retain(|line| {
                let message = Message::parse(line).filter(|message| message.method() == "session/prompt");
                let prompt = message.and_then(|message| message.id());
                let stays = prompt.is_none();
                ids.extend(prompt);
                stays
            });
        }
        ids
    }

    /// Takes out the request with this id, when it waits behind another.
    fn take_behind(&mut self, id: &Id) -> bool {
        self.setups.iter_mut().any(|setup| {
            let is_it =
                |line: &Vec<u8>| Message::parse(line).and_then(|message| message.id()).as_ref() == Some(id);
            let index = setup.behind.iter().position(is_it);
            index.is_some_and(|index| setup.behind.remove(index).is_some())
        })
    }

    pub(super) fn take(&mut self, is_it: impl Fn(&WaitingSetup) -> bool) -> Option<WaitingSetup> {
        let index = self.setups.iter().position(is_it)?;
        self.setups.remove(index)
    }

    /// Where those sessions work that are not known yet.
    pub(crate) fn directories(&self) -> impl Iterator<Item = &Option<PathBuf>> {
        self.setups.iter().filter_map(|setup| match &setup.target {
            Target::New(_, cwd) => Some(cwd),
            Target::Known(_) => None,
        })
    }
}

impl Interceptor {
    /// Whether a message of the client's waits because its session is being set up.
    pub(crate) fn waits_for_setup(&mut self, message: &Message<'_>) -> bool {
        if self.waiting.is_empty() || message.kind() == Kind::Response {
            return false;
        }
        let method = message.method();
        // Whoever cancels does not want to wait for what is to be cancelled.
        if matches!(method.as_ref(), "session/cancel" | "$/cancel_request")
            || !self.waiting.hold_back(message)
        {
            return false;
        }
        if let Some(id) = message.id() {
            let method = method.into_owned();
            self.open.insert(id, OpenRequest { method, purpose: Purpose::Waiting });
        }
        true
    }

    /// Goes on with messages of the client's that waited.
    pub(super) fn resume(&mut self, lines: VecDeque<Vec<u8>>, actions: &mut Actions) {
        for line in lines {
            let pass = self.from_client(&line, actions);
            actions.to_agent.extend(match pass {
                Pass::Untouched => Some(line),
                Pass::Edited(line) => Some(line),
                Pass::Consumed => None,
            });
            let mut after = mem::take(&mut actions.after);
            actions.to_agent.append(&mut after);
        }
    }

    /// Answers the prompts that wait for this session to be set up. Returns whether there were any.
    pub(crate) fn cancel_waiting_prompts(&mut self, session: &str, actions: &mut Actions) -> bool {
        let ids = self.waiting.take_prompts(session);
        for id in &ids {
            self.open.remove(id);
            actions.to_client.push(self.agent.version.cancelled(id));
        }
        !ids.is_empty()
    }

    /// Answers a request that waits to set up a session, or behind one that does. Returns whether there was one.
    pub(crate) fn cancel_waiting_request(&mut self, id: &Id, actions: &mut Actions) -> bool {
        let setup = self.waiting.take(|setup| setup.id == *id);
        if setup.is_none() && !self.waiting.take_behind(id) {
            return false;
        }
        self.open.remove(id);
        actions.to_client.push(build::error(id, REQUEST_CANCELLED, "cancelled"));
        if let Some(setup) = setup {
            self.resume(setup.behind, actions);
        }
        true
    }

    /// Nobody waits any longer: the agent gets what the client said, as it was said.
    pub(crate) fn release_waiting(&mut self, actions: &mut Actions) {
        for setup in mem::take(&mut self.waiting.setups) {
            actions.to_agent.push(setup.line);
            actions.to_agent.extend(setup.behind);
        }
    }
}
