//! Files that are larger than anything a gateway should hold.

use std::{fs::File, io::Write};

use serde_json::{Value, json};

use crate::support::{
    Agent, Era, lab,
    process::{peak_bytes, resident_bytes},
    running::{Home, Running},
};

const MEGABYTE: usize = 1024 * 1024;
const SIZE: usize = 200 * MEGABYTE;

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_little_of_a_huge_file_costs_little() {
    let folder = lab().folder();
    let (text, binary) = (folder.path("huge.txt"), folder.path("huge.bin"));
    let line = "äbcdefghijklmnopqrstuvwxyz 0123456789\n";
    let mut file = File::create(folder.disk.join("huge.txt")).expect("a file");
    let piece = line.repeat(MEGABYTE / line.len());
    for _ in 0..SIZE / piece.len() {
        file.write_all(piece.as_bytes()).expect("it is written");
    }
    let written = usize::try_from(file.metadata().expect("its size").len()).expect("a size");
    let mut file = File::create(folder.disk.join("huge.bin")).expect("a file");
    file.write_all(&[0xff, 0xfe, 0x00, 0xc0]).expect("it is written");
    file.set_len(SIZE as u64).expect("it grows");
    drop(file);

    let home = Home::new();
    let gateway = Running::start(home.serve_for(lab().url(), lab().token())).await;
    let all = format!("{}?toolsets=all", gateway.url());
    let agent = Agent::connect_to(&all, gateway.token(), Era::Modern).await;
    let before = resident_bytes(gateway.pid());

    let some = json!({ "path": text, "include_content": true, "max_content": 100 });
    let info = agent.call("get_document_info", some).await.ok();
    let is_beginning = |content: &Value| {
        let content = content.as_str().expect("a text");
        content.starts_with(line) && content.chars().count() <= 100
    };
    assert!(is_beginning(&info["content"]), "{info}");
    assert_eq!(
        (&info["truncated"], &info["content_length"], &info["content_unit"]),
        (&json!(true), &json!(written), &json!("bytes")),
    );
    for (tool, limit) in [
        ("get_document_content", "max_content"),
        ("get_document", "max_content_length"),
    ] {
        let read = agent.call(tool, json!({ "path": text, limit: 100 })).await.ok();
        assert!(is_beginning(&read["content"]), "{tool}: {read}");
    }
    let some = json!({ "path": binary, "include_content": true, "max_content": 100 });
    let info = agent.call("get_document_info", some).await.ok();
    assert_eq!((&info["content"], &info["format"]), (&json!(""), &json!("base64")));
    assert_eq!(info["content_length"], SIZE.div_ceil(3) * 4);

    for (tool, arguments) in [
        ("get_document_content", json!({ "path": binary })),
        (
            "insert_document_text",
            json!({ "path": text, "position": 0, "text": "x" }),
        ),
        (
            "copy_document",
            json!({ "path": text, "copy_path": folder.path("copy.txt") }),
        ),
    ] {
        let told = agent.call(tool, arguments).await.error();
        assert!(told.contains("MB") || told.contains("binary"), "{tool}: {told}");
    }
    for name in ["huge.txt", "huge.bin"] {
        std::fs::remove_file(folder.disk.join(name)).expect("it goes");
    }
    let peak = peak_bytes(gateway.pid());
    assert!(peak < before + 50 * MEGABYTE, "{before} and at most {peak} bytes");
}
