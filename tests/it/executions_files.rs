//! Code and the documents it reads and writes: a kernel sees what was edited, and a reader sees what code wrote.

use serde_json::{Value, json};

use crate::support::{
    Human,
    notebook::notebook,
    scene::{Scene, shown, texts},
};

async fn read(scene: &Scene, path: &str) -> String {
    let read = scene
        .agent
        .call("get_document_content", json!({ "path": path }))
        .await
        .ok();
    read["content"].as_str().expect("text").to_owned()
}

#[tokio::test]
async fn a_kernel_imports_what_was_just_edited() {
    let scene = Scene::new(&["import sys; sys.dont_write_bytecode = True"]).await;
    scene.run(0, 1).await.ok();
    let path = scene.folder.write("mymod.py", "VALUE = 0");
    for value in 1..=5 {
        let content = format!("VALUE = {value}");
        let write = json!({ "path": path, "content": content });
        assert_eq!(
            scene.agent.call("overwrite_document", write).await.ok()["acknowledged"],
            true
        );
        let ran = scene
            .code("import importlib, mymod; importlib.reload(mymod).VALUE")
            .await;
        assert_eq!(ran, value.to_string());
    }
}

#[tokio::test]
async fn a_text_is_on_disk_before_code_runs_also_where_people_save_by_hand() {
    let scene = Scene::new(&["1"]).await;
    let path = scene.folder.write("data.txt", "old");
    let human = Human::join(&path).await;
    human.publish("Pat", false);
    read(&scene, &path).await;
    human.wait_for("the gateway is there", |_| true).await;
    let write = json!({ "path": path, "content": "new" });
    scene.agent.call("overwrite_document", write).await.ok();
    assert_eq!(scene.code("open('data.txt').read()").await, "'new'");
}

#[tokio::test]
async fn a_reader_sees_what_their_code_wrote() {
    let scene = Scene::new(&["1"]).await;
    let path = scene.folder.write("out.txt", "0");
    assert_eq!(read(&scene, &path).await, "0");
    for number in 1..=3 {
        scene
            .code(&format!("open('out.txt', 'w').write('{number}') and None"))
            .await;
        assert_eq!(read(&scene, &path).await, number.to_string());
    }
    // A text with other ends of lines than a document has.
    scene
        .code("open('out.txt', 'w', newline='').write('a\\r\\nb\\r\\n') and None")
        .await;
    assert_eq!(read(&scene, &path).await, "a\nb\n");
    let append = json!({ "path": path, "position": 4, "text": "c" });
    scene.agent.call("insert_document_text", append).await.ok();
    assert_eq!(scene.code("open('out.txt').read()").await, "'a\\nb\\nc'");
    assert_eq!(read(&scene, &path).await, "a\nb\nc");
}

#[tokio::test]
async fn a_notebook_that_code_wrote_is_read_as_it_was_written() {
    let scene = Scene::new(&["1"]).await;
    let other = scene.folder.write("other.ipynb", &notebook(&["written = False"]));
    let read = json!({ "path": other });
    let before = scene.agent.call("read_nb_cells", read.clone()).await.ok();
    assert!(before["cell_count"].as_u64().unwrap() > 0, "{before}");
    scene
        .code("import nbformat\nnb = nbformat.read('other.ipynb', 4)\nnb.cells[0].source = 'written = True'\nnbformat.write(nb, 'other.ipynb')")
        .await;
    let after = scene.agent.call("read_nb_cells", read).await.ok();
    assert_eq!(after["cells"][0]["source"], "written = True", "{after}");
    assert_eq!(after["notices"], Value::Null);
}

#[tokio::test]
async fn running_and_reading_the_same_notebook_asks_jupyter_nothing_more() {
    let scene = Scene::new(&["6 * 7"]).await;
    let ran = scene.run(0, 1).await.ok();
    assert_eq!(texts(&ran["execution_results"][0]), ["42"]);
    let read = scene.call("read_nb_cells", json!({})).await.ok();
    assert_eq!(shown(&read["cells"][0]), "42");
}
