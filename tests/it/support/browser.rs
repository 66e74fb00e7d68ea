//! A person's browser: Chromium from a package of npm, driven by playwright. `tests/it/browser/driver.mjs` is its other half.

use std::{path::Path, process::Stdio};

use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines},
    process::{Child, ChildStdin, ChildStdout},
};

use super::{TIMEOUT, node::node_driver, within};

/// Source of each cell that the page shows.
const SOURCES: &str = "[...document.querySelectorAll('.jp-Notebook .jp-Cell .cm-content')].map(content =>
    [...content.querySelectorAll('.cm-line')].map(line => line.textContent).join('\\n'))";

/// A page of a browser of its own. The browser ends with it, and with the test process.
pub struct Page {
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
    _driver: Child,
}

impl Page {
    /// Starts the browser.
    pub async fn open(url: &str) -> Self {
        let mut driver = node_driver("browser/driver.mjs", "chromium");
        driver.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = driver.spawn().expect("node");
        let mut page = Self {
            input: child.stdin.take().expect("a pipe"),
            output: BufReader::new(child.stdout.take().expect("a pipe")).lines(),
            _driver: child,
        };
        page.answer("the browser").await;
        page.run(&format!("await page.goto({})", json!(url))).await;
        page
    }

    /// Runs a script that drives the page.
    pub async fn run(&mut self, script: &str) -> Value {
        let line = format!("{}\n", json!(script));
        self.input.write_all(line.as_bytes()).await.expect("the browser reads");
        self.answer(script).await
    }

    async fn answer(&mut self, what: &str) -> Value {
        let line = within(TIMEOUT, what, self.output.next_line()).await.expect("a pipe");
        let line = line.unwrap_or_else(|| panic!("the browser ended: {what}"));
        let mut answer: Value = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"));
        assert!(answer["error"].is_null(), "{what}: {}", answer["error"]);
        answer["value"].take()
    }

    /// Runs a script until it answers with something else than null.
    pub async fn until(&mut self, what: &str, script: &str) -> Value {
        let deadline = std::time::Instant::now() + TIMEOUT;
        loop {
            let found = self.run(script).await;
            if !found.is_null() {
                return found;
            }
            if std::time::Instant::now() >= deadline {
                let shown = self
                    .run("return await page.evaluate(() => document.body.innerText)")
                    .await;
                panic!("the page does not show {what}, but {shown}");
            }
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
    }

    /// Waits until an expression in the page is true; says what the page's cells hold if it is not in time.
    pub async fn shows(&mut self, what: &str, expression: &str) {
        let script = format!(
            "try {{ await page.waitForFunction({}); return null; }}
             catch (error) {{ return `${{error.message}} ${{JSON.stringify(await page.evaluate({}))}}`; }}",
            json!(expression),
            json!(SOURCES)
        );
        let failed = self.run(&script).await;
        assert!(failed.is_null(), "the page does not show {what}: {failed}");
    }

    /// Waits until the page shows these cells.
    pub async fn shows_cells(&mut self, sources: &[&str]) {
        let expression = format!("JSON.stringify({SOURCES}) === JSON.stringify({})", json!(sources));
        self.shows(&format!("{sources:?}"), &expression).await;
    }

    /// Types at the end of a cell.
    pub async fn type_into(&mut self, cell: usize, text: &str) {
        let script = format!(
            "await page.locator('.jp-Notebook .jp-Cell .cm-content').nth({cell}).click();
             await page.keyboard.press('Control+End');
             await page.keyboard.type({}, {{ delay: 20 }});",
            json!(text)
        );
        self.run(&script).await;
    }

    /// Leaves a picture of the page where `JMG_TEST_SCREENSHOTS` says, for whoever works on the tests.
    pub async fn picture(&mut self, name: &str) {
        if let Ok(folder) = std::env::var("JMG_TEST_SCREENSHOTS") {
            let file = Path::new(&folder).join(format!("{name}.png"));
            self.run(&format!("await page.screenshot({})", json!({ "path": file })))
                .await;
        }
    }
}
