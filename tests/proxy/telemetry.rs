//! Telemetry: spans, logs and metrics as a collector decodes them, and the absence of private contents.

use opentelemetry_proto::tonic::trace::v1::{Span, span::SpanKind, status::StatusCode};
use serde_json::json;

use crate::{
    collector::{Collector, Mode, text},
    editor::Proxy,
    events::{SECRET, all_kinds, connected, record_every_kind},
    fixture::{Fixture, MCP_2025, cwd, entry, outcome},
    skills::Skills,
};
#[cfg(target_os = "linux")]
use crate::{faults::skills_and_agent, machine::Machine};

crate::trials!(
    spans_of_a_session,
    traces_of_the_client_and_the_agent_are_continued,
    an_unsampled_trace_has_no_spans,
    logs_and_metrics,
    nothing_private_is_sent,
    records_are_sent_during_the_session,
    off_by_default,
    settings_of_the_environment,
    #[cfg(target_os = "linux")]
    a_policy_that_requires_telemetry,
    clients_without_acp,
);

const AGENT: &str = "claude-agent-acp";
const TRACE: &str = "00-80e1afed08e019fc1110464cfa66635c-7a085853722dc6d2-01";

fn proxy(skills: &Skills) -> Proxy {
    Proxy::new().flag("--config", skills.config())
}

/// Returns the numbers of a text in hexadecimal.
fn bytes(hex: &str) -> Vec<u8> {
    let digits = hex.as_bytes().chunks(2).map(|pair| std::str::from_utf8(pair).expect("digits"));
    digits.map(|pair| u8::from_str_radix(pair, 16).expect("digits")).collect()
}

fn is_within(span: &Span, parent: &Span) -> bool {
    span.trace_id == parent.trace_id
        && span.parent_span_id == parent.span_id
        && span.start_time_unix_nano >= parent.start_time_unix_nano
}

fn spans_of_a_session() {
    let skills = all_kinds();
    let collector = Collector::start(Mode::Accepts);
    let (mut fixture, connection) = connected(collector.of(proxy(&skills).arg("--allow-scripts")));
    let params = json!({ "sessionId": "s", "prompt": [{ "type": "text", "text": "hello" }] });
    let id = fixture.editor.request("session/prompt", params);
    let prompt = fixture.agent_receives();
    fixture.call(&connection, "activate_skill", json!({ "name": "review" }));
    fixture.call(&connection, "read_skill_file", json!({ "skill": "review", "path": "missing" }));
    fixture.call(&connection, "call_skill_tool", json!({ "skill": "counter", "tool": "echo", "input": {} }));
    fixture.call(&connection, "run_skill_script", json!({ "skill": "review", "script": script() }));
    fixture.agent_replies(&prompt, json!({ "result": { "stopReason": "end_turn" } }));
    fixture.editor.answer(&id);
    fixture.prompt("s", "/review");
    fixture.finish();

    let session = collector.span(&format!("session {AGENT}"));
    assert!(session.parent_span_id.is_empty() && session.trace_id.len() == 16 && session.span_id.len() == 8);
    let turns: Vec<_> =
        collector.spans().into_iter().filter(|span| span.name == format!("invoke_agent {AGENT}")).collect();
    assert_eq!(turns.len(), 2);
    for turn in &turns {
        assert!(is_within(turn, &session), "{turn:?}");
        assert_eq!(turn.kind(), SpanKind::Client);
        assert_eq!(text(&turn.attributes, "gen_ai.operation.name").as_deref(), Some("invoke_agent"));
        assert_eq!(text(&turn.attributes, "gen_ai.agent.name").as_deref(), Some(AGENT));
        assert_eq!(text(&turn.attributes, "gen_ai.conversation.id").as_deref(), Some("s"));
    }
    for (name, tool, skill, error) in [
        ("activate_skill review", "activate_skill", "review", None),
        ("read_skill_file review", "read_skill_file", "review", Some("FileNotFound")),
        ("echo counter", "echo", "counter", None),
        ("run_skill_script review", "run_skill_script", "review", Some("ExecutionFailed")),
    ] {
        let span = collector.span(name);
        assert!(is_within(&span, &turns[0]), "{span:?}");
        assert_eq!(span.kind(), SpanKind::Internal);
        assert!(span.end_time_unix_nano >= span.start_time_unix_nano);
        let get = |key| text(&span.attributes, key);
        assert_eq!(get("gen_ai.operation.name").as_deref(), Some("execute_tool"));
        assert_eq!(get("gen_ai.tool.name").as_deref(), Some(tool));
        assert_eq!(get("gen_ai.skill.name").as_deref(), Some(skill));
        assert_eq!(get("error.type").as_deref(), error, "{name}");
        let is_error = span.status.as_ref().is_some_and(|status| status.code() == StatusCode::Error);
        assert_eq!(is_error, error.is_some(), "{name}");
    }
    let script = collector.span("run_skill_script review");
    assert_eq!(text(&script.attributes, "process.exit.code").as_deref(), Some("3"));
    let activation = collector.span("load_skill review");
    assert!(is_within(&activation, &turns[1]));
    assert_eq!(text(&activation.attributes, "acp_skills.activated_by").as_deref(), Some("user"));
}

