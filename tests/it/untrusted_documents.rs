//! Documents, presences, kernels and files that are nested so deeply that taking them in would end the process. The
//! line to Jupyter says such things in its place, since Jupyter itself does not survive all of them.

use serde_json::{Value, json};

use crate::support::{
    Agent,
    agent::ToolAnswer,
    eventually, lab,
    notebook::notebook,
    process::resident_bytes,
    process_scene::ProcessScene,
    proxy::Proxy,
    scene::{ended, id, shown},
};

const DEPTHS: [usize; 2] = [8_000, 100_000];
const TOO_DEEP: &str = "nested more than 100 levels deep";
const MEGABYTE: usize = 1024 * 1024;

fn put(bytes: &mut Vec<u8>, mut number: usize) {
    while number >= 0x80 {
        bytes.push(u8::try_from(number & 0x7f).expect("7 bits") | 0x80);
        number >>= 7;
    }
    bytes.push(u8::try_from(number).expect("7 bits"));
}

fn buffer(bytes: &[u8]) -> Vec<u8> {
    let mut all = vec![];
    put(&mut all, bytes.len());
    all.extend(bytes);
    all
}

fn json_text(depth: usize) -> Vec<u8> {
    format!("{}{}", "[".repeat(depth), "]".repeat(depth)).into_bytes()
}

/// A sync message with one block of somebody in the root `cells`.
fn update(kind: u8, content: &[u8]) -> Vec<u8> {
    let block = [&[1, 1, 77, 0, kind, 1][..], &buffer(b"cells"), content, &[0]].concat();
    [&[0, 2][..], &buffer(&block)].concat()
}

/// Lists in lists, in all the ways in which a document can have them.
fn values(depth: usize) -> [Vec<u8>; 4] {
    let any = [[117_u8, 1].repeat(depth - 1), vec![117, 0]].concat();
    let json = buffer(&json_text(depth));
    [
        update(8, &[vec![1], any.clone()].concat()),
        update(5, &json),
        update(6, &[buffer(b"bold"), json].concat()),
        update(9, &[buffer(b"guid"), any].concat()),
    ]
}

/// A map in a map in a map, each a shared one.
fn maps(levels: usize) -> Vec<u8> {
    let mut blocks = vec![1];
    put(&mut blocks, levels);
    blocks.extend([77, 0, 7, 1]);
    blocks.extend(buffer(b"cells"));
    blocks.push(1);
    for level in 1..levels {
        blocks.extend([7, 0, 77]);
        put(&mut blocks, level - 1);
        blocks.push(1);
    }
    blocks.push(0);
    [&[0, 2][..], &buffer(&blocks)].concat()
}

fn presence(depth: usize) -> Vec<u8> {
    let entry = [&[1, 77, 1][..], &buffer(&json_text(depth))].concat();
    [&[1][..], &buffer(&entry)].concat()
}

/// The binary, behind a line that can be spoken into, and a notebook that a person has open.
async fn set_scene(cells: &[&str]) -> (ProcessScene, Proxy) {
    let proxy = Proxy::to(lab().address()).await;
    (ProcessScene::through(&proxy.url(), cells).await, proxy)
}

impl ProcessScene {
    async fn read(&self, agent: &Agent) -> ToolAnswer {
        agent.call("read_nb_cells", json!({ "path": self.path })).await
    }

