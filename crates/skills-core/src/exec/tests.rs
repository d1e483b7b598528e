//! Runs real programs. Every Unix has `sh`, `cat` and `sleep`.

use std::{fs, sync::Mutex};

use serde_json::{Value, json};
use tokio::sync::oneshot;

use super::*;
use crate::tool::{CallContext, ToolError, ToolHandler};

fn sh(script: &str) -> CommandTool {
    CommandTool::new("sh").arg("-c").arg(script)
}

/// Returns the name of an inherited variable that programs don't need.
pub(super) fn some_variable() -> String {
    let mut names = std::env::vars().map(|(name, _)| name);
    let plain = |name: &String| name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    // `sh` sets these variables itself.
    let shell = ["PWD", "OLDPWD", "SHLVL", "_", "IFS", "PS1", "PS2", "PS4", "PPID", "OPTIND"];
    names
        .find(|name| {
            plain(name)
                && !process::ESSENTIAL_VARIABLES.contains(&name.as_str())
                && !shell.contains(&name.as_str())
        })
        .expect("a variable of our own")
}

async fn call(tool: &CommandTool, input: Option<Value>) -> Result<Value, ToolError> {
    tool.call(input, CallContext::default()).await
}

#[tokio::test]
async fn input_is_json_and_output_becomes_the_result() {
    for (script, input, expected) in [
        ("cat", Some(json!({"a": [1, null]})), Ok(json!({"a": [1, null]}))),
        ("cat", Some(Value::Null), Ok(Value::Null)),
        ("cat", None, Ok(json!(""))),
        ("echo two words", None, Ok(json!("two words"))),
        ("echo '\"quoted\"'", None, Ok(json!("quoted"))),
        ("printf 'a\\n\\n'", None, Ok(json!("a\n"))),
        ("echo out; echo err >&2", None, Ok(json!("out"))),
        ("echo out; echo err >&2; exit 3", None, Err("program `sh` failed with exit code 3:\nerr")),
        ("echo out; exit 3", None, Err("program `sh` failed with exit code 3:\nout")),
        ("exit 3", None, Err("program `sh` failed with exit code 3")),
        ("kill -9 $$", None, Err("program `sh` was killed by signal 9")),
    ] {
        let actual = call(&sh(script), input).await.map_err(|error| error.to_string());
        assert_eq!(actual, expected.map_err(str::to_owned), "{script}");
    }
}

#[tokio::test]
async fn arguments_are_not_expanded_by_a_shell() {
    let tool = CommandTool::new("printf").args(["%s|", "a b", "$HOME", "; exit 1", "*"]);
    assert_eq!(call(&tool, None).await.unwrap(), json!("a b|$HOME|; exit 1|*|"));
}

#[tokio::test]
async fn a_program_gets_its_directory_and_environment() {
    let dir = tempfile::tempdir().unwrap();
    let real = dir.path().canonicalize().unwrap();
    let context = || CallContext::in_directory(&real);
    let here = sh("pwd -P").call(None, context()).await.unwrap();
    assert_eq!(here, json!(real.to_str().unwrap()));
    assert_eq!(sh("pwd -P").cwd("/").call(None, context()).await.unwrap(), json!("/"));

    let ours = some_variable();
    let mut tool = sh(&format!("echo ${{{ours}+ours}} $MINE ${{PATH:+path}}")).env("MINE", "mine");
    assert_eq!(call(&tool, None).await.unwrap(), json!("ours mine path"));
    tool.environment = Environment::Clean;
    assert_eq!(call(&tool, None).await.unwrap(), json!("mine path"));
}

#[tokio::test]
async fn a_missing_program_is_reported() {
    let tool = CommandTool::new("no-such-program-anywhere");
    assert_eq!(tool.missing().as_deref(), Some("program `no-such-program-anywhere` not found"));
    let error = call(&tool, None).await.unwrap_err().to_string();
    assert_eq!(error, "program `no-such-program-anywhere` not found");
    assert_eq!(sh("").missing(), None);
    let error = call(&sh("true").cwd("/no/such/directory"), None).await.unwrap_err().to_string();
    assert!(error.starts_with("failed to start program `sh`: "), "{error}");
}