/// Returns the path of a script that fails with exit code 3.
fn script() -> &'static str {
    if cfg!(windows) { "scripts/fail.cmd" } else { "scripts/fail.sh" }
}

fn traces_of_the_client_and_the_agent_are_continued() {
    let skills = Skills::review();
    let collector = Collector::start(Mode::Accepts);
    let mut fixture = Fixture::over_http(collector.of(proxy(&skills)));
    let of_session = "00-00000000000000000000000000000001-0000000000000001-01";
    let of_call = "00-00000000000000000000000000000003-0000000000000003-01";
    let meta = json!({ "traceparent": of_session, "other": 1 });
    let params = json!({ "cwd": cwd(), "mcpServers": [], "_meta": meta });
    let (received, _) = fixture.exchange("session/new", params, json!({ "result": { "sessionId": "s" } }));
    assert_eq!(received["params"]["_meta"], meta);
    let connection = fixture.connect(&entry(&received["params"]), MCP_2025);
    let meta = json!({ "traceparent": TRACE, "tracestate": "vendor=1", "baggage": "user=SECRET" });
    let prompt = json!([{ "type": "text", "text": "hello" }]);
    let params = json!({ "sessionId": "s", "prompt": prompt, "_meta": meta });
    let id = fixture.editor.request("session/prompt", params);
    let prompt = fixture.agent_receives();
    assert_eq!(prompt["params"]["_meta"], meta);
    fixture.call(&connection, "activate_skill", json!({ "name": "review" }));
    let call = json!({
        "connection": connection.number,
        "tool": "read_skill_file",
        "arguments": { "skill": "review", "path": "references/checklist.md" },
        "traceparent": of_call,
    });
    outcome(&fixture.order("call", call).expect("a result"));
    fixture.agent_replies(&prompt, json!({ "result": { "stopReason": "end_turn" } }));
    fixture.editor.answer(&id);
    fixture.finish();

    let turn = collector.span("invoke_agent");
    assert_eq!(turn.trace_id, bytes("80e1afed08e019fc1110464cfa66635c"));
    assert_eq!(turn.parent_span_id, bytes("7a085853722dc6d2"));
    assert_eq!(turn.trace_state, "vendor=1");
    let activation = collector.span("activate_skill review");
    assert!(is_within(&activation, &turn) && activation.trace_state == "vendor=1");
    let session = collector.span("session");
    assert_eq!((session.trace_id[15], session.parent_span_id[7]), (1, 1));
    let read = collector.span("read_skill_file review");
    assert_eq!((read.trace_id[15], read.parent_span_id[7]), (3, 3));
    let payloads = collector.received();
    assert!(payloads.iter().all(|request| !contains(&request.body, SECRET)));
}

