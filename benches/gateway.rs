//! A gateway in this process, as in production: with telemetry, and with more tokens than one.

use std::{net::SocketAddr, sync::LazyLock};

use jupyter_mcp_gateway::{
    app::App,
    config::{Config, Env, LogFormat, TelemetryConfig},
    telemetry::{self, Metrics},
};

use super::wire::TOKEN;

/// Starts one in front of a Jupyter server and returns where it listens.
pub(crate) async fn start(url: &str, token: &str) -> SocketAddr {
    let env = Env::new();
    let config = Config::from_toml(&config(url, token), "bench.toml", &env).expect("a valid config");
    let app = App::bind(&config, &env, telemetry()).await.expect("a gateway");
    let address = app.address().expect("an address");
    tokio::spawn(app.run());
    address
}

/// At this level a call that succeeds logs nothing, but its spans are formatted.
pub(crate) fn telemetry() -> Metrics {
    static METRICS: LazyLock<Metrics> = LazyLock::new(|| {
        let config = TelemetryConfig {
            log_format: LogFormat::Json,
            ..TelemetryConfig::default()
        };
        let (metrics, guard) = telemetry::init(&config, &Env::new(), false).expect("telemetry");
        std::mem::forget(guard);
        metrics
    });
    METRICS.clone()
}

/// Twenty tokens, of which the last is used.
fn config(url: &str, token: &str) -> String {
    let tokens: String = (1..=20)
        .map(|number| {
            let token = match number {
                20 => TOKEN.to_owned(),
                _ => format!("another-token-{number}"),
            };
            format!("[[auth.tokens]]\nname = \"agent-{number}\"\ntenant = \"all\"\ntoken = \"{token}\"\n")
        })
        .collect();
    format!(
        "[http]\nlisten = \"127.0.0.1:0\"\n[store]\nurl = \"sqlite::memory:\"\n\
         [[servers]]\nname = \"lab\"\nurl = \"{url}\"\ntoken = \"{token}\"\n\
         [[tenants]]\nname = \"all\"\nrequests_per_minute = 1000000\nburst = 1000000\nmax_concurrent_executions = 64\n{tokens}"
    )
}
