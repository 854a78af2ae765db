"""The printed manifests against the schemas of Kubernetes, and reports from the logs of pods by the real kubectl."""

import datetime as dt
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from helpers.cases import cases
from helpers.command import kdoctor
from helpers.integrations import FOLDER, needs
from helpers.kdoctor_fleet.faulty_nodes import NODES, assert_judged, interrupt, write_nodes
from helpers.kdoctor_fleet.fleets import healthy
from helpers.kdoctor_fleet.kubernetes_api import CLIENTS, KubernetesApi, engine_options, pod
from kdoctor_fleet.commands.fleet import app

os.environ["PATH"] += f":{Path(sys.executable).parent}"
pytestmark = pytest.mark.fleet
VALIDATES = needs("kubernetes-validate")[0]

OPTIONS = ("--nodes", "4", "--namespace", "ml", "--selector", "pool=gpu", "--runtime-class", "nvidia")


@VALIDATES
@pytest.mark.parametrize("version", ["1.30", "1.37"])
@pytest.mark.parametrize("kind", ["job", "cronjob", "daemonset", "init-container"])
def test_manifest_is_valid(kind: str, version: str, tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["manifest", "--image", "x:1", "--kind", kind, *OPTIONS])
    document = yaml.safe_load(done.stdout)
    if kind == "init-container":
        pod = yaml.safe_load((FOLDER / "kubernetes-pod.yaml").read_text())
        pod["spec"] |= document
        pod["spec"]["containers"][0].pop("volumeMounts")
        document = pod
    file = tmp_path / "manifest.yaml"
    file.write_text(yaml.safe_dump(document))
    command = ["kubernetes-validate", "--strict", "--kubernetes-version", version, str(file)]
    checked = subprocess.run(command, capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout + checked.stderr


def ago(seconds: int) -> str:
    """A time in the past, as Kubernetes writes it."""
    then = dt.datetime.now(dt.timezone.utc) - dt.timedelta(seconds=seconds)
    return then.isoformat(timespec="seconds").replace("+00:00", "Z")


def logs_of(program: Path, kinds: Iterable[str]) -> dict[str, bytes]:
    """What the manifest's command writes on the nodes of these kinds. A log that does not end is cut."""
    printed = CliRunner().invoke(app, ["manifest", "--image", "x:1", "--kdoctor", str(program)]).stdout
    command = yaml.safe_load(printed)["spec"]["template"]["spec"]["containers"][0]["command"]
    logs = {}
    for kind in kinds:
        variables = {**os.environ, "KDOCTOR_NODE": kind}
        words = ["timeout", "1", *command] if kind == "hanging" else command
        done = subprocess.run(words, env=variables, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        assert done.returncode == (124 if kind == "hanging" else 0)
        logs[kind] = done.stdout
    return logs


@pytest.mark.parametrize("option", CLIENTS)
def test_every_fault_is_named_and_nothing_else(option: str, tmp_path: Path) -> None:
    kinds = {kind: kind for kind in NODES} | {"good2": "healthy", "good3": "healthy", "good4": "healthy"}
    created = ago(1)
    logs = logs_of(write_nodes(tmp_path, kinds), kinds)
    pods = [pod(kind, kind, "Running" if kind == "hanging" else "Succeeded", created=created) for kind in kinds]
    api = KubernetesApi(tmp_path, pods, logs, hangs=["hanging"])
    options = engine_options(api.config, option)
    try:
        done = kdoctor(
            "fleet", "run", "--engine", "kubernetes", *options, "-f", "json", "--node-timeout", "15", cwd=tmp_path
        )
    finally:
        api.stop()
    assert done.stdout, done.stderr
    assert_judged(json.loads(done.stdout), kinds)


def ended(code: int, reason: str = "Error", **more: str) -> dict[str, Any]:
    """The state of a container that has ended."""
    state = {"terminated": {"exitCode": code, "reason": reason, **more}}
    return {"containerStatuses": [{"name": "kdoctor", "state": state}]}


@pytest.mark.parametrize("option", CLIENTS)
def test_ends_of_pods_while_they_are_followed_differ(option: str, tmp_path: Path) -> None:
    absent = ended(128, "StartError", message='exec: "kdoctor": executable file not found')
    ends: dict[str, tuple[dict[str, Any] | None, str]] = {
        "evicted": ({"phase": "Failed", "reason": "Evicted", "message": "The node was low on memory."}, "Evicted"),
        "memory": ({"phase": "Failed", **ended(137, "OOMKilled")}, "OOMKilled"),
        "killed": ({"phase": "Failed", **ended(137)}, "killed there (SIGKILL)"),
        "absent": ({"phase": "Failed", **absent}, "executable file not found"),
        "gone": (None, "404"),
        "open": ({"phase": "Running"}, "its log ended before its container did"),
    }
    later = {name: state for name, (state, _) in ends.items()}
    api = KubernetesApi(tmp_path, [pod(name, name, "Running") for name in ends], dict.fromkeys(ends, b"{"), later=later)
    options = engine_options(api.config, option)
    try:
        done = kdoctor("fleet", "run", "--engine", "kubernetes", *options, "-f", "json", cwd=tmp_path)
    finally:
        api.stop()
    found = {node["name"]: node["reason"] for node in json.loads(done.stdout)["nodes"]}
    for name, (_, part) in ends.items():
        assert part in found[name] or (name == "gone" and "NotFound" in found[name]), found


@pytest.mark.parametrize("option", CLIENTS)
def test_interrupted_controller_resumes(option: str, tmp_path: Path) -> None:
    report = json.dumps(healthy("node") | {"started_at": ago(0)}, indent=2).encode()
    pods = [pod("one", "one", created=ago(1)), pod("two", "two", created=ago(1)), pod("late", "late", "Running")]
    api = KubernetesApi(tmp_path, pods, {"one": report, "two": report, "late": b"{"}, hangs=["late"])
    options = engine_options(api.config, option)
    interrupted = interrupt(tmp_path, "--engine", "kubernetes", *options)
    api.stop()
    assert interrupted.returncode == 130, interrupted.stderr
    done_since = KubernetesApi(tmp_path, [pod("late", "late", created=ago(1))], {"late": report})
    try:
        options = engine_options(done_since.config, option)
        again = ("--engine", "kubernetes", *options, "--resume", "--reports", "r", "-f", "json")
        done = kdoctor("fleet", "run", *again, cwd=tmp_path)
    finally:
        done_since.stop()
    assert json.loads(done.stdout)["passing"] == ["late", "one", "two"], done.stderr  # two were not asked again


@pytest.mark.parametrize("option", CLIENTS)
def test_reports_are_collected_from_the_logs_of_pods(option: str, tmp_path: Path) -> None:
    started = {"started_at": ago(540)}
    reports = {name: json.dumps(healthy(name) | started, indent=2).encode() for name in ("gpu-1", "gpu-2")}
    waiting = [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/4 nodes have GPUs"}]
    pulling = [{"state": {"waiting": {"reason": "ImagePullBackOff", "message": "no such image"}}}]
    killed = [{"state": {"terminated": {"reason": "OOMKilled", "exitCode": 137}}}]
    pods = [
        pod("kdoctor-0", "gpu-1", created=ago(600)),
        pod("kdoctor-1", "gpu-2", created=ago(600)),
        pod("kdoctor-2", None, "Pending", conditions=waiting),
        pod("kdoctor-3", "gpu-4", "Pending", containerStatuses=pulling),
        pod("kdoctor-4", "gpu-5", "Failed", containerStatuses=killed),
        pod("kdoctor-5", "gpu-6"),
        pod("kdoctor-6", "gpu-7"),
    ]
    logs = {
        "kdoctor-0": b"motd\n" + reports["gpu-1"], "kdoctor-1": reports["gpu-2"], "kdoctor-4": reports["gpu-1"][:5000],
        "kdoctor-5": b"x" * 40_000_000, "kdoctor-6": b"sh: kdoctor: not found\n",
    }  # fmt: skip
    api = KubernetesApi(tmp_path, pods, logs)
    common = ("fleet", "run", "--engine", "kubernetes", *engine_options(api.config, option), "-f", "json")
    try:
        done = kdoctor(*common, cwd=tmp_path)
        assert done.stdout, done.stderr
        document = json.loads(done.stdout)
        reasons = {node["name"]: node["reason"] for node in document["nodes"] if node["state"] == "silent"}
        assert document["passing"] == ["gpu-1", "gpu-2"], reasons
        # The pods ran before they were asked for their reports, which says nothing about their clocks.
        assert not [
            node for node in document["nodes"] for problem in node["problems"] if "clock" in problem["headline"]
        ]
        for name, part in {
            "kdoctor-2": "Unschedulable 0/4 nodes", "gpu-4": "ImagePullBackOff", "gpu-5": "OOMKilled",
            "gpu-6": "more than 32 MiB", "gpu-7": "its output is not a report",
        }.items():  # fmt: skip
            assert part in reasons[name], reasons
    finally:
        api.stop()
    refused = kdoctor(*common, cwd=tmp_path)
    assert refused.returncode == 2
    assert "kubectl get pods: " in refused.stderr or "the pods cannot be listed: " in refused.stderr


@pytest.mark.skipif(find_spec("kubernetes") is None, reason="not installed: kubernetes")
def test_log_that_never_ends_is_closed_at_the_deadline(tmp_path: Path) -> None:
    api = KubernetesApi(tmp_path, [pod("kdoctor-0", "gpu-1", "Running")], {"kdoctor-0": b"{"}, hangs=["kdoctor-0"])
    try:
        started = time.monotonic()
        done = kdoctor(
            "fleet", "run", "--engine", "kubernetes", f"--engine-option=--kubeconfig={api.config}", "-f", "json",
            "--node-timeout", "3", cwd=tmp_path,
        )  # fmt: skip
        assert time.monotonic() - started < 60
        (node,) = json.loads(done.stdout)["nodes"]
        assert (node["state"], node["reason"]) == ("silent", "no report within 3 s")
    finally:
        api.stop()


@pytest.mark.skipif(find_spec("kubernetes") is None, reason="not installed: kubernetes")
@cases("{", "", "hello", "[1]", "{}", "a: b", "contexts: 1", "contexts: [{}]", "\x00", "{a: !!x 1}")
def test_configuration_that_cannot_be_used_is_a_usage_error(tmp_path: Path, text: str) -> None:
    (tmp_path / "config").write_text(text)
    done = kdoctor("fleet", "run", "--engine", "kubernetes", "--engine-option=--kubeconfig=config", cwd=tmp_path)
    assert done.returncode == 2, done.stderr
    assert done.stderr.startswith("kdoctor: the configuration of Kubernetes cannot be used: ")


def test_pairs_are_refused(tmp_path: Path) -> None:
    api = KubernetesApi(tmp_path, [pod("kdoctor-0", "gpu-1")], {})
    options = (f"--engine-option=--kubeconfig={api.config}", "--pairs", "--pair-address", "{}-ib")
    try:
        done = kdoctor("fleet", "run", "--engine", "kubernetes", *options, cwd=tmp_path)
    finally:
        api.stop()
    assert done.returncode == 2
    assert "--engine kubernetes only collects" in done.stderr