fn an_unsampled_trace_has_no_spans() {
    let skills = Skills::review();
    let collector = Collector::start(Mode::Accepts);
    let mut fixture = Fixture::over_http(collector.of(proxy(&skills)));
    fixture.new_session("s");
    let meta = json!({ "traceparent": TRACE.replace("-01", "-00") });
    let prompt = json!([{ "type": "text", "text": "/review" }]);
    let params = json!({ "sessionId": "s", "prompt": prompt, "_meta": meta });
    fixture.exchange("session/prompt", params, json!({ "result": { "stopReason": "end_turn" } }));
    fixture.finish();
    let names: Vec<_> = collector.spans().into_iter().map(|span| span.name).collect();
    assert_eq!(names, ["session"]);
    let logs = collector.logs();
    let activated = logs.iter().find(|log| log.event_name == "acp_skills.skill_activated").expect("a log");
    assert_eq!(activated.trace_id, bytes("80e1afed08e019fc1110464cfa66635c"));
    assert_eq!(activated.flags, 0);
    assert_eq!(collector.total("gen_ai.client.operation.duration", &[]), 1);
}

fn logs_and_metrics() {
    let skills = Skills::review();
    let collector = Collector::start(Mode::Accepts);
    let (mut fixture, connection) = connected(collector.of(proxy(&skills)));
    fixture.call(&connection, "activate_skill", json!({ "name": "review" }));
    fixture.call(&connection, "activate_skill", json!({ "name": "unknown" }));
    fixture.prompt("s", "/review");
    fixture.finish();

    let logs = collector.logs();
    let names: Vec<_> = logs.iter().map(|log| &*log.event_name).collect();
    let activated = "acp_skills.skill_activated";
    assert_eq!(names, ["acp_skills.session_started", activated, activated, activated]);
    let started = &logs[0].attributes;
    assert_eq!(text(started, "acp_skills.skills").as_deref(), Some("review counter"));
    assert_eq!(text(started, "acp_skills.session.origin").as_deref(), Some("new"));
    let severities: Vec<_> = logs.iter().map(|log| log.severity_number).collect();
    assert_eq!(severities, [9, 9, 13, 9]);
    let span = collector.span("activate_skill review");
    assert_eq!((&logs[1].trace_id, &logs[1].span_id), (&span.trace_id, &span.span_id));
    assert!(logs.iter().all(|log| log.body.is_none() && log.time_unix_nano > 0));
    let of_model = [("gen_ai.skill.name", "review"), ("acp_skills.activated_by", "model")];
    for (metric, attributes, expected) in [
        ("acp_skills.sessions", &[("gen_ai.agent.name", AGENT)] as &[_], 1),
        ("acp_skills.activations", &[], 3),
        ("acp_skills.activations", &of_model, 1),
        ("acp_skills.activations", &[("acp_skills.outcome", "error")], 1),
        ("acp_skills.events", &[("acp_skills.event", "skill_activated")], 3),
        ("gen_ai.execute_tool.duration", &[("gen_ai.tool.name", "activate_skill")], 2),
        ("gen_ai.execute_tool.duration", &[("error.type", "SkillNotFound")], 1),
        ("gen_ai.client.operation.duration", &[("gen_ai.operation.name", "invoke_agent")], 1),
        ("acp_skills.telemetry.lost", &[], 0),
    ] {
        assert_eq!(collector.total(metric, attributes), expected, "{metric} {attributes:?}");
    }
    assert!(collector.total("acp_skills.activation.tokens", &[("gen_ai.skill.name", "review")]) > 20);
}

fn contains(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|part| part == text.as_bytes())
}

/// The prompts, paths, file contents, arguments, searches, outputs and variables have marks that must not be sent.
fn nothing_private_is_sent() {
    let skills = all_kinds();
    let collector = Collector::start(Mode::Accepts);
    record_every_kind(&skills, || {
        let proxy = proxy(&skills).env("SOME_VARIABLE", SECRET).env("OTEL_EXPORTER_OTLP_HEADERS", "x=SECRET");
        collector.of(proxy)
    });
    let logs = collector.logs();
    let has = |event: &str| logs.iter().any(|log| log.event_name == format!("acp_skills.{event}"));
    for event in [
        "session_started",
        "skill_activated",
        "file_read",
        "tool_called",
        "script_run",
        "search",
        "permission",
        "reload",
        "skills_joined",
        "restored",
        "fallback",
    ] {
        assert!(has(event), "{event}");
    }
    let dir = skills.path().file_name().and_then(|name| name.to_str()).expect("text");
    let temporary = cwd();
    for request in collector.received() {
        assert!(request.headers.contains("x: secret"), "{}", request.headers);
        for private in [
            SECRET,
            dir,
            &temporary,
            "secret.md",
            "references",
            "scripts",
            "fail.",
            "SKILL.md",
            "main.tf",
            "Reviews code",
            "# Review",
            "patches",
        ] {
            let body = String::from_utf8_lossy(&request.body);
            assert!(!contains(&request.body, private), "{private} in {}: {body}", request.path);
        }
    }
}

