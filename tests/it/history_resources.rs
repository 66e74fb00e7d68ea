//! Versions and differences as resources that are read, completed and watched.

use serde_json::json;

use crate::{
    history::{edit, id, versions},
    support::{Watcher, agent::ERAS, scene::Scene},
};

#[tokio::test]
async fn versions_are_read_completed_and_watched() {
    for era in ERAS {
        let scene = Scene::notebook(&["print('zero')", "one"]).era(era).set().await;
        let (agent, path) = (&scene.agent, &scene.path);
        scene.run(0, 1).await.ok();
        edit(agent, path, "c1", "changed").await;
        let all = versions(agent, path).await;
        let current = agent.read("notebook://current").await["_meta"].clone();
        let text = |key: &str| current[key].as_str().expect("an id").to_owned();
        let uri = format!("notebook://{}/{}", text("sessionId"), text("notebookId"));
        let history = format!("{uri}/history");
        let listed = agent.read(&history).await["text"].as_str().unwrap().to_owned();
        assert!(
            listed.contains(id(&all[0])) && listed.contains("\"author\": \"ana\""),
            "{listed}"
        );
        let version = agent.read(&format!("{history}/{}", id(&all[0]))).await;
        let notebook: serde_json::Value = serde_json::from_str(version["text"].as_str().unwrap()).unwrap();
        assert_eq!(notebook["cells"][1]["source"], "changed");
        assert_eq!(notebook["cells"][0]["outputs"][0]["text"], "zero\n", "{notebook}");
        let begin = id(all.last().unwrap());
        for to in [id(&all[0]), ""] {
            let diff = agent.read(&format!("{uri}/diff/{begin}..{to}")).await;
            let shown = diff["text"].as_str().unwrap();
            assert!(shown.contains("-one\n+changed"), "{shown}");
        }
        let (_, message) = agent.cannot_read(&format!("{history}/v0")).await;
        assert!(message.contains(id(&all[0])), "{message}");
        let template = format!("{}/history/{{version_id}}", "notebook://{session_id}/{notebook_id}");
        let known = json!({ "session_id": text("sessionId"), "notebook_id": text("notebookId") });
        let reference = json!({ "type": "ref/resource", "uri": template });
        let completed = agent.complete(reference, "version_id", "v", known).await;
        assert!(completed.iter().any(|value| value == begin), "{completed:?}");
        let mut watcher = Watcher::start(agent, era, &[&history]).await;
        while watcher.next().await.is_some() {}
        edit(agent, path, "c1", "changed again").await;
        watcher.updated(&history).await;
    }
}