    async fn close(&self, agent: &Agent) {
        agent.call("end_nb_session", json!({ "path": self.path })).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_document_that_is_nested_too_deeply_is_refused_with_a_reason_and_the_gateway_lives() {
    let (scene, proxy) = set_scene(&["1"]).await;
    let (gateway, agent) = scene.gateway().await;
    scene.read(&agent).await.ok();
    let before = resident_bytes(gateway.pid());
    for depth in DEPTHS {
        for frame in values(depth).into_iter().chain([maps(depth)]) {
            scene.close(&agent).await;
            proxy.inject(&frame);
            let told = scene.read(&agent).await.error();
            assert!(told.contains(TOO_DEEP) && told.contains("run.ipynb"), "{told}");
            assert_eq!(scene.read(&agent).await.ok()["cell_count"], 1, "it is healthy again");

            // While it is open.
            proxy.inject(&frame);
            scene.human.splice_cell("c0", 0, 0, ".");
            eventually("it is said", async || proxy.has_injected().then_some(())).await;
            eventually("the agent reads what the person sees", async || {
                let read = scene.read(&agent).await;
                (!read.is_error && read.structured["cells"][0]["source"] == scene.human.sources()[0].as_str())
                    .then_some(())
            })
            .await;
        }
        // What somebody says of themselves does not concern the document.
        proxy.inject(&presence(depth));
        scene.human.splice_cell("c0", 0, 0, "p");
        eventually("it is said", async || proxy.has_injected().then_some(())).await;
        scene.read(&agent).await.ok();
    }
    let after = resident_bytes(gateway.pid());
    assert!(after < before + 50 * MEGABYTE, "{before} and then {after} bytes");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn what_ran_in_such_a_document_is_lost_and_no_restart_dies_of_it() {
    for depth in DEPTHS {
        let (scene, proxy) = set_scene(&["import time\nprint('begun', flush=True)\ntime.sleep(600)"]).await;
        let (gateway, agent) = scene.gateway().await;
        let run = json!({ "path": scene.path, "ranges": [{ "start": 0 }], "timeout": 0 });
        let execution = id(&agent.call("execute_nb_cells", run).await.ok());
        scene
            .human
            .wait_for("it runs", |human| shown(&human.cell(0)).contains("begun"))
            .await;
        gateway.signal("-KILL");
        gateway.ended().await;
        proxy.inject(&values(depth)[0]);
        let (again, agent) = scene.gateway().await;
        let told = ended(&agent, &execution).await;
        assert_eq!(told["status"], "lost", "{told}");
        assert!(told.to_string().contains(TOO_DEEP), "{told}");
        scene.recorded(&told["execution_id"], "lost").await;
        again.signal("-KILL");
        again.ended().await;
        let (_last, agent) = scene.gateway().await;
        assert_eq!(ended(&agent, &execution).await["status"], "lost");
        let interrupt = json!({ "path": scene.path });
        agent.call("interrupt_nb_kernel", interrupt).await.ok();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn what_a_kernel_shows_may_be_nested_as_it_likes() {
    let deep = "value = 0\nfor _ in range(500): value = [value]\nfrom IPython.display import display\ndisplay({'application/json': value, 'text/plain': 'deep'}, raw=True)\n'end'";
    let (scene, _proxy) = set_scene(&[deep]).await;
    let (_gateway, agent) = scene.gateway().await;
    let run = json!({ "path": scene.path, "ranges": [{ "start": 0 }] });
    let ran = agent.call("execute_nb_cells", run).await.ok();
    assert_eq!(ran["status"], "completed", "{ran}");
    let text = ran.to_string();
    assert!(text.contains(TOO_DEEP) && text.contains("'end'"), "{text}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_file_that_is_nested_too_deeply_is_told_and_can_be_replaced() {
    let (scene, _proxy) = set_scene(&["1"]).await;
    let (_gateway, agent) = scene.gateway().await;
    let file = |depth: usize| {
        let deep = String::from_utf8(json_text(depth)).expect("text");
        notebook(&["1"]).replacen("\"metadata\":{}", &format!("\"metadata\":{{\"deep\":{deep}}}"), 1)
    };
    // The server itself cannot read more than some hundred levels, and says so.
    for depth in [150, 8_000, 100_000] {
        let path = scene.folder.write(&format!("{depth}.ipynb"), &file(depth));
        for (tool, arguments) in [
            ("get_nb_stat", json!({ "path": path })),
            ("get_document_info", json!({ "path": path, "include_content": true })),
            ("read_nb_cells", json!({ "path": path })),
        ] {
            let told = agent.call(tool, arguments).await.error();
            assert!(depth > 150 || told.contains(TOO_DEEP), "{depth} {tool}: {told}");
        }
        let overwrite = json!({ "path": path, "content": notebook(&["repaired"]) });
        agent.call("overwrite_document", overwrite).await.ok();
        let written = scene.folder.read(&format!("{depth}.ipynb"));
        assert!(written.contains("repaired"), "{written}");
        let read = agent.call("read_nb_cells", json!({ "path": path })).await.ok();
        assert_eq!(read["cells"][0]["source"], "repaired", "{depth}");
    }
    // Somebody else repairs the file. The server keeps what it deletes of a cell that stays.
    let path = scene.folder.write("outside.ipynb", &file(150));
    let read = async || agent.call("read_nb_cells", json!({ "path": path })).await;
    let told = read().await.error();
    assert!(told.contains(TOO_DEEP), "{told}");
    scene.folder.write("outside.ipynb", &notebook(&["repaired"]));
    eventually("it is read again", async || {
        let read = read().await;
        (!read.is_error && read.structured["cells"][0]["source"] == "repaired").then_some(())
    })
    .await;
    let change = json!({ "path": path, "modifications": [{ "range": { "cell_id": "c0" }, "content": "changed" }], "exec": false });
    agent.call("modify_nb_cells", change).await.ok();
    eventually("it is saved", async || {
        scene.folder.read("outside.ipynb").contains("changed").then_some(())
    })
    .await;
    let refused = json!({ "path": scene.folder.path("new.ipynb"), "content": file(110) });
    let told = agent.call("create_document", refused).await.error();
    assert!(told.contains(TOO_DEEP), "{told}");
    assert!(!scene.folder.has("new.ipynb"));
    assert_ne!(scene.read(&agent).await.ok(), Value::Null);
}
