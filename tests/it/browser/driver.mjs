// A browser that obeys the tests: each line of standard input is a script in JSON, run with `page`, `problems` and `judged` in
// scope; each line of standard output says what came of it. The end of the input is the end of the browser, however the
// tests end.
//
// Its arguments are the folder of installed packages and a folder to keep the unpacked browser in.

import { existsSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

const [modules, home] = process.argv.slice(2);
const PACKAGE = join(modules, "@sparticuz/chromium");
const FLAGS = [
  // Chromium's sandbox refuses root, and needs namespaces that containers do not give.
  "--no-sandbox",
  "--disable-gpu",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
  "--no-first-run",
];

/** Unpacks Chromium with the libraries and fonts that come with it, once. */
async function unpacked() {
  if (process.arch !== "x64" || process.platform !== "linux") {
    throw new Error("the packed Chromium is for Linux on x86_64; set JMG_TEST_CHROMIUM to a Chromium of this machine");
  }
  if (existsSync(home)) return;
  const draft = mkdtempSync(join(dirname(home), "chromium-"));
  const temporary = process.env.TMPDIR;
  // That is where the package unpacks to.
  process.env.TMPDIR = draft;
  const { inflate } = await import(pathToFileURL(join(PACKAGE, "build/index.js")));
  await Promise.all(["chromium.br", "fonts.tar.br", "al2023.tar.br"].map((part) => inflate(join(PACKAGE, "bin", part))));
  if (temporary === undefined) delete process.env.TMPDIR;
  else process.env.TMPDIR = temporary;
  const fonts = `<fontconfig><dir>${join(home, "fonts")}</dir><cachedir>${join(home, "cache")}</cachedir></fontconfig>`;
  writeFileSync(join(draft, "fonts.conf"), fonts);
  try {
    renameSync(draft, home);
  } catch (error) {
    rmSync(draft, { recursive: true });
    // Another process was faster.
    if (!existsSync(home)) throw error;
  }
}

async function launched() {
  const { chromium } = createRequire(join(modules, "x"))("playwright-core");
  const own = process.env.JMG_TEST_CHROMIUM;
  if (own) return chromium.launch({ executablePath: own, args: FLAGS });
  await unpacked();
  const env = {
    ...process.env,
    FONTCONFIG_FILE: join(home, "fonts.conf"),
    LD_LIBRARY_PATH: join(home, "al2023/lib"),
  };
  return chromium.launch({ executablePath: join(home, "chromium"), args: FLAGS, env });
}

/** What is wrong with a page for those who do not see it, or see it badly, by axe-core. */
async function judged(page) {
  await page.evaluate(readFileSync(join(modules, "axe-core/axe.min.js"), "utf8"));
  const { violations } = await page.evaluate(() => globalThis.axe.run(document, { resultTypes: ["violations"] }));
  return violations.flatMap(({ id, impact, help, nodes }) =>
    nodes.map(({ html, failureSummary }) => `${impact} ${id}: ${help}: ${html.slice(0, 300)} ${failureSummary}`),
  );
}

const answer = (value) => process.stdout.write(`${JSON.stringify(value)}\n`);
const lines = createInterface({ input: process.stdin });
const scripts = lines[Symbol.asyncIterator]();
let browser;

lines.on("close", async () => {
  // Whatever hangs, this process does not stay.
  setTimeout(() => process.exit(1), 10_000).unref();
  await browser?.close();
  process.exit(0);
});

try {
  browser = await launched();
} catch (error) {
  answer({ error: `Chromium does not start: ${error.message}` });
}
if (browser) {
  const page = await browser.newPage({ viewport: { width: 1200, height: 800 } });
  page.setDefaultTimeout(60_000);
  // What the browser complains about: scripts that fail, and all that a policy forbids.
  const problems = [];
  page.on("console", (message) => ["error", "warning"].includes(message.type()) && problems.push(message.text()));
  page.on("pageerror", (error) => problems.push(String(error)));
  const Script = Object.getPrototypeOf(async () => {}).constructor;
  answer({ value: browser.version() });
  for await (const line of scripts) {
    try {
      const script = new Script("page", "problems", "judged", JSON.parse(line));
      answer({ value: (await script(page, problems, judged)) ?? null });
    } catch (error) {
      answer({ error: error.message });
    }
  }
}
