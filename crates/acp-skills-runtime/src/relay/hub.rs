//! [`Hub`]: the center of the relay, where both directions share the interceptor, the lanes and the host.
//!
//! A thread that holds the interceptor only decides and queues: lines go into the lanes and effects into the outbox, so all of
//! them keep the order of the decisions. After the interceptor is released, the lines are written and the effects carried out.

mod batch;

use std::{
    collections::VecDeque,
    io::{self, Write},
    sync::Arc,
    time::Duration,
};

use acp_skills_intercept::{Actions, Effect, Input, Interceptor, Pass, Task};
use acp_skills_wire::{INTERNAL_ERROR, Id, build};
use parking_lot::{Condvar, Mutex, MutexGuard};
use tokio::{
    runtime::Handle,
    sync::{
        OwnedSemaphorePermit, Semaphore,
        mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel},
    },
};
use tracing::Span;

use self::batch::{append, has_lines};
use super::{
    lane::{Chunk, Lane, MAX_QUEUED_BYTES},
    side::Side,
};
use crate::host::RunningHost;

/// The limit for the agent's requests to us that are in flight over the ACP connection, in permits of
/// [`REQUEST_UNIT_BYTES`]. At the limit, we stop reading from the agent for [`MAX_REQUEST_WAIT`], or until it reads the answers. There
/// are enough permits for the largest request (`MAX_MCP_MESSAGE`).
const MAX_REQUEST_UNITS: usize = 2048;
/// The size of one permit in bytes. This is about the memory that a small request needs while it is in flight.
const REQUEST_UNIT_BYTES: usize = 4096;

/// The maximum size of a file of a skill that is read for the agent, in bytes. A request for one needs permits for this size.
const MAX_FILE_BYTES: usize = 2 * 1024 * 1024;

/// The maximum time that a request waits for permits. If requests that take long have all permits, the next ones get an error.
const MAX_REQUEST_WAIT: Duration = Duration::from_secs(2);

/// The maximum time to wait for the skills of a session after the client disconnects, so that its last messages can
/// still be sent.
const PENDING_SETUP_TIMEOUT: Duration = Duration::from_secs(2);

/// The maximum delay of a read from the client while too many of its messages are held. It must be short, because the next
/// message can be needed to release them, such as a cancellation or the answer to a request of the agent.
const HELD_DELAY: Duration = Duration::from_millis(100);

/// The size of the output of changed lines, in bytes, from which a batch is written before the rest of it is decided. A short line
/// can become long, such as a list of commands, so a batch can need much memory and time otherwise.
const MAX_ROUND_BYTES: usize = 1024 * 1024;

/// The maximum time that a shutdown waits for the interceptor.
const SHUTDOWN_LOCK_TIMEOUT: Duration = Duration::from_millis(100);

/// The center of the relay, shared by the two pumps and the tasks.
///
/// Locks are taken in the order of the fields. `interceptor` and `carrying_out` are never held at the same time.
pub(super) struct Hub {
    /// Makes all decisions. A thread that holds it must not block.
    interceptor: Mutex<Interceptor>,
    /// Notified when an input was handled, because this can release messages that were held.
    handled: Condvar,
    /// Held while effects are carried out, so that they keep their order. Effects don't block.
    carrying_out: Mutex<()>,
    /// Effects that were decided and are not carried out yet, each with the span of its cause.
    outbox: Mutex<VecDeque<(Span, Effect)>>,
    host: RunningHost,
    to_client: Lane,
    to_agent: Lane,
    tasks: UnboundedSender<Job>,
    /// Limits the agent's requests to us in flight.
    requests: Arc<Semaphore>,
    /// Limits the agent's MCP notifications that wait for the server. They have a limit of their own, because some cancel requests.
    notifications: Arc<Semaphore>,
    runtime: Handle,
}

/// A task, and its permits if it is an MCP message or a request of the agent.
pub(super) type Job = (Task, Option<OwnedSemaphorePermit>);

