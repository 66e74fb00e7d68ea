//! The page for people: the way in and out, and that it shows and does nothing that its visitor's token may not.

use reqwest::{Client, Response, StatusCode};
use serde_json::json;

use crate::support::{
    Agent, Era, Gateway, TIMEOUT, TOKEN,
    console::{Browser, form},
    eventually,
    gateway::lab_server,
    lab,
    running::{Home, Running},
    scene::Scene,
    within,
};

const BEN: &str = "test-token-of-ben";
const IDA: &str = "test-token-of-ida";

/// Two tenants on one server: Ana and Ida, who may read and only below `theirs`, and Ben.
fn two_tenants() -> String {
    let token = |name: &str, tenant: &str, token: &str, more: &str| {
        format!("[[auth.tokens]]\nname = \"{name}\"\ntenant = \"{tenant}\"\ntoken = \"{token}\"\n{more}\n")
    };
    let all = "permissions = [\"read\", \"write\", \"execute\", \"admin\"]";
    let little = "permissions = [\"read\"]\npaths = [\"theirs/**\"]";
    format!(
        "{}[[tenants]]\nname = \"one\"\n[[tenants]]\nname = \"two\"\n{}{}{}",
        lab_server("lab"),
        token("ana", "one", TOKEN, all),
        token("ida", "one", IDA, little),
        token("ben", "two", BEN, all),
    )
}

#[tokio::test]
async fn without_a_token_the_page_tells_how_to_connect_each_client() {
    let gateway = Gateway::start().await;
    let browser = Browser::at(&gateway.url(""));
    for path in ["/", "/console", "/console/", "/console/connect", "/console/audit"] {
        let page = browser.get(path).await;
        assert_eq!(
            (page.status, page.header("content-type")),
            (StatusCode::OK, "text/html; charset=utf-8")
        );
        for shown in [
            "Claude Code",
            "Cursor",
            "VS Code",
            "Python",
            &gateway.url("/mcp"),
            "Log in",
        ] {
            assert!(page.shows(shown), "{path} lacks {shown}: {}", page.html);
        }
        let policy = page.header("content-security-policy");
        for rule in [
            "default-src 'none'",
            "script-src 'self'",
            "frame-ancestors 'none'",
            "form-action 'self'",
        ] {
            assert!(policy.contains(rule), "{policy}");
        }
        assert!(!policy.contains("unsafe"), "{policy}");
        assert_eq!(page.header("cache-control"), "no-store");
        assert!(
            !page.shows("style=") && !page.shows("onclick="),
            "nothing inline: {}",
            page.html
        );
        assert!(!page.shows(TOKEN));
    }
    let lost = browser.get("/console/nowhere").await;
    assert_eq!(lost.status, 404);
}

#[tokio::test]
async fn the_page_is_in_nobodys_way() {
    let gateway = Gateway::start().await;
    let client = Client::new();
    let agent = Agent::connect(&gateway, Era::Modern).await;
    agent.call("list_servers", json!({})).await.ok();
    let healthy = client.get(gateway.url("/healthz")).send().await.expect("an answer");
    assert_eq!(healthy.status(), 200);
    let misled = client
        .post(gateway.url("/"))
        .body("{}")
        .send()
        .await
        .expect("an answer");
    assert_eq!(misled.status(), 404);
    let told = misled.text().await.expect("text");
    assert!(told.contains("MCP is served at /mcp"), "{told}");
    let rebound = client.get(gateway.url("/console")).header("host", "evil.example");
    assert_eq!(rebound.send().await.expect("an answer").status(), 403);
    let foreign = client
        .get(gateway.url("/console"))
        .header("origin", "https://evil.example");
    assert_eq!(foreign.send().await.expect("an answer").status(), 403);

    let off = Gateway::with("[console]\nenabled = false").await;
    for path in ["/", "/console", "/console/login"] {
        let nothing = client.get(off.url(path)).send().await.expect("an answer");
        assert_eq!(nothing.status(), 404, "{path}");
    }
}

#[tokio::test]
async fn files_of_the_page_are_sent_once() {
    let gateway = Gateway::start().await;
    for (file, kind) in [
        ("console.css", "text/css"),
        ("console.js", "text/javascript"),
        ("icon.svg", "image/svg+xml"),
    ] {
        let url = gateway.url(&format!("/console/{file}"));
        let sent = Client::new().get(&url).send().await.expect("an answer");
        let header = |name: &str| sent.headers()[name].to_str().expect("text").to_owned();
        assert!(header("content-type").starts_with(kind), "{file}");
        assert_eq!(header("x-content-type-options"), "nosniff");
        let again = Client::new().get(&url).header("if-none-match", header("etag"));
        assert_eq!(again.send().await.expect("an answer").status(), 304, "{file}");
    }
}

