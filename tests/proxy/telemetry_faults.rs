//! Collectors that are gone, slow or broken: they cost a message and a counter, and the session works as before.

use std::{
    net::TcpListener,
    time::{Duration, Instant},
};

use serde_json::json;

use crate::{
    collector::{Collector, Mode},
    editor::Proxy,
    events::connected,
    fixture::Fixture,
    skills::Skills,
};

crate::trials!(
    a_broken_collector_costs_a_message_only,
    the_end_waits_for_a_second,
    a_slow_collector_gets_everything,
    refused_records_are_counted,
    a_busy_collector_gets_the_records_later,
    a_request_that_is_refused_is_not_repeated,
    a_burst_is_sent_before_its_time,
    a_queue_that_is_full,
);

/// The proxy waits a second at the end. The rest is for a slow machine.
const END: Duration = Duration::from_secs(4);

fn proxy(skills: &Skills) -> Proxy {
    Proxy::new().flag("--config", skills.config())
}

/// Runs a session. Returns the log, and the duration of the end.
fn session(proxy: Proxy) -> (Vec<String>, Duration) {
    let (mut fixture, connection) = connected(proxy);
    let (text, is_error) = fixture.call(&connection, "activate_skill", json!({ "name": "review" }));
    assert!(!is_error, "{text}");
    fixture.prompt("s", "hello");
    let started = Instant::now();
    let ended = fixture.finish();
    (ended.log, started.elapsed())
}

fn warnings(log: &[String]) -> Vec<&String> {
    log.iter().filter(|line| line.contains("telemetry")).collect()
}

fn a_broken_collector_costs_a_message_only() {
    let skills = Skills::review();
    for (mode, reason) in [
        (Mode::Fails(302, "Location: http://127.0.0.1:1/\r\n"), "the collector redirects"),
        (Mode::Fails(400, ""), "the collector returned status 400"),
        (Mode::Fails(404, ""), "the collector returned status 404"),
        (Mode::Fails(413, ""), "the collector returned status 413"),
        (Mode::Fails(429, "Retry-After: 3600\r\n"), "the collector returned status 429"),
        (Mode::Fails(503, ""), "the collector returned status 503"),
        (Mode::Fails(200, "Content-Encoding: gzip\r\n"), ""),
        (Mode::Floods, ""),
    ] {
        let collector = Collector::start(mode);
        let (log, end) = session(collector.of(proxy(&skills)).env("OTEL_BSP_SCHEDULE_DELAY", "1"));
        assert!(end < END, "{mode:?}: {end:?}");
        let warnings = warnings(&log);
        if reason.is_empty() {
            assert_eq!(warnings, Vec::<&String>::new(), "{mode:?}");
            continue;
        }
        assert!(warnings.len() == 2, "{mode:?}: {log:#?}");
        assert!(warnings[0].contains(&format!("cannot send telemetry: {reason}")), "{log:#?}");
        assert!(warnings[1].contains("records of telemetry were not sent"), "{log:#?}");
    }
}

fn the_end_waits_for_a_second() {
    let skills = Skills::review();
    let hanging = Collector::start(Mode::Hangs);
    let gone = {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        format!("http://{}", listener.local_addr().expect("an address"))
    };
    for (url, delay) in [(&hanging.url, "1"), (&hanging.url, "60000"), (&gone, "1"), (&gone, "60000")] {
        let proxy = proxy(&skills)
            .flag("--telemetry", "otlp")
            .env("OTEL_EXPORTER_OTLP_ENDPOINT", url)
            .env("OTEL_BSP_SCHEDULE_DELAY", delay);
        let (log, end) = session(proxy);
        assert!(end < END, "{url} {delay}: {end:?}");
        let last = warnings(&log).pop().expect("a message").clone();
        assert!(last.contains("records of telemetry were not sent"), "{log:#?}");
    }
}

