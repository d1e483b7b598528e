use super::*;

const ENDPOINT: (&str, &str) = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector:4318");

fn settings(variables: &[(&str, &str)]) -> Result<Settings, SettingsError> {
    Settings::from(&|name| value_of(variables, name))
}

fn value_of(variables: &[(&str, &str)], name: &str) -> Option<String> {
    variables.iter().find(|(variable, _)| *variable == name).map(|(_, value)| (*value).to_owned())
}

/// Returns the URLs for traces, logs and metrics, with `-` if there is none, or the error.
fn urls(variables: &[(&str, &str)]) -> String {
    shown(settings(variables))
}

fn shown(settings: Result<Settings, SettingsError>) -> String {
    match settings {
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

/// With an invalid header, no request can be sent. The message doesn't have the value.
#[test]
fn headers_that_cannot_be_sent_are_an_error() {
    let characters = "the headers are too long or have characters that are not allowed in headers";
    let fixed = "headers about the body, the host or the connection cannot be set";
    for (list, reason) in [
        ("a b=SECRET", characters),
        (&*format!("{}=SECRET", "a".repeat(1 << 16)), characters),
        ("a:b=SECRET", characters),
        ("a\u{e4}=SECRET", characters),
        ("\"a\"=SECRET", characters),
        ("x=1,a=SECRET%0D%0Ab: c", characters),
        ("a=SECRET%00", characters),
        ("a=SECRET%7F", characters),
        ("a=SECRET\u{e4}", characters),
        ("Host=SECRET", fixed),
        ("x=1, content-length =SECRET", fixed),
        ("Transfer-Encoding=SECRET", fixed),
        ("Content-Type=SECRET", fixed),
    ] {
        for variable in ["OTEL_EXPORTER_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_METRICS_HEADERS"] {
            let variables = [ENDPOINT, (variable, list)];
            let expected = format!("{variable} is invalid: {reason}");
            assert_eq!(urls(&variables), expected, "{list}");
            let required =
                Settings::required_from(&|name| value_of(&variables, name), Some("https://acme.example"));
            assert_eq!(shown(required), expected, "{list}");
        }
    }
    for list in ["authorization=Bearer%20a.b-c_d~e+f/g==", "x-a|b=", "x=a%09b"] {
        assert!(settings(&[ENDPOINT, ("OTEL_EXPORTER_OTLP_HEADERS", list)]).is_ok(), "{list}");
    }
}

#[test]
fn certificates_are_read() {
    let file = tempfile::NamedTempFile::new().expect("a file");
    let path = file.path().to_str().expect("text");
    let empty = settings(&[ENDPOINT, ("OTEL_EXPORTER_OTLP_CERTIFICATE", path)]);
    assert!(empty.is_err_and(|error| error.to_string().contains("no certificate in PEM format")));
    let certificate = "-----BEGIN CERTIFICATE-----\nMAA=\n-----END CERTIFICATE-----\n";
    std::fs::write(path, certificate).expect("written");
    let found = settings(&[ENDPOINT, ("OTEL_EXPORTER_OTLP_CERTIFICATE", path)]).expect("settings");
    assert!(found.collectors.iter().flatten().all(|collector| collector.authorities.is_some()));
    let missing = settings(&[ENDPOINT, ("OTEL_EXPORTER_OTLP_CERTIFICATE", "/missing/file")]);
    assert!(missing.is_err_and(|error| error.to_string().contains("OTEL_EXPORTER_OTLP_CERTIFICATE")));
}

/// Each variable with which a user could keep telemetry from being sent. The last column is the result if the policy names a collector.
#[test]
fn required_telemetry_is_not_turned_off_by_variables() {
    let all =
        "http://collector:4318/v1/traces http://collector:4318/v1/logs http://collector:4318/v1/metrics";
    let named = "https://acme.example/v1/traces https://acme.example/v1/logs https://acme.example/v1/metrics";
    let off = |signal: &str| {
        let name = signal.to_lowercase();
        format!("OTEL_{signal}_EXPORTER or a missing address turns {name} off")
    };
    let evil = "https://evil.example/";
    for (variables, expected, with_collector) in [
        (&[] as &[_], "OTEL_EXPORTER_OTLP_ENDPOINT is not set", named),
        (&[ENDPOINT], all, named),
        (
            &[ENDPOINT, ("OTEL_SDK_DISABLED", "true")],
            "OTEL_SDK_DISABLED is true",
            "OTEL_SDK_DISABLED is true",
        ),
        (&[ENDPOINT, ("OTEL_TRACES_EXPORTER", "none")], &off("TRACES"), &off("TRACES")),
        (&[ENDPOINT, ("OTEL_LOGS_EXPORTER", "none")], &off("LOGS"), &off("LOGS")),
        (&[ENDPOINT, ("OTEL_METRICS_EXPORTER", "console")], &off("METRICS"), &off("METRICS")),
        (&[("OTEL_EXPORTER_OTLP_LOGS_ENDPOINT", evil)], &off("TRACES"), named),
        (
            &[ENDPOINT, ("OTEL_EXPORTER_OTLP_LOGS_ENDPOINT", evil)],
            "http://collector:4318/v1/traces https://evil.example/ http://collector:4318/v1/metrics",
            named,
        ),
        (&[("OTEL_EXPORTER_OTLP_ENDPOINT", "x")], "OTEL_EXPORTER_OTLP_ENDPOINT is invalid", named),
        (&[ENDPOINT, ("OTEL_TRACES_SAMPLER", "always_off")], all, named),
        (&[ENDPOINT, ("OTEL_TRACES_SAMPLER_ARG", "0")], all, named),
        (&[ENDPOINT, ("OTEL_BSP_SCHEDULE_DELAY", "86400000")], all, named),
        (&[ENDPOINT, ("OTEL_EXPORTER_OTLP_TIMEOUT", "0")], all, named),
        (&[ENDPOINT, ("OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", "1")], all, named),
    ] {
        for (collector, expected) in [(None, expected), (Some("https://acme.example"), with_collector)] {
            let found = Settings::required_from(&|name| value_of(variables, name), collector);
            if let Ok(settings) = &found {
                assert!(
                    settings.sends_unsampled && settings.delay <= Duration::from_mins(1),
                    "{variables:?}"
                );
                let mut timeouts = settings.collectors.iter().flatten().map(|collector| collector.timeout);
                assert!(timeouts.all(|timeout| timeout >= Duration::from_secs(1)), "{variables:?}");
            }
            let found = shown(found);
            assert!(found.starts_with(expected), "{variables:?} {collector:?}: {found}");
        }
    }
}
