//! Outputs of every kind and size, as the kernel sends them and as JupyterLab would show them.

use serde_json::{Value, json};

use crate::support::{
    Agent, Era, eventually, lab,
    notebook::{notebook, whole_cells_on_disk},
    own_lab::OwnLab,
    process::resident_bytes,
    running::{Home, Running},
    scene::{Scene, ended, id, texts},
};

/// Runs the first cell, and returns its outputs as the file has them.
async fn saved_outputs(scene: &Scene, cell: usize, wanted: usize) -> Vec<Value> {
    let file = scene.folder.disk.join("run.ipynb");
    eventually("the file has the outputs", async || {
        let cells = whole_cells_on_disk(&file)?;
        let outputs = cells[cell]["outputs"].as_array()?.clone();
        (outputs.len() == wanted).then_some(outputs)
    })
    .await
}

#[tokio::test]
async fn rich_outputs_arrive_whole() {
    let pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
    let code = format!(
        "from IPython.display import display, HTML, Image\nimport base64\n\
         display(HTML('<table class=\"dataframe\"><tr><td>1</td></tr></table>'))\n\
         display(Image(base64.b64decode('{pixel}')))\n\
         display({{'application/vnd.jupyter.widget-view+json': {{'model_id': 'abc', 'version_major': 2, 'version_minor': 0}}, 'text/plain': 'IntSlider(value=0)'}}, raw=True)\n\
         print('\\x1b[31mred\\x1b[0m 漢字 🎉 e\\u0301')\n\
         import sys; print('warned', file=sys.stderr)\n\
         {{'a': 1}}"
    );
    let scene = Scene::new(&[&code]).await;
    let answer = scene.run(0, 1).await;
    let ran = answer.ok();
    assert_eq!(ran["status"], "completed", "{ran}");
    let saved = saved_outputs(&scene, 0, 6).await;
    let text = |value: &Value| match value {
        Value::Array(lines) => lines.iter().map(|line| line.as_str().unwrap()).collect::<String>(),
        other => other.as_str().unwrap_or_default().to_owned(),
    };
    assert!(text(&saved[0]["data"]["text/html"]).contains("dataframe"));
    assert_eq!(text(&saved[1]["data"]["image/png"]).trim_end(), pixel);
    assert_eq!(
        saved[2]["data"]["application/vnd.jupyter.widget-view+json"]["model_id"],
        "abc"
    );
    assert_eq!(text(&saved[3]["text"]), "\u{1b}[31mred\u{1b}[0m 漢字 🎉 e\u{301}\n");
    assert_eq!(
        (&saved[4]["name"], text(&saved[4]["text"])),
        (&json!("stderr"), "warned\n".to_owned())
    );
    assert_eq!(text(&saved[5]["data"]["text/plain"]), "{'a': 1}");
    assert!(
        saved.iter().all(|output| output.get("transient").is_none()),
        "nbformat knows no such member"
    );
}

#[tokio::test]
async fn help_that_people_would_page_through_is_an_output() {
    let scene = Scene::new(&["len?"]).await;
    let ran = scene.run(0, 1).await.ok();
    let output = &ran["execution_results"][0]["outputs"][0];
    assert_eq!(output["output_type"], "display_data", "{ran}");
    let help = output["data"]["text/plain"].as_str().unwrap();
    assert!(help.contains("Return the number of items"), "{help}");
    assert_eq!(saved_outputs(&scene, 0, 1).await[0]["metadata"], json!({}));
}

#[tokio::test]
async fn progress_bars_and_cleared_outputs_end_as_people_see_them() {
    let bar = "import time, sys\nfor n in range(101):\n    print(f'\\r{n:3}% ' + '█' * (n // 10), end='', file=sys.stderr, flush=True)\n    time.sleep(0.005)\nprint(' 完', file=sys.stderr)";
    let cleared = "from IPython.display import clear_output\nfor n in range(30):\n    clear_output(wait=True)\n    print('round', n)";
    let scene = Scene::new(&[bar, cleared]).await;
    let ran = scene.run(0, 2).await.ok();
    let full = "100% ██████████ 完\n";
    assert_eq!(texts(&ran["execution_results"][0]), [full]);
    assert_eq!(texts(&ran["execution_results"][1]), ["round 29\n"]);
    scene.saved("run.ipynb", 0, full).await;
    scene.saved("run.ipynb", 1, "round 29\n").await;
}

#[tokio::test]
async fn a_display_is_updated_from_a_later_cell() {
    let make = "from IPython.display import display\nprint('before')\nhandle = display('first', display_id=True)\nprint('after')";
    let scene = Scene::new(&[make, "handle.update('second')"]).await;
    scene.run(0, 2).await.ok();
    scene.saved("run.ipynb", 0, "before\n'second'after\n").await;
    scene.shows(0, "'second'").await;
    assert_eq!(scene.human.cell(1)["outputs"], json!([]));
}

