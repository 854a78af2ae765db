"""What the tests on a real GPU share: its tools, kdoctor's facts about it, and the record of what was seen."""

import json
import os
import platform
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timezone
from importlib import metadata
from pathlib import Path
from typing import Any, TypeVar

import pytest

from helpers.command import captured, environ
from kdoctor.facts import FactGroup, Facts, Gpus, Host, KernelDriver, Unavailable
from kdoctor.probes.probe import Context
from kdoctor.probes.process.child import Children
from kdoctor.version import __version__
from kdoctor_recordings.importer import import_files

SCHEMA = "kdoctor/measured-hardware/v1"
REHEARSAL = "KDOCTOR_GPU_REHEARSAL"
"""Set by the rehearsal without a GPU: trainings run on a CPU device, and the record says so."""
OCCUPY = Path(__file__).parents[1] / "gpu" / "occupy.py"
_PACKAGES = ("jax", "jaxlib", "keras", "tensorflow", "nvidia-ml-py", "numpy")

G = TypeVar("G", bound=FactGroup)


def rehearsed() -> bool:
    """Whether this is a rehearsal without a GPU."""
    return REHEARSAL in os.environ


def on_gpus() -> tuple[str, ...]:
    """Options with which kdoctor trains on the GPUs; on one CPU device in a rehearsal."""
    return ("--replicas", "1") if rehearsed() else ()


@dataclass
class Record:
    """What was seen. It is written after each test, so that an early end loses nothing."""

    path: Path | None
    budget_s: float
    began: float = field(default_factory=time.monotonic)
    machine: dict[str, Any] = field(default_factory=dict)
    tables: dict[str, dict[str, Any]] = field(default_factory=dict)
    tests: list[dict[str, Any]] = field(default_factory=list)

    @property
    def left_s(self) -> float:
        """Seconds that are left of the budget."""
        return self.budget_s - (time.monotonic() - self.began)

    def row(self, table: str, **cells: Any) -> None:
        """Add a row to a table of the page."""
        rows = self.tables.setdefault(table, {"columns": list(cells), "rows": []})["rows"]
        rows.append([_cell(value) for value in cells.values()])

    def write(self) -> None:
        """Write the document."""
        if self.path is None:
            return
        document = {
            "schema": SCHEMA,
            "rehearsal": rehearsed(),
            "date": datetime.now(tz=timezone.utc).date().isoformat(),
            "kdoctor": __version__,
            "seconds": round(time.monotonic() - self.began, 1),
            "machine": self.machine,
            "tests": self.tests,
            "tables": self.tables,
        }
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


def _cell(value: Any) -> str | float | None:
    if isinstance(value, float):
        return round(value, 4)
    return value if value is None or type(value) in (str, int) else str(value)


def describe(facts: Facts) -> dict[str, Any]:
    """The machine without anything that identifies it: no host name, address or serial number."""
    gpus, host, driver = facts.get(Gpus), facts.get(Host), facts.get(KernelDriver)
    found: dict[str, Any] = {"Python": platform.python_version()}
    if isinstance(gpus, Gpus):
        found["GPUs"] = ", ".join(f"{gpu.index}: {gpu.name}" for gpu in gpus.devices)
        found["driver"] = gpus.driver_version
        found["CUDA of the driver"] = gpus.cuda_driver_version
    if isinstance(driver, KernelDriver):
        found["kernel module"] = driver.flavour or "flavor unknown"
    if isinstance(host, Host):
        found |= {"system": host.os_release, "kernel": host.kernel, "container": host.container, "CPUs": host.cpus}
    for name in _PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = "not installed"
    return found


def context() -> Context:
    """The context of a probe on this machine; its root is that of a rehearsal, if there is one."""
    return Context(python=sys.executable, chosen_by="--python", environ=environ(), children=Children())


