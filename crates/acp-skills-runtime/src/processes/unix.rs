//! How the watchdog is started and told which groups run.
//!
//! Telling takes a moment, and an agent that was started just before this process is killed would be known to nobody. So
//! its group exists before it does: a *leader*, our own program in a group of its own, waits at a pipe, and the agent is
//! started into the leader's group. If this process is killed in between, the pipe ends. It ends only when the agent runs
//! or will never run, because a child holds our end of it until it executes its program; then the leader has the group
//! ended, whoever is in it.
//!
//! Once the agent runs, the watchdog is started, in the background, and told of the groups; then the leader has done its
//! work. A leader that stayed would get the signals that are meant for the agent, and nobody could tell whether the group is
//! empty.
//!
//! Scripts, and the programs behind tools, get groups in the same way, one for each. Their leaders are not waited for before
//! their groups have ended: until then, nobody else can have their numbers.

use std::{
    collections::HashMap,
    io::{self, PipeWriter, Write},
    mem,
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
};

use super::{Processes, State, watchdog};

/// Who watches.
#[derive(Debug, Default)]
pub(super) struct Guard {
    /// Our own program, once it is known.
    program: Option<PathBuf>,
    leader: Helper,
    watchdog: Helper,
    /// The leaders of scripts, by their groups.
    leaders: HashMap<u32, HelperProcess>,
}

/// A process of our own program that reads a pipe.
#[derive(Debug, Default)]
enum Helper {
    #[default]
    Absent,
    Starting,
    Running(HelperProcess),
    /// It cannot be started, or is gone; it is not tried again.
    Failed,
}

#[derive(Debug)]
struct HelperProcess {
    child: Child,
    /// `None` when it was closed.
    pipe: Option<PipeWriter>,
}

impl Guard {
    pub(super) fn added(&mut self, id: u32) {
        self.tell(watchdog::ADD, id);
        if matches!(self.watchdog, Helper::Running(_)) {
            self.dismiss_leader(id);
        }
    }

    pub(super) fn removed(&mut self, id: u32) {
        self.tell(watchdog::REMOVE, id);
    }

    /// The leader of a script's group. To drop it takes it out of the group, and waits for that.
    pub(super) fn take_leader(&mut self, id: u32) -> Option<impl Drop + use<>> {
        self.leaders.remove(&id)
    }

    /// The watchdog knows the group now.
    fn dismiss_leader(&mut self, id: u32) {
        if let Some(leader) = self.leaders.get_mut(&id) {
            leader.dismiss();
        }
    }

    fn tell(&mut self, sign: char, id: u32) {
        if let Helper::Running(watchdog) = &mut self.watchdog
            && let Err(error) = watchdog.tell(sign, id)
        {
            tracing::warn!("the watchdog over our processes is gone: {error}");
            self.watchdog = Helper::Failed;
        }
    }
}

impl HelperProcess {
    fn start(program: &Path, part: Option<&str>) -> io::Result<Self> {
        let (reader, pipe) = io::pipe()?;
        // Nobody may wait for a helper that is stopped.
        rustix::io::ioctl_fionbio(&pipe, true)?;
        let child = Command::new(program)
            .arg(watchdog::SUBCOMMAND)
            .args(part)
            .stdin(Stdio::from(reader))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()?;
        Ok(Self { child, pipe: Some(pipe) })
    }

    fn tell(&mut self, sign: char, id: u32) -> io::Result<()> {
        // Short enough to be written whole or not at all.
        match &mut self.pipe {
            Some(pipe) => pipe.write_all(format!("{sign}{id}\n").as_bytes()),
            None => Err(io::ErrorKind::BrokenPipe.into()),
        }
    }
}

impl HelperProcess {
    /// The leader leaves the group to whoever is in it; the watchdog ends what is left.
    fn dismiss(&mut self) {
        if let Some(mut pipe) = self.pipe.take() {
            // The leader may have been ended with the agent; to the watchdog this says nothing.
            drop(pipe.write_all(watchdog::DISMISSAL.as_bytes()));
        }
    }
}

impl Drop for HelperProcess {
    fn drop(&mut self) {
        self.dismiss();
        drop(self.child.wait());
    }
}

impl Processes {
    /// Has all processes ended should this one be killed; `program` is our own, which is also the watchdog. It is started
    /// with the first of them.
    pub fn prepare(&self, program: &Path) {
        self.0.state.lock().guard.program.get_or_insert_with(|| program.to_owned());
    }

