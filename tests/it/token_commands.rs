//! `token list` and `token revoke`, beside gateways that run.

use serde_json::json;
use store::file_url;
use test_postgres::TestDatabase;

use crate::support::{
    Agent, Era, Gateway,
    command::run_beside,
    eventually,
    gateway::lab_server,
    wire::{Events, send},
};

const TWO_TOKENS: &str = "[[tenants]]\nname = \"team\"\n\
    [[auth.tokens]]\nname = \"ana\"\ntenant = \"team\"\ntoken = \"token-of-ana\"\n\
    [[auth.tokens]]\nname = \"ben\"\ntenant = \"team\"\ntoken = \"token-of-ben\"\npermissions = [\"read\"]\npaths = [\"b/**\"]\n";

#[tokio::test]
async fn a_command_revokes_a_token_in_every_gateway_of_the_store() {
    let (folder, database) = (tempfile::tempdir().unwrap(), TestDatabase::create());
    for (number, store) in [file_url(&folder.path().join("gateway.db")), database.url()]
        .into_iter()
        .enumerate()
    {
        let file = folder.path().join(format!("{number}.toml"));
        let config = format!("[store]\nurl = {store:?}\n{}{TWO_TOKENS}", lab_server("lab"));
        std::fs::write(&file, &config).unwrap();
        let command = async |arguments: &[&str]| {
            let mut all = arguments.to_vec();
            all.extend(["--config", file.to_str().unwrap()]);
            run_beside(&all).await
        };
        let listed = command(&["token", "list"]).await;
        assert_eq!(listed.code, Some(0), "{}", listed.stderr);
        let lines: Vec<&str> = listed.stdout.lines().collect();
        assert_eq!(
            lines,
            [
                "\"ana\"  active  tenant=\"team\"  permissions=read,write,execute  paths=**",
                "\"ben\"  active  tenant=\"team\"  permissions=read  paths=b/**"
            ]
        );
        assert!(!listed.stdout.contains("token-of"));

        let gateways = [Gateway::configured(&config).await, Gateway::configured(&config).await];
        let mut streams = Vec::new();
        for gateway in &gateways {
            let ana = Agent::with_token(gateway, "token-of-ana", Era::Legacy).await;
            ana.call("list_servers", json!({})).await.ok();
            streams.push((Events::new(ana.listen(None).await), ana));
        }
        let unknown = command(&["token", "revoke", "--name", "eva"]).await;
        assert_eq!(unknown.code, Some(70));
        assert!(
            unknown.stderr.contains("no token \"eva\"; it has: \"ana\", \"ben\""),
            "{}",
            unknown.stderr
        );

        let revoked = command(&["token", "revoke", "--name", "ana"]).await;
        assert_eq!(revoked.code, Some(0), "{}", revoked.stderr);
        for ((mut events, _), gateway) in streams.into_iter().zip(&gateways) {
            while events.next().await.is_some() {}
            let refused = eventually("a refusal", async || {
                let request = reqwest::Client::new().post(gateway.url("/mcp")).body("{}");
                let answer = send(request.bearer_auth("token-of-ana")).await;
                (answer.status.as_u16() == 401).then_some(answer.text)
            })
            .await;
            assert!(refused.contains("it was revoked"), "{refused}");
            let ben = Agent::with_token(gateway, "token-of-ben", Era::Modern).await;
            ben.call("list_servers", json!({})).await.ok();
        }
        let again = command(&["token", "revoke", "--name", "ana"]).await;
        assert!(again.stdout.contains("was revoked before"), "{}", again.stderr);
        assert!(command(&["token", "list"]).await.stdout.contains("\"ana\"  revoked 20"));
        // A gateway that starts later has not forgotten it.
        let late = Gateway::configured(&config).await;
        let request = reqwest::Client::new().post(late.url("/mcp")).body("{}");
        assert_eq!(send(request.bearer_auth("token-of-ana")).await.status.as_u16(), 401);
        std::fs::write(&file, config.replace("token-of-ana", "another-token-of-ana")).unwrap();
        let listed = command(&["token", "list"]).await.stdout;
        assert!(
            listed.contains("\"ana\"  active") && listed.contains("not in the config"),
            "{listed}"
        );
    }
    let file = folder.path().join("memory.toml");
    std::fs::write(&file, format!("store.url = \"sqlite::memory:\"\n{TWO_TOKENS}")).unwrap();
    let refused = run_beside(&["token", "revoke", "--name", "ana", "--config", file.to_str().unwrap()]).await;
    assert!(
        refused.code == Some(70) && refused.stderr.contains("in memory"),
        "{}",
        refused.stderr
    );
}
