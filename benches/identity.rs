//! What it takes to know who calls, for callers who are known already: an own token and one of an OpenID provider that was
//! verified before. By itself, since there is no gateway without it, and as a part of a call.

use std::{
    hint::black_box,
    sync::Arc,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use jupyter_mcp_gateway::{
    app::App,
    auth::{AnyMethod, Authenticator, Credentials, JwtTokens, oidc::Provider},
    config::{Config, Env},
};
use ring::hmac;
use serde_json::json;
use tokio::runtime::Builder;

use super::{
    gateway,
    overhead::{median, rounds, runtime},
    wire::{Connection, Era, TOKEN},
};

const NAME: &str = "identity";
/// What it may add to a call.
const GOAL: Duration = Duration::from_micros(20);
const BATCH: u32 = 1000;
const ISSUER: &str = "http://127.0.0.1:9/nobody";
const AUDIENCE: &str = "https://mcp.example.org/mcp";
const SECRET: &str = "a secret for development, and long";
const TOOL: &str = "get_base_url";

pub(crate) fn run(wanted: &dyn Fn(&str) -> bool) {
    if !wanted(NAME) {
        return;
    }
    let env = Env::new();
    let config = Config::from_toml(&toml(), "bench.toml", &env).expect("a valid config");
    let gateways = runtime("gateway");
    let client = Builder::new_current_thread().enable_all().build().expect("a runtime");
    println!("{NAME}: callers who are known, median of {} rounds\n", rounds());
    let callers = [("own token", TOKEN.to_owned()), ("provider's token", jwt())];
    client.block_on(by_itself(&config, &callers));
    let address = gateways.block_on(async {
        let app = App::bind(&config, &env, gateway::telemetry()).await.expect("a gateway");
        let address = app.address().expect("an address");
        tokio::spawn(app.run());
        address
    });
    client.block_on(async {
        let mut sides = Vec::new();
        for (_, token) in &callers {
            let mut connection = Connection::open(address).await;
            let call = connection.prepare_call(Era::Modern, TOOL, &json!({})).await;
            let call = String::from_utf8(call).expect("text").replace(TOKEN, token);
            sides.push((connection, call, Vec::new()));
        }
        for round in 0..=rounds() {
            for (connection, call, times) in &mut sides {
                let began = Instant::now();
                for _ in 0..BATCH {
                    let answer = connection.exchange(call.as_bytes()).await;
                    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
                }
                // The first round warms up and is forgotten.
                if round > 0 {
                    times.push(micros_each(began));
                }
            }
        }
        let [own, providers] = &sides[..] else { return };
        let more: Vec<f64> = own
            .2
            .iter()
            .zip(&providers.2)
            .map(|(own, theirs)| theirs - own)
            .collect();
        let more = median(more);
        println!(
            "{TOOL:<20} {:.1} us with an own token, {more:+.1} us with a provider's ({})\n",
            median(own.2.clone()),
            verdict(more)
        );
    });
    gateways.shutdown_background();
}

/// Asks who has a token, and nothing else.
async fn by_itself(config: &Config, callers: &[(&str, String)]) {
    let authenticator = Authenticator::new(config).expect("tokens");
    let jwt = config.auth.jwt.as_ref().expect("the section");
    let provider = Provider::new(&jwt.issuer, None, jwt.secret.clone()).expect("a provider");
    let tokens = JwtTokens::new(jwt, Arc::new(provider), Arc::clone(authenticator.tenants())).expect("rules");
    let authenticator = authenticator.with(AnyMethod::Jwt(tokens));
    for (name, token) in callers {
        let mut times = Vec::new();
        for round in 0..=rounds() {
            let began = Instant::now();
            for _ in 0..BATCH {
                let found = authenticator.authenticate(Credentials::new(black_box(token))).await;
                assert!(black_box(found).is_ok(), "{name}");
            }
            if round > 0 {
                times.push(micros_each(began));
            }
        }
        let each = median(times);
        println!("{name:<20} {each:.2} us (goal {GOAL:?}: {})", verdict(each));
    }
}

fn micros_each(began: Instant) -> f64 {
    began.elapsed().as_secs_f64() * 1e6 / f64::from(BATCH)
}

fn verdict(micros: f64) -> &'static str {
    if micros <= GOAL.as_secs_f64() * 1e6 {
        "met"
    } else {
        "MISSED"
    }
}

/// Twenty tokens of its own, of which the last is used, and those of a provider.
fn toml() -> String {
    let tokens: String = (1..=20)
        .map(|number| {
            let token = if number == 20 {
                TOKEN.to_owned()
            } else {
                format!("another-token-{number}")
            };
            format!("[[auth.tokens]]\nname = \"agent-{number}\"\ntenant = \"all\"\ntoken = \"{token}\"\n")
        })
        .collect();
    format!(
        "[http]\nlisten = \"127.0.0.1:0\"\n[store]\nurl = \"sqlite::memory:\"\n\
         [[servers]]\nname = \"lab\"\nurl = \"http://127.0.0.1:9/\"\n\
         [[tenants]]\nname = \"all\"\nrequests_per_minute = 1000000\nburst = 1000000\n{tokens}\
         [auth.jwt]\nissuer = \"{ISSUER}\"\naudience = \"{AUDIENCE}\"\nsecret = \"{SECRET}\"\n"
    )
}

fn jwt() -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("a clock").as_secs();
    let claims = json!({
        "iss": ISSUER, "aud": AUDIENCE, "sub": "ana", "exp": now + 3600, "tenant": "all",
        "scope": "jupyter:read jupyter:write jupyter:execute",
    });
    let [head, claims] = [json!({ "alg": "HS256" }), claims].map(|part| URL_SAFE_NO_PAD.encode(part.to_string()));
    let key = hmac::Key::new(hmac::HMAC_SHA256, SECRET.as_bytes());
    let message = format!("{head}.{claims}");
    let signature = URL_SAFE_NO_PAD.encode(hmac::sign(&key, message.as_bytes()));
    format!("{message}.{signature}")
}
