//! Tests of the one-shot API. This program is also the agent of some of them.

use std::{
    env,
    error::Error,
    fs,
    io::{self, BufRead, Write},
    path::Path,
    time::Duration,
};

use acp_skills::one_shot::{AttachError, NotParsed, OneShot, OneShotError, PermissionDecision, Piece, Trace};
use libtest_mimic::Trial;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use skills_core::Skill;

/// A timeout that no passing test reaches.
const DEADLINE: Duration = Duration::from_mins(1);

/// The argument that makes this program an agent. The next argument is the file for the methods that the agent receives.
pub(crate) const SILENT_AGENT: &str = "silent-agent";

/// The argument that makes this program an agent that asks for permission to remove a project. It answers with the outcome.
pub(crate) const ASKING_AGENT: &str = "asking-agent";

/// The tests of this file.
pub(crate) fn trials() -> Vec<Trial> {
    let trial = |name: &str, test: fn()| {
        Trial::test(format!("one_shot::{name}"), move || {
            test();
            Ok(())
        })
    };
    vec![
        trial("stored_and_virtual_skills", stored_and_virtual_skills),
        trial("tools_without_a_skill", tools_without_a_skill),
        trial("an_answer_is_streamed_in_pieces", an_answer_is_streamed_in_pieces),
        trial("an_answer_is_parsed_as_a_type", an_answer_is_parsed_as_a_type),
        trial("attaching_invalid_skills_fails", attaching_invalid_skills_fails),
        trial("an_agent_that_is_not_found", an_agent_that_is_not_found),
        trial("dropping_the_stream_cancels_the_turn", dropping_the_stream_cancels_the_turn),
        trial("permission_is_refused_without_a_handler", permission_is_refused_without_a_handler),
        trial("a_runtime_with_one_thread_for_blocking_work", a_runtime_with_one_thread_for_blocking_work),
    ]
}

/// Runs an agent that sends one word and then waits until the turn is cancelled.
pub(crate) fn silent_agent(log: &Path) -> io::Result<()> {
    let mut log = fs::File::create(log)?;
    for line in io::stdin().lock().lines() {
        let message: Value = serde_json::from_str(&line?)?;
        writeln!(log, "{}", message["method"].as_str().unwrap_or_default())?;
        let result = match message["method"].as_str() {
            Some("initialize") => json!({ "protocolVersion": 1 }),
            Some("session/new") => json!({ "sessionId": "s" }),
            Some("session/prompt") => {
                let update = json!({ "sessionUpdate": "agent_message_chunk", "content": { "type": "text", "text": "Well," } });
                let params = json!({ "sessionId": "s", "update": update });
                println(&json!({ "jsonrpc": "2.0", "method": "session/update", "params": params }))?;
                continue;
            }
            _ => continue,
        };
        println(&json!({ "jsonrpc": "2.0", "id": message["id"], "result": result }))?;
    }
    Ok(())
}

/// Runs an agent that asks for permission to remove a project.
pub(crate) fn asking_agent() -> io::Result<()> {
    let option = |id: &str, kind: &str| json!({ "optionId": id, "name": id, "kind": kind });
    let mut prompt = Value::Null;
    for line in io::stdin().lock().lines() {
        let message: Value = serde_json::from_str(&line?)?;
        let result = match message["method"].as_str() {
            Some("initialize") => json!({ "protocolVersion": 1 }),
            Some("session/new") => json!({ "sessionId": "s" }),
            Some("session/prompt") => {
                prompt = message["id"].clone();
                let call = json!({
                    "toolCallId": "t", "title": "rm -rf ~/project", "kind": "execute",
                    "rawInput": { "command": "rm -rf ~/project" },
                });
                let options = [
                    option("forever", "allow_always"),
                    option("yes", "allow_once"),
                    option("no", "reject_once"),
                ];
                let params = json!({ "sessionId": "s", "toolCall": call, "options": options });
                println(&json!({
                    "jsonrpc": "2.0", "id": "ask", "method": "session/request_permission", "params": params,
                }))?;
                continue;
            }
            _ if message["id"] == "ask" => {
                let text = message["result"]["outcome"].to_string();
                let update = json!({ "sessionUpdate": "agent_message_chunk", "content": { "type": "text", "text": text } });
                let params = json!({ "sessionId": "s", "update": update });
                println(&json!({ "jsonrpc": "2.0", "method": "session/update", "params": params }))?;
                println(&json!({ "jsonrpc": "2.0", "id": prompt, "result": { "stopReason": "end_turn" } }))?;
                continue;
            }
            _ => continue,
        };
        println(&json!({ "jsonrpc": "2.0", "id": message["id"], "result": result }))?;
    }
    Ok(())
}