fn records_are_sent_during_the_session() {
    let skills = Skills::review();
    let collector = Collector::start(Mode::Accepts);
    let proxy = collector.of(proxy(&skills)).env("OTEL_BSP_SCHEDULE_DELAY", "10");
    let (mut fixture, connection) = connected(proxy);
    fixture.call(&connection, "activate_skill", json!({ "name": "review" }));
    collector.wait_for(3);
    while collector.spans().is_empty() {
        std::thread::yield_now();
    }
    assert_eq!(collector.span("activate_skill review").parent_span_id.len(), 8);
    fixture.finish();
    collector.span(&format!("session {AGENT}"));
}

/// Telemetry needs both the flag or the setting, and the variable.
fn off_by_default() {
    let skills = Skills::review();
    let collector = Collector::start(Mode::Accepts);
    let endpoint = "OTEL_EXPORTER_OTLP_ENDPOINT";
    let with_setting = skills.write("on.yaml", "telemetry: otlp\nskills: [review]\n");
    for (proxy, expected) in [
        (proxy(&skills).env(endpoint, &collector.url), false),
        (proxy(&skills).flag("--telemetry", "otlp"), false),
        (collector.of(proxy(&skills)).env("OTEL_SDK_DISABLED", "true"), false),
        (Proxy::new().flag("--config", with_setting).env(endpoint, &collector.url), true),
    ] {
        let mut fixture = Fixture::over_http(proxy);
        fixture.new_session("s");
        fixture.finish();
        assert_eq!(!collector.received().is_empty(), expected);
    }
}

fn settings_of_the_environment() {
    let skills = Skills::review();
    let collector = Collector::start(Mode::Accepts);
    let proxy = collector
        .of(proxy(&skills))
        .env("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Basic%20YQ==")
        .env("OTEL_EXPORTER_OTLP_LOGS_ENDPOINT", format!("{}/own/logs", collector.url))
        .env("OTEL_TRACES_EXPORTER", "none")
        .env("OTEL_SERVICE_NAME", "skills-of-acme")
        .env("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=test");
    let mut fixture = Fixture::over_http(proxy);
    fixture.new_session("s");
    fixture.finish();
    let received = collector.received();
    let paths: Vec<_> = received.iter().map(|request| &*request.path).collect();
    assert_eq!(paths, ["/own/logs", "/v1/metrics"]);
    for request in &received {
        assert!(request.headers.contains("authorization: basic yq=="), "{}", request.headers);
        assert!(request.headers.contains("content-type: application/x-protobuf"), "{}", request.headers);
        assert_eq!(request.headers.matches("user-agent: ").count(), 1, "{}", request.headers);
        assert!(request.headers.contains("user-agent: acp-skills-proxy/"), "{}", request.headers);
        for text in ["skills-of-acme", "deployment.environment.name", "service.instance.id"] {
            assert!(contains(&request.body, text), "{text}");
        }
    }
    for (name, value, expected) in [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "SECRET", "OTEL_EXPORTER_OTLP_ENDPOINT is invalid"),
        ("OTEL_EXPORTER_OTLP_HEADERS", "SECRET", "OTEL_EXPORTER_OTLP_HEADERS is invalid"),
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc", "only `http/protobuf` is supported"),
        (
            "OTEL_EXPORTER_OTLP_CERTIFICATE",
            "/missing.pem",
            "cannot use the certificates in /missing.pem, which `OTEL_EXPORTER_OTLP_CERTIFICATE` names",
        ),
    ] {
        let ended = collector.of(Proxy::new()).env(name, value).arg("--").arg("true").start().ended();
        let log = ended.log.join("\n");
        assert_eq!(ended.code(), Some(2), "{log}");
        assert!(log.contains(expected) && !log.contains(SECRET), "{log}");
    }
}