#[tokio::test]
async fn a_program_may_leave_its_input_unread() {
    let big = json!("x".repeat(1 << 20));
    assert_eq!(call(&sh("exec <&-; echo fine"), Some(big)).await.unwrap(), json!("fine"));
}

#[tokio::test]
async fn endless_output_is_drained_until_the_timeout() {
    let mut tool = sh("trap 'exit 0' TERM; while :; do echo 日本日本日本日本; done");
    tool.limits = Limits { timeout: Duration::from_secs(1), max_output_bytes: 1000 };
    let error = call(&tool, None).await.unwrap_err().to_string();
    assert!(error.starts_with("program `sh` timed out after 1 s:\n日"), "{error}");
    assert!(error.ends_with(TRUNCATED), "{error}");
    assert!(error.len() < 1200, "{}", error.len());
}

#[tokio::test]
async fn large_output_on_both_streams_does_not_block() {
    let tool = sh("i=0; while [ $i -lt 20000 ]; do echo 0123456789; echo 0123456789 >&2; i=$((i+1)); done");
    let text = call(&tool, None).await.unwrap();
    assert!(text.as_str().unwrap().ends_with(TRUNCATED));
    assert!(text.as_str().unwrap().len() <= DEFAULT_MAX_OUTPUT_BYTES + TRUNCATED.len() + 1);
}

#[tokio::test]
async fn a_program_that_ignores_sigterm_is_killed() {
    let mut tool = sh("trap '' TERM; echo ready; while :; do sleep 0.05; done");
    tool.limits.timeout = Duration::from_secs(1);
    let error = call(&tool, None).await.unwrap_err().to_string();
    assert!(error.ends_with("ready"), "{error}");
}

#[tokio::test]
async fn a_program_can_write_output_during_the_grace_period() {
    let mut tool = sh("trap 'echo bye >&2; exit 0' TERM; while :; do sleep 0.02; done");
    tool.limits.timeout = Duration::from_secs(1);
    let error = call(&tool, None).await.unwrap_err().to_string();
    assert!(error.contains("timed out") && error.contains("bye"), "{error}");
}

/// A FIFO that a program and its descendants hold open. A read from it ends when all of them have ended.
struct Leftover {
    dir: tempfile::TempDir,
}

