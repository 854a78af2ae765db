"""The first screen in the situations that users meet most: real runs, and described GPU machines."""

import datetime as dt
import re
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import pytest
from rich.cells import cell_len
from syrupy.assertion import SnapshotAssertion

from helpers.facts import environment, gpu, gpus, h100_node, logged, lost_gpu, pair
from helpers.machines import MACHINES, facts
from kdoctor.catalog.load import load_catalog
from kdoctor.engine.report import Conclusion, Report
from kdoctor.facts import FactGroup, Facts, Gpus, SmokeRun, SmokeRuns
from kdoctor.facts.gpus import EVENT_HW_POWER_BRAKE
from kdoctor.report.formats import render
from kdoctor.run.assemble import build_report
from kdoctor.run.plan import RunOptions
from kdoctor.run.session import Collected
from kdoctor.snapshot.document import loads
from kdoctor.testing import fact_table
from kdoctor.text.canvas import SCREEN

RECORDED = Path(__file__).with_name("machines")
STARTED = dt.datetime(2030, 1, 2, 3, 4, 5, tzinfo=dt.timezone.utc)


def report(table: Facts, *options: str) -> Report:
    """The report of a run with these facts."""
    names = dict(zip(options[::2], options[1::2], strict=True))
    wanted = RunOptions(
        checklist=names.get("--checklist", "multi-gpu-keras"),
        gpus=int(names["--gpus"]) if "--gpus" in names else None,
        use_lock=False,
        command=" ".join(("kdoctor", "check", *options)),
    )
    collected = Collected(facts=table, target="/opt/job/bin/python", started_at=STARTED, duration_s=12.4)
    return build_report(collected, wanted.plan(load_catalog()))


def recorded(name: str) -> Facts:
    """The facts of a real run."""
    return loads((RECORDED / f"{name}.json").read_text(encoding="utf-8"), load_catalog().fact_groups).facts


def eight_h100(*changed: FactGroup, seen: int = 8) -> Facts:
    """The facts of a healthy node with eight H100, and the trainings of a real run as if on ``seen`` of these GPUs."""
    pairs = tuple(pair(*indices) for indices in combinations(range(8), 2))
    runs = recorded("healthy")[SmokeRuns]
    assert isinstance(runs, SmokeRuns)
    trained = {name: on_gpus(run, seen) for name, run in runs.runs.items() if isinstance(run, SmokeRun)}
    return fact_table(*h100_node(8), gpus(8, pairs=pairs), SmokeRuns(runs=trained), *changed)


def on_gpus(run: SmokeRun, seen: int) -> SmokeRun:
    """A run on CPU devices as if on GPUs."""
    devices = tuple(f"/job:localhost/replica:0/task:0/device:GPU:{index}" for index in range(seen))
    last = {"fed-tail": 2 * seen - 1, "starved-tail": max(seen - 1, 1)}
    cases = tuple(
        replace(
            case,
            replicas=case.replicas and seen,
            devices=case.devices and devices,
            global_batch=8 * seen,
            final_batch=last.get(case.name, 8 * seen),
        )
        for case in run.cases
    )
    return replace(run, devices_kind="gpu", replicas_requested=seen, gpus_seen=seen, cases=cases)


def lost(*indices: int) -> tuple[FactGroup, ...]:
    """Eight H100, of which some have fallen off the bus."""
    devices = [
        replace(lost_gpu(index), bus_id=gpu(index).bus_id) if index in indices else gpu(index) for index in range(8)
    ]
    lines = [
        f"[ 100.000000] NVRM: Xid (PCI:{gpu(index).bus_id}): 79, pid=1, GPU has fallen off the bus."
        for index in indices
    ]
    return gpus(8, *devices), logged(*lines)


def throttled() -> Gpus:
    """Eight H100 that a power brake holds at a low clock."""
    held = [
        gpu(
            index, clock_sm_mhz=80 + index, clock_event_reasons=(EVENT_HW_POWER_BRAKE,) * 3, utilization_gpu_percent=100
        )
        for index in range(8)
    ]
    return gpus(8, *held)


SITUATIONS = {
    "all-well": lambda: report(eight_h100()),
    "no-gpu": lambda: report(recorded("no-gpu")),
    "keras-3.6": lambda: report(recorded("keras-3.6"), "--checklist", "cpu-smoke"),
    "two-tensorflows": lambda: report(recorded("two-tensorflows"), "--checklist", "cpu-smoke"),
    "broken-protobuf": lambda: report(recorded("broken-protobuf"), "--checklist", "cpu-smoke"),
    "lost-gpu": lambda: report(eight_h100(*lost(2), seen=7)),
    "throttled": lambda: report(eight_h100(throttled())),
}
FIRST = {
    "no-gpu": "driver.loaded",
    "keras-3.6": "versions.keras-compatible",
    "two-tensorflows": "versions.one-tensorflow",
    "broken-protobuf": "versions.package-conflicts",
    "lost-gpu": "gpu.responding",
    "throttled": "gpu.clocks",
}


@pytest.mark.parametrize("name", SITUATIONS)
def test_screen(name: str, screen: SnapshotAssertion) -> None:
    assert render(SITUATIONS[name](), "terminal") == screen


@pytest.mark.parametrize("name", SITUATIONS)
def test_one_screen_with_the_cause_first(name: str) -> None:
    found = SITUATIONS[name]()
    lines = render(found, "terminal").splitlines()
    commands = {command for step in found.plan for command in step.commands}
    assert len(lines) <= SCREEN
    pasted = [set(line.strip().removeprefix("Fix: ").split(" && ")) for line in lines if cell_len(line) > 80]
    assert all(each <= commands for each in pasted)
    assert [cause.checks[0] for cause in found.causes if cause.severity.value == "error" and not cause.after] == [
        *([FIRST[name]] if name in FIRST else [])
    ]
    assert (found.verdict.conclusion is Conclusion.PASS) == (name == "all-well")


@pytest.mark.parametrize("indices", [(2,), (2, 5)])
def test_job_starts_without_the_lost_gpus(indices: tuple[int, ...]) -> None:
    first = report(eight_h100(*lost(*indices), seen=8 - len(indices))).plan[0]
    assert first.kind == "workaround"
    variables = dict(re.findall(r"export (\w+)=(\S+)", " ".join(first.commands)))
    again = first.check.split()
    runs = eight_h100(*lost(*indices), environment(**variables), seen=8 - len(indices))
    following = report(runs, *again[2:])
    assert not [cause for cause in following.causes if cause.severity.value == "error"]


@pytest.mark.parametrize("name", MACHINES)
def test_every_described_machine_fits_one_screen(name: str) -> None:
    lines = render(report(facts(name)), "terminal").splitlines()
    assert len(lines) <= SCREEN