fn println(message: &Value) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    writeln!(stdout, "{message}")?;
    stdout.flush()
}

/// Runs a test to its end, or fails.
fn run<T>(test: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async { tokio::time::timeout(DEADLINE, test).await.expect("the test hangs") })
}

fn greet() -> Skill {
    Skill::builder("greet", "Greets people.").body("# Greeting\nSay hello.").build().unwrap()
}

#[derive(Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
struct Weather {
    city: String,
    degrees: f64,
}

#[derive(Deserialize, JsonSchema)]
struct Place {
    city: String,
}

/// A program with a tool, and no skill.
fn with_weather() -> OneShot {
    OneShot::default().tool("weather", "Tells the weather in a city.", async |place: Place| {
        let city = place.city.lines().next().unwrap_or_default().to_owned();
        Ok(Weather { city, degrees: 21.5 })
    })
}

fn stored_and_virtual_skills() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("SKILL.md");
    fs::write(file, "---\nname: review\ndescription: Reviews code.\n---\n# Reviewing\nRead it.\n").unwrap();
    let ask = |prompt: &str| {
        let answer = OneShot::default().skill_dir(dir.path()).skill(greet()).prompt(prompt).run();
        run(answer).unwrap().text
    };
    assert_eq!(ask("Greet people for me"), "I activated the skill `greet`: Greeting.");
    assert_eq!(ask("Please review this code"), "I activated the skill `review`: Reviewing.");
}

fn tools_without_a_skill() {
    let answer = run(with_weather().prompt("Weather in which city?").run()).unwrap();
    let expected =
        r#"I called the tool `weather`. It answered: {"city":"Weather in which city?","degrees":21.5}"#;
    assert_eq!((answer.text.as_str(), answer.stop_reason.as_str()), (expected, "end_turn"));
    // With both a tool and a skill, the agent picks whichever is the better match.
    let answer = run(with_weather().skill(greet()).prompt("Greet people").run()).unwrap();
    assert_eq!(answer.text, "I activated the skill `greet`: Greeting.");
}

