// The OAuth client of the official TypeScript SDK: `node login.mjs NODE_MODULES URL PERSON WHAT`. It finds out where to log
// in, registers, logs in, calls a tool and then, by WHAT, goes on until it had to `refresh`, or works in a server of the
// person's own in a `hub`. Their browser is `fetch` with cookies and forms.
import assert from "node:assert";
import { createRequire } from "node:module";

const [modules, URL_, PERSON, WHAT] = process.argv.slice(2);
const require = createRequire(`${modules}/`);
const { Client } = require("@modelcontextprotocol/sdk/client/index.js");
const { StreamableHTTPClientTransport } = require("@modelcontextprotocol/sdk/client/streamableHttp.js");
const { UnauthorizedError } = require("@modelcontextprotocol/sdk/client/auth.js");
const CALLBACK = "http://127.0.0.1:9/callback";

// Cookies by host, which is all that is needed here.
const cookies = new Map();

async function request(url, options = {}) {
  const { host } = new URL(url);
  const jar = cookies.get(host) ?? new Map();
  cookies.set(host, jar);
  const cookie = [...jar].map(([name, value]) => `${name}=${value}`).join("; ");
  const answer = await fetch(url, { redirect: "manual", ...options, headers: { cookie, ...options.headers } });
  for (const line of answer.headers.getSetCookie()) {
    const [name, ...value] = line.split(";")[0].split("=");
    jar.set(name, value.join("="));
  }
  return answer;
}

async function browse(url) {
  let answer = await request(url);
  for (;;) {
    const location = answer.headers.get("location");
    if (location) {
      url = new URL(location, url).href;
      if (url.startsWith(CALLBACK)) return new URL(url).searchParams;
      answer = await request(url);
      continue;
    }
    const page = await answer.text();
    assert.equal(answer.status, 200, page);
    const fields = new URLSearchParams({ login: PERSON, username: PERSON, password: "x", decision: "allow" });
    for (const [, name, value] of page.matchAll(/<input type="(?:hidden|checkbox)" name="([^"]+)" value="([^"]*)"/g)) {
      fields.append(name, value);
    }
    url = new URL(page.match(/<form[^>]* action="([^"]*)"/)[1].replaceAll("&amp;", "&"), url).href;
    answer = await request(url, { method: "POST", body: fields });
  }
}

const kept = { logins: 0 };
const provider = {
  redirectUrl: CALLBACK,
  clientMetadata: { client_name: "TypeScript SDK", redirect_uris: [CALLBACK], token_endpoint_auth_method: "none" },
  state: () => "the client's state",
  clientInformation: () => kept.client,
  saveClientInformation: (client) => (kept.client = client),
  tokens: () => kept.tokens,
  saveTokens: (tokens) => (kept.tokens = tokens),
  codeVerifier: () => kept.verifier,
  saveCodeVerifier: (verifier) => (kept.verifier = verifier),
  async redirectToAuthorization(url) {
    kept.logins += 1;
    kept.answer = await browse(url.href);
  },
};
const transport = () => new StreamableHTTPClientTransport(new URL(URL_), { authProvider: provider });

const first = transport();
await assert.rejects(new Client({ name: "test", version: "1" }).connect(first), UnauthorizedError);
assert.equal(kept.answer.get("state"), "the client's state");
await first.finishAuth(kept.answer.get("code"));
const client = new Client({ name: "test", version: "1" });
await client.connect(transport());
const { tools } = await client.listTools();
assert(tools.some((tool) => tool.name === "run_code"));
async function call(name, args) {
  const answer = await client.callTool({ name, arguments: args });
  assert(!answer.isError, JSON.stringify(answer));
  return answer;
}

async function refresh() {
  const before = kept.tokens;
  // Longer than an access token is valid.
  while (kept.tokens.access_token === before.access_token) {
    await new Promise((wake) => setTimeout(wake, 500));
    await call("list_servers", {});
  }
  assert.notEqual(kept.tokens.refresh_token, before.refresh_token);
  console.log("logged in once, refreshed");
}

async function work() {
  const { servers } = (await call("list_servers", {})).structuredContent;
  assert.deepEqual(servers.map((server) => server.name), [PERSON]);
  await call("start_server", { server: PERSON });
  await call("create_notebook", { path: "work.ipynb" });
  const cells = [{ type: "code", content: "6 * 7" }];
  const ran = await call("insert_nb_cells", { path: "work.ipynb", position: 0, cells, exec: true });
  assert(ran.content.some((content) => content.text.includes("42")), JSON.stringify(ran));
  await call("save_document", { path: "work.ipynb" });
  console.log("worked");
}

await { refresh, hub: work }[WHAT]();
assert.equal(kept.logins, 1);
await client.close();
