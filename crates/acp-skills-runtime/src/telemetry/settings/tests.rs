use super::*;

const ENDPOINT: (&str, &str) = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector:4318");

fn settings(variables: &[(&str, &str)]) -> Result<Settings, SettingsError> {
    Settings::from(&|name| {
        variables.iter().find(|(variable, _)| *variable == name).map(|(_, value)| (*value).to_owned())
    })
}

/// Returns the URLs for traces, logs and metrics, with `-` if there is none, or the error.
fn urls(variables: &[(&str, &str)]) -> String {
    match settings(variables) {
        Ok(settings) => {
            let urls = settings.collectors.iter();
            let urls = urls.map(|collector| collector.as_ref().map_or("-", |collector| &collector.url));
            urls.collect::<Vec<_>>().join(" ")
        }
        Err(error) => error.to_string(),
    }
}

#[test]
fn collectors_of_all_signals() {
    let all =
        "http://collector:4318/v1/traces http://collector:4318/v1/logs http://collector:4318/v1/metrics";
    for (variables, expected) in [
        (&[] as &[_], "OTEL_EXPORTER_OTLP_ENDPOINT is not set"),
        (&[("OTEL_EXPORTER_OTLP_ENDPOINT", " ")], "OTEL_EXPORTER_OTLP_ENDPOINT is not set"),
        (&[ENDPOINT], all),
        (&[("OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector:4318/")], all),
        (
            &[("OTEL_EXPORTER_OTLP_ENDPOINT", "https://a.example/otlp"), ("OTEL_LOGS_EXPORTER", "none")],
            "https://a.example/otlp/v1/traces - https://a.example/otlp/v1/metrics",
        ),
        (&[("OTEL_EXPORTER_OTLP_LOGS_ENDPOINT", "https://a.example/logs")], "- https://a.example/logs -"),
        (
            &[ENDPOINT, ("OTEL_TRACES_EXPORTER", "none"), ("OTEL_METRICS_EXPORTER", "console")],
            "- http://collector:4318/v1/logs -",
        ),
        (
            &[
                ENDPOINT,
                ("OTEL_TRACES_EXPORTER", "none"),
                ("OTEL_METRICS_EXPORTER", "none"),
                ("OTEL_LOGS_EXPORTER", "none"),
            ],
            "OTEL_TRACES_EXPORTER, OTEL_LOGS_EXPORTER and OTEL_METRICS_EXPORTER turn all exporters off",
        ),
        (&[ENDPOINT, ("OTEL_TRACES_EXPORTER", "console, otlp")], all),
        (&[ENDPOINT, ("OTEL_SDK_DISABLED", "TRUE")], "OTEL_SDK_DISABLED is true"),
        (&[ENDPOINT, ("OTEL_SDK_DISABLED", "1")], all),
        (&[ENDPOINT, ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf")], all),
        (
            &[ENDPOINT, ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")],
            "OTEL_EXPORTER_OTLP_PROTOCOL is invalid: only `http/protobuf` is supported",
        ),
        (
            &[ENDPOINT, ("OTEL_EXPORTER_OTLP_METRICS_PROTOCOL", "http/json")],
            "OTEL_EXPORTER_OTLP_METRICS_PROTOCOL is invalid: only `http/protobuf` is supported",
        ),
        (
            &[("OTEL_EXPORTER_OTLP_ENDPOINT", "collector:4318")],
            "OTEL_EXPORTER_OTLP_ENDPOINT is invalid: expected a URL that begins with `https://` or `http://`",
        ),
        (
            &[ENDPOINT, ("OTEL_EXPORTER_OTLP_TIMEOUT", "10s")],
            "OTEL_EXPORTER_OTLP_TIMEOUT is invalid: expected a number of milliseconds",
        ),
        (
            &[ENDPOINT, ("OTEL_EXPORTER_OTLP_HEADERS", "secret")],
            "OTEL_EXPORTER_OTLP_HEADERS is invalid: expected a list such as `key=value,key=value`",
        ),
        (
            &[ENDPOINT, ("OTEL_RESOURCE_ATTRIBUTES", "=1")],
            "OTEL_RESOURCE_ATTRIBUTES is invalid: expected a list such as `key=value,key=value`",
        ),
    ] {
        assert_eq!(urls(variables), expected, "{variables:?}");
    }
}

#[test]
fn headers_times_and_the_resource() {
    let settings = settings(&[
        ENDPOINT,
        ("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Basic%20YQ==, x-team = a"),
        ("OTEL_EXPORTER_OTLP_LOGS_HEADERS", "x-team=b"),
        ("OTEL_EXPORTER_OTLP_TIMEOUT", "250"),
        ("OTEL_EXPORTER_OTLP_LOGS_TIMEOUT", "500"),
        ("OTEL_BSP_SCHEDULE_DELAY", "20"),
        ("OTEL_SERVICE_NAME", "skills"),
        ("OTEL_RESOURCE_ATTRIBUTES", "service.name=other,deployment.environment.name=a%2Cb"),
        ("OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE", "Delta"),
    ]);
    let settings = settings.expect("settings");
    let [Some(traces), Some(logs), Some(_)] = &settings.collectors else { panic!("no collectors") };
    let owned = |pairs: &[(&str, &str)]| {
        let pairs = pairs.iter().chain(&OWN_HEADERS);
        pairs.map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect::<Vec<_>>()
    };
    assert_eq!(traces.headers, owned(&[("authorization", "Basic YQ=="), ("x-team", "a")]));
    assert_eq!(logs.headers, owned(&[("x-team", "b")]));
    assert_eq!((traces.timeout, logs.timeout), (Duration::from_millis(250), Duration::from_millis(500)));
    assert_eq!((settings.delay, settings.is_delta), (Duration::from_millis(20), true));
    assert_eq!(settings.resource.get("service.name"), Some("skills"));
    assert_eq!(settings.resource.get("deployment.environment.name"), Some("a,b"));
    assert!(!format!("{traces:?}").contains("Basic"));
}

#[test]
fn certificates_are_read() {
    let file = tempfile::NamedTempFile::new().expect("a file");
    let path = file.path().to_str().expect("text");
    let found = settings(&[ENDPOINT, ("OTEL_EXPORTER_OTLP_CERTIFICATE", path)]).expect("settings");
    assert!(found.collectors.iter().flatten().all(|collector| collector.authorities.is_some()));
    let missing = settings(&[ENDPOINT, ("OTEL_EXPORTER_OTLP_CERTIFICATE", "/missing/file")]);
    assert!(missing.is_err_and(|error| error.to_string().contains("OTEL_EXPORTER_OTLP_CERTIFICATE")));
}