fn an_answer_is_streamed_in_pieces() {
    run(async {
        let mut turn = OneShot::default().skill(greet()).prompt("Greet me").stream();
        let mut text = String::new();
        let mut updates = Vec::new();
        while let Some(piece) = turn.next().await {
            match piece.unwrap() {
                Piece::Text(more) => text += &more,
                Piece::Update(update) => updates.push(update["sessionUpdate"].as_str().unwrap().to_owned()),
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(text, "I activated the skill `greet`: Greeting.");
        assert_eq!(updates, ["tool_call", "tool_call_update"]);
        assert_eq!(turn.answer().map(|answer| answer.stop_reason.as_str()), Some("end_turn"));
        assert!(turn.next().await.is_none());
        assert_eq!(turn.collect().await.unwrap().text, text);
    });
}

fn an_answer_is_parsed_as_a_type() {
    let weather: Weather = run(with_weather().prompt("Weather in which city?").parse()).unwrap();
    assert_eq!(weather, Weather { city: "Weather in which city?".to_owned(), degrees: 21.5 });
    let error = run(OneShot::default().skill(greet()).prompt("Greet me").parse::<Weather>()).unwrap_err();
    let OneShotError::NotParsed(NotParsed { text, problem, .. }) = error else { panic!("{error:?}") };
    assert_eq!(
        (text.as_str(), problem.as_str()),
        ("I activated the skill `greet`: Greeting.", "no JSON found")
    );
}

fn attaching_invalid_skills_fails() {
    let dir = tempfile::tempdir().unwrap();
    let none = dir.path().join("none");
    let fails = |one_shot: OneShot| match run(one_shot.prompt("x").run()).unwrap_err() {
        OneShotError::Attach(error) => error,
        error => panic!("{error:?}"),
    };
    let error = fails(OneShot::default().skill_dir(&none));
    assert!(error.to_string().starts_with("cannot attach skill from "), "{error}");
    assert!(matches!(error, AttachError::Directory { path, .. } if path == none));
    let error = fails(OneShot::default().skill(greet()).skill(greet()));
    assert_eq!(error.to_string(), "duplicate skill name `greet`");
    let error = fails(with_weather().tool("activate_skill", "x", async |(): ()| Ok(())));
    assert_eq!(
        (error.to_string().as_str(), error.source().unwrap().to_string().as_str()),
        ("cannot attach a tool", "tool name `activate_skill` is already used")
    );
}

fn an_agent_that_is_not_found() {
    run(async {
        let mut turn = OneShot::default().agent(["no-such-program-anywhere"]).prompt("x").stream();
        let error = turn.next().await.unwrap().unwrap_err();
        assert!(error.to_string().contains("no-such-program-anywhere"), "{error}");
        let OneShotError::Start(error) = error else { panic!("{error:?}") };
        assert_eq!(error.exit_code(), 127);
        assert!(turn.next().await.is_none());
    });
}

fn dropping_the_stream_cancels_the_turn() {
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("log");
    let agent = [env::current_exe().unwrap(), SILENT_AGENT.into(), log.clone()];
    run(async {
        let mut turn = OneShot::default().agent(agent).prompt("Go on for ever").stream();
        assert_eq!(turn.next().await.unwrap().unwrap(), Piece::Text("Well,".to_owned()));
        drop(turn);
        while !fs::read_to_string(&log).unwrap().contains("session/cancel") {
            tokio::task::yield_now().await;
        }
    });
    let methods = fs::read_to_string(&log).unwrap();
    assert_eq!(
        methods.lines().collect::<Vec<_>>(),
        ["initialize", "session/new", "session/prompt", "session/cancel"]
    );
}

fn permission_is_refused_without_a_handler() {
    let agent =
        || OneShot::default().agent([env::current_exe().unwrap(), ASKING_AGENT.into()]).prompt("Tidy up");
    let selected = |id: &str| json!({ "outcome": "selected", "optionId": id }).to_string();
    assert_eq!(run(agent().run()).unwrap().text, selected("no"));
    let choose = |id: &str| PermissionDecision::Choose(id.to_owned());
    for (decision, expected) in [
        (PermissionDecision::AllowOnce, "yes"),
        (PermissionDecision::Refuse, "no"),
        (choose("forever"), "forever"),
        (choose("nonsense"), "no"),
    ] {
        let (sender, traced) = std::sync::mpsc::channel();
        let answer = agent()
            .on_permission(move |request| {
                // The handler gets the whole tool call, and not just the title.
                assert_eq!(request.title.as_deref(), Some("rm -rf ~/project"));
                assert_eq!(request.kind.as_deref(), Some("execute"));
                assert_eq!(request.raw["toolCall"]["rawInput"]["command"], "rm -rf ~/project");
                assert_eq!(request.options.len(), 3);
                decision.clone()
            })
            .trace(move |trace| {
                if let Trace::Permission(request, chosen) = trace {
                    sender.send((request.title.clone(), chosen.map(|option| option.id.clone()))).unwrap();
                }
            });
        assert_eq!(run(answer.run()).unwrap().text, selected(expected));
        let all: Vec<_> = traced.iter().collect();
        assert_eq!(all, [(Some("rm -rf ~/project".to_owned()), Some(expected.to_owned()))]);
    }
}

/// The system may refuse all threads but the first of a runtime's pool. A conversation must not take that thread, because the
/// proxy then couldn't read the skills that the conversation waits for.
fn a_runtime_with_one_thread_for_blocking_work() {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    let runtime = builder.enable_all().max_blocking_threads(1).build().unwrap();
    let skill = Skill::builder("greet", "Greets people.").body("# Greeting\nSay hello.").build().unwrap();
    let turn = OneShot::new([skill].into_iter().collect()).prompt("Greet me").run();
    let answer = runtime.block_on(async { tokio::time::timeout(DEADLINE, turn).await });
    runtime.shutdown_background();
    assert!(answer.expect("the turn ends").unwrap().text.contains("greet"));
}
