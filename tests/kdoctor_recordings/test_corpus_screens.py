"""The first screen of every recorded machine: short, and narrow enough for a terminal."""

import datetime as dt
import os
from pathlib import Path

import pytest
from rich.cells import cell_len

from helpers.kdoctor_recordings.corpus import REASON
from kdoctor.catalog.load import load_catalog
from kdoctor.engine.report import Report
from kdoctor.errors import UsageError
from kdoctor.report.formats import render
from kdoctor.run.assemble import build_report
from kdoctor.run.plan import Plan, RunOptions
from kdoctor.run.session import Collected
from kdoctor.text.canvas import SCREEN
from kdoctor_recordings.importer import import_files

pytestmark = pytest.mark.corpus

FOLDER = Path(os.environ.get("KDOCTOR_CORPUS", "/nonexistent"))
FILES = sorted(str(path.relative_to(FOLDER)) for path in FOLDER.rglob("*.*") if path.suffix != ".md")


@pytest.fixture(scope="module")
def plan() -> Plan:
    command = "kdoctor check --snapshot node.json"
    return RunOptions(checklist="multi-gpu-keras", smoke=False, use_lock=False, command=command).plan(load_catalog())


def report(name: str, plan: Plan) -> Report:
    """The report of a recording. Skips the test if the format is not supported."""
    try:
        imported = import_files([FOLDER / name])
    except UsageError as error:
        pytest.skip(str(error).partition("\n")[0])
    started = dt.datetime(2030, 1, 2, tzinfo=dt.timezone.utc)
    collected = Collected(
        facts=imported.facts, target="node.json", started_at=started, duration_s=0.5, from_snapshot=True
    )
    return build_report(collected, plan)


@pytest.mark.skipif(not FILES, reason=REASON)
@pytest.mark.parametrize("name", FILES)
def test_recorded_machine_fits_one_screen(name: str, plan: Plan) -> None:
    found = report(name, plan)
    lines = render(found, "terminal").splitlines()
    # What is copied is not broken: commands, and addresses of pages.
    steps = [command for step in found.plan for command in (*step.commands, *step.look)] + ["https://"]
    assert len(lines) <= SCREEN
    assert [line for line in lines if cell_len(line) > 80 and not any(step in line for step in steps)] == []


FIRST = {
    "ecc/retired-pages-x8-bad.txt": "gpu.retired-pages",
    "kmsg/xid-and-fallen-off-lines.log": "gpu.kernel-log",
    "kmsg/xid119-gsp-timeout-xe9680.log": "gpu.kernel-log",
    "kmsg/xid48-63-94-h100-dmesg-iso.log": "gpu.kernel-log",
    "nvlink/a100-inactive-links-azure.txt": "topology.nvlink",
    "second/azdiag-nvidia-smi-inforom.out": "gpu.readings",
    "second/cap-linux-x86_64__nvidia-h100-mig__590.48.01.txt": "gpu.mig-mode",
    "second/smi-failed-wsl9134.txt": "driver.loaded",
    "second/smi-lost-nospace-syno22.txt": "gpu.responding",
    "second/smi-mismatch-tinygrad47.txt": "driver.library-matches-module",
    "second/smi-notfound-ogkm246.txt": "gpu.responding",
    "second/table-wsl-cudaERR-wsl11589.txt": "driver.loaded",
    "second/uvm-fatal-154-5090egpu.log": "gpu.kernel-log",
    "second/xid109-chia74.log": "gpu.kernel-log",
    "second/xid144-148-nvlink5-fatal-gpud.log": "gpu.kernel-log",
    "second/xid62-rtx5080-forum371272.log": "gpu.kernel-log",
    "second/xid94-mig-nvidia-docs.log": "gpu.logged-remapping",
    "smi-q/h100x8-535.161.08-hwslowdown-all.txt": "gpu.clocks",
    "smi-x/a100-sxm4-mig-535.xml": "gpu.mig-mode",
    "smi-x/l4x2-555-one-x1-link.xml": "topology.pcie-width",
}
"""Recordings to the check that reports what an expert reads in them first."""


@pytest.mark.skipif(not FILES, reason=REASON)
@pytest.mark.parametrize("name", FIRST)
def test_first_problem_is_the_one_that_an_expert_names(name: str, plan: Plan) -> None:
    assert report(name, plan).causes[0].checks[0] == FIRST[name]
