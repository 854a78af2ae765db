"""Fuzz targets about jobs and fleets: logs, reports of nodes, requests of editors, container files, child processes."""

import contextlib
import io
import json
import re
import zlib
from collections.abc import Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import yaml

from helpers.fuzzing.mutation import mutated_json
from helpers.fuzzing.using import NOW, REPOSITORY, Reader, catalog
from helpers.kdoctor_fleet import fleets
from helpers.machine import context
from helpers.smoke import session
from kdoctor.errors import UsageError
from kdoctor.probes.process.child import ChildEnd
from kdoctor.report.json import make_document
from kdoctor.run.assemble import build_report
from kdoctor.run.session import Collected
from kdoctor.smoke.gpu_sampler import Sampler
from kdoctor.smoke.scenario import Scenario
from kdoctor.testing import fact_table
from kdoctor_diagnose.diagnose import diagnose
from kdoctor_diagnose.inputs import logs_of
from kdoctor_diagnose.report.formats import FORMATS as DIAGNOSIS_FORMATS
from kdoctor_diagnose.report.formats import render as render_diagnosis
from kdoctor_fleet.diff import compare, read_report
from kdoctor_fleet.facts import JobConfig
from kdoctor_fleet.formats import FORMATS as FLEET_FORMATS
from kdoctor_fleet.formats import render as render_fleet
from kdoctor_fleet.launch.kubernetes import Kubectl
from kdoctor_fleet.merge import Expectation, merge
from kdoctor_fleet.names import expand, fold, read_names
from kdoctor_fleet.pairs.record import FILE as PAIRS_FILE
from kdoctor_fleet.pairs.record import good_nodes, pair_tests, read_pairs
from kdoctor_fleet.read import UnusableError, find_report, gather
from kdoctor_fleet.report import make_document as fleet_document
from kdoctor_fleet.run_record import FILE, read_run
from kdoctor_lint import engine
from kdoctor_watch.settings import plan_of as plan_of_watch
from kdoctor_watch.testing import healthy_watched


@cache
def _logs() -> Sequence[bytes]:
    """Logs of public reports, and one of a healthy job."""
    folder = REPOSITORY / "tests/kdoctor_diagnose"
    reports = yaml.safe_load((folder / "reports.yaml").read_text(encoding="utf-8"))
    return [*(report["log"].encode() for report in reports), (folder / "healthy.txt").read_bytes()]


def _log(suffix: str, data: bytes, folder: Path) -> None:
    path = folder / f"job{suffix}"
    path.write_bytes(data)
    logs, notes = logs_of([str(path)], io.BytesIO())
    found = diagnose(logs, catalog().checks, catalog().scenarios, notes=notes)
    for name in DIAGNOSIS_FORMATS if zlib.crc32(data) % 10 == 0 else ("terminal",):
        render_diagnosis(found, name)


def _notebooks() -> Sequence[bytes]:
    text = _logs()[0].decode("utf-8", "replace").splitlines()
    outputs = [
        {"output_type": "stream", "name": "stderr", "text": [f"{line}\n" for line in text[-30:]]},
        {"output_type": "error", "ename": "ValueError", "evalue": "x", "traceback": text[-5:]},
        {"output_type": "execute_result", "data": {"text/plain": ["1"]}},
    ]
    return [json.dumps({"cells": [{"cell_type": "code", "source": [], "outputs": outputs}], "nbformat": 4}).encode()]


def _refuse(_: bytes) -> Any:
    raise UsageError("a snapshot")


def _node_report(data: bytes, folder: Path) -> None:
    path = folder / "node2.json"
    path.write_bytes(data)
    first = json.dumps(fleets.healthy("node1")).encode()
    gathered = gather([str(path), "-"], _refuse, io.BytesIO(first))
    if zlib.crc32(data) % 5:  # judging takes longer than reading
        return
    found = merge(gathered, Expectation(), fleets.fleet_plan(), fleets.MERGED_AT, 0.1)
    for name in FLEET_FORMATS if zlib.crc32(data) % 50 == 0 else ("json",):
        render_fleet(found, name)


def _node_output(data: bytes, _: Path) -> None:
    with contextlib.suppress(UnusableError):
        find_report(data)
    with contextlib.suppress(UsageError):
        gather(["-"], _refuse, io.BytesIO(data))


def _run_record(data: bytes, folder: Path) -> None:
    (folder / FILE).write_bytes(data)
    run = read_run(folder)
    if run is not None:
        run.silent(folder)


def _pairs_record(data: bytes, folder: Path) -> None:
    (folder / PAIRS_FILE).write_bytes(data)
    pairs = read_pairs(folder)
    if pairs is not None:
        good_nodes(pairs)
        pair_tests(pairs)