#[cfg(target_os = "linux")]
fn a_policy_that_requires_telemetry() {
    let Some(machine) = Machine::new("require: {telemetry: true}") else { return };
    let skills = Skills::review();
    let collector = Collector::start(Mode::Accepts);
    let endpoint = "OTEL_EXPORTER_OTLP_ENDPOINT";
    for (name, value, expected) in [
        ("OTHER", "", "OTEL_EXPORTER_OTLP_ENDPOINT is not set"),
        ("OTEL_SDK_DISABLED", "true", "OTEL_SDK_DISABLED is true"),
        ("OTEL_EXPORTER_OTLP_LOGS_ENDPOINT", &*collector.url, "turns traces off"),
        (endpoint, "collector", "OTEL_EXPORTER_OTLP_ENDPOINT is invalid"),
    ] {
        let ended = machine.proxy().env(name, value).arg("--").arg("true").start().ended();
        let log = ended.log.join("\n");
        assert_eq!(ended.code(), Some(2), "{log}");
        assert!(log.contains(expected) && log.contains("`require.telemetry` in"), "{log}");
    }
    let show = machine.says(&["policy", "show"]);
    assert!(show.0 == Some(0) && show.1.contains("require.telemetry"), "{show:?}");
    let proxy = machine.proxy().flag("--config", skills.config()).env(endpoint, &collector.url);
    let mut fixture = Fixture::over_http(proxy);
    fixture.new_session("s");
    fixture.finish();
    assert_eq!(collector.logs()[0].event_name, "acp_skills.session_started");
    // The policy can name the collector. Then, no variable leads elsewhere.
    let named = Collector::start(Mode::Accepts);
    let Some(machine) = Machine::new(&format!("require: {{telemetry: '{}'}}", named.url)) else { return };
    let proxy = machine.proxy().flag("--config", skills.config()).env(endpoint, "http://127.0.0.1:1");
    let mut fixture = Fixture::over_http(proxy.env("OTEL_TRACES_SAMPLER", "always_off"));
    fixture.new_session("s");
    fixture.finish();
    assert_eq!(named.logs()[0].event_name, "acp_skills.session_started");
    assert!(!named.spans().is_empty());
    // A command that opens a session follows the rule, too.
    let (skills, agent) = skills_and_agent();
    let skill = skills.dir("review");
    let named = Collector::start(Mode::Accepts);
    machine.write(&format!("require: {{telemetry: '{}'}}", named.url));
    let (skill, agent) = (skill.to_str().expect("text"), agent.to_str().expect("text"));
    let said = machine.says(&["doctor", "--timeout", "4", "--skill", skill, "--", agent]);
    let events: Vec<_> = named.logs().into_iter().map(|log| log.event_name).collect();
    assert!(events.iter().any(|event| event == "acp_skills.session_started"), "{events:?}: {said:?}");
}

/// An MCP client sends its calls without turns.
fn clients_without_acp() {
    let skills = Skills::review();
    let collector = Collector::start(Mode::Accepts);
    let mut client = collector.of(Proxy::new().arg("mcp").flag("--config", skills.config())).start();
    let info = json!({ "name": "claude-code", "version": "1" });
    let params = json!({ "protocolVersion": MCP_2025, "capabilities": {}, "clientInfo": info });
    let id = client.request("initialize", params);
    client.answer(&id);
    client.notify("notifications/initialized", json!({}));
    let id =
        client.request("tools/call", json!({ "name": "activate_skill", "arguments": { "name": "review" } }));
    assert!(client.answer(&id)["result"]["content"][0]["text"].as_str().is_some());
    // Clients of the skills extension read skills as resources.
    for (file, expected) in [("SKILL.md", "result"), ("missing.md", "error")] {
        let id = client.request("resources/read", json!({ "uri": format!("skill://review/{file}") }));
        assert!(client.answer(&id).get(expected).is_some(), "{file}");
    }
    assert_eq!(client.finish().code(), Some(0));
    let read: Vec<_> =
        collector.logs().into_iter().filter(|log| log.event_name.ends_with("file_read")).collect();
    assert_eq!(read.len(), 2, "{read:?}");
    let session = collector.span("session claude-code");
    assert!(is_within(&collector.span("activate_skill review"), &session));
}