fn a_slow_collector_gets_everything() {
    let skills = Skills::review();
    let collector = Collector::start(Mode::AcceptsAfter(Duration::from_millis(150)));
    let (log, end) = session(collector.of(proxy(&skills)));
    assert!(end < END, "{end:?}");
    assert_eq!(warnings(&log), Vec::<&String>::new());
    assert_eq!((collector.spans().len(), collector.logs().len()), (3, 2));
    assert!(!collector.metrics().is_empty());
}

fn refused_records_are_counted() {
    let skills = Skills::review();
    let collector = Collector::start(Mode::RejectsOne);
    let (log, _) = session(collector.of(proxy(&skills)));
    let warnings = warnings(&log);
    assert!(warnings.len() == 1 && warnings[0].contains("1 record"), "{log:#?}");
    assert_eq!(collector.total("acp_skills.telemetry.lost", &[]), 1);
}

fn a_busy_collector_gets_the_records_later() {
    let skills = Skills::review();
    for header in ["Retry-After: 0\r\n", "", "Retry-After: Thu, 01 Jan 1970 00:00:00 GMT\r\n"] {
        let collector = Collector::start(Mode::FailsOnce(503, header));
        let proxy = collector.of(proxy(&skills)).env("OTEL_BSP_SCHEDULE_DELAY", "1");
        let (mut fixture, connection) = connected(proxy);
        fixture.call(&connection, "activate_skill", json!({ "name": "review" }));
        // The first request fails, and the others are for all kinds of telemetry.
        collector.wait_for(4);
        let ended = fixture.finish();
        assert_eq!(warnings(&ended.log).len(), 1, "{:#?}", ended.log);
        let names: Vec<_> = collector.logs().into_iter().map(|log| log.event_name).collect();
        assert!(names.contains(&"acp_skills.skill_activated".to_owned()), "{names:?}");
    }
}

fn a_request_that_is_refused_is_not_repeated() {
    let skills = Skills::review();
    let collector = Collector::start(Mode::FailsOnce(400, ""));
    let (log, _) = session(collector.of(proxy(&skills)));
    // The spans are lost, and the logs and metrics follow.
    let paths: Vec<_> = collector.received().into_iter().map(|request| request.path).collect();
    assert_eq!(paths, ["/v1/traces", "/v1/logs", "/v1/metrics"]);
    assert!(warnings(&log)[1].contains("3 records of telemetry were not sent"), "{log:#?}");
    assert_eq!(collector.total("acp_skills.telemetry.lost", &[]), 3);
}

/// A full buffer is sent at once, so nothing is lost between two scheduled requests.
fn a_burst_is_sent_before_its_time() {
    let skills = Skills::review();
    let collector = Collector::start(Mode::Accepts);
    let proxy = collector.of(proxy(&skills)).env("OTEL_BSP_SCHEDULE_DELAY", "600000");
    let mut fixture = Fixture::over_http(proxy);
    fixture.new_session("s");
    let prompts = 1200;
    for _ in 0..prompts {
        fixture.prompt("s", "/review");
    }
    let ended = fixture.finish();
    assert_eq!(warnings(&ended.log), Vec::<&String>::new());
    let spans = collector.spans();
    let turns = spans.iter().filter(|span| span.name.starts_with("invoke_agent")).count();
    assert_eq!(turns, prompts, "{:?}", spans.first());
    assert_eq!(collector.total("acp_skills.telemetry.lost", &[]), 0);
}

/// The session doesn't wait for the collector, however many events there are.
fn a_queue_that_is_full() {
    let skills = Skills::review();
    let collector = Collector::start(Mode::Hangs);
    let proxy = collector.of(proxy(&skills)).env("OTEL_BSP_SCHEDULE_DELAY", "1");
    let mut fixture = Fixture::over_http(proxy);
    fixture.new_session("s");
    collector.wait_for(1);
    for _ in 0..700 {
        fixture.prompt("s", "/review");
    }
    let ended = fixture.finish();
    let last = warnings(&ended.log).pop().expect("a message").clone();
    let count = last.split_whitespace().find_map(|word| word.parse::<u64>().ok());
    // Each prompt is a turn with two steps and an activation.
    assert!(count > Some(1024), "{last}");
}
