"""The printed manifests against the schemas of Kubernetes, and reports from the logs of pods by the real kubectl."""

from __future__ import annotations

import datetime as dt
import json
import os
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from helpers.command import kdoctor
from helpers.fleets import healthy
from helpers.integrations import FOLDER, needs, tool
from helpers.kubernetes_api import KubernetesApi, pod
from kdoctor.cli.fleet import app

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


NO_KUBECTL = pytest.mark.skipif(tool("kubectl") is None, reason="not installed: kubectl")
CLIENTS = [
    pytest.param("--cache-dir=cache", marks=NO_KUBECTL),
    pytest.param("", marks=pytest.mark.skipif(find_spec("kubernetes") is None, reason="not installed: kubernetes")),
]
"""An option that only kubectl has, and none, with which the API's client is used."""


@pytest.mark.parametrize("option", CLIENTS)
def test_reports_are_collected_from_the_logs_of_pods(option: str, tmp_path: Path) -> None:
    now = dt.datetime.now(dt.timezone.utc).isoformat(timespec="seconds")
    reports = {name: json.dumps(healthy(name) | {"started_at": now}, indent=2).encode() for name in ("gpu-1", "gpu-2")}
    waiting = [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/4 nodes have GPUs"}]
    pulling = [{"state": {"waiting": {"reason": "ImagePullBackOff", "message": "no such image"}}}]
    killed = [{"state": {"terminated": {"reason": "OOMKilled", "exitCode": 137}}}]
    pods = [
        pod("kdoctor-0", "gpu-1"),
        pod("kdoctor-1", "gpu-2"),
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
    more = (f"--engine-option={option}",) if option else ()
    common = (
        "fleet", "run", "--engine", "kubernetes", f"--engine-option=--kubeconfig={api.config}", *more, "-f", "json"
    )  # fmt: skip
    try:
        done = kdoctor(*common, cwd=tmp_path)
        assert done.stdout, done.stderr
        document = json.loads(done.stdout)
        reasons = {node["name"]: node["reason"] for node in document["nodes"] if node["state"] == "silent"}
        assert document["passing"] == ["gpu-1", "gpu-2"], reasons
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
    api = KubernetesApi(tmp_path, [pod("kdoctor-0", "gpu-1", "Running")], {"kdoctor-0": b"{"}, hangs=True)
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


def test_pairs_are_refused(tmp_path: Path) -> None:
    api = KubernetesApi(tmp_path, [pod("kdoctor-0", "gpu-1")], {})
    options = (f"--engine-option=--kubeconfig={api.config}", "--pairs", "--pair-address", "{}-ib")
    try:
        done = kdoctor("fleet", "run", "--engine", "kubernetes", *options, cwd=tmp_path)
    finally:
        api.stop()
    assert done.returncode == 2
    assert "--engine kubernetes only collects" in done.stderr
