"""``kdoctor mcp``, asked by the client of the SDK over stdio."""

import asyncio
import json
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from mcp import ClientSession, MCPError, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.types import CallToolResult, CancelledNotification, CancelledNotificationParams, ListToolsResult, TextContent

import kdoctor
from helpers.command import SCRIPT, environ

TOOLS = {"check", "explain", "diagnose", "matrix", "topology", "lint"}


def ask(questions: Callable[[ClientSession], Awaitable[Any]], folder: Path) -> Any:
    """Answers of a server that was started for it."""

    async def session() -> Any:
        parameters = StdioServerParameters(
            command=sys.executable, args=["-m", "kdoctor", "mcp"], env=environ(CUDA_VISIBLE_DEVICES=""), cwd=folder
        )
        async with stdio_client(parameters) as (read, write), ClientSession(read, write) as client:
            introduced = await client.initialize()
            assert (introduced.server_info.name, introduced.server_info.version) == ("kdoctor", kdoctor.__version__)
            return await questions(client)

    return asyncio.run(asyncio.wait_for(session(), 120))


def text(result: CallToolResult) -> str:
    (content, *_) = result.content
    assert isinstance(content, TextContent)
    return content.text


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The answer to one call of each tool, from one server."""
    folder = tmp_path_factory.mktemp("job")
    (folder / "train.py").write_text(SCRIPT, encoding="utf-8")
    (folder / "train.log").write_text("Could not find cuda drivers\nNum GPUs Available: 0\n", encoding="utf-8")
    calls: dict[str, tuple[str, dict[str, Any]]] = {
        "check": ("check", {"checklist": "cpu-smoke", "select": ["host"]}),
        "explain": ("explain", {"name": "gpu.free"}),
        "diagnose": ("diagnose", {"logs": ["train.log"]}),
        "matrix": ("matrix", {"tensorflow": "2.19"}),
        "topology": ("topology", {}),
        "lint": ("lint", {"paths": ["train.py"]}),
        "injected option": ("lint", {"paths": ["--fix", "train.py"]}),
        "injected checklist": ("check", {"checklist": "cpu-smoke --output json=out.json"}),
        "interpreter": ("matrix", {"python": "/bin/sh"}),
        "stdin": ("diagnose", {"logs": ["-"]}),
        "text on stdin": ("explain", {"name": "-"}),
        "after errors": ("explain", {"name": "watch.finite"}),
    }

    async def questions(client: ClientSession) -> dict[str, Any]:
        found: dict[str, Any] = {"tools": await client.list_tools()}
        for name, (tool, arguments) in calls.items():
            found[name] = await client.call_tool(tool, arguments)
        return found

    found: dict[str, Any] = ask(questions, folder)
    assert (folder / "train.py").read_text(encoding="utf-8") == SCRIPT
    assert sorted(path.name for path in folder.iterdir()) == ["train.log", "train.py"]
    return found


def test_tools_only_read_and_have_typed_results(answers: dict[str, Any]) -> None:
    listed: ListToolsResult = answers["tools"]
    assert {tool.name for tool in listed.tools} == TOOLS
    for tool in listed.tools:
        assert tool.annotations is not None
        assert (tool.annotations.read_only_hint, tool.annotations.destructive_hint) == (True, False)
        assert tool.output_schema is not None
        assert tool.description


def test_results_are_the_documents_of_the_commands(answers: dict[str, Any]) -> None:
    check = answers["check"].structured_content
    assert (check["checklist"]["name"], check["checklist"]["version"]) == ("cpu-smoke", 1)
    # Prerequisites are part of the report.
    assert any(result["family"] == "host" for result in check["results"])
    assert answers["matrix"].structured_content["kdoctor"]
    assert [cause["id"] for cause in answers["diagnose"].structured_content["causes"]] == ["cudart_not_found"]
    assert answers["lint"].structured_content["findings"][0]["path"] == "train.py"
    assert "gpu.free" in text(answers["explain"])
    for name in TOOLS - {"explain", "topology"}:
        assert not answers[name].is_error
        assert json.loads(text(answers[name])) == answers[name].structured_content


def test_errors_are_the_commands_errors(answers: dict[str, Any]) -> None:
    assert answers["topology"].is_error
    assert "no GPUs to show" in text(answers["topology"])


@pytest.mark.parametrize("name", ["injected option", "injected checklist", "interpreter", "stdin", "text on stdin"])
def test_arguments_cannot_become_options(answers: dict[str, Any], name: str) -> None:
    assert answers[name].is_error
    assert not answers["after errors"].is_error


BROKEN: dict[str, tuple[str, dict[str, Any]]] = {
    "no such tool": ("smoke", {}),
    "no argument": ("explain", {}),
    "wrong type": ("lint", {"paths": 3}),
    "wrong items": ("diagnose", {"logs": [{"path": "train.log"}]}),
    "no such path": ("diagnose", {"logs": ["nowhere/train.log"]}),
    "no such script": ("lint", {"paths": ["nowhere/train.py"]}),
    "no such checklist": ("check", {"checklist": "nowhere/node.yaml"}),
    "no such check": ("check", {"select": ["no.such-check"]}),
    "zero byte": ("lint", {"paths": ["train\0.py"]}),
    "huge text": ("explain", {"name": "NaN " * 1_000_000}),
    "huge path": ("lint", {"paths": ["x" * 1_000_000]}),
    "many paths": ("diagnose", {"logs": [f"train-{number}.log" for number in range(20_000)]}),
    "negative": ("topology", {"replicas": -1}),
}


def test_broken_calls_are_errors_and_the_server_goes_on(tmp_path: Path) -> None:
    async def questions(client: ClientSession) -> None:
        for name, (tool, arguments) in BROKEN.items():
            answer = await client.call_tool(tool, arguments)
            assert answer.is_error, name
            assert "Traceback" not in text(answer), name
            assert len(text(answer)) < 10_000_000, name
        assert not (await client.call_tool("explain", {"name": "watch.finite"})).is_error

    ask(questions, tmp_path)


def test_call_that_the_client_gave_up_does_not_disturb_the_next(tmp_path: Path) -> None:
    async def questions(client: ClientSession) -> None:
        with pytest.raises(MCPError, match=r"(?i)timed out"):
            await client.call_tool("check", {"select": ["host"]}, read_timeout_seconds=0.001)
        await client.send_notification(
            CancelledNotification(params=CancelledNotificationParams(request_id=1, reason="late"))
        )
        assert "watch.finite" in text(await client.call_tool("explain", {"name": "watch.finite"}))

    ask(questions, tmp_path)


def test_lines_that_are_not_requests_do_not_end_the_server(tmp_path: Path) -> None:
    hello = {"protocolVersion": "2024-11-05", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    lines = [
        "this is not JSON",
        '{"jsonrpc": "2.0"}',
        "[]",
        '{"jsonrpc": "2.0", "id": 1, "method": "no/such", "params": {}}',
        json.dumps({"jsonrpc": "2.0", "id": 2, "method": "initialize", "params": hello}),
        '{"jsonrpc": "2.0", "method": "notifications/initialized"}',
        "{" * 100_000,
        '{"jsonrpc": "2.0", "id": 3, "method": "tools/list"}',
    ]
    command = [sys.executable, "-m", "kdoctor", "mcp"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd=tmp_path, env=environ()
    ) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        server.stdin.write("".join(f"{line}\n" for line in lines).encode())
        server.stdin.flush()
        read = (json.loads(line) for line in server.stdout)
        listed = next(answer for answer in read if answer.get("id") == 3)
        server.stdin.close()
        assert server.wait(30) == 0
    assert {tool["name"] for tool in listed["result"]["tools"]} == TOOLS


def test_missing_extra_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    from kdoctor.errors import UsageError
    from kdoctor_mcp.server import server

    monkeypatch.setitem(sys.modules, "mcp.server.mcpserver", None)
    with pytest.raises(UsageError, match="extra mcp"):
        server()
