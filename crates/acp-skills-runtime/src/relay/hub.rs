//! Where the two directions meet: the interceptor, the two lanes, and who does what the interceptor asks for.
//!
//! Whoever holds the interceptor decides and queues, and does nothing else: lines go into the lanes and effects into the
//! outbox while it is held, so all of them keep the order of the decisions. They are written and carried out afterwards.

use std::{collections::VecDeque, io::Write, sync::Arc, time::Duration};

use parking_lot::{Condvar, Mutex, MutexGuard};

use acp_skills_intercept::{Actions, Effect, Input, Interceptor, Pass, Task};
use tokio::{
    runtime::Handle,
    sync::{
        OwnedSemaphorePermit, Semaphore,
        mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel},
    },
};

use super::lane::{Chunk, Lane, MAX_WAITING_BYTES};
use crate::host::RunningHost;

/// How much of an agent's MCP requests over the ACP connection may be under way, in permits of [`REQUEST_UNIT_BYTES`]. An
/// agent that asks for more, or does not read the answers, is not read either until it has.
const MAX_REQUEST_UNITS: usize = 2048;
/// The least that a request counts, in bytes: about what it costs while it is under way.
const REQUEST_UNIT_BYTES: usize = 4096;

/// How long what a client said last waits for the skills that it is to have, once the client has left.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// One end of the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Client,
    Agent,
}

impl Side {
    /// What the log calls it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Client => "the client",
            Self::Agent => "the agent",
        }
    }

    fn other(self) -> Self {
        match self {
            Self::Client => Self::Agent,
            Self::Agent => Self::Client,
        }
    }
}

/// The middle of the relay, shared by the two pumps and the tasks.
///
/// Locks are taken in the order in which they stand here; `interceptor` and `carrying_out` never at once.
pub(super) struct Hub {
    /// All that is decided by. Whoever holds it does not block.
    interceptor: Mutex<Interceptor>,
    /// Nothing waits for what it needs any more.
    settled: Condvar,
    /// Held by the one who carries out effects, so that they keep their order. What is done meanwhile does not block.
    carrying_out: Mutex<()>,
    /// Effects that were decided and not carried out yet.
    outbox: Mutex<VecDeque<Effect>>,
    host: RunningHost,
    to_client: Lane,
    to_agent: Lane,
    tasks: UnboundedSender<Job>,
    requests: Arc<Semaphore>,
    runtime: Handle,
}

/// A task, and its share of what may be under way.
pub(super) type Job = (Task, Option<OwnedSemaphorePermit>);

impl Hub {
    /// A hub that writes to these two, and the tasks that somebody has to do.
    pub(super) fn new(
        interceptor: Interceptor,
        host: RunningHost,
        client: Box<dyn Write + Send>,
        agent: Box<dyn Write + Send>,
    ) -> (Self, UnboundedReceiver<Job>) {
        let (tasks, receiver) = unbounded_channel();
        let hub = Self {
            interceptor: Mutex::new(interceptor),
            settled: Condvar::new(),
            carrying_out: Mutex::default(),
            outbox: Mutex::default(),
            host,
            to_client: Lane::new(Side::Client, client),
            to_agent: Lane::new(Side::Agent, agent),
            tasks,
            requests: Arc::new(Semaphore::new(MAX_REQUEST_UNITS)),
            runtime: Handle::current(),
        };
        (hub, receiver)
    }

    /// How long it is worth to wait for the agent to end by itself, where that is known.
    pub(super) fn time_to_leave(&self) -> Option<Duration> {
        self.interceptor.lock().shutdown_grace()
    }

    pub(super) fn lane_to(&self, side: Side) -> &Lane {
        match side {
            Side::Client => &self.to_client,
            Side::Agent => &self.to_agent,
        }
    }