impl Hub {
    /// Creates a hub that writes to `client` and `agent`. The receiver gets the tasks, which the caller has to run.
    pub(super) fn new(
        interceptor: Interceptor,
        host: RunningHost,
        client: Box<dyn Write + Send>,
        agent: Box<dyn Write + Send>,
    ) -> (Self, UnboundedReceiver<Job>) {
        let (tasks, receiver) = unbounded_channel();
        let hub = Self {
            interceptor: Mutex::new(interceptor),
            handled: Condvar::new(),
            carrying_out: Mutex::default(),
            outbox: Mutex::default(),
            host,
            to_client: Lane::new(Side::Client, client),
            to_agent: Lane::new(Side::Agent, agent),
            tasks,
            requests: Arc::new(Semaphore::new(MAX_REQUEST_UNITS)),
            notifications: Arc::new(Semaphore::new(MAX_REQUEST_UNITS)),
            runtime: Handle::current(),
        };
        (hub, receiver)
    }

    /// Returns the shutdown grace that suits this agent, if one is known. Returns `None` if the interceptor is busy for a long time,
    /// for example with a very long message.
    pub(super) fn shutdown_grace(&self) -> Option<Duration> {
        self.interceptor.try_lock_for(SHUTDOWN_LOCK_TIMEOUT)?.shutdown_grace()
    }

    /// Removes what must not stay on disk after this process.
    pub(super) fn clean_up(&self) {
        self.host.clean_up();
    }

    pub(super) fn lane_to(&self, side: Side) -> &Lane {
        match side {
            Side::Client => &self.to_client,
            Side::Agent => &self.to_agent,
        }
    }

    /// Passes the lines in the first `len` bytes of `storage` to the interceptor and queues the result for the other side.
    /// Returns true if anything was queued; then the caller has to drain the lane.
    ///
    /// If no line changes, the storage itself is queued and `storage` is left empty. This is the hot path: it must not allocate
    /// per line, log, or create spans.
    pub(super) fn batch(self: &Arc<Self>, from: Side, storage: &mut Vec<u8>, len: usize) -> bool {
        let (mut decided, mut is_queued) = self.round(from, storage, 0, len);
        while decided < len {
            // The lane keeps an error for the caller, so we can ignore it here.
            let _ = self.lane_to(from.other()).drain();
            let (end, queued) = self.round(from, storage, decided, len);
            is_queued |= queued;
            decided = end;
        }
        is_queued
    }

    /// Passes lines to the interceptor, from the line at `start` on, and queues the result for the other side. Stops after
    /// [`MAX_ROUND_BYTES`] of changed lines. Returns the start of the next line, and true if anything was queued.
    fn round(
        self: &Arc<Self>,
        from: Side,
        storage: &mut Vec<u8>,
        mut start: usize,
        len: usize,
    ) -> (usize, bool) {
        let lane = self.lane_to(from.other());
        let mut actions = Actions::default();
        let mut interceptor = self.interceptor.lock();
        // The start of the lines that are not changed and that we have not copied into `edited` yet.
        let mut run = start;
        let mut edited: Option<Vec<u8>> = None;
        // Index a slice, because the index operator of a vector is not inlined with the optimization for size.
        let bytes = &storage[..len];
        let first = start;
        let mut line_breaks = memchr::memchr_iter(b'\n', &bytes[first..]);
        while start < len {
            let end = line_breaks.next().map_or(len, |at| first + at + 1);
            let line = &bytes[start..end];
            let pass = match from {
                Side::Client => interceptor.from_client(line, &mut actions),
                Side::Agent => interceptor.from_agent(line, &mut actions),
            };
            start = end;
            // Nearly all lines end here. Matching by value lets the compiler leave out the destructor of the decision.
            let pass = match pass {
                Pass::Untouched if !has_lines(&actions, from) => continue,
                pass => pass,
            };
            let edited = edited.get_or_insert_default();
            let line_start = end - line.len();
            edited.extend_from_slice(&bytes[run..line_start]);
            append(edited, line, pass, &mut actions, from);
            run = end;
            if edited.len() > MAX_ROUND_BYTES {
                break;
            }
        }
        let chunk = match edited {
            Some(mut edited) => {
                edited.extend_from_slice(&bytes[run..start]);
                Chunk::from(edited)
            }
            None if first > 0 => Chunk::from(bytes[first..].to_vec()),
            None => Chunk { bytes: std::mem::take(storage), len },
        };
        let is_queued = chunk.len > 0;
        lane.push(chunk);
        self.carry_out(interceptor, actions, MayBlock::Yes);
        (start, is_queued)
    }

