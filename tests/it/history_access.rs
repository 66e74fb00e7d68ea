//! Who may see and change what of a document's history.

use serde_json::json;

use crate::{
    history::{edit, id, versions},
    support::{
        Agent, Era, Gateway,
        gateway::{everything, lab_server},
        lab,
        notebook::notebook,
    },
};

#[tokio::test]
async fn permissions_and_path_rules_hold() {
    let folder = lab().folder();
    let open = folder.write("open/a.ipynb", &notebook(&["a"]));
    let secret = folder.write("secret/b.ipynb", &notebook(&["b"]));
    let bob = format!(
        "[[auth.tokens]]\nname = \"bob\"\ntenant = \"all\"\ntoken = \"token-of-bob\"\npermissions = [\"read\"]\npaths = [\"{0}/**\", \"!{0}/secret/**\"]\n",
        folder.name
    );
    let gateway = Gateway::configured(&format!("{}{}{bob}", lab_server("lab"), everything())).await;
    let ana = Agent::connect(&gateway, Era::Modern).await;
    let bob = Agent::with_token(&gateway, "token-of-bob", Era::Modern).await;
    edit(&ana, &open, "c0", "changed").await;
    edit(&ana, &secret, "c0", "changed").await;
    let (of_open, of_secret) = (versions(&ana, &open).await, versions(&ana, &secret).await);
    assert_eq!(versions(&bob, &open).await.len(), 2);
    let version = id(&of_open[0]);
    bob.call("diff_document", json!({ "path": open, "from": version, "to": version }))
        .await
        .ok();
    for (tool, arguments) in [
        ("get_document_history", json!({ "path": secret })),
        ("diff_document", json!({ "path": secret, "from": id(&of_secret[0]) })),
    ] {
        let error = bob.call(tool, arguments).await.error();
        assert!(error.contains("path rules"), "{tool}: {error}");
    }
    for (tool, arguments) in [
        (
            "restore_document_version",
            json!({ "path": open, "version_id": version }),
        ),
        ("undo_changes", json!({ "path": open })),
    ] {
        let error = bob.call(tool, arguments).await.error();
        assert!(error.contains("`write`"), "{tool}: {error}");
    }
    // A version of another document is as unknown as one that never was.
    for name in [id(&of_secret[0]), "v0000000000000"] {
        let arguments = json!({ "path": open, "version_id": name });
        let error = ana.call("restore_document_version", arguments).await.error();
        assert!(error.contains("has no version") && error.contains(version), "{error}");
        let error = bob
            .call("diff_document", json!({ "path": open, "from": name }))
            .await
            .error();
        assert!(error.contains("has no version") && error.contains(version), "{error}");
    }
    for (argument, arguments) in [
        ("limit", json!({ "path": open, "limit": 0 })),
        ("before", json!({ "path": open, "before": "yesterday" })),
        ("author", json!({ "path": open, "author": "nobody" })),
    ] {
        let error = ana.call("get_document_history", arguments).await.error();
        assert!(error.contains(&format!("`{argument}`")), "{error}");
    }
    let error = ana
        .call("get_document_history", json!({ "path": open, "author": "nobody" }))
        .await
        .error();
    assert!(error.contains("its authors are ana"), "{error}");
    let never = folder.write("open/never.ipynb", &notebook(&["a"]));
    let error = ana.call("get_document_history", json!({ "path": never })).await.error();
    assert!(error.contains("nothing is recorded"), "{error}");
}

#[tokio::test]
async fn an_operator_can_switch_history_off() {
    let gateway = Gateway::with("[store]\nhistory = false").await;
    let agent = Agent::connect(&gateway, Era::Modern).await;
    let folder = lab().folder();
    let path = folder.write("a.ipynb", &notebook(&["a"]));
    edit(&agent, &path, "c0", "changed").await;
    let error = agent
        .call("get_document_history", json!({ "path": path }))
        .await
        .error();
    assert!(error.contains("switched off"), "{error}");
}
