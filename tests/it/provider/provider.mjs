// An OpenID provider for tests, on this machine: `node provider.mjs NODE_MODULES [PORT]`, on a free port unless one is given. It says its issuer on
// its first line. Anybody who has an account can log in; what it knows of them is what a test has told it:
//
//   PUT /test/accounts/NAME   claims as JSON; DELETE removes the account
//   PUT /test/token           claims that access tokens get beside the usual ones
//   PUT /test/lifetime        seconds that access tokens hold
//   POST /test/rotate         sign with a new key; ?forget=true forgets the former ones
//
// Clients register themselves at /reg.
import { generateKeyPairSync, randomUUID } from "node:crypto";
import { createServer } from "node:http";
import { pathToFileURL } from "node:url";

const [modules, port = "0"] = process.argv.slice(2);
const { default: Provider } = await import(pathToFileURL(`${modules}/oidc-provider/lib/index.js`));

const SCOPES = ["jupyter:read", "jupyter:write", "jupyter:execute", "jupyter:admin"];
const accounts = new Map();
let tokenClaims = {};
let lifetime = 3600;
let keys = [];

function addKey() {
  const { privateKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
  const key = { ...privateKey.export({ format: "jwk" }), kid: randomUUID(), use: "sig", alg: "RS256" };
  keys = [key, ...keys];
}

function provider(issuer) {
  return new Provider(issuer, {
    jwks: { keys },
    cookies: { keys: ["a key for tests"] },
    clients: [],
    scopes: ["openid", "offline_access", ...SCOPES],
    claims: { openid: ["sub", "tenant", "permissions"], profile: ["preferred_username", "name"] },
    // The claims are in ID tokens, too.
    conformIdTokenClaims: false,
    async findAccount(_, id) {
      const claims = accounts.get(id);
      return claims && { accountId: id, claims: async () => ({ sub: id, preferred_username: id, ...claims }) };
    },
    async issueRefreshToken(_, client) {
      return client.grantTypeAllowed("refresh_token");
    },
    extraTokenClaims: () => tokenClaims,
    features: {
      clientCredentials: { enabled: true },
      registration: { enabled: true },
      revocation: { enabled: true },
      resourceIndicators: {
        enabled: true,
        getResourceServerInfo: (_, resource) => ({
          scope: SCOPES.join(" "),
          audience: resource,
          accessTokenFormat: "jwt",
          accessTokenTTL: lifetime,
        }),
      },
    },
    ttl: { AccessToken: 3600, AuthorizationCode: 60, Grant: 3600, IdToken: 3600, Interaction: 3600, Session: 3600 },
  });
}

async function body(request) {
  let text = "";
  for await (const chunk of request) text += chunk;
  return text ? JSON.parse(text) : {};
}

async function control(request, url) {
  const name = decodeURIComponent(url.pathname.split("/")[3] ?? "");
  switch (`${request.method} ${url.pathname.split("/")[2]}`) {
    case "PUT accounts":
      return accounts.set(name, await body(request));
    case "DELETE accounts":
      return accounts.delete(name);
    case "PUT token":
      return (tokenClaims = await body(request));
    case "PUT lifetime":
      return (lifetime = await body(request));
    case "POST rotate":
      if (url.searchParams.get("forget")) keys = [];
      addKey();
      return (answer = provider(issuer).callback());
    default:
      throw new Error(`no such control: ${request.method} ${url}`);
  }
}

const server = createServer(async (request, response) => {
  const url = new URL(request.url, issuer);
  if (!url.pathname.startsWith("/test/")) return answer(request, response);
  try {
    await control(request, url);
    response.writeHead(204).end();
  } catch (error) {
    response.writeHead(400).end(String(error));
  }
});
await new Promise((listening) => server.listen(Number(port), "127.0.0.1", listening));
const issuer = `http://127.0.0.1:${server.address().port}`;
addKey();
let answer = provider(issuer).callback();
// Nobody reads on after the first line, and what the library says then must not end it.
process.stdout.on("error", () => {});
console.log(issuer);
