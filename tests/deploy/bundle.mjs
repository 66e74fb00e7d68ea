// Starts the server of an unpacked bundle as a desktop client does, and calls a tool: bundle.mjs MODULES BUNDLE URL TOKEN.

import { spawn } from "node:child_process";
import { readFile } from "node:fs/promises";
import { sep } from "node:path";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

const [modules, bundle, url, token] = process.argv.slice(2);
const { getMcpConfigForManifest } = await import(pathToFileURL(`${modules}/@anthropic-ai/mcpb/dist/node.js`));
const manifest = JSON.parse(await readFile(`${bundle}/manifest.json`, "utf8"));
const settings = { manifest, extensionPath: bundle, systemDirs: {}, pathSeparator: sep };
if (await getMcpConfigForManifest({ ...settings, userConfig: { url } })) {
  throw new Error("it starts without a token");
}
const config = await getMcpConfigForManifest({ ...settings, userConfig: { url, token } });
if (config.args.some((argument) => argument.includes(token))) {
  throw new Error("the token is among the arguments, which everybody on the machine can read");
}
const server = spawn(process.execPath, config.args, {
  env: { ...process.env, ...config.env },
  stdio: ["pipe", "pipe", "inherit"],
});
const lines = createInterface({ input: server.stdout });
const send = (message) => server.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);

const clientInfo = { name: "desktop", version: "1" };
send({ id: 1, method: "initialize", params: { protocolVersion: "2025-11-25", capabilities: {}, clientInfo } });
for await (const line of lines) {
  const message = JSON.parse(line);
  if (message.error) {
    throw new Error(line);
  }
  if (message.id === 1) {
    send({ method: "notifications/initialized" });
    send({ id: 2, method: "tools/call", params: { name: "list_servers", arguments: {} } });
  }
  if (message.id === 2) {
    console.log(line);
    break;
  }
}
server.kill();