    /// Decides about the complete lines in the first `len` bytes of `storage` and queues what becomes of them for the
    /// other side. When no line changes, the storage itself goes on and `storage` is left empty. Returns whether anything
    /// was queued: whoever has nothing to write need not wait for those who have.
    pub(super) fn batch(self: &Arc<Self>, from: Side, storage: &mut Vec<u8>, len: usize) -> bool {
        let lane = self.lane_to(from.other());
        let mut actions = Actions::default();
        let mut interceptor = self.interceptor.lock();
        // Where the run of untouched lines that are not yet in `edited` begins.
        let mut run = 0;
        let mut edited: Option<Vec<u8>> = None;
        let mut rest = &storage[..len];
        while !rest.is_empty() {
            let start = len - rest.len();
            let line;
            (line, rest) = rest.split_at(memchr::memchr(b'\n', rest).map_or(rest.len(), |at| at + 1));
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
                run = start + line.len();
            }
        }
        let chunk = match edited {
            Some(mut edited) => {
                edited.extend_from_slice(&storage[run..len]);
                Chunk::from(edited)
            }
            None => Chunk { bytes: std::mem::take(storage), len },
        };
        let is_queued = chunk.len > 0;
        lane.push(chunk);
        self.carry_out(interceptor, actions, MayBlock::Yes);
        is_queued
    }

    /// Tells the interceptor of something that happened, and does what it decides.
    pub(super) fn handle(self: &Arc<Self>, input: Input) {
        let mut actions = Actions::default();
        let mut interceptor = self.interceptor.lock();
        interceptor.handle(input, &mut actions);
        if !interceptor.is_waiting() {
            self.settled.notify_all();
        }
        self.carry_out(interceptor, actions, MayBlock::No);
    }

    /// The client will say nothing more. What it said last may wait for its skills a while; blocks meanwhile.
    pub(super) fn client_gone(self: &Arc<Self>) {
        let mut interceptor = self.interceptor.lock();
        self.settled.wait_while_for(&mut interceptor, |interceptor| interceptor.is_waiting(), LAST_WORDS);
        drop(interceptor);
        self.handle(Input::ClientGone);
    }

    /// Sends a line of our own to the agent.
    pub(super) fn tell_agent(self: &Arc<Self>, line: Vec<u8>) {
        self.to_agent.insert(line);
        self.deliver(Side::Agent, MayBlock::No);
    }

    /// Answers everything that the agent has left open. Returns whether it had to answer some of it before it could be used.
    pub(super) fn agent_gone(&self, why: &str) -> bool {
        let mut interceptor = self.interceptor.lock();
        let was_starting = interceptor.is_starting();
        for line in interceptor.agent_gone(why) {
            self.to_client.insert(line);
        }
        was_starting
    }

    /// Queues lines while the interceptor is held, so that the lanes keep the order of the decisions; does the rest when
    /// it is not.
    fn carry_out(
        self: &Arc<Self>,
        interceptor: MutexGuard<'_, Interceptor>,
        actions: Actions,
        may_block: MayBlock,
    ) {
        let Actions { to_client, to_agent, effects, tasks, after } = actions;
        debug_assert!(after.is_empty(), "they follow a line, and go with it");
        let inserted = [(Side::Client, !to_client.is_empty()), (Side::Agent, !to_agent.is_empty())];
        for line in to_client {
            self.to_client.insert(line);
        }
        for line in to_agent {
            self.to_agent.insert(line);
        }
        let has_effects = !effects.is_empty();
        if has_effects {
            self.outbox.lock().extend(effects);
        }
        drop(interceptor);
        // Tasks may need what others have decided before, so that comes first.
        if has_effects || !tasks.is_empty() {
            self.empty_outbox();
        }
        for (side, _) in inserted.into_iter().filter(|(_, any)| *any) {
            self.deliver(side, may_block);
        }
        for task in tasks {
            let share = self.share_of(&task, may_block);
            // Nobody listens any more only when the relay is being taken down.
            drop(self.tasks.send((task, share)));
        }
    }

    /// Waits until there is room for a request of the agent's. Only the agent itself is held up: this is the thread that
    /// reads what it says.
    fn share_of(&self, task: &Task, may_block: MayBlock) -> Option<OwnedSemaphorePermit> {
        let Task::Mcp { line, .. } = task else { return None };
        if may_block == MayBlock::No {
            return None;
        }
        let units = line.len().div_ceil(REQUEST_UNIT_BYTES).clamp(1, MAX_REQUEST_UNITS);
        let units = u32::try_from(units).unwrap_or(u32::MAX);
        let requests = Arc::clone(&self.requests);
        match Arc::clone(&requests).try_acquire_many_owned(units) {
            Ok(share) => Some(share),
            Err(_) => self.runtime.block_on(requests.acquire_many_owned(units)).ok(),
        }
    }

    /// Carries out all that was decided until now.
    fn empty_outbox(&self) {
        let _carrying_out = self.carrying_out.lock();
        loop {
            let effect = self.outbox.lock().pop_front();
            match effect {
                Some(effect) => self.host.carry_out(effect),
                None => return,
            }
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