impl Leftover {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        assert!(
            std::process::Command::new("mkfifo").arg(dir.path().join("fifo")).status().unwrap().success()
        );
        Self { dir }
    }

    /// Returns a tool that runs `script` with the path of the FIFO in `$FIFO`. The script opens it for writing.
    fn tool(&self, script: &str) -> CommandTool {
        sh(script).env("FIFO", self.dir.path().join("fifo"))
    }

    /// Returns a receiver that resolves when no process has the FIFO open for writing any more.
    fn gone(&self) -> oneshot::Receiver<()> {
        let fifo = self.dir.path().join("fifo");
        let (sender, receiver) = oneshot::channel();
        // Use a thread, because the runtime would wait for a blocking task if the test fails.
        std::thread::spawn(move || {
            fs::read(fifo).unwrap();
            let _ = sender.send(());
        });
        receiver
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn children_that_outlive_their_parent_are_killed() {
    let leftover = Leftover::new();
    let gone = leftover.gone();
    let tool = leftover.tool(
        "(exec 3>\"$FIFO\"; : >\"$FIFO.open\"; sleep 600) & (sleep 600) &
         while [ ! -e \"$FIFO.open\" ]; do sleep 0.01; done; echo parent is done",
    );
    // The second child holds our pipe open, so the call only returns if the whole group is killed.
    let answer = timeout(Duration::from_secs(20), call(&tool, None)).await.unwrap();
    assert_eq!(answer.unwrap(), json!("parent is done"));
    timeout(Duration::from_secs(20), gone).await.expect("the child should be killed").unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dropping_the_call_kills_the_group() {
    let leftover = Leftover::new();
    let gone = leftover.gone();
    let started = leftover.dir.path().join("started");
    let tool = leftover
        .tool(
            "exec 3>\"$FIFO\"; sleep 600 & echo x >\"$STARTED\"; mv \"$STARTED\" \"$STARTED.ok\"; sleep 600",
        )
        .env("STARTED", &started);
    let running = tokio::spawn(async move { call(&tool, None).await });
    let ready = started.with_extension("ok");
    timeout(Duration::from_secs(20), async {
        while !ready.exists() {
            tokio::task::yield_now().await;
        }
    })
    .await
    .expect("the program should start");
    running.abort();
    assert!(running.await.unwrap_err().is_cancelled());
    timeout(Duration::from_secs(20), gone).await.expect("the group should be killed").unwrap();
}

/// An observer that records all calls.
#[derive(Debug, Default)]
struct Log(Mutex<Vec<(&'static str, u32)>>);

impl Log {
    fn entries(&self) -> Vec<(&'static str, u32)> {
        self.0.lock().unwrap().clone()
    }
}

impl ProcessObserver for Log {
    fn started(&self, _group: Option<u32>, id: u32) {
        self.0.lock().unwrap().push(("started", id));
    }

    fn ended(&self, _group: Option<u32>, id: Option<u32>) {
        if let Some(id) = id {
            self.0.lock().unwrap().push(("ended", id));
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_observer_is_told_of_each_group() {
    let observed = |mut tool: CommandTool| {
        let log = Arc::new(Log::default());
        tool.executor = tool.executor.observed_by(log.clone());
        (tool, log)
    };
    // The observer should get the ID of the process, which is also the ID of its group.
    let (tool, log) = observed(sh("ps -o pid= -o pgid= -p $$"));
    let answer = call(&tool, None).await.unwrap();
    let numbers: Vec<u32> =
        answer.as_str().unwrap().split_whitespace().map(|number| number.parse().unwrap()).collect();
    assert_eq!(log.entries(), [("started", numbers[0]), ("ended", numbers[0])]);
    assert_eq!(numbers[0], numbers[1]);

    let (tool, log) = observed(sh("true").cwd("/no/such/directory"));
    call(&tool, None).await.unwrap_err();
    assert_eq!(log.entries(), []);

    let (tool, log) = observed(sh("sleep 600"));
    let running = tokio::spawn(async move { call(&tool, None).await });
    timeout(Duration::from_secs(20), async {
        while log.entries().is_empty() {
            tokio::task::yield_now().await;
        }
    })
    .await
    .expect("the observer should be told when the program starts");
    running.abort();
    assert!(running.await.unwrap_err().is_cancelled());
    let id = log.entries()[0].1;
    assert_eq!(log.entries(), [("started", id), ("ended", id)]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_concurrent_calls_never_run_more_than_four_programs() {
    let dir = tempfile::tempdir().unwrap();
    let mut tool =
        sh("mkdir \"$D/$$\" && set -- \"$D\"/*/ && cat && rmdir \"$D/$$\" && echo $# >>\"$D/seen\"")
            .env("D", dir.path());
    tool.executor = Executor::new(4);
    let calls = (0..1000).map(|number| {
        let tool = tool.clone();
        tokio::spawn(async move { (number, call(&tool, Some(json!(number))).await) })
    });
    for finished in futures::future::join_all(calls).await {
        let (number, answer) = finished.unwrap();
        assert_eq!(answer.unwrap(), json!(number));
    }
    let seen = fs::read_to_string(dir.path().join("seen")).unwrap();
    let most = seen.lines().map(|line| line.parse::<usize>().unwrap()).max().unwrap();
    assert_eq!(seen.lines().count(), 1000);
    assert!((2..=4).contains(&most), "{most} programs ran at the same time");
}
