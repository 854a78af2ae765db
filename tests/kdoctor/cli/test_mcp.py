"""``kdoctor mcp``, asked by the client of the SDK over stdio."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.types import CallToolResult, ListToolsResult, TextContent

from helpers.command import environ

TOOLS = {"check", "explain", "diagnose", "matrix", "topology", "lint"}
SCRIPT = """import tensorflow as tf
strategy = tf.distribute.MirroredStrategy()
model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
with strategy.scope():
    model.compile("sgd", "mse")
model.fit(x, y)
"""


def ask(questions: Callable[[ClientSession], Awaitable[Any]], folder: Path) -> Any:
    """Answers of a server that was started for it."""

    async def session() -> Any:
        parameters = StdioServerParameters(
            command=sys.executable,
            args=["-m", "kdoctor", "mcp"],
            env=environ(CUDA_VISIBLE_DEVICES=""),
            cwd=folder,
        )
        async with stdio_client(parameters) as (read, write), ClientSession(read, write) as client:
            await client.initialize()
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
    (folder / "train.log").write_text("Could not find cuda drivers on your machine\n", encoding="utf-8")
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
        assert (tool.annotations.readOnlyHint, tool.annotations.destructiveHint) == (True, False)
        assert tool.outputSchema is not None
        assert tool.description


def test_results_are_the_documents_of_the_commands(answers: dict[str, Any]) -> None:
    check = answers["check"].structuredContent
    assert check["checklist"] == {"name": "cpu-smoke", "version": 1}
    # Prerequisites are part of the report.
    assert any(result["family"] == "host" for result in check["results"])
    assert answers["matrix"].structuredContent["kdoctor"]
    assert [cause["id"] for cause in answers["diagnose"].structuredContent["causes"]] == ["cudart_not_found"]
    assert answers["lint"].structuredContent["findings"][0]["path"] == "train.py"
    assert "gpu.free" in text(answers["explain"])
    for name in TOOLS - {"explain", "topology"}:
        assert not answers[name].isError
        assert json.loads(text(answers[name])) == answers[name].structuredContent


def test_errors_are_the_commands_errors(answers: dict[str, Any]) -> None:
    assert answers["topology"].isError
    assert "no GPUs to show" in text(answers["topology"])


@pytest.mark.parametrize("name", ["injected option", "injected checklist", "interpreter", "stdin", "text on stdin"])
def test_arguments_cannot_become_options(answers: dict[str, Any], name: str) -> None:
    assert answers[name].isError
    assert not answers["after errors"].isError


def test_missing_extra_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    from kdoctor.cli.mcp import server
    from kdoctor.errors import UsageError

    monkeypatch.setitem(sys.modules, "mcp.server.fastmcp", None)
    with pytest.raises(UsageError, match="extra mcp"):
        server()
