"""Fixtures of the tests on a real GPU. Without an NVIDIA device every test is skipped."""

import os
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from helpers import real_gpu
from kdoctor.facts import Facts, Gpus, Unavailable
from kdoctor.probes.builtin import PROBES
from kdoctor.probes.collector import collect_facts

_RECORD = pytest.StashKey[real_gpu.Record]()
_MACHINE = ("nvml", "kernel driver", "kernel log", "pci", "host", "environment")
"""The probes of the machine, without those of the Python environment."""


def pytest_configure(config: pytest.Config) -> None:
    path = os.environ.get("KDOCTOR_GPU_RECORD")
    budget_s = float(os.environ.get("KDOCTOR_GPU_BUDGET_S", "450"))
    config.stash[_RECORD] = real_gpu.Record(path=Path(path) if path else None, budget_s=budget_s)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, Any, Any]:
    """Record each test's outcome, with the reason of a skip or the first line of a failure."""
    report: Any = yield
    record = item.config.stash[_RECORD]
    if report.when == "call" or report.outcome != "passed":
        reason = report.longrepr[2].removeprefix("Skipped: ") if report.skipped else _last_line(report.longreprtext)
        name = item.nodeid.removeprefix("tests/gpu/")
        seconds = round(report.duration, 2)
        record.tests.append({"test": name, "outcome": report.outcome, "seconds": seconds, "reason": reason})
        record.write()
    return report


def _last_line(text: str) -> str:
    errors = [line.removeprefix("E").strip() for line in text.splitlines() if line.startswith("E ")]
    return errors[0][:300] if errors else ""


@pytest.fixture(scope="session")
def record(request: pytest.FixtureRequest) -> real_gpu.Record:
    return request.config.stash[_RECORD]


@pytest.fixture(scope="session")
def facts(record: real_gpu.Record) -> Facts:
    """What kdoctor reads on this machine. A GPU whose driver does not answer is a failure, and no GPU a skip."""
    found = collect_facts([probe for probe in PROBES if probe.name in _MACHINE], real_gpu.context())
    gpus = found[Gpus]
    if not isinstance(gpus, Gpus) or not gpus.devices:
        has_node = any(Path(os.environ.get("KDOCTOR_ROOT") or "/", "dev").glob("nvidia[0-9]*"))
        state = gpus.unavailable if isinstance(gpus, Unavailable) else getattr(gpus, "error", None)
        if has_node:
            pytest.fail(f"/dev has an NVIDIA GPU, but the driver lists none ({state})")
        pytest.skip(f"no NVIDIA GPU ({state})")
    record.machine.update(real_gpu.describe(found))
    return found


@pytest.fixture(autouse=True)
def _budget(record: real_gpu.Record, facts: Facts) -> None:
    if record.left_s < 10:
        pytest.skip(f"the time budget of {record.budget_s:.0f} s is used up")


@pytest.fixture
def gpus(facts: Facts) -> Gpus:
    return real_gpu.group(facts, Gpus)