#[tokio::test]
async fn threads_that_print_after_their_cell_ended_print_there() {
    let late = "import threading, time\ndef late():\n    time.sleep(0.7)\n    print('late')\nthreading.Thread(target=late).start()\nprint('in time')";
    let scene = Scene::new(&["print('another')", late]).await;
    let ran = scene.run(0, 2).await.ok();
    assert_eq!(texts(&ran["execution_results"][1]), ["in time\n"]);
    scene.shows(1, "late").await;
    assert_eq!(scene.idle_output(1).await, "in time\nlate\n");
    scene.saved("run.ipynb", 1, "in time\nlate\n").await;
    let told = scene.ended(ran["execution_id"].as_str().unwrap()).await;
    assert_eq!(texts(&told["cells"][1]), ["in time\nlate\n"], "the record has it too");
    // In code that no notebook shows it is told as well.
    let ran = scene.call("run_code", json!({ "code": late })).await.ok();
    eventually("it is told", async || {
        let told = scene.ended(ran["execution_id"].as_str().unwrap()).await;
        (texts(&told["cells"][0]) == ["in time\nlate\n"]).then_some(())
    })
    .await;
}

#[tokio::test]
async fn what_a_widget_captures_is_the_widgets_and_is_told_all_the_same() {
    let scene = Scene::new(&[
        "import ipywidgets\nout = ipywidgets.Output()\nout",
        "with out:\n    print('captured')\n    display('shown')\nprint('free')",
        "with out: print('more')",
        "out.clear_output()\nwith out: print('anew')",
        "@ipywidgets.interact(x=3)\ndef got(x): print('got', x)",
    ])
    .await;
    scene.run(0, 1).await.ok();
    let ran = scene.run(1, 2).await.ok();
    assert_eq!(
        texts(&ran["execution_results"][0]),
        ["free\n", "captured\n", "'shown'"],
        "the agent is told everything"
    );
    scene.shows(1, "free").await;
    assert_eq!(
        scene.idle_output(1).await,
        "free\n",
        "in the notebook it is the widget's"
    );
    let told = scene.ended(ran["execution_id"].as_str().unwrap()).await;
    assert_eq!(texts(&told["cells"][0]), ["free\n", "captured\n", "'shown'"]);
    let in_widget = "print([output.get('text') or output['data']['text/plain'] for output in out.outputs])";
    assert_eq!(scene.code(in_widget).await, "['captured\\n', \"'shown'\"]\n");
    scene.run(2, 3).await.ok();
    assert_eq!(scene.code(in_widget).await, "['captured\\n', \"'shown'\", 'more\\n']\n");
    scene.run(3, 4).await.ok();
    assert_eq!(scene.code(in_widget).await, "['anew\\n']\n");
    assert_eq!(
        (scene.idle_output(2).await, scene.idle_output(3).await),
        (String::new(), String::new())
    );
    let ran = scene.run(4, 5).await.ok();
    assert!(texts(&ran["execution_results"][0]).contains(&"got 3\n"), "{ran}");
    scene.shows(4, "interactive").await;
    let shown = scene.idle_output(4).await;
    assert!(!shown.contains("got 3"), "{shown}");
}

#[tokio::test]
async fn a_cell_that_prints_without_end_can_be_interrupted() {
    let scene =
        Scene::new(&["import time\nprint('xxx', flush=True)\ntime.sleep(0.3)\nwhile True: print('x' * 100)"]).await;
    let running = scene.start(0).await;
    scene.shows(0, "xxx").await;
    // The flood has to go on for a while, so that queues on its way are full.
    tokio::time::sleep(std::time::Duration::from_secs(3)).await;
    scene.call("interrupt_nb_kernel", json!({})).await.ok();
    let ended = scene.ended(&running).await;
    assert_eq!(ended["status"], "cancelled", "{}", ended["reason"]);
    // What Jupyter itself thins out may include the last words.
    assert!(scene.idle_output(0).await.starts_with("xxx\n"));
    assert_eq!(scene.code("1").await, "1");
}

#[tokio::test]
async fn an_output_that_is_too_large_is_left_out_and_that_is_said() {
    let large = "from IPython.display import display\nprint('small')\ndisplay({'text/plain': 'y' * 20_000_000}, raw=True)\nprint('after')";
    let scene = Scene::new(&[large]).await;
    let ran = scene.run(0, 1).await.ok();
    assert_eq!(ran["status"], "completed");
    let shown = scene.idle_output(0).await;
    assert_eq!(shown, "small\n\n[output beyond 10485760 bytes left out]\nafter\n");
}

