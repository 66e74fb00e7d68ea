//! Tests that what is written parses back, whatever stands in the cells, and is a file that Srcbook accepts.

use proptest::prelude::*;
use serde_json::{Map, json};

use super::{fence::heading, *};

fn cell(id: &str, kind: BookCellKind, source: &str) -> BookCell {
    BookCell {
        id: Some(id.to_owned()),
        kind,
        source: source.to_owned(),
        metadata: Map::new(),
    }
}

fn book(cells: Vec<BookCell>) -> Book {
    Book {
        title: "Notebook".to_owned(),
        language: "python".to_owned(),
        cells,
    }
}

/// Srcbook's own rules, on its own reading of the text: the title comes first and is the only heading of the
/// first level, and a heading of the sixth is the name of a file and followed by its code.
fn assert_accepted(text: &str) {
    let mut lines = text.split('\n');
    let header = lines.next().unwrap();
    assert!(
        header.starts_with("<!-- srcbook:{") && header.ends_with("} -->"),
        "{header}"
    );
    let mut fences = fence::Fences::default();
    let mut titles = 0;
    let mut files = std::collections::BTreeSet::new();
    let lines: Vec<&str> = lines.collect();
    for (at, line) in lines.iter().enumerate() {
        let in_block = fences.line(line);
        match heading(line).filter(|_| !in_block) {
            Some((1, _)) => {
                titles += 1;
                assert!(
                    lines[..at].iter().all(|line| line.is_empty()),
                    "the title comes first: {text}"
                );
            }
            Some((6, name)) => {
                assert!(lines[at + 2].starts_with("```"), "{text}");
                assert!(files.insert(name), "no two files share a name: {text}");
            }
            _ => {}
        }
    }
    assert!(titles == 1 && !fences.is_open(), "{text}");
}

#[test]
fn a_notebook_reads_as_srcbook_writes_it() {
    let text = render(&book(vec![
        cell("t", BookCellKind::Markdown, "# Title\n\nWords."),
        cell("c", BookCellKind::Code, "x = 1"),
        cell("m", BookCellKind::Markdown, "More."),
    ]));
    assert_eq!(
        text,
        concat!(
            "<!-- srcbook:{\"language\":\"python\",\"cell\":{\"id\":\"t\"}} -->\n\n# Title\n\nWords.\n\n",
            "###### c.py\n\n```python {\"id\":\"c\"}\nx = 1\n```\n\n",
            "<!-- cell:{\"id\":\"m\"} -->\n\nMore.\n",
        )
    );
}

#[test]
fn hard_cases_come_back_as_they_were() {
    let sources = [
        "",
        "\n",
        "\n\n\n",
        " \n\ttrailing \n",
        "```\nfence\n```",
        "````md\n```python\nx\n```\n````",
        "```\nnever closed",
        "~~~\nnever closed\n```",
        "###### name.py\n\n```python\nnot a cell\n```",
        "```\n###### name.py\n```",
        "# One\n\n# Two\n\nThree\n===\n\n###### Six",
        "<!-- cell:{\"id\":\"fake\"} -->\n\nx",
        "<!-- srcbook:{\"language\":\"ruby\"} -->",
        "<!-- a comment\nof two lines -->",
        "<!-- never closed",
        "`` ` `` and ``````",
        "ü 图 🎉 \u{2028} \r\n x\r",
        "{\"id\":\"x\"} -->",
    ];
    for kind in [BookCellKind::Code, BookCellKind::Markdown, BookCellKind::Raw] {
        for source in sources {
            let alone = book(vec![cell("a", kind, source)]);
            let among = book(vec![
                cell("a", BookCellKind::Code, "before"),
                cell("b", kind, source),
                cell("c", kind, source),
                cell("d", BookCellKind::Code, "after"),
            ]);
            for book in [alone, among] {
                let text = render(&book);
                assert_eq!(parse(&text).cells, book.cells, "{text}");
                assert_accepted(&text);
            }
        }
    }
}

fn source() -> impl Strategy<Value = String> {
    let line = prop_oneof![
        Just(String::new()),
        "[`~]{1,6}[a-z {}]{0,4}",
        " {0,5}#{1,7} ?[a-zü]{0,4}",
        "[=-]{1,4}",
        "<!-- ?(cell|srcbook|x):?(\\{\"id\":\"z\"\\})? ?(-->)?",
        "\\PC{0,12}",
        "[ \t\r]{0,3}",
    ];
    prop::collection::vec(line, 0..8).prop_map(|lines| lines.join("\n"))
}

fn cells() -> impl Strategy<Value = Vec<BookCell>> {
    let kind = prop_oneof![
        Just(BookCellKind::Code),
        Just(BookCellKind::Markdown),
        Just(BookCellKind::Raw)
    ];
    let metadata = prop_oneof![
        3 => Just(json!({})),
        1 => Just(json!({ "tags": ["-->", "`"], "filename": "a b.py" })),
    ];
    let cell = ("\\PC{0,8}", kind, source(), metadata).prop_map(|(id, kind, source, metadata)| BookCell {
        id: Some(id),
        kind,
        source,
        metadata: metadata.as_object().cloned().unwrap_or_default(),
    });
    prop::collection::vec(cell, 0..6)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn any_notebook_comes_back_as_it_was(cells in cells(), title in "\\PC{0,12}") {
        let book = Book { title, language: "python".to_owned(), cells };
        let text = render(&book);
        let back = parse(&text);
        prop_assert_eq!(&back.cells, &book.cells, "{}", text);
        prop_assert_eq!(back.language, "python");
        assert_accepted(&text);
    }

    #[test]
    fn any_text_can_be_parsed(text in source()) {
        parse(&text);
    }
}

#[test]
fn what_people_write_by_hand_is_a_notebook_too() {
    let book = parse(
        "<!-- srcbook:{\"language\":\"javascript\"} -->\n\n# T\n\nWords.\n\n###### package.json\n\n```json\n{}\n```\n\n###### a.js\n\n```javascript\nlet x\n```\n\nEnd.\n",
    );
    assert_eq!((book.title.as_str(), book.language.as_str()), ("T", "javascript"));
    let kinds: Vec<&str> = book.cells.iter().map(|cell| cell.kind.as_str()).collect();
    assert_eq!(kinds, ["markdown", "code", "code", "markdown"]);
    assert_eq!(book.cells[0].source, "# T\n\nWords.");
    assert_eq!(
        (book.cells[2].source.as_str(), &book.cells[2].metadata["filename"]),
        ("let x", &json!("a.js"))
    );
}

#[test]
fn an_edited_line_is_not_undone() {
    let text = render(&book(vec![
        cell("a", BookCellKind::Code, "x"),
        cell("b", BookCellKind::Markdown, "# One\n# Two"),
    ]));
    let back = parse(&text.replace("## One", "## Changed"));
    assert_eq!(back.cells[1].source, "## Changed\n# Two");
}

#[test]
fn every_template_is_a_notebook_that_srcbook_accepts() {
    for template in templates() {
        assert_accepted(template.text);
        let book = template.book();
        assert_eq!(book.language, "python", "{}", template.name);
        assert!(!book.cells.is_empty(), "{}", template.name);
        assert_eq!(parse(&render(&book)).cells, book.cells, "{}", template.name);
    }
    assert_eq!(template("blank").unwrap().book().cells.len(), 1);
    assert!(template("tree_of_thought").unwrap().book().cells.len() >= 8 && template("nothing").is_none());
}
