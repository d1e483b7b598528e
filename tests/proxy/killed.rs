//! A proxy that is killed at any instant, and what it had just started. Each process holds a pipe whose end shows that nobody
//! is left.

use std::{
    io::{PipeReader, Read},
    sync::mpsc::channel,
    thread,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process};

use crate::{
    editor::{DEADLINE, Editor},
    scripts::{bridge, kit, patient, request},
    stage::Stage,
};

crate::trials!(while_it_starts_scripts, by_what_it_starts);

/// As many as run at once.
const SCRIPTS: u64 = 4;

/// A proxy that is about to run scripts, its client, and the pipe that everybody holds.
struct Victim {
    stage: Stage,
    client: Editor,
    held: PipeReader,
}

impl Victim {
    fn new(skills: &crate::fixtures::Skills) -> Self {
        let (proxy, held) = patient(skills).flag("--mcp", "stdio").witnessed();
        let mut stage = Stage::over_http(proxy);
        let client = bridge(&mut stage);
        Self { stage, client, held }
    }

    fn run(&mut self, script: &str) {
        let calls = (0..SCRIPTS).map(|id| format!("{}\n", request(id + 7, script, &[], None)));
        self.client.write(calls.collect::<String>().as_bytes());
    }

    fn kill(&self) {
        let proxy = Pid::from_raw(self.stage.editor.id().cast_signed()).expect("an id");
        kill_process(proxy, Signal::KILL).expect("it runs");
    }

    /// Waits until all that the proxy has started is gone.
    fn gone(self, round: u32) {
        assert_eq!(self.stage.editor.ended().code(), None, "round {round}: it was killed");
        drop(self.client);
        let (sender, ended) = channel();
        let mut held = self.held;
        thread::spawn(move || sender.send(held.read_to_end(&mut Vec::new())));
        let end = ended.recv_timeout(DEADLINE);
        assert!(end.is_ok(), "round {round}: a process that the proxy has started is left");
    }
}

fn while_it_starts_scripts() {
    let skills = kit();
    let victims: Vec<_> = (0..24)
        .map(|round| {
            let mut victim = Victim::new(&skills);
            victim.run("slow.sh");
            let instant = Instant::now() + Duration::from_micros(400) * round;
            while Instant::now() < instant {
                thread::yield_now();
            }
            victim.kill();
            (victim, round)
        })
        .collect();
    for (victim, round) in victims {
        victim.gone(round);
    }
}

/// The first of them runs while the others are started.
fn by_what_it_starts() {
    let skills = kit();
    for round in 0..24 {
        let mut victim = Victim::new(&skills);
        victim.run("kill.sh");
        victim.gone(round);
    }
}