    /// Waits until the next message of the client may be read. A message that was held is queued for the agent by another thread,
    /// which doesn't wait for the agent. So this is where the client waits: without a limit if too many of its messages are queued,
    /// like for any other message, and for [`HELD_DELAY`] if too much is held.
    ///
    /// # Errors
    /// Returns an error if the agent no longer reads.
    pub(super) fn await_room(&self) -> io::Result<()> {
        if self.to_agent.queued_messages() > MAX_QUEUED_BYTES {
            self.to_agent.drain()?;
        }
        let is_full = |interceptor: &mut Interceptor| interceptor.held_bytes() > MAX_QUEUED_BYTES;
        self.handled.wait_while_for(&mut self.interceptor.lock(), is_full, HELD_DELAY);
        Ok(())
    }

    /// Passes an input to the interceptor and carries out its decisions.
    pub(super) fn handle(self: &Arc<Self>, input: Input) {
        let mut actions = Actions::default();
        let mut interceptor = self.interceptor.lock();
        interceptor.handle(input, &mut actions);
        self.handled.notify_all();
        self.carry_out(interceptor, actions, MayBlock::No);
    }

    /// Handles the end of the client's input. First blocks for up to [`PENDING_SETUP_TIMEOUT`] if messages of the client still
    /// wait for the skills of their session.
    pub(super) fn client_gone(self: &Arc<Self>) {
        let mut interceptor = self.interceptor.lock();
        self.handled.wait_while_for(
            &mut interceptor,
            |interceptor| interceptor.has_setups(),
            PENDING_SETUP_TIMEOUT,
        );
        drop(interceptor);
        self.handle(Input::ClientGone);
    }

    /// Sends a line of our own to a side.
    pub(super) fn send(self: &Arc<Self>, to: Side, line: Vec<u8>) {
        self.lane_to(to).insert(line);
        self.deliver(to, MayBlock::No);
    }

    /// Sends an error for each request that the agent didn't answer. Returns true if one of these requests was used
    /// to start the agent, such as `initialize`.
    pub(super) fn agent_gone(&self, why: &str) -> bool {
        let mut interceptor = self.interceptor.lock();
        let was_starting = interceptor.is_starting();
        for line in interceptor.agent_gone(why) {
            self.to_client.insert(line);
        }
        was_starting
    }

    /// Carries out the decisions of the interceptor. Lines are queued while it is still locked, so that the lanes keep the order
    /// of the decisions. Everything else is done after it was released.
    fn carry_out(
        self: &Arc<Self>,
        interceptor: MutexGuard<'_, Interceptor>,
        actions: Actions,
        may_block: MayBlock,
    ) {
        let Actions { to_client, to_agent, effects, tasks, after, .. } = actions;
        debug_assert!(after.is_empty(), "`batch` appends these to their line");
        let inserted = [(Side::Client, !to_client.is_empty()), (Side::Agent, !to_agent.is_empty())];
        for line in to_client {
            self.to_client.insert(line);
        }
        for line in to_agent {
            self.to_agent.insert(line);
        }
        let has_effects = !effects.is_empty();
        if has_effects {
            let span = Span::current();
            let mut outbox = self.outbox.lock();
            outbox.extend(effects.into_iter().map(|effect| (span.clone(), effect)));
        }
        drop(interceptor);
        // We need to do this before we start the tasks, because they can depend on the effects above.
        if has_effects || !tasks.is_empty() {
            self.empty_outbox();
        }
        for (side, _) in inserted.into_iter().filter(|(_, any)| *any) {
            self.deliver(side, may_block);
        }
        for task in tasks {
            let room = match &task {
                Task::Mcp { line, request: Some(id), .. } => Some((&self.requests, Some(id), line.len())),
                Task::Mcp { line, request: None, .. } => Some((&self.notifications, None, line.len())),
                Task::ReadFile { request, .. } => Some((&self.requests, Some(request), MAX_FILE_BYTES)),
                _ => None,
            };
            let permits = match room {
                Some((room, id, bytes)) if may_block == MayBlock::Yes => {
                    let permits = self.acquire_permits(room, bytes);
                    if permits.is_none() {
                        if let Some(id) = id {
                            self.refuse(id);
                        } else {
                            tracing::debug!("dropped a notification to the skills server: too many");
                        }
                        continue;
                    }
                    permits
                }
                _ => None,
            };
            // This fails if the relay is being shut down, so we can ignore the error.
            let _ = self.tasks.send((task, permits));
        }
    }

