"""A small session with the official client: every tool once, each answer looked at.

Usage: session.py MODE URL TOKEN FOLDER JUPYTER_URL. The client itself checks each structured
answer against the schema that the tool has announced.
"""

import asyncio
import json
import sys
from urllib.parse import quote

from mcp import Client
from mcp.types import PromptReference
from mcp.client.streamable_http import create_mcp_http_client, streamable_http_client

MODE, URL, TOKEN, FOLDER, JUPYTER = sys.argv[1:]
VERSIONS = {"legacy": "2025-11-25", "auto": "2026-07-28"}


class Session:
    def __init__(self, client, notices):
        self.client = client
        self.notices = notices
        self.called = set()

    async def call(self, tool, **arguments):
        answer = await self.client.call_tool(tool, arguments)
        self.called.add(tool)
        assert not answer.is_error, (tool, answer.content)
        # Clients that know no structured content read the same from the text.
        assert answer.content and answer.content[0].type == "text", (tool, answer.content)
        return answer.structured_content

    async def fails(self, tool, *words, **arguments):
        answer = await self.client.call_tool(tool, arguments)
        assert answer.is_error, (tool, answer)
        text = answer.content[0].text
        assert all(word in text for word in words), (tool, text)


async def main():
    http = create_mcp_http_client(headers={"Authorization": f"Bearer {TOKEN}"})
    notices = asyncio.Queue()
    transport = streamable_http_client(URL, http_client=http)
    async with Client(transport, mode=MODE, message_handler=notices.put) as client:
        assert client.protocol_version == VERSIONS[MODE], client.protocol_version
        tools = (await client.list_tools()).tools
        assert all(tool.description and tool.output_schema for tool in tools)
        session = Session(client, notices)
        await look_around(session)
        await work_with_notebooks(session)
        await work_with_cells(session)
        await go_back_and_forth(session)
        await propose_in_a_fork(session)
        await work_with_text(session)
        await work_with_documents(session)
        await browse_and_watch(session)
        missed = {tool.name for tool in tools} - session.called
        assert not missed, f"extend this session, it never calls {sorted(missed)}"
        print(f"{len(tools)} tools called over {client.protocol_version}")


async def look_around(session):
    [server] = (await session.call("list_servers"))["servers"]
    assert server["name"] == "lab" and server["default"] and server["reachable"], server
    base = await session.call("get_base_url", server="lab")
    assert base == {"base_url": JUPYTER.rstrip("/"), "server": "lab"}, base
    kernels = (await session.call("list_available_kernels"))["kernels"]
    assert any(kernel["name"] == "python3" and kernel["default"] for kernel in kernels), kernels


async def work_with_notebooks(session):
    folder = f"{FOLDER}/Größe und 图"
    notebook = f"{folder}/a b é🎉.ipynb"
    made = await session.call("create_document", path=folder, type="directory")
    assert made["type"] == "directory", made
    created = await session.call("create_notebook", path=notebook)
    assert created["path"] == notebook and created["url"].endswith(quote(notebook)), created
    await session.fails("create_notebook", "exists", path=notebook)
    listed = (await session.call("list_nbs", path=FOLDER))["notebooks"]
    assert [each["path"] for each in listed] == [notebook], listed
    found = await session.call("nb_path_from_url", url=f"{JUPYTER}lab/tree/{quote(notebook)}?reset")
    assert (found["notebook_path"], found["server"]) == (notebook, "lab"), found
    info = await session.call("get_document_info", path=notebook, include_content=True)
    content = json.loads(info["content"])
    assert info["type"] == "notebook" and [cell["source"] for cell in content["cells"]] == [""], info
    assert content["metadata"]["kernelspec"]["name"] == "python3", content


async def work_with_cells(session):
    path = f"{FOLDER}/cells ü.ipynb"
    await session.call("create_notebook", path=path)
    cells = [{"content": "x = '🎉'"}, {"type": "markdown", "content": "# title"}]
    inserted = await session.call("insert_nb_cells", path=path, position=0, cells=cells, exec=False)
    assert inserted["acknowledged"] and len(inserted["cell_ids"]) == 2, inserted
    code, title = inserted["cell_ids"]
    change = [{"range": {"cell_id": code}, "content": "x = '🎉🎉'"}]
    modified = await session.call("modify_nb_cells", path=path, modifications=change, if_revision=inserted["revision"])
    assert modified["modified_ranges"] == 1 and modified["executed"] is True, modified
    deleted = await session.call("delete_nb_cells", path=path, ranges=[{"start": 1}])
    assert deleted["deleted_cells"] == 1 and title in deleted["cell_ids"], deleted
    [cell] = (await session.call("read_nb_cells", path=path))["cells"]
    assert (cell["id"], cell["source"], cell["outputs"]) == (code, "x = '🎉🎉'", []), cell
    stat = await session.call("get_nb_stat", path=path)
    assert stat["cell_count"] == 1 and stat["kernel"]["name"] == "python3", stat
    await run_cells(session, path)
    await change_and_look(session, path, code)
    sessions = await session.call("query_nb_sessions", root_path=FOLDER)
    assert sessions["active_sessions"] == 1, sessions
    assert (await session.call("end_nb_session", path=path))["status"] == "disconnected"
    await session.call("delete_document", path=path)


