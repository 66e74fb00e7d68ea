//! Rates and shares of tenants, alone and beside each other.

use super::*;

fn config(name: &str) -> TenantConfig {
    TenantConfig {
        name: name.to_owned(),
        requests_per_minute: 1,
        burst: 10,
        max_streams: 2,
        max_bytes_held: 1000,
        ..TenantConfig::default()
    }
}

fn limits(tenants: &[TenantConfig]) -> Arc<Limits> {
    Limits::new(tenants, Metrics::new("test", None).expect("metrics"))
}

fn ana() -> Arc<str> {
    "token:ana".into()
}

fn admit(limits: &Limits, principal: &str) -> Result<Admission, Refusal> {
    limits.admit("a", &principal.into(), Resource::Requests)
}

fn admitted(limits: &Limits, principal: &str) -> usize {
    (0..1000).take_while(|_| admit(limits, principal).is_ok()).count()
}

#[test]
fn a_principal_has_its_burst_and_its_tenant_that_of_ten() {
    let limits = limits(&[config("a"), config("b")]);
    assert_eq!(admitted(&limits, "token:ana"), 10);
    let refused = admit(&limits, "token:ana").err().expect("refused");
    assert_eq!(refused.limit(), "principal");
    assert!(refused.retry_after() > Duration::from_secs(30), "{refused:?}");
    assert!(refused.to_string().contains("wait 60 s"), "{refused}");
    for other in 1..10 {
        assert_eq!(admitted(&limits, &format!("token:{other}")), 10);
    }
    let refused = admit(&limits, "token:late").err().expect("refused");
    assert_eq!(refused.limit(), "tenant");
    assert!(limits.admit("b", &ana(), Resource::Requests).is_ok());
}

#[test]
fn what_costs_more_is_charged_more() {
    let limits = limits(&[config("a")]);
    let admission = admit(&limits, "token:ana").expect("admitted");
    admission.charge(4).expect("five in all");
    let mut headers = http::HeaderMap::new();
    admission.describe(&mut headers);
    assert_eq!(
        headers["ratelimit-policy"],
        "\"principal\";q=10;w=600, \"tenant\";q=100;w=600"
    );
    assert_eq!(headers["ratelimit"], "\"principal\";r=5;t=300, \"tenant\";r=95;t=30");
    assert!(admission.charge(6).is_err());
    assert_eq!(admitted(&limits, "token:ana"), 5, "what was refused costs nothing");
    let mut headers = http::HeaderMap::new();
    admit(&limits, "token:ana")
        .err()
        .expect("refused")
        .describe(&mut headers);
    assert_eq!(headers["retry-after"], "60");
    assert_eq!(headers["ratelimit"], "\"principal\";r=0;t=60");
}

#[test]
fn what_costs_more_than_the_burst_needs_all_of_it() {
    let limits = limits(&[TenantConfig {
        burst: 4,
        ..config("a")
    }]);
    let full = limits.tenant("a").principal(&ana());
    assert_eq!(full.take(50), Ok(0));
    assert!(full.take(50).is_err());
}

#[test]
fn other_limits_hold_for_what_was_used_already() {
    let limits = limits(&[config("a")]);
    assert!(admit(&limits, "token:ana").expect("admitted").charge(5).is_ok());
    limits.replace(&[TenantConfig {
        burst: 8,
        ..config("a")
    }]);
    assert_eq!(admitted(&limits, "token:ana"), 2, "six of eight are used");
    limits.replace(&[TenantConfig {
        burst: 20,
        requests_per_minute: 2,
        ..config("a")
    }]);
    assert_eq!(admitted(&limits, "token:ana"), 12, "eight of twenty are used");
    limits.replace(&[]);
    limits.replace(&[config("a")]);
    assert_eq!(admitted(&limits, "token:ana"), 10, "a tenant that was gone begins anew");
}

#[test]
fn streams_and_bytes_are_given_back() {
    let limits = limits(&[config("a")]);
    let stream = || limits.admit("a", &ana(), Resource::Streams);
    let held = (stream().expect("one"), stream().expect("two"));
    let refused = stream().err().expect("refused");
    assert_eq!(refused.limit(), "max_streams");
    assert!(refused.to_string().contains("2 open streams"), "{refused}");
    drop(held);
    let request = admit(&limits, "token:ana").expect("admitted");
    request.become_stream().expect("one");
    assert!(stream().is_ok());
    request.hold_body(900).expect("nine tenths");
    let other = admit(&limits, "token:ana").expect("admitted");
    assert_eq!(other.hold_body(200).expect_err("too much").limit(), "max_bytes_held");
    request.set_bytes(5000);
    assert!(
        other.hold_body(1).is_err(),
        "an answer is sent whatever its size, and then nothing is read"
    );
    drop(request);
    other.hold_body(2000).expect("who has nothing may read anything");
    drop(other);
    assert!(limits.usage().iter().all(|limit| limit.used == 0));
}

#[test]
fn who_is_quiet_is_forgotten() {
    let fast = TenantConfig {
        requests_per_minute: 1_000_000,
        ..config("a")
    };
    let limits = limits(&[fast]);
    for number in 0..100 {
        let _ = admit(&limits, &format!("token:{number}"));
    }
    assert_eq!(limits.tenant("a").principals(), 100);
    limits.sweep(Instant::now());
    assert_eq!(limits.tenant("a").principals(), 100, "not yet");
    limits.sweep(Instant::now() + Duration::from_secs(3600));
    assert_eq!(limits.tenant("a").principals(), 0);
}

#[test]
fn admitting_costs_little() {
    let generous = TenantConfig {
        requests_per_minute: 1_000_000,
        burst: 1_000_000,
        ..config("a")
    };
    let limits = limits(&[generous]);
    let principal = ana();
    let mut best = Duration::MAX;
    for _ in 0..20 {
        let begun = Instant::now();
        for _ in 0..1000 {
            let mut headers = http::HeaderMap::with_capacity(4);
            let admission = limits.admit("a", &principal, Resource::Requests).expect("admitted");
            admission.describe(&mut headers);
        }
        best = best.min(begun.elapsed() / 1000);
    }
    println!("{best:?} per request");
    // An optimised build takes a tenth of it.
    assert!(best < Duration::from_micros(20), "{best:?}");
}