def _fleet_diff(data: bytes, folder: Path) -> None:
    (folder / "old.json").write_bytes(_fleets()[0])
    (folder / "new.json").write_bytes(data)
    found = compare(read_report(folder / "old.json"), read_report(folder / "new.json"))
    found.to_text()
    found.to_json()


def _node_names(data: bytes, folder: Path) -> None:
    if re.search(rb"[\d_]{7}", data):  # ClusterShell lists the numbers of a range
        return
    (folder / "nodes").write_bytes(data)
    fold(read_names(folder / "nodes"))
    fold(expand(data.decode("utf-8", "replace"), "--expect"))


class _Cluster(Kubectl):
    """A kubectl that answers each question with the same bytes."""

    program = "sh"
    answer = b""

    def __init__(self, options: Sequence[str]) -> None:
        super().__init__(options)
        self._children = SimpleNamespace(run=self._answer)  # type: ignore[assignment]

    def _answer(self, *_: object, take: Any, **__: object) -> ChildEnd:
        take(self.answer)
        return ChildEnd(exit_code=0, signal=None, timed_out=False, records=(), chatter="", stderr="", seconds=0.1)


def _pods(data: bytes, _: Path) -> None:
    engine = _Cluster([])
    engine.answer = data
    engine.nodes({})
    for node in engine._by_node():
        engine.run(node, ["kdoctor"], lambda _: True, 1.0)


@cache
def _reports() -> Sequence[bytes]:
    """The report of a node, and that of a training that was watched."""
    facts = fact_table(healthy_watched())
    watched = build_report(Collected(facts=facts, target="x", started_at=NOW, duration_s=1.0), plan_of_watch({}))
    return [json.dumps(fleets.healthy("node2"), indent=2).encode(), make_document(watched).to_json().encode()]


@cache
def _fleets() -> Sequence[bytes]:
    return [fleet_document(fleets.merged(fleets.fleet_of(3))).to_json().encode()]


RUN = {
    "schema": "kdoctor/fleet-run/v1", "kdoctor": "1", "engine": "ssh", "engine_options": [], "program": ["kdoctor"],
    "options": [], "nodes": ["node1", "node2"], "started_at": "2026-01-01T00:00:00+00:00",
    "outcomes": {"node1": {"reported": False, "reason": "ssh: refused", "asked_at": "", "seconds": 1.5}},
}  # fmt: skip
_WORKER = {
    "node": "node1",
    "verdict": "fail",
    "problem": "x",
    "hung": True,
    "phase": "step 1",
    "stacks": "x",
    "gbs": 1.5,
}
_TRIAL = {"nodes": ["node1", "node2"], "outcome": "failed", "hung": True, "gbs": 1.5, "workers": [_WORKER]}
PAIRS = {
    "schema": "kdoctor/fleet-pairs/v1", "kdoctor": "1", "nodes": ["node1", "node2", "node3"], "full_matrix": False,
    "started_at": "2026-01-01T00:00:00+00:00", "interrupted": False,
    "pairs": [_TRIAL, *({**_TRIAL, "nodes": [name, "node3"], "outcome": "trained"} for name in ("node1", "node2"))],
    "groups": [{**_TRIAL, "nodes": ["node1", "node2", "node3"]}],
}  # fmt: skip
PODS = {
    "items": [
        {"metadata": {"name": "kdoctor-0", "creationTimestamp": "2026-01-01T00:00:00Z", "ownerReferences": [{"kind": "DaemonSet"}]},
         "spec": {"nodeName": "node1", "containers": [{"name": "proxy"}, {"name": "kdoctor"}]},
         "status": {"phase": "Pending", "reason": "", "conditions": [{"status": "False", "reason": "Unschedulable", "message": "x"}],
                    "containerStatuses": [{"state": {"waiting": {"reason": "ImagePullBackOff", "message": "x"}}}]}},
        {"metadata": {"name": "kdoctor-1", "creationTimestamp": "2026-01-02T00:00:00Z"}, "spec": {"containers": [{"name": "main"}]},
         "status": {"phase": "Failed", "reason": "Evicted", "message": "x", "containerStatuses": [{"state": {"terminated": {"reason": "OOMKilled"}}}]}},
        {"metadata": {"name": "kdoctor-2", "creationTimestamp": "2026-01-02T00:00:00Z"}, "spec": {"nodeName": "node2", "containers": [{"name": "main"}]},
         "status": {"phase": "Failed", "initContainerStatuses": [],
                    "containerStatuses": [{"name": "main", "state": {"terminated": {"exitCode": 137, "reason": "Error"}}}]}},
    ]
}  # fmt: skip