#[tokio::test]
async fn a_person_logs_in_with_a_token_that_no_page_shows_and_out_again() {
    let gateway = Gateway::start().await;
    let browser = Browser::at(&gateway.url(""));
    let wrong = browser.log_in("wrong").await;
    assert_eq!(wrong.status, 401);
    assert!(
        wrong.shows("not known here") && !wrong.shows("wrong\""),
        "{}",
        wrong.html
    );
    let nothing = browser.log_in("").await;
    assert_eq!(nothing.status, 422);

    let overview = browser.log_in(TOKEN).await;
    assert_eq!(overview.status, 200);
    assert!(overview.url.ends_with("/console"), "{}", overview.url);
    for shown in [
        "ana",
        "Log out",
        "Runs",
        "Open documents",
        "Servers",
        "Activity",
        "Limits of all",
    ] {
        assert!(overview.shows(shown), "no {shown}: {}", overview.html);
    }
    assert!(!overview.shows(TOKEN));
    let page = browser.get("/").await;
    assert!(page.shows("Log out"), "{}", page.html);

    let left = browser.submit(&page, "console/logout", &[]).await;
    assert!(left.shows("Log in") && !left.shows("Log out"), "{}", left.html);
    assert!(browser.get("/console").await.shows("Log in"));
}

#[tokio::test]
async fn the_cookie_is_out_of_reach_of_scripts_and_other_sites() {
    for (more, headers, is_secure) in [
        ("", &[][..], false),
        (
            "http.trusted_proxies = [\"127.0.0.1\"]",
            &[("x-forwarded-proto", "https"), ("x-forwarded-for", "10.1.2.3")][..],
            true,
        ),
    ] {
        let gateway = Gateway::with(more).await;
        let client = Client::builder().redirect(reqwest::redirect::Policy::none());
        let client = client.build().expect("a client");
        let with_headers = |mut request: reqwest::RequestBuilder| {
            for (name, value) in headers {
                request = request.header(*name, *value);
            }
            request
        };
        let front = with_headers(client.get(gateway.url("/")))
            .send()
            .await
            .expect("an answer");
        let form_cookie = cookie(&front);
        let html = front.text().await.expect("a page");
        let csrf = html
            .split("name=\"csrf\" value=\"")
            .nth(1)
            .and_then(|rest| rest.split('"').next());
        let fields = [("csrf", csrf.expect("a token")), ("token", TOKEN)];
        let login = form(with_headers(client.post(gateway.url("/console/login"))), &fields);
        let sent = login.try_clone().expect("a request").send().await.expect("an answer");
        assert_eq!(
            sent.status(),
            403,
            "the form is bound to the browser that it was shown in"
        );
        let pair = form_cookie.split(';').next().expect("a pair");
        let sent = login.header("cookie", pair).send().await.expect("an answer");
        assert_eq!(sent.status(), 303);
        let kept = cookie(&sent);
        assert!(kept.contains("HttpOnly") && kept.contains("SameSite=Strict"), "{kept}");
        assert_eq!(
            kept.contains("Secure") && kept.starts_with("__Host-"),
            is_secure,
            "{kept}"
        );
        assert!(!kept.contains(TOKEN), "{kept}");
    }
}

fn cookie(response: &Response) -> String {
    let cookie = response.headers().get("set-cookie").expect("a cookie");
    cookie.to_str().expect("text").to_owned()
}

#[tokio::test]
async fn forms_without_the_token_of_their_session_do_nothing() {
    let scene = Scene::new(&["import time\ntime.sleep(100)"]).await;
    let execution = scene.start(0).await;
    let browser = Browser::logged_in(&scene.gateway.url(""), TOKEN).await;
    let other = Browser::logged_in(&scene.gateway.url(""), TOKEN).await;
    let theirs = other.get("/console").await.forms();
    let theirs = theirs.iter().find_map(|form| form.fields.get("csrf")).expect("a token");
    for csrf in ["", "x", theirs.as_str()] {
        let refused = browser
            .post("/console/cancel", &[("csrf", csrf), ("id", &execution)])
            .await;
        assert_eq!(refused.status, 403, "{}", refused.html);
        let out = browser.post("/console/logout", &[("csrf", csrf)]).await;
        assert_eq!(out.status, 403, "{}", out.html);
    }
    let nobody = Browser::at(&scene.gateway.url(""));
    let refused = nobody
        .post("/console/cancel", &[("csrf", theirs), ("id", &execution)])
        .await;
    assert_eq!(refused.status, 403);
    let across = Client::new().post(scene.gateway.url("/console/login"));
    let across = form(across.header("sec-fetch-site", "same-site"), &[("token", TOKEN)]);
    assert_eq!(across.send().await.expect("an answer").status(), 403);
    let run = scene
        .agent
        .call("get_execution", json!({ "execution_id": execution }))
        .await
        .ok();
    assert_eq!(run["status"], "running");
    scene.cancel(&execution).await;
}