async def run_cells(session, path):
    assert (await session.call("assign_nb_kernel", path=path, kernel_name="python3"))["kernel_assigned"]
    ran = await session.call("execute_nb_cells", path=path, ranges=[{"start": 0}])
    assert ran["status"] == "completed" and ran["executed_cells"] == 1, ran
    ran = await session.call("run_code", path=path, code="print(x)")
    assert ran["outputs"][0]["text"] == "🎉🎉\n", ran
    got = await session.call("get_execution", execution_id=ran["execution_id"])
    assert got["status"] == "completed", got
    assert (await session.call("list_executions", path=path))["executions"][0]["execution_id"] == ran["execution_id"]
    ended = await session.call("cancel_execution", execution_id=ran["execution_id"])
    assert ended["status"] == "completed" and "already" in ended["message"], ended
    assert (await session.call("interrupt_nb_kernel", path=path))["kernel_interrupted"]
    restarted = await session.call("restart_nb_kernel", path=path, clear_outputs=True)
    assert restarted["kernel_restarted"] and restarted["cells_executed"], restarted
    await session.fails("run_code", "ZeroDivisionError", path=path, code="1/0")


async def change_and_look(session, path, code):
    edit = {"cell_id": code[:6], "old_text": "🎉🎉", "new_text": "🎉 two", "exec": True}
    edited = await session.call("edit_nb_cell", path=path, **edit)
    assert edited["replacements"] == 1 and edited["status"] == "completed", edited
    [found] = (await session.call("inspect_variables", path=path, name="x"))["variables"]
    assert found["type"] == "str" and "🎉 two" in found["preview"], found
    [match] = (await session.call("search_documents", query="two", path=path))["matches"]
    assert (match["cell_id"], match["line"]) == (code, 1), match
    await session.call("insert_nb_cells", path=path, position=-1, cells=[{"content": "2"}], exec=False)
    await session.call("move_nb_cells", path=path, ranges=[{"start": 1}], position=0)
    ran = await session.call("run_notebook", path=path)
    assert ran["status"] == "completed", ran
    await session.call("clear_nb_outputs", path=path)
    await session.call("save_document", path=path)
    kernels = (await session.call("list_kernels"))["kernels"]
    assert path in [kernel["path"] for kernel in kernels], kernels
    await session.call("shutdown_kernel", path=path)


async def go_back_and_forth(session):
    path = f"{FOLDER}/history é.ipynb"
    await session.call("create_notebook", path=path)
    cells = [{"content": "first = '🎉'"}]
    [cell] = (await session.call("insert_nb_cells", path=path, position=0, cells=cells, exec=False))["cell_ids"]
    edit = {"cell_id": cell, "old_text": "first", "new_text": "second"}
    await session.call("edit_nb_cell", path=path, **edit)
    versions = (await session.call("get_document_history", path=path))["versions"]
    assert [version["tool"] for version in versions[:2]] == ["edit_nb_cell", "insert_nb_cells"], versions
    assert all(version["author"] and version["summary"] and version["timestamp"] for version in versions), versions
    changed = await session.call("diff_document", **{"path": path, "from": versions[1]["version_id"]})
    assert "+second = '🎉'" in changed["changes"][0]["diff"], changed
    await session.call("undo_changes", path=path)
    assert await sources(session, path) == ["first = '🎉'"]
    await session.call("undo_changes", path=path, redo=True)
    assert await sources(session, path) == ["second = '🎉'"]
    await session.call("restore_document_version", path=path, version_id=versions[1]["version_id"])
    assert await sources(session, path) == ["first = '🎉'"]
    await session.fails("restore_document_version", versions[0]["version_id"], path=path, version_id="v-none")
    await session.call("delete_document", path=path)


