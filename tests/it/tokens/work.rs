//! The jobs, as an agent would do them that sees text and images only.

use std::fmt;

use base64::{Engine, prelude::BASE64_STANDARD};
use image::{DynamicImage, ImageFormat};
use serde_json::{Value, json};

use crate::support::{Agent, Era, Gateway, lab, lab::Folder, notebook::notebook};

/// Number of cells of the notebook.
const CELLS: usize = 120;
/// Positions of the cells that fail.
const FAILING: [usize; 2] = [41, 97];
/// The module in which a cell fails, some calls deep.
const LIBRARY: &str = "class Index:\n    def __init__(self, names):\n        self.names = names\n\n    def position(self, name):\n        try:\n            return {n: i for i, n in enumerate(self.names)}[name]\n        except KeyError as error:\n            raise KeyError(name) from error\n\n\nclass Table:\n    def __init__(self, **columns):\n        self.index = Index(list(columns))\n        self.columns = list(columns.values())\n\n    def __getitem__(self, name):\n        return self._column(name)\n\n    def _column(self, name):\n        return self.columns[self.index.position(name)]\n";

/// Cost of a job to a model.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Cost {
    pub(super) bytes: usize,
    pub(super) images: usize,
}

impl Cost {
    pub(super) fn tokens(&self) -> usize {
        self.bytes.div_ceil(4)
    }

    /// Adds what a model reads of an answer.
    pub(super) fn count(&mut self, result: &Value) {
        for block in result["content"].as_array().into_iter().flatten() {
            match block["text"].as_str() {
                Some(text) => self.bytes += text.len(),
                None => self.images += 1,
            }
        }
    }
}

impl fmt::Display for Cost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.images {
            0 => write!(f, "{}", self.tokens()),
            images => write!(f, "{} + {images} images", self.tokens()),
        }
    }
}

/// The notebooks that jobs are about.
pub(super) struct Notebooks {
    /// 120 cells with outputs, images and two errors.
    pub(super) messy: String,
    pub(super) print: String,
    pub(super) failing: String,
    /// 120 cells that have not run, two of which fail.
    pub(super) fresh: String,
}

impl Notebooks {
    pub(super) fn write(folder: &Folder) -> Self {
        folder.write("table.py", LIBRARY);
        let failing = "from table import Table\n\nsales = Table(month=[1, 2], amount=[3.5, 4.5])\ntotal = sum(sales['amount'])\nby_region = sales['region']\nprint(by_region)";
        let fresh: Vec<String> = (0..CELLS).map(source).collect();
        let fresh: Vec<&str> = fresh.iter().map(String::as_str).collect();
        Self {
            messy: folder.write("messy.ipynb", &messy().to_string()),
            print: folder.write("print.ipynb", &notebook(&["print('hello')"])),
            failing: folder.write("failing.ipynb", &notebook(&[failing])),
            fresh: folder.write("fresh.ipynb", &notebook(&fresh)),
        }
    }
}

/// The source of a cell. One in six prints something.
fn source(index: usize) -> String {
    match index {
        _ if FAILING.contains(&index) => {
            format!("ratio_{index} = {index} / (values[-1] - values[-1])\nprint(ratio_{index})")
        }
        0 => "values = list(range(10))".to_owned(),
        _ if index.is_multiple_of(6) => format!("total_{index} = sum(values) * {index}\nprint('total', total_{index})"),
        _ => format!(
            "# step {index}\nstep_{index} = [value * {index} for value in values]\nlimit_{index} = max(step_{index})"
        ),
    }
}

/// A notebook as people leave them: headings, prints, tables, plots and two errors.
fn messy() -> Value {
    let mut png = std::io::Cursor::new(Vec::new());
    let plot = DynamicImage::new_rgb8(640, 480);
    plot.write_to(&mut png, ImageFormat::Png).expect("a picture");
    let png = BASE64_STANDARD.encode(png.into_inner());
    let cells = (0..CELLS).map(|index| {
        let id = format!("{:08x}-0000-4000-8000-{index:012x}", (index + 1) * 0x1e35_a7bd % 0xffff_ffff);
        if index.is_multiple_of(10) {
            let source = format!("## Part {}\n\nWhat this part is about, in a sentence or two.", index / 10);
            return json!({ "id": id, "cell_type": "markdown", "source": source, "metadata": {} });
        }
        let outputs = match index {
            _ if FAILING.contains(&index) => vec![json!({
                "output_type": "error", "ename": "ZeroDivisionError", "evalue": "division by zero",
                "traceback": [
                    "---------------------------------------------------------------------------",
                    "ZeroDivisionError                         Traceback (most recent call last)",
                    format!("Cell In[{index}], line 1\n----> 1 ratio_{index} = {index} / (values[-1] - values[-1])\n      2 print(ratio_{index})"),
                    "ZeroDivisionError: division by zero",
                ],
            })],
            _ if index % 7 == 3 => vec![json!({
                "output_type": "display_data", "metadata": {},
                "data": { "image/png": png, "text/plain": "<Figure size 640x480 with 1 Axes>" },
            })],
            _ if index % 7 == 5 => {
                let rows: String = (0..12).map(|row| format!("{row:<3} {:>8} {:>8}\n", row * index, row + index)).collect();
                let html: String = (0..12).map(|row| format!("<tr><th>{row}</th><td>{}</td><td>{}</td></tr>", row * index, row + index)).collect();
                vec![json!({
                    "output_type": "execute_result", "metadata": {}, "execution_count": index,
                    "data": { "text/plain": format!("          a        b\n{rows}"), "text/html": format!("<table>{html}</table>") },
                })]
            }
            _ if index.is_multiple_of(2) => vec![json!({ "output_type": "stream", "name": "stdout", "text": format!("loss {index}\n").repeat(30) })],
            _ => Vec::new(),
        };
        json!({ "id": id, "cell_type": "code", "source": source(index), "metadata": {}, "outputs": outputs, "execution_count": index })
    });
    json!({ "cells": cells.collect::<Vec<_>>(), "metadata": {}, "nbformat": 4, "nbformat_minor": 5 })
}

