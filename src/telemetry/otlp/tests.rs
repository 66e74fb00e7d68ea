//! Signals and their destinations, by the config and by the environment.

use super::*;

fn env(variables: &[(&str, &str)]) -> Env {
    let variables = variables.iter();
    variables
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect()
}

fn config(endpoint: &str) -> TelemetryConfig {
    TelemetryConfig {
        otlp_endpoint: Url::parse(endpoint).ok(),
        ..TelemetryConfig::default()
    }
}

/// The endpoints of traces, metrics and logs.
fn endpoints(config: &TelemetryConfig, variables: &[(&str, &str)]) -> [Option<String>; 3] {
    let otlp = Otlp::resolve(config, &env(variables)).expect("it is valid");
    [otlp.traces, otlp.metrics, otlp.logs].map(|target| target.map(|target| target.endpoint))
}

fn protocol(config: &TelemetryConfig, variables: &[(&str, &str)]) -> OtlpProtocol {
    let otlp = Otlp::resolve(config, &env(variables)).expect("it is valid");
    otlp.traces.expect("traces are sent").protocol
}

#[test]
fn nothing_is_sent_where_nobody_named_a_collector() {
    assert_eq!(endpoints(&config(""), &[]), [None, None, None]);
    assert_eq!(endpoints(&config(""), &[(ENDPOINT, "")]), [None, None, None]);
}

#[test]
fn the_config_comes_before_the_environment() {
    let both = endpoints(&config("http://a:4317"), &[(ENDPOINT, "http://b:4317")]);
    assert_eq!(both[0].as_deref(), Some("http://a:4317/"));
    let only_env = endpoints(&config(""), &[(ENDPOINT, "http://b:4317")]);
    assert_eq!(only_env[1].as_deref(), Some("http://b:4317"));
}

#[test]
fn signals_have_endpoints_and_paths_of_their_own() {
    let variables = [
        (ENDPOINT, "http://b:4318/otlp/"),
        ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://t:4318/in"),
    ];
    let [traces, metrics, logs] = endpoints(&config(""), &variables);
    assert_eq!(traces.as_deref(), Some("http://t:4318/in"));
    assert_eq!(metrics.as_deref(), Some("http://b:4318/otlp/v1/metrics"));
    assert_eq!(logs, None, "nobody wants them");
}

#[test]
fn logs_are_sent_if_the_config_or_the_environment_wants_that() {
    let wanted = TelemetryConfig {
        otlp_logs: true,
        ..config("http://a:4318")
    };
    assert_eq!(
        endpoints(&wanted, &[("OTEL_LOGS_EXPORTER", "none")])[2].as_deref(),
        Some("http://a:4318/v1/logs")
    );
    let by_env = endpoints(&config("http://a:4318"), &[("OTEL_LOGS_EXPORTER", "otlp")]);
    assert!(by_env[2].is_some());
    let nowhere = TelemetryConfig {
        otlp_logs: true,
        ..config("")
    };
    let refused = Otlp::resolve(&nowhere, &Env::new()).expect_err("no collector");
    assert!(refused.to_string().contains("set telemetry.otlp_endpoint"), "{refused}");
}

#[test]
fn the_protocol_is_that_which_was_asked_for_or_that_of_the_port() {
    const PROTOCOL: &str = "OTEL_EXPORTER_OTLP_PROTOCOL";
    assert_eq!(protocol(&config("http://a:4317"), &[]), OtlpProtocol::Grpc);
    assert_eq!(protocol(&config("http://a:4318"), &[]), OtlpProtocol::HttpProtobuf);
    let asked = protocol(&config("http://a:4318"), &[(PROTOCOL, "grpc")]);
    assert_eq!(asked, OtlpProtocol::Grpc);
    let own = [
        (PROTOCOL, "grpc"),
        ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "http/protobuf"),
    ];
    assert_eq!(protocol(&config("http://a:4317"), &own), OtlpProtocol::HttpProtobuf);
    let configured = TelemetryConfig {
        otlp_protocol: Some(OtlpProtocol::Grpc),
        ..config("http://a:4318")
    };
    assert_eq!(protocol(&configured, &own), OtlpProtocol::Grpc);
}

#[test]
fn it_can_be_switched_off() {
    let off = [("OTEL_SDK_DISABLED", "true"), ("OTEL_TRACES_EXPORTER", "nonsense")];
    assert_eq!(endpoints(&config("http://a:4317"), &off), [None, None, None]);
    let one = endpoints(&config("http://a:4317"), &[("OTEL_TRACES_EXPORTER", "none")]);
    assert!(one[0].is_none() && one[1].is_some());
    let local = endpoints(&config(""), &[("OTEL_TRACES_EXPORTER", "otlp")]);
    assert_eq!(local[0].as_deref(), Some(LOCAL_GRPC));
}

#[test]
fn what_is_not_supported_is_refused_with_what_is() {
    for (variable, value, expected) in [
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/json", "grpc, http/protobuf"),
        ("OTEL_TRACES_SAMPLER", "xray", "parentbased_traceidratio"),
        ("OTEL_TRACES_EXPORTER", "zipkin", "otlp, none, console"),
        (
            "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
            "collector:4317",
            "http://collector:4317",
        ),
    ] {
        let variables = env(&[(ENDPOINT, "http://a:4317"), (variable, value)]);
        let refused = Otlp::resolve(&config(""), &variables).expect_err(variable).to_string();
        assert!(refused.contains(variable) && refused.contains(expected), "{refused}");
    }
}
