//! Starts the watchdog and tells it about the process groups (Unix).
//!
//! This process may be killed just after it starts an agent, and before it tells the watchdog about it. To handle
//! this, we create the process group first: a *leader*, which is our program in a new process group, waits for stdin
//! to close, and the agent is started in the same group. If this process is killed at this point, the pipe to the
//! leader is closed, and the leader makes sure that the whole group is ended. The pipe can't be closed too early,
//! because the new child process also holds our end of the pipe until it calls `exec`.
//!
//! When the agent is running, we start the watchdog in the background. When it reports that it is ready, we send it the groups.
//! After that, the leader exits. Otherwise it would receive signals for the agent, and we would not know if the group is empty.
//!
//! We use the same approach for scripts and for the programs of tools, with a separate group for each. We only wait
//! for the exit status of the leader after the group ended. Until then, the id of the group can't be reused.

use std::{
    collections::HashMap,
    io::{self, PipeWriter, Read, Write},
    mem,
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
};

use rustix::process::{Pid, Signal, kill_process};

use super::{Processes, State, watchdog};

/// The helper processes that watch over the groups.
#[derive(Debug, Default)]
pub(super) struct Guard {
    /// The path of our own program, once it is known.
    program: Option<PathBuf>,
    leader: Helper,
    watchdog: Helper,
    /// The leaders of the groups of scripts, by group id.
    leaders: HashMap<u32, HelperProcess>,
}

/// The state of a helper process, which is our own program and reads commands from a pipe.
#[derive(Debug, Default)]
enum Helper {
    #[default]
    Absent,
    Starting,
    Running(HelperProcess),
    /// The helper failed to start, or exited. We don't try to start it again.
    Failed,
}

#[derive(Debug)]
struct HelperProcess {
    child: Child,
    /// The pipe to the helper's stdin, or `None` if it was closed.
    pipe: Option<PipeWriter>,
}

impl Guard {
    pub(super) fn added(&mut self, id: u32) {
        self.send(watchdog::ADD, id);
        if matches!(self.watchdog, Helper::Running(_)) {
            self.dismiss_leader(id);
        }
    }

    pub(super) fn removed(&mut self, id: u32) {
        self.send(watchdog::REMOVE, id);
    }

    /// Removes and returns the leader of a script's group. When the returned value is dropped, the leader exits and
    /// is waited for.
    pub(super) fn take_leader(&mut self, id: u32) -> Option<impl Drop + use<>> {
        self.leaders.remove(&id)
    }

    /// Dismisses the leader of a group, because the watchdog knows the group now.
    fn dismiss_leader(&mut self, id: u32) {
        if let Some(leader) = self.leaders.get_mut(&id) {
            leader.dismiss();
        }
    }

    fn send(&mut self, sign: char, id: u32) {
        if let Helper::Running(watchdog) = &mut self.watchdog
            && let Err(error) = watchdog.send(sign, id)
        {
            tracing::warn!("watchdog has ended; processes may keep running if the proxy is killed: {error}");
            self.watchdog = Helper::Failed;
        }
    }
}

impl HelperProcess {
    fn start(program: &Path, part: Option<&str>) -> io::Result<Self> {
        Self::spawn(program, part, Stdio::null())
    }

    /// Starts the watchdog and waits until it catches signals. Before that, a signal would end it, and then nothing would end the
    /// groups whose leaders were dismissed.
    fn start_watchdog(program: &Path) -> io::Result<Self> {
        let mut helper = Self::spawn(program, None, Stdio::piped())?;
        if let Some(mut stdout) = helper.child.stdout.take() {
            let ready = stdout.read_exact(&mut [0; watchdog::READY.len()]);
            ready.map_err(|_| io::Error::other("it ended before it was ready"))?;
        }
        Ok(helper)
    }