async def propose_in_a_fork(session):
    path = f"{FOLDER}/fork.ipynb"
    await session.call("create_notebook", path=path)
    cells = [{"content": "a = 1"}, {"content": "b = 1"}]
    one, two = (await session.call("insert_nb_cells", path=path, position=0, cells=cells, exec=False))["cell_ids"]
    fork = (await session.call("fork_document", path=path, title="Twos"))["fork_id"]
    for cell in (one, two):
        edit = {"cell_id": cell, "old_text": "1", "new_text": "2", "fork_id": fork}
        await session.call("edit_nb_cell", path=path, **edit)
    assert await sources(session, path) == ["a = 1", "b = 1"]
    [listed] = (await session.call("list_document_forks", path=path))["forks"]
    assert listed["fork_id"] == fork and len(listed["changed_cells"]) == 2, listed
    proposed = await session.call("diff_document", **{"path": path, "from": fork})
    assert len(proposed["changes"]) == 2, proposed
    merged = await session.call("merge_document_fork", path=path, fork_id=fork, cell_ids=[one])
    assert merged["fork_kept"], merged
    assert await sources(session, path) == ["a = 2", "b = 1"]
    await session.call("discard_document_fork", path=path, fork_id=fork)
    await session.fails("merge_document_fork", "fork", path=path, fork_id=fork)
    await session.call("delete_document", path=path)


async def sources(session, path):
    return [cell["source"] for cell in (await session.call("read_nb_cells", path=path))["cells"]]


async def work_with_text(session):
    path = f"{FOLDER}/text ü.txt"
    await session.call("create_document", path=path, content="é🎉漢")
    await session.call("insert_document_text", path=path, position=2, text="|")
    await session.call("replace_document_text", path=path, position=0, length=1, text="ee")
    await session.call("delete_document_text", path=path, position=3, length=1)
    await session.call("edit_document_text", path=path, old_text="漢", new_text="漢漢")
    await session.call("edit_document_text", path=path, old_text="漢漢", new_text="漢")
    content = await session.call("get_document_content", path=path)
    assert content["content"] == "ee🎉漢" and content["content_length"] == 4, content
    assert (await session.call("query_document_session", path=path))["status"] == "connected"
    assert (await session.call("end_document_session", path=path))["status"] == "disconnected"
    await session.call("delete_document", path=path)


async def work_with_documents(session):
    note, copy, moved = (f"{FOLDER}/{name}" for name in ("notes ü.md", "copy ü.md", "moved ü.md"))
    await session.call("create_document", path=note, content="# first 🎉")
    text = "# second\n\nmore é\n"
    written = await session.call("overwrite_document", path=note, content=text)
    assert written["content_length"] == len(text), written
    await session.call("copy_document", path=note, copyPath=copy)
    await session.call("rename_document", path=copy, newPath=moved)
    info = await session.call("get_document_info", path=moved, include_content=True)
    assert info["content"] == text and not info["truncated"], info
    await session.fails("get_document_info", "copy ü.md", path=copy)
    deleted = await session.call("delete_document", path=moved)
    assert deleted["path"] == moved, deleted
    left = (await session.call("list_documents", path=FOLDER))["documents"]
    assert [each["name"] for each in left] == ["Größe und 图", "notes ü.md"], left
    await session.fails("get_document_info", "pth", pth="x")
    await session.fails("get_document_info", path="../x")


async def browse_and_watch(session):
    path = f"{FOLDER}/watched ü.ipynb"
    await session.call("create_notebook", path=path, template="mcts")
    cells = (await session.call("read_nb_cells", path=path))["cells"]
    client = session.client
    resources = (await client.list_resources()).resources
    [notebook] = [each for each in resources if (each.meta or {}).get("path") == path and "current" not in each.uri]
    [contents] = (await client.read_resource(notebook.uri)).contents
    assert contents.mime_type == "text/markdown" and "# Monte Carlo Tree Search" in contents.text, contents
    shapes = (await client.list_resource_templates()).resource_templates
    assert any(each.uri_template.endswith("/cells/{cell_id}") for each in shapes), shapes
    change = [{"range": {"cell_id": cells[0]["id"]}, "content": "# Changed"}]
    if MODE == "legacy":
        await client.subscribe_resource(notebook.uri)
        await session.call("modify_nb_cells", path=path, modifications=change)
        async with asyncio.timeout(20):
            while getattr(await session.notices.get(), "method", "") != "notifications/resources/updated":
                pass
    else:
        async with client.listen(resource_subscriptions=[notebook.uri]) as events:
            await session.call("modify_nb_cells", path=path, modifications=change)
            async with asyncio.timeout(20):
                async for event in events:
                    assert event.uri == notebook.uri, event
                    break
    [contents] = (await client.read_resource(notebook.uri)).contents
    assert "# Changed" in contents.text, contents
    assert [each.name for each in (await client.list_prompts()).prompts][0] == "explore_dataset"
    told = await client.get_prompt("explain_notebook", {"path": path})
    assert path in told.messages[0].content.text, told
    reference = {"type": "ref/prompt", "name": "explain_notebook"}
    completed = await client.complete(PromptReference(**reference), {"name": "path", "value": f"{FOLDER}/wat"})
    assert completed.completion.values == [path], completed


asyncio.run(main())