    /// Waits until there is room for an MCP message of the agent. Returns `None` if there is none in time. This blocks only the
    /// agent, because the caller is the thread that reads it.
    fn acquire_permits(&self, room: &Arc<Semaphore>, bytes: usize) -> Option<OwnedSemaphorePermit> {
        let units = u32::try_from(bytes.div_ceil(REQUEST_UNIT_BYTES)).unwrap_or(u32::MAX);
        loop {
            if let Ok(permits) = Arc::clone(room).try_acquire_many_owned(units) {
                return Some(permits);
            }
            // Requests are in flight until the agent reads their answers. If it reads nothing, it waits here.
            if self.to_agent.queued_answers() > MAX_QUEUED_BYTES {
                self.to_agent.drain().ok()?;
            }
            let permits = Arc::clone(room).acquire_many_owned(units);
            let waiting = async { tokio::time::timeout(MAX_REQUEST_WAIT, permits).await };
            match self.runtime.block_on(waiting) {
                Ok(permits) => return permits.ok(),
                Err(_) if self.to_agent.queued_answers() > MAX_QUEUED_BYTES => {}
                Err(_) => return None,
            }
        }
    }

    /// Answers a request of the agent with an error, because too many are in flight.
    fn refuse(self: &Arc<Self>, request: &Id) {
        self.handle(Input::McpAnswered(request.clone()));
        self.send(
            Side::Agent,
            build::error(request, INTERNAL_ERROR, "too many requests to the skills server"),
        );
    }

    /// Carries out all effects in the outbox, in their order.
    fn empty_outbox(&self) {
        let _carrying_out = self.carrying_out.lock();
        loop {
            let next = self.outbox.lock().pop_front();
            match next {
                Some((span, effect)) => span.in_scope(|| self.host.carry_out(effect)),
                None => return,
            }
        }
    }

    /// Drains a lane into which lines were inserted by another thread than its pump.
    ///
    /// This usually happens on another thread, because the caller may be the pump of the other direction, which must not wait
    /// for this side. The exception is a side that sends requests and doesn't read the answers: if more than
    /// [`MAX_QUEUED_BYTES`] of answers are queued for it, its own pump waits here. Messages of the other side don't count.
    fn deliver(self: &Arc<Self>, side: Side, may_block: MayBlock) {
        let lane = self.lane_to(side);
        if may_block == MayBlock::Yes && lane.queued_answers() > MAX_QUEUED_BYTES {
            // The lane reports an error to the supervisor, so we can ignore it here and below.
            let _ = lane.drain();
        } else if !lane.schedule() {
            let hub = Arc::clone(self);
            self.runtime.spawn_blocking(move || {
                let _ = hub.lane_to(side).drain();
            });
        }
    }
}

/// Specifies whether the caller may block. Pumps may block. The async runtime only uses a single thread, which should
/// never wait for a side to read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum MayBlock {
    Yes,
    No,
}