    fn spawn(program: &Path, part: Option<&str>, stdout: Stdio) -> io::Result<Self> {
        let (reader, pipe) = io::pipe()?;
        // Use a non-blocking pipe, so that we never block on a helper that is stopped.
        rustix::io::ioctl_fionbio(&pipe, true)?;
        let child = Command::new(program)
            .arg(watchdog::SUBCOMMAND)
            .args(part)
            .stdin(Stdio::from(reader))
            .stdout(stdout)
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()?;
        Ok(Self { child, pipe: Some(pipe) })
    }

    fn send(&mut self, sign: char, id: u32) -> io::Result<()> {
        // Since the line is short, the pipe takes either the whole line or none of it.
        match &mut self.pipe {
            Some(pipe) => pipe.write_all(format!("{sign}{id}\n").as_bytes()),
            None => Err(io::ErrorKind::BrokenPipe.into()),
        }
    }
}

impl HelperProcess {
    /// Tells a leader to exit without ending its group. When a watchdog is dismissed, it ends all groups that it
    /// knows of.
    fn dismiss(&mut self) {
        if let Some(mut pipe) = self.pipe.take() {
            // This fails if the leader was killed together with the agent, which is fine. The line has no effect if the
            // helper process is a watchdog.
            let _ = pipe.write_all(watchdog::DISMISSAL.as_bytes());
        }
    }
}

impl Drop for HelperProcess {
    fn drop(&mut self) {
        self.dismiss();
        // If the helper was stopped by a signal, it would never exit. The id is still valid, because we have not waited for it.
        if let Some(id) = Pid::from_raw(self.child.id().cast_signed()) {
            let _ = kill_process(id, Signal::CONT);
        }
        let _ = self.child.wait();
    }
}

impl Processes {
    /// Ensures that all processes are ended if this process is killed. `program` is the path of our own program,
    /// which also runs as the watchdog. The watchdog starts with the first process.
    pub fn prepare(&self, program: &Path) {
        self.0.state.lock().guard.program.get_or_insert_with(|| program.to_owned());
    }

    /// Does the same as [`prepare`](Self::prepare), and also creates the group of the agent in the background. The
    /// earlier this is called, the less the start of the agent has to wait for it.
    pub fn prepare_agent(&self, program: &Path) {
        self.prepare(program);
        let mut state = self.0.state.lock();
        if !matches!(state.guard.leader, Helper::Absent) {
            return;
        }
        state.guard.leader = Helper::Starting;
        drop(state);
        let processes = self.clone();
        let program = program.to_owned();
        let work = move || {
            let leader = HelperProcess::start(&program, Some(watchdog::LEADER));
            processes.leader_started(leader);
        };
        if let Err(error) = thread::Builder::new().name("leader".to_owned()).spawn(work) {
            self.leader_started(Err(error));
        }
    }

    fn leader_started(&self, leader: io::Result<HelperProcess>) {
        self.0.state.lock().guard.leader = match leader {
            Ok(leader) => Helper::Running(leader),
            Err(error) => {
                tracing::warn!("cannot start leader of the agent process group: {error}");
                Helper::Failed
            }
        };
        self.0.leader_ready.notify_all();
    }

    /// Returns the group to start the agent in, or `None` if the agent should create a new group. Waits for the
    /// leader to start.
    pub fn agent_group(&self) -> Option<u32> {
        let mut state = self.0.state.lock();
        while matches!(state.guard.leader, Helper::Starting) {
            self.0.leader_ready.wait(&mut state);
        }
        match &state.guard.leader {
            Helper::Running(leader) => Some(leader.child.id()),
            _ => None,
        }
    }

    /// Registers an agent with the prepared group, if there is one, and with the process id. The process id is used
    /// as a group too, because the agent may create a group.
    pub fn agent_started(&self, group: Option<u32>, id: Option<u32>) {
        if let (Helper::Running(leader), Some(id)) = (&mut self.0.state.lock().guard.leader, id) {
            // Until the watchdog is running, the leader must end this group as well. This fails if the leader was
            // ended together with the agent, which is fine.
            let _ = leader.send(watchdog::ADD, id);
        }
        group.into_iter().chain(id).for_each(|id| self.add(id));
        self.ensure_watchdog();
    }

