//! Two gateways on one database, each with the same document open.

use super::*;

/// Two histories on one database, as two gateways have them.
async fn two() -> (tempfile::TempDir, Arc<History>, Arc<History>) {
    let dir = tempfile::tempdir().unwrap();
    let url = store::file_url(&dir.path().join("history.db"));
    let open = async || start(&Store::open(&url, StoreLimits::default()).await.unwrap());
    let (one, other) = (open().await, open().await);
    (dir, one, other)
}

/// The document as each of them has it.
async fn both<'h>(one: &'h History, other: &'h History, content: &Content) -> (Writer<'h>, Writer<'h>) {
    let here = Writer::open(one, "a.ipynb", content.clone());
    here.logged().await;
    let there = Writer::open(other, "a.ipynb", content.clone());
    there.logged().await;
    (here, there)
}

async fn authors(writer: &Writer<'_>) -> Vec<String> {
    writer.versions().await.iter().map(Version::author).collect()
}

#[tokio::test]
async fn an_edit_is_its_authors_whoever_hears_of_it_first() {
    let (_dir, one, other) = two().await;
    let (mut here, mut there) = both(&one, &other, &notebook(&[("a", "1"), ("b", "2")])).await;
    // The other gateway hears of the edit, and has its own agent edit, before the author's writes it down.
    there.set_cell(Author::Outside, "a", "one");
    there.set_cell(agent("bob"), "b", "two");
    tokio::task::yield_now().await;
    here.set_cell(agent("ana"), "a", "one");
    here.set_cell(Author::Outside, "b", "two");
    assert_eq!(here.logged().await, here.content);
    assert_eq!(there.logged().await, here.content);
    let mut authors = authors(&here).await;
    authors.sort_unstable();
    assert_eq!(authors, ["ana", "bob", "outside"]);
    here.undo("ana", 1, false).await.unwrap();
    assert_eq!(here.content, notebook(&[("a", "1"), ("b", "two")]));
}

#[tokio::test]
async fn what_people_do_is_written_once_when_it_is_quiet() {
    let (_dir, one, other) = two().await;
    let (mut here, mut there) = both(&one, &other, &notebook(&[("a", "x\n"), ("b", "y\n")])).await;
    for n in 0..3 {
        let typed = format!("x\n{}", "ben\n".repeat(n + 1));
        here.set_cell(person("Ben"), "a", &typed);
        there.set_cell(person("Ben"), "a", &typed);
        let source = format!("ana {n}");
        here.set_cell(agent("ana"), "b", &source);
        there.set_cell(Author::Outside, "b", &source);
    }
    assert_eq!(here.logged().await, here.content);
    assert_eq!(there.logged().await, here.content);
    assert_eq!(authors(&there).await, ["Ben", "ana", "ana", "ana", "outside"]);
    here.undo("ana", 3, false).await.unwrap();
    assert_eq!(here.content, notebook(&[("a", "x\nben\nben\nben\n"), ("b", "y\n")]));
}

#[tokio::test]
async fn what_nobody_else_writes_is_written_as_from_outside() {
    let (_dir, one, other) = two().await;
    let (mut here, mut there) = both(&one, &other, &notebook(&[("a", "1")])).await;
    for writer in [&mut here, &mut there] {
        writer.set_cell(Author::Outside, "a", "by a script");
    }
    assert_eq!(here.logged().await, here.content);
    assert_eq!(there.logged().await, here.content);
    assert_eq!(here.kinds().await, ["outside", "opened"]);
    // // A gateway that leaves does not keep the other from writing.
    one.closed(&here.document);
    one.close().await;
    there.set_cell(Author::Outside, "a", "by another");
    assert_eq!(there.logged().await, there.content);
    assert_eq!(there.kinds().await, ["outside", "outside", "opened"]);
}

#[tokio::test]
async fn what_is_lost_is_a_version_to_go_back_to() {
    let (_dir, one, other) = two().await;
    let full = notebook(&[("a", "first cell"), ("b", "second cell"), ("c", "third cell")]);
    let (mut here, _there) = both(&one, &other, &full).await;
    here.set_cell(person("Ben"), "a", "the first cell");
    let good = here.content.clone();
    let loss = notices::sudden_loss(&good, &notebook(&[("z", "")]));
    here.record(Author::Outside, notebook(&[("z", "")]), Vec::new(), loss);
    here.logged().await;
    let notice = one.take_notice(&here.document, &"token:ana".into()).expect("a notice");
    let id = here.versions().await[1].id.clone();
    assert!(notice.contains(id.as_str()), "{notice}");
    let (_, content) = one.version(&here.subject().await, id.as_str()).await.unwrap();
    assert_eq!(content, good);
}

#[tokio::test]
async fn a_document_is_opened_while_another_gateway_edits_it() {
    let (_dir, one, other) = two().await;
    let mut here = Writer::open(&one, "a.ipynb", notebook(&[("a", "1")]));
    here.logged().await;
    let there = Writer::open(&other, "a.ipynb", notebook(&[("a", "one")]));
    tokio::task::yield_now().await;
    here.set_cell(agent("ana"), "a", "one");
    assert_eq!(here.logged().await, there.content);
    assert_eq!(there.logged().await, there.content);
    assert_eq!(authors(&there).await, ["ana", "outside"]);
}