#[tokio::test]
async fn too_many_wrong_tokens_from_one_address_have_to_wait() {
    let gateway = Gateway::start().await;
    let browser = Browser::at(&gateway.url(""));
    let front = browser.get("/").await;
    let wrong = async || browser.submit(&front, "console/login", &[("token", "wrong")]).await;
    for _ in 0..100 {
        assert_eq!(wrong().await.status, 401);
    }
    let limited = wrong().await;
    assert_eq!(limited.status, 429);
    assert!(
        !limited.header("retry-after").is_empty() && limited.shows("Too many failed logins"),
        "{}",
        limited.html
    );
}

#[tokio::test]
async fn others_see_nothing_of_what_is_not_theirs() {
    let scene = Scene::notebook(&["import time\nprint('a secret', flush=True)\ntime.sleep(100)"]);
    let scene = scene.configured(&two_tenants()).set().await;
    let execution = scene.start(0).await;
    let gateway = scene.gateway.url("");
    let ana = Browser::logged_in(&gateway, TOKEN).await;
    eventually("Ana sees her run", async || {
        ana.get("/console").await.shows("a secret").then_some(())
    })
    .await;
    let file = scene.path.rsplit('/').next().expect("a name").to_owned();
    let (folder, run) = (scene.folder.name.clone(), format!("/console/run?id={execution}"));
    assert!(ana.get(&run).await.shows("a secret"));

    let ben = Browser::logged_in(&gateway, BEN).await;
    for page in [ben.get("/console").await, ben.get(&run).await] {
        assert!(!page.shows("a secret"), "{}", page.html);
    }
    assert_eq!(ben.get(&run).await.status, 404);
    let page = ben.get("/console").await;
    let cancelled = ben.submit(&page, "logout", &[]).await;
    assert_eq!(cancelled.status, 200);

    let ida = Browser::logged_in(&gateway, IDA).await;
    let page = ida.get("/console").await;
    assert!(
        !page.shows(&folder) && !page.shows(&file) && !page.shows("a secret"),
        "{}",
        page.html
    );
    for path in [
        format!("/console/document?server=lab&path={}", scene.path),
        format!("/console/fork?server=lab&path={}&fork=x", scene.path),
        format!("/console/document?server=lab&path=theirs/../{}", scene.path),
        "/console/audit".to_owned(),
    ] {
        let refused = ida.get(&path).await;
        assert!(
            refused.status == 403 || refused.status == 400,
            "{path}: {} {}",
            refused.status,
            refused.html
        );
    }
    let csrf = page.forms()[0].fields["csrf"].clone();
    let undo = [
        ("csrf", csrf.as_str()),
        ("server", "lab"),
        ("path", "theirs/x.ipynb"),
        ("steps", "1"),
    ];
    let refused = ida.post("/console/undo", &undo).await;
    assert!(refused.shows("permission `write`"), "{}", refused.html);
    scene.cancel(&execution).await;
}

#[tokio::test]
async fn what_a_notebook_says_is_text() {
    let hostile = "<img src=x onerror=alert(1)>";
    let code = format!("print({hostile:?})\nfrom IPython.display import HTML\nHTML({hostile:?})");
    let scene = Scene::of("<b>x&y.ipynb", &crate::support::notebook::notebook(&[&code]))
        .set()
        .await;
    scene.run(0, 1).await.ok();
    let browser = Browser::logged_in(&scene.gateway.url(""), TOKEN).await;
    let overview = browser.get("/console").await;
    let run = overview.links("console/run?")[0].clone();
    let run = browser.get(&overview.path_of(&run)).await;
    assert!(run.shows("&lt;img src=x onerror=alert(1)&gt;"), "{}", run.html);
    let document = overview.links("console/document?")[0].clone();
    let document = browser.get(&overview.path_of(&document)).await;
    assert_eq!(document.status, 200, "{}", document.html);
    for page in [overview, run, document] {
        assert!(!page.shows("<img src=x") && !page.shows("<b>x"), "{}", page.html);
    }
}