#[tokio::test]
async fn a_hundred_megabytes_of_output_leave_the_gateway_as_small_as_it_was() {
    let jupyter = OwnLab::start(&[
        "--ZMQChannelsWebsocketConnection.iopub_data_rate_limit=1e12",
        "--ZMQChannelsWebsocketConnection.iopub_msg_rate_limit=1e12",
    ])
    .await;
    // Many small messages, and a single one, which has to be in memory once to be received at all.
    let floods = [
        ("for n in range(1_000_000): print('x' * 99)\nprint('end')", 60 << 20),
        ("print(('x' * 99 + '\\n') * 1_000_000, end='')\nprint('end')", 160 << 20),
    ];
    jupyter.write("f.ipynb", &notebook(&["1", floods[0].0, floods[1].0]));
    let home = Home::new();
    let mut command = home.serve();
    command
        .env("JUPYTERLAB_URL", jupyter.url())
        .env("JUPYTERLAB_TOKEN", jupyter.token())
        .env("JMG__EXECUTION__MAX_OUTPUT_BYTES", "2000000")
        .env("JMG__STORE__URL", "sqlite::memory:");
    let gateway = Running::start(command).await;
    let agent = Agent::connect_to(gateway.url(), gateway.token(), Era::Modern).await;
    let run = |cell: usize, timeout: f64| {
        let run = json!({ "path": "f.ipynb", "ranges": [{ "start": cell }], "timeout": timeout });
        agent.call("execute_nb_cells", run)
    };
    run(0, 60.0).await.ok();
    for (cell, (_, allowed)) in (1..).zip(floods) {
        let before = resident_bytes(gateway.pid());
        let running = id(&run(cell, 0.0).await.ok());
        let mut most = before;
        let measuring = async {
            loop {
                most = most.max(resident_bytes(gateway.pid()));
                tokio::time::sleep(std::time::Duration::from_millis(20)).await;
            }
        };
        let ended = tokio::select! {
            ended = ended(&agent, &running) => ended,
            () = measuring => unreachable!(),
        };
        assert_eq!(ended["status"], "completed");
        let [kept, mark] = texts(&ended["cells"][0])[..] else {
            panic!("two outputs");
        };
        assert_eq!(kept.len(), 2_000_000);
        assert_eq!(mark, "\n[output beyond 2000000 bytes left out]\n");
        println!("{} MB before, at most {} MB", before >> 20, most >> 20);
        assert!(most < before + allowed, "{} MB more", (most - before) >> 20);
    }
}

#[tokio::test]
async fn finished_code_leaves_the_gateway_as_small_as_it_was() {
    let home = Home::new();
    let mut command = home.serve();
    command
        .env("JUPYTERLAB_URL", lab().url())
        .env("JUPYTERLAB_TOKEN", lab().token())
        .env("JMG__STORE__URL", "sqlite::memory:");
    let gateway = Running::start(command).await;
    let [plain, with_tasks] = [
        json!({}),
        json!({ "extensions": { "io.modelcontextprotocol/tasks": {} } }),
    ];
    let plain = Agent::able_to(plain, gateway.url(), gateway.token(), Era::Modern).await;
    let with_tasks = Agent::able_to(with_tasks, gateway.url(), gateway.token(), Era::Modern).await;
    let source = "y".repeat(3_000_000);
    let run = async |times: usize| {
        for _ in 0..times {
            let code = format!("x = '{source}'\nlen(x)");
            let ran = plain.call("run_code", json!({ "code": code, "timeout": 60 })).await;
            assert_eq!(texts(&ran.ok()), ["3000000"]);
            let code = format!("import time; time.sleep(0.3); x = '{source}'\nlen(x)");
            let call = json!({ "name": "run_code", "arguments": { "code": code, "timeout": 0 } });
            let task = with_tasks.request("tools/call", call).await["result"].take();
            assert_eq!(task["resultType"], "task", "{task}");
            let ended = eventually("the task ends", async || {
                let seen = with_tasks
                    .request("tasks/get", json!({ "taskId": task["taskId"] }))
                    .await;
                (seen["result"]["status"] == "completed").then_some(seen)
            })
            .await;
            assert_eq!(texts(&ended["result"]["result"]["structuredContent"]), ["3000000"]);
        }
    };
    run(3).await;
    let before = resident_bytes(gateway.pid());
    run(30).await;
    let after = resident_bytes(gateway.pid());
    println!("{} MB before, {} MB after", before >> 20, after >> 20);
    assert!(after < before + (50 << 20), "{} MB more", (after - before) >> 20);
}