    /// Removes an agent after the agent and all of its children have ended. From now on, the ids can be reused.
    pub fn agent_ended(&self, group: Option<u32>, id: Option<u32>) {
        group.into_iter().chain(id).for_each(|id| self.remove(id));
        // If we could not start the watchdog, the leader is still running at this point.
        let leader = mem::take(&mut self.0.state.lock().guard.leader);
        drop(leader);
    }

    /// Ends all remaining groups, and waits for the helper processes to exit.
    pub fn finish(&self) {
        let mut state = self.0.state.lock();
        let leader = mem::take(&mut state.guard.leader);
        let watchdog = mem::take(&mut state.guard.watchdog);
        let mut leaders = mem::take(&mut state.guard.leaders);
        drop(state);
        // If we close the pipe of a leader that we haven't dismissed, the leader will end its group.
        for leader in leaders.values_mut() {
            leader.pipe = None;
        }
        drop(leader);
        drop(watchdog);
        drop(leaders);
    }

    /// Creates a group with a leader for a script. Returns `None` if the script should create a new group.
    pub(super) fn new_group(&self) -> Option<u32> {
        self.ensure_watchdog();
        let program = self.0.state.lock().guard.program.clone()?;
        match HelperProcess::start(&program, Some(watchdog::LEADER)) {
            Ok(leader) => {
                let id = leader.child.id();
                self.0.state.lock().guard.leaders.insert(id, leader);
                Some(id)
            }
            Err(error) => {
                tracing::warn!("cannot start leader of a script process group: {error}");
                None
            }
        }
    }

    /// Starts the watchdog in the background, unless it was started already.
    fn ensure_watchdog(&self) {
        let mut state = self.0.state.lock();
        let Some(program) = state.guard.program.clone() else { return };
        if !matches!(state.guard.watchdog, Helper::Absent) {
            return;
        }
        state.guard.watchdog = Helper::Starting;
        drop(state);
        let processes = self.clone();
        let work = move || processes.watchdog_started(HelperProcess::start_watchdog(&program));
        if let Err(error) = thread::Builder::new().name("watchdog".to_owned()).spawn(work) {
            self.watchdog_started(Err(error));
        }
    }

    fn watchdog_started(&self, watchdog: io::Result<HelperProcess>) {
        let mut state = self.0.state.lock();
        let mut watchdog = match watchdog {
            Ok(watchdog) => watchdog,
            Err(error) => {
                tracing::warn!(
                    "cannot start watchdog; processes may keep running if the proxy is killed: {error}"
                );
                state.guard.watchdog = Helper::Failed;
                return;
            }
        };
        let State { groups, guard } = &mut *state;
        for &id in groups.iter() {
            // Ignore the error here. The next write will fail as well, and then log a warning.
            let _ = watchdog.send(watchdog::ADD, id);
            guard.dismiss_leader(id);
        }
        guard.watchdog = Helper::Running(watchdog);
        let leader = mem::take(&mut guard.leader);
        drop(state);
        // Only drop the leader after the watchdog knows the group, to make sure that the group is always watched.
        drop(leader);
    }
}

#[cfg(test)]
mod tests {
    use std::{
        thread::yield_now,
        time::{Duration, Instant},
    };

    use super::*;

    /// A watchdog that a signal ends before it catches signals must not replace the leaders.
    #[test]
    fn leaders_stay_until_the_watchdog_is_ready() {
        let processes = Processes::default();
        processes.prepare(Path::new("false"));
        let group = processes.new_group().unwrap();
        processes.add(group);
        let deadline = Instant::now() + Duration::from_secs(50);
        while matches!(processes.0.state.lock().guard.watchdog, Helper::Starting) {
            assert!(Instant::now() < deadline, "the watchdog has not ended");
            yield_now();
        }
        let state = processes.0.state.lock();
        assert!(matches!(state.guard.watchdog, Helper::Failed), "{:?}", state.guard.watchdog);
        assert!(state.guard.leaders[&group].pipe.is_some(), "the leader was dismissed");
    }
}
