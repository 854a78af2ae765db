"""The checks that ask each GPU one question: a row for each state of a GPU, and what every check of them says."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from helpers.checks import BUILT_IN
from helpers.facts import NOT_SUPPORTED, bus_id, geforce, geforces, gpu, gpus, v100
from helpers.saying import said
from kdoctor.engine.report import Result
from kdoctor.facts import Gpu
from kdoctor.facts.bounds import OfHbm, marked
from kdoctor.model import Severity, Status
from kdoctor.testing import compute_check

State = dict[str, Any]
TOO_OLD = "NVML_ERROR_FUNCTION_NOT_FOUND"


@dataclass(frozen=True, kw_only=True)
class Question:
    """What one check asks."""

    fields: tuple[str, ...]
    """The readings that it needs."""
    bad: tuple[tuple[State, str], ...]
    """States of a faulty GPU, and a pattern of what is said about it."""
    healthy: str
    """What is said about a healthy GPU."""
    good: tuple[State, ...] = ()
    """Further states of a healthy GPU."""
    severity: Severity = Severity.ERROR
    fix: str
    """The command for a machine with one GPU in the first of the bad states."""
    build: Callable[..., Gpu] = gpu
    newer: bool = False
    """Whether older drivers lack a reading."""
    explained: Mapping[str, State] = field(default_factory=dict)
    """Other checks, and states of a faulty GPU that they explain."""

    @property
    def unread(self) -> State:
        """A GPU without the readings."""
        return dict.fromkeys(self.fields)


RESET = f"sudo nvidia-smi --gpu-reset -i {bus_id(0)}"
MEMORY: Mapping[str, State] = {
    "gpu.ecc-errors": {"ecc_uncorrected_volatile": 1},
    "gpu.row-remapping": {"remapped_rows_failure": True},
    "gpu.sram-errors": {"sram_threshold_exceeded": True},
    "gpu.retired-pages": {"retired_pages_single_bit": 30, "retired_pages_double_bit": 30},
}
PENDING: Mapping[str, State] = {**MEMORY, "gpu.recovery-action": {"recovery_action": "reset"}}
"""Counters that show the same bad memory."""
QUESTIONS = {
    "gpu.sram-errors": Question(
        fields=("sram_threshold_exceeded",),
        bad=(({"sram_threshold_exceeded": True}, "uncorrected SRAM errors are above NVIDIA's threshold"),),
        healthy="uncorrected SRAM errors are below NVIDIA's threshold",
        fix="nvidia-smi -q -d ECC",
        newer=True,
    ),
    "gpu.unrepairable-memory": Question(
        fields=("unrepairable_memory",),
        bad=(({"unrepairable_memory": True}, "memory that cannot be repaired"),),
        healthy="no unrepairable memory",
        fix="nvidia-smi -q -d ECC",
        newer=True,
    ),
    "gpu.row-remapping": Question(
        fields=("remapped_rows_failure",),
        bad=(
            (
                {"remapped_rows_failure": True, "remapped_rows_uncorrectable": 8},
                r"a faulty memory row could not be remapped \(8 rows remapped for uncorrectable errors\)",
            ),
            (
                {"remapped_rows_failure": True, "remapped_rows_uncorrectable": None},
                "a faulty memory row could not be remapped$",
            ),
        ),
        healthy="no remapping failure (0 rows remapped for uncorrectable errors)",
        good=({"remapped_rows_uncorrectable": 4, "remapped_rows_pending": True},),
        fix="nvidia-smi -q -d ROW_REMAPPER",
    ),
    "gpu.row-remapping-pending": Question(
        fields=("remapped_rows_pending",),
        bad=(
            (
                {"remapped_rows_pending": True, "remapped_rows_uncorrectable": 4},
                r"memory rows are waiting .*\(remapped so far: 4 uncorrectable, 0 correctable\)",
            ),
            ({"remapped_rows_pending": True, "remapped_rows_correctable": None}, r"0 uncorrectable, \? correctable"),
        ),
        healthy="no rows are waiting for a reset to be remapped (remapped so far: 0 uncorrectable, 0 correctable)",
        good=({"remapped_rows_uncorrectable": 4},),
        severity=Severity.WARNING,
        fix=RESET,
        explained=PENDING,
    ),
    "gpu.retired-pages": Question(
        fields=("retired_pages_single_bit", "retired_pages_double_bit"),
        bad=(
            ({"retired_pages_double_bit": 61}, r"61 retired pages \(0 single-bit, 61 double-bit\)"),
            ({"retired_pages_single_bit": 50, "retired_pages_double_bit": 10}, "60 retired pages"),
        ),
        healthy="0 retired pages (0 single-bit, 0 double-bit)",
        good=({"retired_pages_single_bit": 50, "retired_pages_double_bit": 9},),
        fix="nvidia-smi -q -d PAGE_RETIREMENT",
        build=v100,
    ),
    "gpu.retired-pages-pending": Question(
        fields=("retired_pages_pending",),
        bad=(({"retired_pages_pending": True}, "memory pages are waiting for a reset"),),
        healthy="no pages are waiting for a reset to be retired",
        good=({"retired_pages_double_bit": 3},),
        severity=Severity.WARNING,
        fix=RESET,
        build=v100,
        explained=PENDING,
    ),
    "gpu.repair-pending": Question(
        fields=("channel_repair_pending", "tpc_repair_pending"),
        bad=(
            ({"channel_repair_pending": True}, "^memory channel repair pending until a reset$"),
            ({"tpc_repair_pending": True}, "^TPC repair pending until a reset$"),
            ({"channel_repair_pending": True, "tpc_repair_pending": True}, "^memory channel and TPC repair pending"),
        ),
        healthy="no repair pending",
        severity=Severity.WARNING,
        fix=RESET,
        newer=True,
        explained=PENDING,
    ),
    "gpu.recovery-action": Question(
        fields=("recovery_action",),
        bad=(
            ({"recovery_action": "reboot"}, "the driver requests recovery action reboot"),
            ({"recovery_action": "reset"}, "action reset"),
            ({"recovery_action": "drain-p2p"}, "action drain-p2p"),
        ),
        healthy="the driver requests recovery action none",
        fix="sudo reboot",
        newer=True,
        explained=MEMORY,
    ),
    "gpu.mig-mode": Question(
        fields=("mig_mode",),
        bad=(({"mig_mode": True}, "MIG is on"),),
        healthy="MIG is off",
        fix="sudo nvidia-smi -mig 0",
    ),
    "gpu.mig-mode-pending": Question(
        fields=("mig_mode", "mig_mode_pending"),
        bad=(
            ({"mig_mode_pending": True}, "MIG is off, but on after the next reset"),
            ({"mig_mode": True, "mig_mode_pending": False}, "MIG is on, but off after the next reset"),
        ),
        healthy="MIG is off",
        good=({"mig_mode": True, "mig_mode_pending": True},),
        severity=Severity.WARNING,
        fix="sudo nvidia-smi -mig 0",
    ),
    "gpu.compute-mode": Question(
        fields=("compute_mode",),
        bad=(({"compute_mode": "prohibited"}, "compute mode is prohibited"),),
        healthy="compute mode is default",
        good=({"compute_mode": "exclusive-process"},),
        fix="sudo nvidia-smi --compute-mode=DEFAULT",
    ),
    "gpu.exclusive-mode": Question(
        fields=("compute_mode",),
        bad=(
            ({"compute_mode": "exclusive-process"}, "compute mode is exclusive-process"),
            ({"compute_mode": "exclusive-thread"}, "compute mode is exclusive-thread"),
        ),
        healthy="compute mode is default",
        severity=Severity.WARNING,
        fix="sudo nvidia-smi --compute-mode=DEFAULT",
    ),
    "gpu.ecc-mode": Question(
        fields=("ecc_mode", "ecc_mode_pending"),
        bad=(
            ({"ecc_mode_pending": False}, "ECC is on, and off after the next restart"),
            ({"ecc_mode": False}, "ECC is off, and on after the next restart"),
            ({"ecc_mode": False, "ecc_mode_pending": False}, "^ECC is off$"),
        ),
        healthy="ECC is on",
        severity=Severity.INFO,
        fix="sudo nvidia-smi -e 1",
    ),
    "gpu.ecc-errors": Question(
        fields=("ecc_uncorrected_volatile",),
        bad=(
            (
                {"ecc_uncorrected_volatile": 2, "ecc_uncorrected_aggregate": 5},
                "2 uncorrected memory errors since the driver was loaded, 5 over the GPU's lifetime",
            ),
            ({"ecc_uncorrected_volatile": 1}, "^1 uncorrected memory error since"),
        ),
        healthy="0 uncorrected memory errors since the driver was loaded, 0 over the GPU's lifetime",
        good=({"ecc_corrected_volatile": 7, "ecc_uncorrected_aggregate": 9},),
        fix="sudo reboot",
        explained={name: state for name, state in MEMORY.items() if name != "gpu.ecc-errors"},
    ),
    "gpu.persistence-mode": Question(
        fields=("persistence_mode",),
        bad=(({"persistence_mode": False}, "persistence mode is off"),),
        healthy="persistence mode is on",
        severity=Severity.INFO,
        fix="sudo nvidia-smi -pm 1",
    ),
    "gpu.power-limit": Question(
        fields=("enforced_power_limit_w", "default_power_limit_w"),
        bad=(
            ({"enforced_power_limit_w": 500.0}, r"power limit is 500 W \(default 700 W\)"),
            ({"enforced_power_limit_w": 699.9}, "699.9 W"),
        ),
        healthy="power limit is 700 W (default 700 W)",
        good=({"default_power_limit_w": 650.0},),
        severity=Severity.INFO,
        fix="sudo nvidia-smi -pl 700",
    ),
    "gpu.thermal-slowdown": Question(
        fields=("clock_event_reasons",),
        bad=(
            (
                {"clock_event_reasons": (0x20, 0x60, 0x20)},
                r"SW Thermal Slowdown, transient HW Thermal Slowdown\), SM clock 345 of 1980 MHz",
            ),
            ({"clock_event_reasons": (0x20,)}, r"slowed down \(SW Thermal"),
            ({"clock_event_reasons": (0x40, 0x0, 0x0)}, "transient"),  # the hardware, briefly
        ),
        healthy="no slowdown",
        good=(
            {"clock_event_reasons": (0x20, 0x0, 0x20)},
            {"clock_event_reasons": (0x40, 0x40, 0x40)},  # gpu.clocks
            {"clock_event_reasons": (0x8, 0x0, 0x0)},  # the parent flag, when the performance state changes
        ),
        severity=Severity.WARNING,
        fix="nvidia-smi -q -d PERFORMANCE,TEMPERATURE",
        explained={"gpu.clocks": {"clock_event_reasons": (0x60,) * 3}, "gpu.fan": {"fan_speed_percent": 0}},
    ),
    "gpu.clocks-limited": Question(
        fields=("clock_event_reasons",),
        bad=tuple(({"clock_event_reasons": (bit,) * 3}, "clocks limited by ") for bit in (0x2, 0x4, 0x10, 0x100)),
        healthy="no limiting setting",
        good=({"clock_event_reasons": (0x4, 0x0, 0x4)}, {"clock_event_reasons": (0x88, 0x88, 0x88)}),
        severity=Severity.INFO,
        fix="sudo nvidia-smi -rac",
    ),
    "gpu.fan": Question(
        fields=("fan_speed_percent",),
        bad=(({"temperature_c": 65}, "fan at 0 %, 65 C"),),
        healthy="fan at 0 %, ",  # a cool GPU stops its fan
        good=(
            {"temperature_c": 64},
            {"temperature_c": 90, "fan_speed_percent": 30},
            {"temperature_c": None, "fan_speed_percent": 30},
        ),
        severity=Severity.WARNING,
        fix="nvidia-smi -q -d TEMPERATURE",
        build=geforce,
    ),
}
by_question = pytest.mark.parametrize("name", QUESTIONS)
BAD = [(name, *bad) for name, question in QUESTIONS.items() for bad in question.bad]


def judged(name: str, *states: State) -> Result:
    build = QUESTIONS[name].build
    devices = [build(index, **state) for index, state in enumerate(states)]
    return compute_check(BUILT_IN[name], gpus(len(devices), *devices))


@pytest.mark.parametrize(("name", "state", "stated"), BAD)
def test_faulty_gpu_fails_and_its_commands_name_no_other(name: str, state: State, stated: str) -> None:
    result = judged(name, {}, state, {}, state)
    assert (result.status, result.severity) == (Status.FAIL, QUESTIONS[name].severity)
    assert [item.finding.subject[:5] for item in result.findings] == ["GPU 1", "GPU 3"]
    assert [item.subject[:5] for item in result.evidence] == ["GPU 0", "GPU 2"]
    assert all(item.observed.startswith(QUESTIONS[name].healthy) for item in result.evidence)
    named = set()
    for item in result.findings:
        assert re.search(stated, item.finding.observed), item.finding.observed
        assert item.finding.headline != item.finding.expected
        for command in (*item.finding.remedy.commands, *item.finding.remedy.look):
            named |= set(re.findall(r"\b0000:\w\w:00\.0\b", command))
    needs_restart = "sudo reboot" in result.findings[0].finding.remedy.commands[:1]
    assert named == (set() if needs_restart else {bus_id(1), bus_id(3)})


@by_question
def test_healthy_gpus_pass(name: str) -> None:
    for state in ({}, *QUESTIONS[name].good):
        assert judged(name, {}, state).status is Status.PASS, state


@by_question
def test_only_gpu_is_fixed_without_its_address(name: str) -> None:
    found = judged(name, QUESTIONS[name].bad[0][0]).findings[0].finding
    assert (*found.remedy.commands, *found.remedy.look)[0] == QUESTIONS[name].fix


@by_question
def test_reading_that_no_gpu_supports_is_skipped_unless_every_such_gpu_has_it(name: str) -> None:
    question = QUESTIONS[name]
    state = {"ecc_mode": None, **question.unread, "errors": dict.fromkeys(question.fields, NOT_SUPPORTED)}
    owed = {*question.fields} & {*marked(Gpu, OfHbm)}
    for changes, is_owed in (
        *(
            ({"name": model}, False)
            for model in ("NVIDIA L40S", "NVIDIA A10", "NVIDIA RTX A3000", "Tesla V100-SXM2-16GB")
        ),
        *(
            ({"name": model}, bool(owed))
            for model in ("NVIDIA H100 80GB HBM3", "NVIDIA A100-SXM4-80GB", "NVIDIA GB200")
        ),
        ({"name": "NVIDIA H100 80GB HBM3", "virtualization_mode": "vgpu"}, False),
    ):
        result = judged(name, {**state, **changes}, {**state, **changes})
        assert result.status is (Status.UNKNOWN if is_owed else Status.SKIP)
        assert is_owed or changes["name"] in (result.reason or "")


@by_question
@pytest.mark.parametrize("error", [TOO_OLD, "NVML_ERROR_INVALID_ARGUMENT", "not reported by this driver"])
def test_driver_without_the_reading_skips_only_the_newest_checks(name: str, error: str) -> None:
    question = QUESTIONS[name]
    state = {**question.unread, "errors": dict.fromkeys(question.fields, error)}
    result = judged(name, state, state)
    assert result.status is (Status.SKIP if question.newer else Status.UNKNOWN)
    if question.newer:
        assert "580.105.08" in (result.reason or "")


@pytest.mark.parametrize(
    ("name", "because"), [(name, because) for name, question in QUESTIONS.items() for because in question.explained]
)
def test_other_reading_explains_the_fault(name: str, because: str) -> None:
    question = QUESTIONS[name]
    state = {**question.bad[-1 if name == "gpu.recovery-action" else 0][0]}
    if name == "gpu.thermal-slowdown":
        state["clock_event_reasons"] = (0x20,) * 3
    assert judged(name, state).findings[0].finding.explained_by == ()
    assert judged(name, {**state, **question.explained[because]}).findings[0].finding.explained_by == (because,)


def test_modes_are_restored() -> None:
    back = {
        "gpu.exclusive-mode": f"sudo nvidia-smi -i {bus_id(0)} --compute-mode=EXCLUSIVE_PROCESS",
        "gpu.compute-mode": "sudo nvidia-smi --compute-mode=PROHIBITED",
        "gpu.mig-mode": "sudo nvidia-smi -mig 1",
    }
    for name, command in back.items():
        assert judged(name, QUESTIONS[name].bad[0][0]).findings[0].finding.rollback.commands == (command,)


def test_gpu_that_nothing_names_is_not_named_in_a_command() -> None:
    unnamed = {"numbered": False, "uuid": None, "bus_id": None}
    for name, commands in (("gpu.row-remapping-pending", ()), ("gpu.mig-mode", ("sudo nvidia-smi -mig 0",))):
        (found,) = judged(name, {**QUESTIONS[name].bad[0][0], **unnamed}).findings
        assert found.finding.remedy.commands == commands


def test_ecc_off_and_mig_leave_errors_uncounted() -> None:
    off = judged("gpu.ecc-errors", {"ecc_mode": False}, {"ecc_mode": False})
    assert (off.status, "gpu.ecc-mode" in (off.reason or "")) == (Status.SKIP, True)
    unread = {"ecc_mode": None, "ecc_uncorrected_volatile": 1}
    for others in ((), ({"ecc_mode": False},), ({},)):
        assert judged("gpu.ecc-errors", unread, *others).status is Status.FAIL
    lacking = {"ecc_uncorrected_volatile": None, "errors": {"ecc_uncorrected_volatile": "N/A"}}
    assert judged("gpu.ecc-errors", {}, {"mig_mode": True, **lacking}).status is Status.PASS
    assert judged("gpu.ecc-errors", lacking, lacking).status is Status.UNKNOWN  # ECC is on, so errors are counted
    assert judged("gpu.ecc-errors", {"virtualization_mode": "vgpu", **lacking}).status is Status.SKIP


def test_gaming_card_without_remapping_passes() -> None:
    """Recorded: an RTX 4090 answers with zeros instead of "not supported"."""
    assert compute_check(BUILT_IN["gpu.row-remapping"], geforces(2)).status is Status.PASS


def test_fan_of_an_unread_card_is_unknown() -> None:
    assert judged("gpu.fan", {}, {"temperature_c": None}).status is Status.UNKNOWN
    recorded = {"fan_speed_percent": None, "errors": {"fan_speed_percent": "ERR!"}}
    assert judged("gpu.fan", {}, recorded).status is Status.UNKNOWN
    assert "NVIDIA H100 80GB HBM3" in (compute_check(BUILT_IN["gpu.fan"], gpus(8)).reason or "")


def test_commands_name_only_cards_that_are_known_to_be_hot() -> None:
    cards = gpus(2, geforce(0, temperature_c=90), geforce(1, temperature_c=None))
    result = compute_check(BUILT_IN["gpu.fan"], cards, may_stand_below_c=1)
    assert [item.finding.headline for item in result.findings] == ["fan stopped at 90 C"]
    assert [command.split()[:3] for command in result.findings[0].finding.remedy.look] == [
        ["nvidia-smi", "-i", bus_id(0)]
    ] * 2


def test_heat_of_a_gpu_is_stated() -> None:
    text = said(judged("gpu.thermal-slowdown", {"clock_event_reasons": (0x20,) * 3}))
    assert list(text.values()) == ["slowed down (SW Thermal Slowdown), SM clock 345 of 1980 MHz"]
