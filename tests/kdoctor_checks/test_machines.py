"""Whole machines, read by the real probes, with the checks that must fail on each."""

import functools
import re

import pytest

from helpers import machines
from helpers.cases import cases
from helpers.judging import TODAY
from kdoctor.engine.judge import PlannedCheck, Rules, judge
from kdoctor.engine.report import Result
from kdoctor.facts import FactGroup, Unavailable
from kdoctor.model import Assumptions, GpuAssumption, Severity, Status
from kdoctor_checks import checks

pytestmark = pytest.mark.compiler

FAMILIES = {"driver", "gpu", "topology", "host"}
NEEDS_MORE = {"gpu.replicas-match", "driver.libcuda-found", "driver.forward-compatibility"}
"""Checks that also read a Python environment."""
PLAN = [
    PlannedCheck(check=check, severity=check.severity)
    for check in checks()
    if check.family in FAMILIES and check.id not in NEEDS_MORE
]

Table = dict[type[FactGroup], "FactGroup | Unavailable"]


def judged(table: Table) -> dict[str, Result]:
    rules = Rules(today=TODAY, assumptions=Assumptions(gpus=GpuAssumption(at_least=1)))
    return {result.id: result for result in judge(PLAN, table, rules)}


@functools.cache
def of(name: str) -> dict[str, Result]:
    return judged(dict(machines.facts(name)))


def failing(results: dict[str, Result]) -> dict[str, set[str]]:
    """Failing checks with their subjects, except checks of the host that runs the tests."""
    return {
        check_id: {item.finding.subject for item in result.findings}
        for check_id, result in results.items()
        if result.status is Status.FAIL and result.family != "host"
    }


def across(first: range, second: range) -> set[str]:
    return {f"GPU {one} - GPU {two}" for one in first for two in second}


NAMED: dict[str, dict[str, set[str]]] = {
    "h100-nvswitch": {},
    "a100-sixteen": {},
    "a100-nvlink": {},
    "a100-pcie": {"topology.pairs": across(range(4), range(4, 8))},
    "rtx4090": {
        "topology.pairs": across(range(4), range(4, 8)),
        "topology.p2p-geforce": {f"GPU {one} - GPU {two}" for two in range(8) for one in range(two)},
    },
    "rtx5090": {"topology.p2p-geforce": {"GPU 0 - GPU 1"}},
    "l4-one-x1": {"topology.pcie-width": {"GPU 1 (0000:c1:00.0)"}, "topology.pairs": {"GPU 0 - GPU 1"}},
    "mig-on": {"gpu.mig-mode": {f"GPU {index} (0000:{64 * index + 1:02x}:00.0)" for index in range(4)}},
    "vgpu": {"topology.p2p": {"GPU 0 - GPU 1"}},
    "one-gpu-lost": {"gpu.responding": {"GPU 2 (0000:81:00.0)"}, "gpu.kernel-log": {"GPU 2 (0000:81:00.0)"}},
    "driver-not-loaded": {"driver.loaded": {"NVIDIA driver"}},
    "nouveau": {"driver.loaded": {"NVIDIA driver"}},
    "unsigned-module": {"driver.loaded": {"NVIDIA driver"}},
    "library-mismatch": {"driver.library-matches-module": {"NVIDIA driver"}},
    "nothing-supported": {},
    "one-call-hangs": {"gpu.responding": {"GPU 1 (0000:c1:00.0)"}},
}
"""Machine to the checks that must fail on it, with their subjects. No others may fail."""


@pytest.mark.parametrize("name", NAMED)
def test_defects_of_each_machine_are_found_and_nothing_else(name: str) -> None:
    assert failing(of(name)) == NAMED[name]


def test_closed_device_nodes_fail_as_a_driver_problem() -> None:
    assert set(failing(of("permission-denied"))) == {"driver.loaded"}


@pytest.mark.parametrize("name", machines.HEALTHY)
def test_healthy_machine_passes_all_error_checks(name: str) -> None:
    for check_id, result in of(name).items():
        if result.family != "host" and result.severity is Severity.ERROR:
            assert result.status in {Status.PASS, Status.SKIP}, (check_id, result.reason)


@pytest.mark.parametrize("name", ["h100-nvswitch", "a100-sixteen", "a100-nvlink"])
def test_machines_with_nvlink_have_no_warnings(name: str) -> None:
    found = [(result.id, result.reason) for result in of(name).values() if result.family != "host"]
    assert [item for item in found if of(name)[item[0]].status not in {Status.PASS, Status.SKIP}] == []


def test_unsupported_readings_do_not_pass() -> None:
    """Two L4 that return "not supported" for every call."""
    passing = {check_id for check_id, result in of("nothing-supported").items() if result.status is Status.PASS}
    about_gpus = {check_id for check_id in passing if check_id.startswith("gpu.")}
    # The log was read, gpu.readings does not count unsupported readings, and the driver answered in time.
    read = {"gpu.kernel-log", "gpu.application-xids", "gpu.logged-remapping", "gpu.readings", "gpu.response-time"}
    assert about_gpus == read | (about_gpus & {"gpu.count-expected"})


LONGEST = 60
PLACEHOLDER = re.compile(r"<[a-z ]+>")


@pytest.mark.parametrize("name", machines.MACHINES)
def test_findings_have_short_headlines_and_commands_with_values(name: str) -> None:
    for result in of(name).values():
        for item in result.findings:
            assert len(item.finding.headline) <= LONGEST, result.id
            assert item.finding.remedy.commands or item.finding.remedy.look, result.id
            assert not PLACEHOLDER.search(" ".join(item.finding.remedy.commands[:-1])), result.id
            assert not PLACEHOLDER.search(" ".join(item.finding.remedy.look)), result.id


@pytest.mark.parametrize("name", machines.MACHINES)
def test_findings_with_the_same_headline_share_their_fix(name: str) -> None:
    for result in of(name).values():
        if result.family != "host":
            fixes = {(item.finding.headline, item.finding.remedy) for item in result.findings}
            assert len(fixes) == len({headline for headline, _ in fixes}), result.id


def values(name: str, family: str) -> set[str]:
    """The values of a family's line in the short report."""
    passed = (result for result in of(name).values() if result.family == family and result.status is Status.PASS)
    return {item.brief for result in passed for item in result.evidence if item.brief}


@cases(
    (
        "h100-nvswitch",
        {"570.158.01", "kernel log clean since boot"},
        {"8 x NVIDIA H100 80GB HBM3", "all free", "no memory errors"},
        {"NVLink (NV18) between every pair", "fabric ready"},
    ),
    ("rtx5090", {"580.105.08", "kernel log clean since boot"}, {"2 x NVIDIA GeForce RTX 5090", "all free"}, None),
    ("one-gpu-lost", {"570.158.01"}, {"3 x NVIDIA A100-SXM4-80GB"}, set()),
    ("driver-not-loaded", {"kernel log clean since boot"}, set(), set()),
)
def test_values_of_the_short_report(name: str, driver: set[str], gpu: set[str], topology: set[str] | None) -> None:
    assert values(name, "driver") == driver
    assert values(name, "gpu") == gpu
    assert topology is None or values(name, "topology") == topology


def test_lost_gpu_explains_everything_else() -> None:
    """Findings and missing evidence of a machine with one lost GPU lead back to gpu.responding."""
    found = [result for result in of("one-gpu-lost").values() if result.family != "host"]
    others = [item.finding.explained_by for result in found for item in result.findings]
    others += [item.explained_by for result in found for item in result.unjudged]
    assert others.count(()) == 1  # gpu.responding
    assert set(others) == {(), ("gpu.responding",)}
