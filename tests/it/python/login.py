"""The official client's own OAuth: it finds out where to log in, registers, logs in, calls tools and refreshes.

Usage: login.py URL. The person is `ana`; her browser is a client of HTTP that follows redirects and sends forms.
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

URL = sys.argv[1]
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
        action = unescape(re.search(r'<form[^>]* action="([^"]+)"', page.text)[1])
        hidden = r'<input type="(?:hidden|checkbox)" name="([^"]+)" value="([^"]*)"'
        fields = {"login": "ana", "password": "x", "decision": "allow"}
        for name, value in re.findall(hidden, page.text):
            fields.setdefault(name, []).append(value) if name == "scope" else fields.update({name: value})
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
        assert any(tool.name == "run_code" for tool in (await client.list_tools()).tools)
        answer = await client.call_tool("list_servers", {})
        assert not answer.is_error, answer
        first = memory.tokens
        # Longer than an access token is valid.
        async with asyncio.timeout(60):
            while memory.tokens.access_token == first.access_token:
                await asyncio.sleep(1)
                answer = await client.call_tool("list_servers", {})
                assert not answer.is_error, answer
        assert memory.tokens.refresh_token != first.refresh_token
    assert browser.logins == 1, browser.logins
    print("logged in once, refreshed")


asyncio.run(main())
