//! Binary files: written as base64, told of by the tools for text, read as resources by who may.

use base64::{Engine, prelude::BASE64_STANDARD};
use serde_json::{Value, json};

use crate::support::{Agent, Era, Gateway, agent::ERAS, gateway::lab_server, lab};

/// The beginning of a PNG, which is no text.
const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\xff\xfe";

fn base64(bytes: &[u8]) -> String {
    BASE64_STANDARD.encode(bytes)
}

#[tokio::test]
async fn a_binary_file_is_written_told_of_read_and_overwritten() {
    let gateway = Gateway::start().await;
    for era in ERAS {
        let agent = Agent::connect(&gateway, era).await;
        let folder = lab().folder();
        let path = folder.path("a plöt.png");
        let create = |base64: &str| json!({ "path": path, "content_base64": base64 });
        // As some tools break it into lines.
        let lines = base64(PNG).replacen('A', "\nA", 1);
        let created = agent.call("create_document", create(&lines)).await.ok();
        assert_eq!(created["type"], "file");
        assert_eq!(std::fs::read(folder.disk.join("a plöt.png")).unwrap(), PNG);
        let again = agent.call("create_document", create(&lines)).await.error();
        assert!(again.contains("exists"), "{again}");

        let refused = agent
            .call("get_document_content", json!({ "path": path }))
            .await
            .error();
        let uri = format!("file:///documents/lab/{}/a%20pl%C3%B6t.png", folder.name);
        let told = format!("a binary file (image/png, 18 bytes), not text; read it as resource {uri}");
        assert!(refused.contains(&told), "{refused}");
        let read = agent.read(&uri).await;
        assert_eq!(
            (&read["blob"], &read["mimeType"]),
            (&json!(base64(PNG)), &json!("image/png"))
        );

        let refused = agent
            .call(
                "insert_document_text",
                json!({ "path": path, "position": 0, "text": "x" }),
            )
            .await;
        assert!(refused.error().contains("is a binary file"));
        let other = [PNG, b"\x01"].concat();
        let overwritten = agent.call("overwrite_document", create(&base64(&other))).await.ok();
        assert_eq!(overwritten["content_length"], other.len());
        assert_eq!(agent.read(&uri).await["blob"], base64(&other));
    }
}

#[tokio::test]
async fn bytes_are_refused_where_they_do_not_belong() {
    let gateway = Gateway::start().await;
    let agent = Agent::connect(&gateway, Era::Modern).await;
    let folder = lab().folder();
    let (text, notebook) = (folder.write("t.txt", "text"), folder.notebook("n.ipynb"));
    let bytes = base64(PNG);
    for (tool, arguments, told) in [
        (
            "create_document",
            json!({ "path": folder.path("a.bin"), "content_base64": "no base64!" }),
            "not base64",
        ),
        (
            "create_document",
            json!({ "path": folder.path("a.bin"), "content_base64": bytes, "content": "x" }),
            "without `content`",
        ),
        (
            "create_document",
            json!({ "path": folder.path("a.ipynb"), "content_base64": bytes }),
            "`content_base64`",
        ),
        (
            "create_document",
            json!({ "path": folder.path("d"), "type": "directory", "content_base64": bytes }),
            "`content_base64`",
        ),
        (
            "create_document",
            json!({ "path": folder.path("a.ipynb"), "type": "file", "content_base64": bytes }),
            "notebook",
        ),
        (
            "overwrite_document",
            json!({ "path": text, "content_base64": bytes }),
            "use `content`",
        ),
        (
            "overwrite_document",
            json!({ "path": notebook, "content_base64": bytes }),
            "use `content`",
        ),
        (
            "overwrite_document",
            json!({ "path": folder.path("none.bin"), "content_base64": bytes }),
            "none.bin",
        ),
        ("overwrite_document", json!({ "path": text }), "either `content`"),
        (
            "overwrite_document",
            json!({ "path": text, "content": "x", "content_base64": bytes }),
            "either `content`",
        ),
        (
            "overwrite_document",
            json!({ "path": text, "content_base64": bytes, "if_revision": "a-1" }),
            "`if_revision`",
        ),
    ] {
        let refused = agent.call(tool, arguments.clone()).await.error();
        assert!(refused.contains(told), "{arguments}: {refused}");
    }
    assert_eq!(folder.read("t.txt"), "text");
    assert!(!folder.has("a.bin") && !folder.has("a.ipynb") && !folder.has("d"));
}

#[tokio::test]
async fn files_are_read_as_resources_only_by_who_may() {
    let folder = lab().folder();
    std::fs::create_dir(folder.disk.join("closed")).unwrap();
    for name in ["open.bin", "closed/secret.bin"] {
        std::fs::write(folder.disk.join(name), PNG).unwrap();
    }
    folder.write("notes.txt", "Café");
    std::fs::File::create(folder.disk.join("large.bin"))
        .unwrap()
        .set_len(17 * 1024 * 1024)
        .unwrap();
    let token = |name: &str, more: &str| {
        format!("[[auth.tokens]]\nname = \"{name}\"\ntenant = \"t\"\ntoken = \"{name}\"\n{more}\n")
    };
    let paths = format!(
        "permissions = [\"read\"]\npaths = [\"{0}/**\", \"!{0}/closed/**\"]",
        folder.name
    );
    let config = format!(
        "{}[[tenants]]\nname = \"t\"\n{}{}",
        lab_server("lab"),
        token("reads-some", &paths),
        token("only-writes", "permissions = [\"write\"]")
    );
    let gateway = Gateway::configured(&config).await;
    let agent = Agent::with_token(&gateway, "reads-some", Era::Modern).await;
    let at = |path: &str| format!("file:///documents/lab/{}", folder.path(path));
    assert_eq!(agent.read(&at("open.bin")).await["blob"], base64(PNG));
    let notes: Value = agent.read(&at("notes.txt")).await;
    assert_eq!(
        (&notes["text"], &notes["mimeType"]),
        (&json!("Café"), &json!("text/plain"))
    );
    let unseen = agent.cannot_read(&at("nothing.bin")).await;
    for hidden in [
        at("closed/secret.bin"),
        at("sub/../closed/secret.bin"),
        at("closed%2Fsecret.bin"),
        at(""),
        "file:///documents/lab/..%2F..%2Fetc%2Fpasswd".to_owned(),
        "file:///documents/other/open.bin".to_owned(),
    ] {
        assert_eq!(agent.cannot_read(&hidden).await, unseen, "{hidden}");
    }
    let (_, large) = agent.cannot_read(&at("large.bin")).await;
    assert!(large.contains("17 MB") && large.contains("16 MB"), "{large}");
    let writer = Agent::with_token(&gateway, "only-writes", Era::Modern).await;
    let (_, refused) = writer.cannot_read(&at("open.bin")).await;
    assert!(refused.contains("`read`"), "{refused}");
}
