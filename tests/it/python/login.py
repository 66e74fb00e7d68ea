"""The official client's own OAuth: it finds out where to log in, registers, logs in and calls tools.

Usage: login.py URL PERSON WHAT, where WHAT is `refresh`, `hub` (work in a server of the person's own) or `step-up` (allow too
little at first). The person's browser is a client of HTTP that follows redirects and sends forms.
"""

import asyncio
import re
import sys
from html import unescape
from urllib.parse import parse_qs, urljoin, urlparse

import httpx2
from mcp import Client
from mcp.client.auth import OAuthClientProvider, TokenStorage
from mcp.client.streamable_http import create_mcp_http_client, streamable_http_client
from mcp.shared.auth import AuthorizationCodeResult, OAuthClientMetadata

URL, PERSON, WHAT = sys.argv[1:]
CALLBACK = "http://127.0.0.1:9/callback"


class Memory(TokenStorage):
    tokens = client = None

    async def get_tokens(self):
        return self.tokens

    async def set_tokens(self, tokens):
        self.tokens = tokens

    async def get_client_info(self):
        return self.client

    async def set_client_info(self, client):
        self.client = client


class Browser:
    logins = 0
    answer = None
    withheld = {"jupyter:execute"} if WHAT == "step-up" else set()

    async def open(self, url):
        self.logins += 1
        async with httpx2.AsyncClient(trust_env=False) as http:
            page = await http.get(url)
            while self.answer is None:
                page = await self.step(http, page)

    async def step(self, http, page):
        if page.is_redirect:
            target = urljoin(str(page.url), page.headers["location"])
            if target.startswith(CALLBACK):
                self.answer = {name: values[0] for name, values in parse_qs(urlparse(target).query).items()}
                return page
            return await http.get(target)
        assert page.status_code == 200, (page.url, page.text)
        action = unescape(re.search(r'<form[^>]* action="([^"]*)"', page.text)[1])
        hidden = r'<input type="(?:hidden|checkbox)" name="([^"]+)" value="([^"]*)"'
        fields = {"login": PERSON, "username": PERSON, "password": "x", "decision": "allow"}
        for name, value in re.findall(hidden, page.text):
            if name not in ("scope", "scopes"):
                fields[name] = value
            elif value not in self.withheld:
                fields.setdefault(name, []).append(value)
        return await http.post(urljoin(str(page.url), action), data=fields)

    async def result(self):
        answer, self.answer = self.answer, None
        return AuthorizationCodeResult(code=answer["code"], state=answer["state"], iss=answer["iss"])


async def main():
    browser, memory = Browser(), Memory()
    metadata = OAuthClientMetadata(client_name="Python SDK", redirect_uris=[CALLBACK])
    login = OAuthClientProvider(URL, metadata, memory, browser.open, browser.result)
    http = create_mcp_http_client(auth=login)
    async with Client(streamable_http_client(URL, http_client=http)) as client:
        await {"refresh": refresh, "hub": work, "step-up": step_up}[WHAT](client, browser, memory)


async def call(client, tool, **arguments):
    answer = await client.call_tool(tool, arguments)
    assert not answer.is_error, answer
    return answer


async def refresh(client, browser, memory):
    assert any(tool.name == "run_code" for tool in (await client.list_tools()).tools)
    await call(client, "list_servers")
    first = memory.tokens
    # Longer than an access token is valid.
    async with asyncio.timeout(60):
        while memory.tokens.access_token == first.access_token:
            await asyncio.sleep(1)
            await call(client, "list_servers")
    assert memory.tokens.refresh_token != first.refresh_token
    assert browser.logins == 1, browser.logins
    print("logged in once, refreshed")


async def work(client, browser, _):
    servers = (await call(client, "list_servers")).structured_content["servers"]
    assert [server["name"] for server in servers] == [PERSON], servers
    await call(client, "start_server", server=PERSON)
    await call(client, "create_notebook", path="work.ipynb")
    cells = [{"type": "code", "content": "6 * 7"}]
    ran = await call(client, "insert_nb_cells", path="work.ipynb", position=0, cells=cells, exec=True)
    assert any("42" in content.text for content in ran.content), ran
    await call(client, "save_document", path="work.ipynb")
    assert browser.logins == 1, browser.logins
    print("worked")


async def step_up(client, browser, memory):
    assert "jupyter:execute" not in memory.tokens.scope, memory.tokens
    browser.withheld = set()
    ran = await call(client, "run_code", code="6 * 7")
    assert any("42" in content.text for content in ran.content), ran
    assert browser.logins == 2, browser.logins
    assert {"jupyter:read", "jupyter:write", "jupyter:execute"} == set(memory.tokens.scope.split()), memory.tokens
    print("allowed more")


asyncio.run(main())