    /// The same, and makes the group for an agent, in the background: the sooner this is called, the less an agent has to
    /// wait for it.
    pub fn prepare_agent(&self, program: &Path) {
        self.prepare(program);
        let mut state = self.0.state.lock();
        if !matches!(state.guard.leader, Helper::Absent) {
            return;
        }
        state.guard.leader = Helper::Starting;
        drop(state);
        let (processes, program) = (self.clone(), program.to_owned());
        let work = move || {
            let leader = HelperProcess::start(&program, Some(watchdog::LEADER));
            processes.prepared(leader);
        };
        if let Err(error) = thread::Builder::new().name("leader".to_owned()).spawn(work) {
            self.prepared(Err(error));
        }
    }

    fn prepared(&self, leader: io::Result<HelperProcess>) {
        self.0.state.lock().guard.leader = match leader {
            Ok(leader) => Helper::Running(leader),
            Err(error) => {
                tracing::warn!("no watchdog over the start of the agent: {error}");
                Helper::Failed
            }
        };
        self.0.prepared.notify_all();
    }

    /// The group that an agent is to be started in; `None` when it has to lead one itself.
    pub(crate) fn agent_group(&self) -> Option<u32> {
        let mut state = self.0.state.lock();
        while matches!(state.guard.leader, Helper::Starting) {
            self.0.prepared.wait(&mut state);
        }
        match &state.guard.leader {
            Helper::Running(leader) => Some(leader.child.id()),
            _ => None,
        }
    }

    /// An agent runs, in the group that was made for it, if any, and perhaps in one that it made itself.
    pub(crate) fn agent_started(&self, group: Option<u32>, id: Option<u32>) {
        if let (Helper::Running(leader), Some(id)) = (&mut self.0.state.lock().guard.leader, id) {
            // Until the watchdog runs. The leader may have been ended with the agent.
            drop(leader.tell(watchdog::ADD, id));
        }
        group.into_iter().chain(id).for_each(|id| self.add(id));
        self.need_watchdog();
    }

    /// An agent has ended, with all its children. From now on its numbers may be those of others.
    pub(crate) fn agent_ended(&self, group: Option<u32>, id: Option<u32>) {
        group.into_iter().chain(id).for_each(|id| self.remove(id));
        // It is still there when the watchdog could not be started.
        let leader = mem::take(&mut self.0.state.lock().guard.leader);
        drop(leader);
    }

    /// Ends what is left, and who watches. Blocks for as long as that takes.
    pub fn finish(&self) {
        let mut state = self.0.state.lock();
        let (leader, watchdog) = (mem::take(&mut state.guard.leader), mem::take(&mut state.guard.watchdog));
        let mut leaders = mem::take(&mut state.guard.leaders);
        drop(state);
        // One that is not dismissed ends its group when its pipe ends.
        for leader in leaders.values_mut() {
            drop(leader.pipe.take());
        }
        drop((leader, watchdog, leaders));
    }

    /// A group for a script, with a leader; `None` when the script has to lead one itself.
    pub(super) fn new_group(&self) -> Option<u32> {
        self.need_watchdog();
        let program = self.0.state.lock().guard.program.clone()?;
        match HelperProcess::start(&program, Some(watchdog::LEADER)) {
            Ok(leader) => {
                let id = leader.child.id();
                self.0.state.lock().guard.leaders.insert(id, leader);
                Some(id)
            }
            Err(error) => {
                tracing::warn!("no watchdog over the start of a script: {error}");
                None
            }
        }
    }

    /// Starts the watchdog, in the background, unless there is one.
    fn need_watchdog(&self) {
        let mut state = self.0.state.lock();
        let Some(program) = state.guard.program.clone() else { return };
        if !matches!(state.guard.watchdog, Helper::Absent) {
            return;
        }
        state.guard.watchdog = Helper::Starting;
        drop(state);
        let processes = self.clone();
        let work = move || processes.watched(HelperProcess::start(&program, None));
        if let Err(error) = thread::Builder::new().name("watchdog".to_owned()).spawn(work) {
            self.watched(Err(error));
        }
    }

    fn watched(&self, watchdog: io::Result<HelperProcess>) {
        let mut state = self.0.state.lock();
        let mut watchdog = match watchdog {
            Ok(watchdog) => watchdog,
            Err(error) => {
                tracing::warn!("no watchdog over our processes: {error}");
                state.guard.watchdog = Helper::Failed;
                return;
            }
        };
        let State { groups, guard } = &mut *state;
        for &id in groups.iter() {
            // If it is gone already, the next to be told shows it.
            drop(watchdog.tell(watchdog::ADD, id));
            guard.dismiss_leader(id);
        }
        guard.watchdog = Helper::Running(watchdog);
        let leader = mem::take(&mut guard.leader);
        drop(state);
        // Not earlier, so that somebody watches all the time.
        drop(leader);
    }
}
