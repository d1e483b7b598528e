//! A proxy that is killed at any instant, and what it had just started. Each process holds a pipe whose end shows that nobody
//! is left.

use std::{
    io::Read,
    sync::mpsc::channel,
    thread,
    time::{Duration, Instant},
};

use crate::{
    editor::{DEADLINE, Editor, KILLED, Proxy},
    fixtures::Skills,
    scripts::{bridge, kit, patient, request},
    stage::Stage,
};

crate::trials!(while_it_starts_its_agent, while_it_starts_scripts, by_what_it_starts);

/// As many as run at once.
const SCRIPTS: u64 = 4;

/// A proxy that is about to run scripts, its client, and the pipe that everybody holds.
struct Victim {
    stage: Stage,
    client: Editor,
    held: Box<dyn Read + Send>,
}

impl Victim {
    fn new(skills: &Skills) -> Self {
        let (proxy, held) = patient(skills).flag("--mcp", "stdio").witnessed();
        let mut stage = Stage::over_http(proxy);
        let client = bridge(&mut stage);
        Self { stage, client, held: Box::new(held) }
    }

    fn run(&mut self, script: &str, args: &[&str]) {
        let calls = (0..SCRIPTS).map(|id| format!("{}\n", request(id + 7, script, args, None)));
        self.client.write(calls.collect::<String>().as_bytes());
    }

    /// Waits until all that the proxy has started is gone.
    fn gone(self, round: u32, code: Option<i32>) {
        assert_eq!(self.stage.editor.ended().code(), code, "round {round}: it was killed");
        drop(self.client);
        let (sender, ended) = channel();
        let mut held = self.held;
        thread::spawn(move || sender.send(held.read_to_end(&mut Vec::new())));
        let end = ended.recv_timeout(DEADLINE);
        assert!(end.is_ok(), "round {round}: a process that the proxy has started is left");
    }
}

/// The agent takes no notice of its stdin. However early the proxy is killed, the agent must not be left: it holds stderr.
fn while_it_starts_its_agent() {
    let editors: Vec<_> = (0..40)
        .map(|number| {
            let mut editor = Proxy::new().agent("deaf and dumb");
            let delay = Instant::now() + Duration::from_micros(500) * number;
            while Instant::now() < delay {
                thread::yield_now();
            }
            editor.kill();
            editor
        })
        .collect();
    for editor in editors {
        let ended = editor.ended();
        // Those that lived long enough have said that they have no skills.
        let unexpected = ended.log.iter().filter(|line| !line.contains("no skills are selected")).count();
        assert_eq!((ended.code(), unexpected), (KILLED, 0), "{:#?}", ended.log);
    }
}

fn while_it_starts_scripts() {
    let skills = kit();
    let victims: Vec<_> = (0..24)
        .map(|round| {
            let mut victim = Victim::new(&skills);
            victim.run("slow", &[]);
            let instant = Instant::now() + Duration::from_micros(400) * round;
            while Instant::now() < instant {
                thread::yield_now();
            }
            victim.stage.editor.kill();
            (victim, round)
        })
        .collect();
    for (victim, round) in victims {
        victim.gone(round, KILLED);
    }
}

/// The first of them runs while the others are started.
fn by_what_it_starts() {
    let skills = kit();
    for round in 0..24 {
        let mut victim = Victim::new(&skills);
        let proxy = victim.stage.editor.id().to_string();
        victim.run("kill", &[&proxy]);
        // Wine's `taskkill` has another exit code for whom it ends.
        victim.gone(round, if crate::is_wine() { Some(0) } else { KILLED });
    }
}
