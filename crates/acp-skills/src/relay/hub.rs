//! Where the two directions meet: the interceptor, the two lanes, and who does what the interceptor asks for.

use std::{
    io::Write,
    sync::{Arc, Mutex, MutexGuard},
};

use tokio::{
    runtime::Handle,
    sync::mpsc::{UnboundedSender, unbounded_channel},
};

use super::lane::{Chunk, Lane, MAX_WAITING_BYTES, lock};
use crate::mcp::Servers;
use acp_skills_intercept::{Actions, Effect, Event, Interceptor, Level, Pass};

/// One end of the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Client,
    Agent,
}

impl Side {
    fn other(self) -> Self {
        match self {
            Self::Client => Self::Agent,
            Self::Agent => Self::Client,
        }
    }
}

/// The middle of the relay, shared by the two pumps and the tasks.
pub(super) struct Hub {
    interceptor: Mutex<Interceptor>,
    servers: Servers,
    to_client: Lane,
    to_agent: Lane,
    effects: UnboundedSender<Effect>,
    runtime: Handle,
}

impl Hub {
    /// A hub that writes to these two, and the effects that somebody has to carry out.
    pub(super) fn new(
        interceptor: Interceptor,
        servers: Servers,
        client: Box<dyn Write + Send>,
        agent: Box<dyn Write + Send>,
    ) -> (Self, tokio::sync::mpsc::UnboundedReceiver<Effect>) {
        let (effects, receiver) = unbounded_channel();
        let hub = Self {
            interceptor: Mutex::new(interceptor),
            servers,
            to_client: Lane::new(client),
            to_agent: Lane::new(agent),
            effects,
            runtime: Handle::current(),
        };
        (hub, receiver)
    }

    pub(super) fn lane_to(&self, side: Side) -> &Lane {
        match side {
            Side::Client => &self.to_client,
            Side::Agent => &self.to_agent,
        }
    }

    /// Decides about the complete lines in the first `len` bytes of `storage` and queues what becomes of them for the
    /// other side. When no line changes, the storage itself goes on and `storage` is left empty.
    pub(super) fn batch(self: &Arc<Self>, from: Side, storage: &mut Vec<u8>, len: usize) {
        let lane = self.lane_to(from.other());
        let mut actions = Actions::default();
        let mut interceptor = lock(&self.interceptor);
        // Where the run of untouched lines that are not yet in `edited` begins.
        let mut run = 0;
        let mut edited: Option<Vec<u8>> = None;
        let mut start = 0;
        while start < len {
            let end = memchr::memchr(b'\n', &storage[start..len]).map_or(len, |at| start + at + 1);
            let line = &storage[start..end];
            let pass = match from {
                Side::Client => interceptor.from_client(line, &mut actions),
                Side::Agent => interceptor.from_agent(line, &mut actions),
            };
            let before = match from {
                Side::Client => &mut actions.to_agent,
                Side::Agent => &mut actions.to_client,
            };
            if pass != Pass::Untouched || !before.is_empty() || !actions.after.is_empty() {
                let edited = edited.get_or_insert_default();
                edited.extend_from_slice(&storage[run..start]);
                before.drain(..).for_each(|ours| edited.extend_from_slice(&ours));
                match &pass {
                    Pass::Untouched => edited.extend_from_slice(line),
                    Pass::Edited(line) => edited.extend_from_slice(line),
                    Pass::Consumed => {}
                }
                for ours in actions.after.drain(..) {
                    if !edited.ends_with(b"\n") {
                        edited.push(b'\n');
                    }
                    edited.extend_from_slice(&ours);
                }
                run = end;
            }
            start = end;
        }
        match edited {
            Some(mut edited) => {
                edited.extend_from_slice(&storage[run..len]);
                lane.push(edited);
            }
            None => lane.push(Chunk { bytes: std::mem::take(storage), len }),
        }
        self.carry_out(interceptor, actions, MayBlock::Yes);
    }

    /// Tells the interceptor of something that happened, and does what it decides.
    pub(super) fn happened(self: &Arc<Self>, event: Event) {
        let mut actions = Actions::default();
        let mut interceptor = lock(&self.interceptor);
        interceptor.happened(event, &mut actions);
        self.carry_out(interceptor, actions, MayBlock::No);
    }

    /// Sends a line of our own to the agent.
    pub(super) fn tell_agent(self: &Arc<Self>, line: Vec<u8>) {
        self.to_agent.insert(line);
        self.deliver(Side::Agent, MayBlock::No);
    }

    /// Answers everything that the agent has left open.
    pub(super) fn agent_gone(&self, why: &str) {
        let mut interceptor = lock(&self.interceptor);
        for line in interceptor.agent_gone(why) {
            self.to_client.insert(line);
        }
    }

    /// Queues lines while the interceptor is held, so that the lanes keep the order of the decisions; does the rest when
    /// it is not.
    fn carry_out(
        self: &Arc<Self>,
        interceptor: MutexGuard<'_, Interceptor>,
        actions: Actions,
        may_block: MayBlock,
    ) {
        let Actions { to_client, to_agent, effects, .. } = actions;
        let inserted = [(Side::Client, !to_client.is_empty()), (Side::Agent, !to_agent.is_empty())];
        for line in to_client {
            self.to_client.insert(line);
        }
        for line in to_agent {
            self.to_agent.insert(line);
        }
        drop(interceptor);
        for effect in effects {
            match effect {
                Effect::Log(Level::Warn, text) => tracing::warn!("{text}"),
                Effect::Log(Level::Info, text) => tracing::info!("{text}"),
                Effect::Log(Level::Debug, text) => tracing::debug!("{text}"),
                Effect::Record { session, what } => self.servers.record(session, what),
                Effect::Remember { id, active } => self.servers.remember(&id, active),
                // Nobody listens any more only when the relay is being taken down.
                effect => drop(self.effects.send(effect)),
            }
        }
        for (side, _) in inserted.into_iter().filter(|(_, any)| *any) {
            self.deliver(side, may_block);
        }
    }

    /// Has a lane drained that got lines from somebody else than its own pump. Nobody waits here for a side that does
    /// not read: the pump of the other direction would stand still with it.
    fn deliver(self: &Arc<Self>, side: Side, may_block: MayBlock) {
        let lane = self.lane_to(side);
        if may_block == MayBlock::Yes && lane.waiting() > MAX_WAITING_BYTES {
            // Somebody asks and asks and does not read the answers.
            drop(lane.drain());
        } else if !lane.schedule() {
            let hub = Arc::clone(self);
            self.runtime.spawn_blocking(move || drop(hub.lane_to(side).drain()));
        }
    }
}

/// Whether the caller has a thread of its own. The runtime's only thread must never wait for a reader.
#[derive(Clone, Copy, PartialEq, Eq)]
enum MayBlock {
    Yes,
    No,
}
