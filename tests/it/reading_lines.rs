//! `get_document_content` by lines.

use serde_json::{Value, json};

use crate::support::{Agent, Era, Gateway, lab};

#[tokio::test]
async fn lines_are_read_as_they_stand() {
    let (gateway, folder) = (Gateway::start().await, lab().folder());
    let agent = Agent::connect(&gateway, Era::Modern).await;
    let path = folder.write("t.md", "one\ntwo é\u{2028}x\n\nfour\nfive");
    let read = async |start: Value, end: Value| {
        let arguments = json!({ "path": path, "start_line": start, "end_line": end });
        agent.call("get_document_content", arguments).await
    };
    let answer = read(json!(2), json!(3)).await;
    let text = answer.text().to_owned();
    let some = answer.ok();
    assert_eq!(some["content"], "two é\u{2028}x\n\n");
    assert_eq!(
        (
            &some["total_lines"],
            &some["start_line"],
            &some["end_line"],
            &some["truncated"]
        ),
        (&json!(5), &json!(2), &json!(3), &json!(false))
    );
    let revision = some["revision"].as_str().unwrap();
    assert_eq!(
        text,
        format!("lines 2-3 of 5, 22 characters, revision {revision}\ntwo é\u{2028}x\n")
    );
    assert_eq!(read(json!(4), Value::Null).await.ok()["content"], "four\nfive");
    assert_eq!(read(Value::Null, json!(1)).await.ok()["content"], "one\n");
    assert_eq!(read(json!(5), json!(5)).await.ok()["content"], "five");
    let whole = read(Value::Null, Value::Null).await;
    assert!(
        whole.text().starts_with("5 lines, 22 characters, revision "),
        "{}",
        whole.text()
    );
    assert_eq!(whole.ok()["total_lines"], 5);
    for (start, end, why) in [
        (json!(6), Value::Null, "total_lines 5"),
        (json!(1), json!(6), "total_lines 5"),
        (json!(0), Value::Null, "from 1"),
        (json!(3), json!(2), "before start_line 3"),
        (json!(-1), Value::Null, "start_line"),
        (json!("a"), Value::Null, "start_line"),
    ] {
        let refused = read(start.clone(), end.clone()).await.error();
        assert!(refused.contains(why), "{start} {end}: {refused}");
    }
    let cut = json!({ "path": path, "start_line": 1, "max_content": 8 });
    let cut = agent.call("get_document_content", cut).await;
    assert!(cut.text().ends_with("\none\n[more: start_line=2]"), "{}", cut.text());
    let cut = cut.ok();
    assert_eq!(
        (&cut["content"], &cut["end_line"], &cut["truncated"]),
        (&json!("one\n"), &json!(1), &json!(true))
    );

    agent
        .call(
            "insert_document_text",
            json!({ "path": path, "position": 0, "text": "zero\n" }),
        )
        .await
        .ok();
    assert_eq!(
        read(json!(1), json!(2)).await.ok()["content"],
        "zero\none\n",
        "what is not saved counts"
    );
}

#[tokio::test]
async fn ends_of_lines_of_every_kind_count_and_an_empty_file_has_no_line() {
    let (gateway, folder) = (Gateway::start().await, lab().folder());
    let agent = Agent::connect(&gateway, Era::Legacy).await;
    let read = async |path: &str, start: usize| {
        agent
            .call("get_document_content", json!({ "path": path, "start_line": start }))
            .await
    };
    let windows = folder.write("w.txt", "a\r\nb\r\nc");
    let rest = read(&windows, 2).await.ok();
    assert_eq!(
        (
            &rest["total_lines"],
            rest["content"].as_str().unwrap().replace('\r', "")
        ),
        (&json!(3), "b\nc".to_owned())
    );
    let empty = folder.write("e.txt", "");
    let nothing = read(&empty, 1).await.ok();
    assert_eq!((&nothing["content"], &nothing["total_lines"]), (&json!(""), &json!(0)));
    assert!(read(&empty, 2).await.error().contains("total_lines 0"));
}

#[tokio::test]
async fn lines_far_into_a_file_that_is_too_large_to_be_opened_are_read() {
    let (gateway, folder) = (Gateway::start().await, lab().folder());
    let agent = Agent::connect(&gateway, Era::Modern).await;
    let path = folder.path("huge.csv");
    let rows: String = (1..=100_000)
        .map(|row| format!("row {row:>6}, {}\n", "é".repeat(350)))
        .collect();
    std::fs::write(folder.disk.join("huge.csv"), &rows).expect("a large file");
    let read = async |start: usize, end: usize| {
        let arguments = json!({ "path": path, "start_line": start, "end_line": end });
        agent.call("get_document_content", arguments).await
    };
    let answer = read(90_000, 90_001).await;
    assert!(
        answer.text().starts_with("lines 90000-90001 of 100000, "),
        "{:.200}",
        answer.text()
    );
    let some = answer.ok();
    let content = some["content"].as_str().unwrap();
    assert!(
        content.starts_with("row  90000, é") && content.contains("\nrow  90001, é") && content.lines().count() == 2
    );
    assert_eq!(
        (&some["total_lines"], &some["truncated"], &some["content_unit"]),
        (&json!(100_000), &json!(false), &json!("bytes"))
    );
    let refused = read(100_001, 100_002).await.error();
    assert!(refused.contains("total_lines 100000"), "{refused}");
    std::fs::remove_file(folder.disk.join("huge.csv")).expect("it goes");
}