def group(facts: Facts, wanted: type[G]) -> G:
    """A group of facts. Skips the test with the reason if it is unavailable."""
    found = facts.get(wanted)
    if isinstance(found, Unavailable) or found is None:
        pytest.skip(found.unavailable if found else f"{wanted.__name__} was not collected")
    assert isinstance(found, wanted)
    return found


def tool(*argv: str, timeout_s: float = 30.0) -> str:
    """The output of a program. Skips the test with the reason if the program is missing or fails."""
    name = argv[0]
    if shutil.which(name) is None:
        pytest.skip(f"{name} is not installed")
    try:
        done = captured(argv, errors="replace", timeout=timeout_s)
    except (OSError, subprocess.TimeoutExpired) as error:
        pytest.skip(f"{' '.join(argv)}: {error}")
    if done.returncode:
        said = (done.stderr or done.stdout).strip().splitlines()
        pytest.skip(f"{' '.join(argv)}: exit code {done.returncode}: {said[0] if said else 'no message'}")
    if not done.stdout.strip():
        pytest.skip(f"{' '.join(argv)} printed nothing")
    return done.stdout


def imported(folder: Path, wanted: type[G], text: str) -> G:
    """The facts that kdoctor reads from a program's output."""
    path = folder / "dump"
    path.write_text(text, encoding="utf-8")
    found = import_files([path]).facts.get(wanted)
    if found is None:
        pytest.skip(f"the output has no {wanted.__name__}")
    assert isinstance(found, wanted)
    return found


@dataclass(frozen=True)
class Ran:
    """One run of kdoctor."""

    code: int
    stdout: str
    stderr: str
    seconds: float

    @property
    def report(self) -> dict[str, Any]:
        """The report as JSON."""
        try:
            found: dict[str, Any] = json.loads(self.stdout)
        except json.JSONDecodeError:
            pytest.fail(f"no report; exit code {self.code}; {self.stderr[-2000:]}")
        return found

    @property
    def results(self) -> dict[str, dict[str, Any]]:
        """The results by check."""
        return {result["id"]: result for result in self.report["results"]}


def run_kdoctor(record: Record, *arguments: str | Path, folder: Path, **variables: str) -> Ran:
    """Run kdoctor as a user does, within the budget of time."""
    command = [sys.executable, "-m", "kdoctor", *map(str, arguments)]
    began = time.monotonic()
    try:
        done = captured(command, env=environ(**variables), cwd=folder, timeout=max(5.0, min(150.0, record.left_s)))
    except subprocess.TimeoutExpired as error:
        pytest.fail(f"kdoctor {' '.join(map(str, arguments))} did not end within {error.timeout:.0f} s")
    return Ran(done.returncode, done.stdout, done.stderr, time.monotonic() - began)


@contextmanager
def occupied(*arguments: str, patience_s: float = 90.0) -> Iterator[dict[str, Any]]:
    """A process that holds or uses the first GPU meanwhile, and what it said when it was ready.

    Skips the test with the reason if it cannot.
    """
    process = subprocess.Popen(
        [sys.executable, str(OCCUPY), *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environ(),
    )
    assert process.stdout
    assert process.stdin
    assert process.stderr
    timer = _ended_after(process, patience_s)
    try:
        line = process.stdout.readline()
        timer.cancel()
        said = json.loads(line) if line.strip() else {"skip": f"it ended: {process.stderr.read()[-500:]}"}
        if "skip" in said:
            pytest.skip(f"{' '.join(arguments)}: {said['skip']}")
        yield {**said, "pid": process.pid}
    finally:
        timer.cancel()
        process.stdin.close()
        try:
            process.wait(timeout=15)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()
        process.stderr.close()


def _ended_after(process: subprocess.Popen[str], seconds: float) -> threading.Timer:
    timer = threading.Timer(seconds, process.kill)
    timer.daemon = True
    timer.start()
    return timer


def statuses(results: Mapping[str, Mapping[str, Any]], families: Sequence[str]) -> dict[str, str]:
    """The status of each check of these families."""
    return {name: result["status"] for name, result in results.items() if name.partition(".")[0] in families}
