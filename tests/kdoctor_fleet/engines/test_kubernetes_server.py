"""The printed manifests, and the reports of their pods, with a real API server of Kubernetes.

The server has no nodes: nothing starts the pods, so their states are set by the tests, and their logs cannot be read.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from helpers.command import kdoctor
from helpers.kdoctor_fleet.kubernetes_api import CLIENTS, engine_options
from helpers.kdoctor_fleet.kubernetes_server import PROGRAMS, VARIABLE, ApiServer, installed
from kdoctor_fleet.commands.fleet import app

pytestmark = [
    pytest.mark.fleet,
    pytest.mark.skipif(not installed(), reason=f"{VARIABLE} names no folder with {' and '.join(PROGRAMS)}"),
]

PATHS = {
    "job": "/apis/batch/v1/namespaces/default/jobs",
    "cronjob": "/apis/batch/v1/namespaces/default/cronjobs",
    "daemonset": "/apis/apps/v1/namespaces/default/daemonsets",
}
PODS = "/api/v1/namespaces/default/pods"
FIRST_MINOR = 24
"""Of the release in which Indexed Jobs are stable; CronJobs in batch/v1 are older."""
OPTIONS = ("--nodes", "4", "--gpus", "8", "--selector", "pool=gpu")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    server = ApiServer(tmp_path_factory.mktemp("kubernetes"))
    try:
        server.start()
        yield server
    finally:
        server.stop()


def manifest(kind: str) -> Any:
    done = CliRunner().invoke(app, ["manifest", "--image", "x:1", "--kind", kind, *OPTIONS])
    return yaml.safe_load(done.stdout)


def missing(sent: Any, kept: Any, place: str = "") -> list[str]:
    """The fields that the server did not keep as they were sent. It writes some numbers as text."""
    if isinstance(sent, dict):
        known = kept if isinstance(kept, dict) else {}
        return [found for key in sent for found in missing(sent[key], known.get(key), f"{place}.{key}")]
    if isinstance(sent, list):
        items = kept if isinstance(kept, list) and len(kept) == len(sent) else [None] * len(sent)
        return [found for index, item in enumerate(sent) for found in missing(item, items[index], f"{place}[{index}]")]
    return [] if str(sent) == str(kept) else [f"{place}: {kept}"]


@pytest.mark.parametrize("kind", PATHS)
def test_server_accepts_the_manifest_and_keeps_each_field(kind: str, server: ApiServer) -> None:
    minor = int(server.ask("GET", "/version")["minor"].rstrip("+"))
    if kind != "daemonset" and minor < FIRST_MINOR:
        pytest.skip(f"Kubernetes 1.{minor} has no Indexed Jobs: 1.{FIRST_MINOR}")
    document = manifest(kind)
    kept = server.ask("POST", f"{PATHS[kind]}?dryRun=All", document)
    assert missing(document, kept) == []


@pytest.mark.parametrize("option", CLIENTS)
def test_pods_are_listed_and_say_why_they_have_no_report(option: str, server: ApiServer, tmp_path: Path) -> None:
    states = {
        "waiting": {
            "phase": "Pending",
            "conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}],
        },
        "evicted": {"phase": "Failed", "reason": "Evicted", "message": "The node was low on memory."},
        "away": {"phase": "Running"},
    }
    template = manifest("job")["spec"]["template"]
    for name, status in states.items():
        spec = template["spec"] | ({} if name == "waiting" else {"nodeName": f"node-{name}"})
        document = {"apiVersion": "v1", "kind": "Pod", "metadata": template["metadata"] | {"name": name}, "spec": spec}
        server.ask("POST", PODS, document)
        server.ask("PATCH", f"{PODS}/{name}/status", {"status": status}, "application/merge-patch+json")
    options = engine_options(server.config, option)
    try:
        done = kdoctor("fleet", "run", "--engine", "kubernetes", *options, "-f", "json", cwd=tmp_path)
    finally:
        for name in states:
            server.ask("DELETE", f"{PODS}/{name}?gracePeriodSeconds=0")
    assert done.stdout, done.stderr
    reasons = {node["name"]: node["reason"] for node in json.loads(done.stdout)["nodes"]}
    assert sorted(reasons) == ["node-away", "node-evicted", "waiting"]
    assert "Unschedulable" in reasons["waiting"]
    assert "Evicted" in reasons["node-evicted"]
    assert "node-away" in reasons["node-away"]  # the server does not know the node, and cannot ask it for the log


@pytest.mark.parametrize("option", CLIENTS)
def test_wrong_token_is_a_usage_error_in_the_words_of_the_server(
    option: str, server: ApiServer, tmp_path: Path
) -> None:
    config = tmp_path / "kubeconfig"
    config.write_text(server.config.read_text().replace('"token": "', '"token": "not-'))
    options = engine_options(config, option)
    done = kdoctor("fleet", "run", "--engine", "kubernetes", *options, cwd=tmp_path)
    assert done.returncode == 2
    assert "Unauthorized" in done.stderr or "must be logged in" in done.stderr or "provide credentials" in done.stderr