SETTINGS = b"""\
[tool.kdoctor.lint]
select = ["KD5"]
ignore = ["model-outside-scope"]
tensorflow = "2.15"
keras = "2.15"
[tool.kdoctor.lint.per-file-ignores]
"tests/*" = ["clipping"]
"""


def _settings(data: bytes, folder: Path) -> None:
    project = folder / "project"
    project.mkdir(exist_ok=True)
    (project / "pyproject.toml").write_bytes(data)
    (project / "train.py").write_text("import tensorflow as tf\ntf.distribute.MirroredStrategy()\n")
    engine.lint([str(project / "train.py")])


def _events(data: bytes, folder: Path) -> None:
    """What the process of the trainings sends, and then what the sampler of the GPUs does."""
    fake = Scenario(
        id="smoke.baseline", version=1, kind="baseline", title="t", expect="e", program=folder / "x.py", cases=("fit",),
        deadline_s=1.0,
    )  # fmt: skip
    trainings = session(fake)
    sampler = _Silent()
    for line in data.splitlines():
        with contextlib.suppress(ValueError, RecursionError):
            record = json.loads(line)
            trainings._take(record)
            sampler._take(record)
    trainings.known()
    sampler.facts()


class _Silent(Sampler):
    """A sampler without a process."""

    def __init__(self) -> None:
        ended = SimpleNamespace(start=lambda: None, end=lambda _: None, ended=None, failure=None)
        patched = Sampler.__init__.__globals__
        before = patched["BackgroundProcess"]
        patched["BackgroundProcess"] = lambda *_, **__: ended
        try:
            super().__init__(context(Path("/nonexistent")), deadline_s=1.0)
        finally:
            patched["BackgroundProcess"] = before


EVENTS = b"\n".join(
    json.dumps(item).encode()
    for item in (
        {"event": "imported", "tensorflow": "2.19.0", "keras": "3.10.0", "import_s": 1.5},
        {"event": "failed", "error_type": "ImportError", "error_message": "x", "faults": [{"module": "numpy", "problem": "x"}]},
        {"event": "started", "scenario": "smoke.baseline", "case": "fit"},
        {"event": "phase", "scenario": "smoke.baseline", "case": "fit", "phase": "step 1"},
        {"event": "ended", "scenario": "smoke.baseline", "case": "fit", "facts": {
            "outcome": "finished", "gpus_seen": 2, "replicas": 2, "devices": ["/GPU:0", "/GPU:1"], "seconds": 1.0,
            "steps": [{"seconds": 0.1}], "loss": [1.0, 0.5], "step_seconds": [0.1, 0.2]}},
        {"state": "sampling", "error": None},
        {"gpu": 0, "once": {"name": "NVIDIA H100", "bus_id": "0000:01:00.0"}, "errors": {}},
        {"gpu": 0, "sample": {"temperature_c": 40, "sm_clock_mhz": 1980, "power_w": 300.0, "utilization_percent": 50}, "errors": {}, "took_s": 0.01},
        {"gpu": 0, "hangs": "temperature_c"},
    )
)  # fmt: skip


def _job_configuration(data: bytes, _: Path) -> None:
    JobConfig.read(data.decode("utf-8", "replace"))


def _json(document: object) -> Sequence[bytes]:
    return [json.dumps(document).encode()]


JOBS: Mapping[str, Reader] = {
    "log of a job": Reader(seeds=_logs, run=partial(_log, ".log")),
    "notebook of a job": Reader(seeds=_notebooks, run=partial(_log, ".ipynb"), mutate=mutated_json),
    "report of a node": Reader(seeds=_reports, run=_node_report, mutate=mutated_json),
    "output of a node": Reader(seeds=_reports, run=_node_output),
    "record of a fleet's run": Reader(seeds=partial(_json, RUN), run=_run_record, mutate=mutated_json),
    "record of trainings over nodes": Reader(seeds=partial(_json, PAIRS), run=_pairs_record, mutate=mutated_json),
    "report of a fleet": Reader(seeds=_fleets, run=_fleet_diff, mutate=mutated_json),
    "names of nodes": Reader(seeds=lambda: [b"node[001-064],login1\n", b"rack[1-4]node[1-16/2]\n"], run=_node_names),
    "pods": Reader(seeds=partial(_json, PODS), run=_pods, mutate=mutated_json),
    "settings of lint": Reader(seeds=lambda: [SETTINGS], run=_settings),
    "events of trainings": Reader(seeds=lambda: [EVENTS], run=_events),
    "TF_CONFIG": Reader(
        seeds=partial(_json, {"cluster": {"worker": ["a:1", "[::1]:2"]}, "task": {"type": "worker", "index": 0}}),
        run=_job_configuration,
    ),
}
"""Readers of jobs and fleets."""