/// An agent at work through the gateway.
pub(super) struct Work {
    agent: Agent,
    notebooks: Notebooks,
    _folder: Folder,
    _gateway: Gateway,
}

impl Work {
    pub(super) async fn begin() -> Self {
        let gateway = Gateway::start().await;
        let folder = lab().folder();
        Self {
            agent: Agent::introduced_as("claude-code", &gateway.url("/mcp"), Era::Modern).await,
            notebooks: Notebooks::write(&folder),
            _folder: folder,
            _gateway: gateway,
        }
    }

    async fn call(&self, cost: &mut Cost, tool: &str, arguments: Value) -> String {
        let call = json!({ "name": tool, "arguments": arguments });
        let result = self.agent.request("tools/call", call).await["result"].take();
        cost.count(&result);
        let text = result["content"][0]["text"].as_str();
        text.unwrap_or_else(|| panic!("{tool}: {result}")).to_owned()
    }

    async fn cost(&self, tool: &str, arguments: Value) -> Cost {
        let mut cost = Cost::default();
        let text = self.call(&mut cost, tool, arguments).await;
        if std::env::var_os("JMG_TOKENS_SHOW").is_some() {
            println!("== {tool}\n{text}\n");
        }
        cost
    }

    pub(super) async fn outline(&self) -> Cost {
        self.cost(
            "read_nb_cells",
            json!({ "path": self.notebooks.messy, "view": "outline" }),
        )
        .await
    }

    pub(super) async fn brief(&self) -> Cost {
        self.cost(
            "read_nb_cells",
            json!({ "path": self.notebooks.messy, "view": "brief" }),
        )
        .await
    }

    pub(super) async fn print(&self) -> Cost {
        self.cost("execute_nb_cells", json!({ "path": self.notebooks.print }))
            .await
    }

    pub(super) async fn failure(&self) -> Cost {
        self.cost("execute_nb_cells", json!({ "path": self.notebooks.failing }))
            .await
    }

    pub(super) async fn run_all(&self) -> Cost {
        let run = json!({ "path": self.notebooks.fresh, "stop_on_error": false });
        self.cost("execute_nb_cells", run).await
    }

    /// Finds the errors, reads what the cells need, changes them by match, runs them, and looks whether errors are left.
    pub(super) async fn fix(&self) -> Cost {
        let (mut cost, path) = (Cost::default(), &self.notebooks.messy);
        let stat = self.call(&mut cost, "get_nb_stat", json!({ "path": path })).await;
        assert!(stat.contains("ZeroDivisionError"), "{stat}");
        self.call(
            &mut cost,
            "execute_nb_cells",
            json!({ "path": path, "ranges": [{ "start": 1 }] }),
        )
        .await;
        let setup = json!({ "path": path, "code": "values = list(range(10))" });
        self.call(&mut cost, "run_code", setup).await;
        for index in FAILING {
            let read = json!({ "path": path, "ranges": [{ "start": index }] });
            let read = self.call(&mut cost, "read_nb_cells", read).await;
            let id = read
                .lines()
                .find_map(|line| line.strip_prefix(&format!("--- [{index}] ")));
            let id = id
                .and_then(|rest| rest.split(' ').next())
                .unwrap_or_else(|| panic!("{read}"));
            let edit = json!({ "path": path, "cell_id": id, "old_text": "(values[-1] - values[-1])", "new_text": "values[-1]", "exec": true });
            let edited = self.call(&mut cost, "edit_nb_cell", edit).await;
            assert!(edited.contains("+ratio_") && !edited.contains("Error"), "{edited}");
        }
        let stat = self.call(&mut cost, "get_nb_stat", json!({ "path": path })).await;
        assert!(!stat.contains("ZeroDivisionError"), "{stat}");
        cost
    }

    pub(super) async fn list(&self) -> Cost {
        let listed = self.agent.request("tools/list", json!({})).await;
        Cost {
            bytes: listed["result"]["tools"].to_string().len(),
            images: 0,
        }
    }
}