#[tokio::test]
async fn a_page_follows_what_goes_on_until_its_session_ends() {
    let scene = Scene::new(&["import time\nprint('begun', flush=True)\ntime.sleep(100)"]).await;
    let browser = Browser::logged_in(&scene.gateway.url(""), TOKEN).await;
    let overview = browser.get("/console").await;
    let live = overview
        .html
        .split("data-live=\"")
        .nth(1)
        .and_then(|rest| rest.split('"').next());
    let live = overview.path_of(live.expect("a page that is followed"));
    let mut followed = browser.follow(&live).await;
    assert_eq!(followed.headers()["content-type"], "text/event-stream");
    let execution = scene.start(0).await;
    hears(&mut followed, "begun").await;
    scene.cancel(&execution).await;
    hears(&mut followed, "cancelled").await;

    browser.submit(&overview, "console/logout", &[]).await;
    hears(&mut followed, "event: over").await;
    let closed = browser.follow(&live).await;
    assert_eq!(closed.status(), 401);
}

/// Waits until a page that is followed is told something.
async fn hears(followed: &mut Response, text: &str) {
    within(TIMEOUT, text, async {
        let mut heard = String::new();
        while !heard.contains(text) {
            let chunk = followed.chunk().await.expect("a stream");
            heard.push_str(&String::from_utf8_lossy(
                &chunk.unwrap_or_else(|| panic!("no {text}: {heard}")),
            ));
        }
    })
    .await;
}

#[tokio::test]
async fn a_session_ends_with_the_token_it_was_opened_with() {
    let (home, lab) = (Home::new(), lab_server("lab"));
    let file = home.path("gateway.toml");
    let config = |tokens: &str| format!("store.url = \"sqlite::memory:\"\n{lab}[[tenants]]\nname = \"t\"\n{tokens}");
    let token = |name: &str, more: &str| {
        format!("[[auth.tokens]]\nname = \"{name}\"\ntenant = \"t\"\ntoken = \"token-of-{name}-long-enough\"\n{more}\n")
    };
    let write = "permissions = [\"read\", \"write\"]";
    let all = format!("{}{}{}", token("ana", write), token("ben", write), token("ida", write));
    std::fs::write(&file, config(&all)).expect("a config");
    let mut command = home.serve();
    command.arg("--config").arg(&file);
    let gateway = Running::start(command).await;
    let base = gateway.url().trim_end_matches("/mcp").to_owned();
    let mut browsers = Vec::new();
    for name in ["ana", "ben", "ida"] {
        browsers.push(Browser::logged_in(&base, &format!("token-of-{name}-long-enough")).await);
    }
    let narrowed = token("ben", "permissions = [\"read\"]");
    std::fs::write(&file, config(&format!("{narrowed}{}", token("ida", write)))).expect("a config");
    gateway.signal("-HUP");
    eventually("Ana is logged out", async || {
        browsers[0].get("/").await.shows("Log in").then_some(())
    })
    .await;
    assert!(
        !browsers[1].get("/").await.shows("Log out"),
        "who may do less logs in again"
    );
    assert!(browsers[2].get("/").await.shows("Log out"), "others go on");
}

#[tokio::test]
async fn admins_see_the_calls_of_their_tenant_looks_at_pages_included() {
    let gateway = Gateway::configured(&two_tenants()).await;
    let ana = Agent::with_token(&gateway, TOKEN, Era::Modern).await;
    let ben = Agent::with_token(&gateway, BEN, Era::Modern).await;
    ana.call("list_servers", json!({})).await.ok();
    ben.call("get_base_url", json!({})).await.ok();
    let folder = lab().folder();
    let path = folder.write("a.ipynb", &crate::support::notebook::notebook(&["x"]));
    let browser = Browser::logged_in(&gateway.url(""), TOKEN).await;
    let ida = Browser::logged_in(&gateway.url(""), IDA).await;
    assert_eq!(ida.document(&path, "").await.status, 403);
    assert!(!ida.get("/console").await.shows("console/audit"));
    let page = browser.get("/console/audit").await;
    assert!(page.shows("list_servers") && page.shows("token:ana"), "{}", page.html);
    assert!(
        page.shows("<code>console</code>") && page.shows("denied: paths"),
        "{}",
        page.html
    );
    assert!(!page.shows("get_base_url") && !page.shows("token:ben"), "{}", page.html);
    let denied = browser.get("/console/audit?denied=yes").await;
    assert!(
        denied.shows("denied: paths") && !denied.shows("list_servers"),
        "{}",
        denied.html
    );
    let hers = browser.get("/console/audit?principal=token:ida").await;
    assert!(hers.shows("token:ida") && !hers.shows("list_servers"), "{}", hers.html);
}
