"""The NVML probe with the fake NVML, the real binding and a real child process."""

import os
import sys
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path

import pytest

from helpers import nvml_library as nvml
from helpers.cases import cases
from kdoctor.facts import Gpu, GpuProcess, Gpus, Unavailable
from kdoctor.probes.nvml import probe
from kdoctor.probes.probe import Context
from kdoctor.probes.process.child import ChildEnd, Children

pytestmark = [pytest.mark.compiler, pytest.mark.skipif(sys.platform != "linux", reason="libnvidia-ml.so.1 is Linux'")]

MIB = 1024**2
NOT_SUPPORTED = "NVML_ERROR_NOT_SUPPORTED"

L4_LACKS = dict.fromkeys(
    [
        "channel_repair_pending",
        "cpu_affinity",
        "fabric_problems",
        "fabric_state",
        "fabric_status",
        "fan_speed_percent",
        "gpu_numa_id",
        "mig_mode",
        "mig_mode_pending",
        "numa_affinity",
        "nvlinks",
        "retired_pages_double_bit",
        "retired_pages_pending",
        "retired_pages_single_bit",
        "temperature_operating_max_c",
        "temperature_shutdown_c",
        "temperature_slowdown_c",
        "tpc_repair_pending",
        "unrepairable_memory",
    ],
    NOT_SUPPORTED,
)
"""Facts that the L4 lacks: NVLink, MIG, a fan, retired pages, absolute thresholds, NUMA."""
Ask = Callable[..., "Gpus | Unavailable"]


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return nvml.build(tmp_path_factory.mktemp("nvml"))


@pytest.fixture(scope="session")
def old_library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return nvml.build(tmp_path_factory.mktemp("old_nvml"), "WITHOUT_PROCESSES_V3", "WITHOUT_MEMORY_V2", "OLD")


def context(library: Path, variables: dict[str, str]) -> Context:
    environ = {**os.environ, "LD_LIBRARY_PATH": str(library), **variables}
    return Context(python=sys.executable, chosen_by="kdoctor's own", environ=environ, children=Children())


@pytest.fixture
def ask(library: Path, tmp_path: Path) -> Ask:
    def ask(machine: nvml.Machine, folder: Path = library) -> Gpus | Unavailable:
        facts = probe.collect(context(folder, machine.write(tmp_path / "machine")))[Gpus]
        assert isinstance(facts, (Gpus, Unavailable))
        return facts

    return ask


def ready(facts: Gpus | Unavailable) -> Gpus:
    assert isinstance(facts, Gpus), facts
    assert facts.state == "ready", facts
    return facts


def test_two_l4_are_read(ask: Ask) -> None:
    facts = ready(ask(nvml.two_l4()))
    assert (facts.driver_version, facts.cuda_driver_version, facts.count) == ("570.158.01", "12.8", 2)
    assert facts.errors == {}
    second = facts.devices[1]
    assert (second.index, second.name, second.compute_capability) == (1, "NVIDIA L4", "8.9")
    assert (second.bus_id, second.uuid) == ("0000:2b:00.0", nvml.uuid(1))
    assert (second.memory_total_bytes, second.memory_used_bytes) == (23034 * MIB, MIB)
    assert second.processes == ()
    assert (second.pcie_generation, second.pcie_generation_max) == (4, 4)
    assert (second.pcie_width, second.pcie_width_max, second.performance_state) == (16, 16, 0)
    assert second.errors == L4_LACKS
    assert [(pair.first, pair.second, pair.level) for pair in facts.pairs] == [(0, 1, "PHB")]


def test_eight_h100_have_all_pairs(ask: Ask) -> None:
    facts = ready(ask(nvml.eight_h100()))
    levels = {(pair.first, pair.second): pair.level for pair in facts.pairs}
    assert len(levels) == 8 * 7 // 2
    assert sum(level == "SYS" for level in levels.values()) == 4 * 4
    assert levels[0, 3] == "NODE"
    assert facts.cuda_driver_version == "12.2"


def test_topology_levels_are_translated(ask: Ask) -> None:
    machine = nvml.eight_h100()
    for second, level in enumerate((0, 10, 20, 30, 40, 50, 35), 1):
        machine = machine.pair(0, second, level)
    pairs = ready(ask(machine)).pairs[:7]
    assert [pair.level for pair in pairs] == ["internal", "PIX", "PXB", "PHB", "NODE", "SYS", None]
    assert pairs[6].error == "unknown level 35"


def test_gpu_lost_during_reading_keeps_earlier_facts(ask: Ask) -> None:
    machine = nvml.two_l4().order("nvmlDeviceGetCurrPcieLinkWidth", nvml.GPU_IS_LOST, gpu=0)
    first = ready(ask(machine)).devices[0]
    assert (first.name, first.pcie_width) == ("NVIDIA L4", None)
    assert first.errors == {**L4_LACKS, "pcie_width": "NVML_ERROR_GPU_IS_LOST"}


def test_unsupported_fields_are_none(ask: Ask) -> None:
    facts = ready(ask(nvml.nothing_supported()))
    known = {field.name for field in fields(Gpu)} - {"index", "numbered", "errors", "answers_s"}
    for device in facts.devices:
        assert device.errors == dict.fromkeys(known, NOT_SUPPORTED)
        assert all(getattr(device, field) is None for field in known)
    assert (facts.pairs[0].level, facts.pairs[0].error) == (None, "NVML_ERROR_NOT_SUPPORTED")


@cases(
    (nvml.driver_not_loaded(), "driver-not-loaded", "NVML_ERROR_DRIVER_NOT_LOADED"),
    (nvml.library_mismatch(), "library-mismatch", "NVML_ERROR_LIB_RM_VERSION_MISMATCH"),
    (nvml.permission_denied(), "no-permission", "NVML_ERROR_NO_PERMISSION"),
    (nvml.Machine({}).order("nvmlInit", nvml.UNKNOWN), "failed", "NVML_ERROR_UNKNOWN"),
    (nvml.Machine({}).order("nvmlInit", 777), "failed", "NVML error 777"),
)
def test_unready_driver_states(ask: Ask, machine: nvml.Machine, state: str, error: str) -> None:
    facts = ask(machine)
    assert isinstance(facts, Gpus)
    assert (facts.state, facts.devices, facts.count) == (state, (), None)
    assert facts.error
    assert facts.error.startswith(error)


def test_missing_library_is_absent(tmp_path: Path, ask: Ask) -> None:
    if Path("/proc/driver/nvidia").exists():
        pytest.skip("this machine has a real NVIDIA driver")
    facts = ask(nvml.two_l4(), tmp_path)
    assert isinstance(facts, Gpus)
    assert facts.state == "library-absent"
    assert "libnvidia-ml.so.1" in (facts.error or "")


def test_broken_library_is_not_absent(tmp_path: Path, ask: Ask) -> None:
    (tmp_path / "libnvidia-ml.so.1").write_bytes(b"no library")
    facts = ask(nvml.two_l4(), tmp_path)
    assert isinstance(facts, Gpus)
    assert facts.state == "failed"
    assert "file too short" in (facts.error or "") or "invalid ELF" in (facts.error or "")


def test_each_driver_call_records_its_error(ask: Ask) -> None:
    machine = nvml.two_l4().order("nvmlSystemGetDriverVersion", nvml.UNKNOWN)
    facts = ready(ask(machine.order("nvmlDeviceGetCount_v2", nvml.OPERATING_SYSTEM)))
    assert facts.errors == {"driver_version": "NVML_ERROR_UNKNOWN", "count": "NVML_ERROR_OPERATING_SYSTEM"}
    assert (facts.driver_version, facts.count, facts.devices) == (None, None, ())
    assert facts.cuda_driver_version == "12.8"


def test_old_driver_lacks_newer_functions(ask: Ask, old_library: Path) -> None:
    machine = nvml.Machine.of(nvml.l4(processes=f"4711:{512 * MIB}"))
    device = ready(ask(machine, old_library)).devices[0]
    missing = (
        "temperature_margin_c",
        "sram_threshold_exceeded",
        "fabric_state",
        "fabric_status",
        "fabric_problems",
        "channel_repair_pending",
        "tpc_repair_pending",
        "unrepairable_memory",
        "inforom_valid",
        "addressing_mode",
    )
    assert device.errors == {**L4_LACKS, **dict.fromkeys(missing, "NVML_ERROR_FUNCTION_NOT_FOUND")}
    assert device.clock_event_reasons == (1, 1, 1)
    assert device.processes == (GpuProcess(pid=4711, used_memory_bytes=512 * MIB),)
    # The older call counts the driver's reserve as used memory.
    assert device.memory_used_bytes == (1 + 433) * MIB


def test_missing_and_unsupported_functions_are_distinguished(ask: Ask, old_library: Path) -> None:
    machine = nvml.two_l4().order("nvmlDeviceGetComputeRunningProcesses_v2", nvml.FUNCTION_NOT_FOUND)
    device = ready(ask(machine, old_library)).devices[0]
    assert device.errors["processes"] == "NVML_ERROR_FUNCTION_NOT_FOUND"
    assert device.errors["mig_mode"] == NOT_SUPPORTED


def test_invalid_name_affects_that_field_only(library: Path, tmp_path: Path) -> None:
    variables = nvml.two_l4().write(tmp_path / "machine")
    text = (tmp_path / "machine").read_bytes().replace(b"gpu.0.name NVIDIA L4", b"gpu.0.name \xff\xfe")
    (tmp_path / "machine").write_bytes(text)
    facts = probe.collect(context(library, variables))[Gpus]
    assert isinstance(facts, Gpus)
    assert facts.devices[0].name is None
    assert facts.devices[0].errors["name"].startswith("UnicodeDecodeError")
    assert facts.devices[1].name == "NVIDIA L4"


def test_crash_reports_signal_and_call(ask: Ask) -> None:
    facts = ask(nvml.two_l4().order("nvmlDeviceGetName", nvml.CRASH, gpu=1))
    assert isinstance(facts, Unavailable)
    assert "SIGSEGV" in facts.unavailable
    assert "in the call for GPU 1: name" in facts.unavailable


def test_hanging_gpu_does_not_affect_others(ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probe, "DEADLINE_S", 2.0)
    facts = ready(ask(nvml.two_l4().order("nvmlDeviceGetUUID", nvml.HANG, gpu=0)))
    first, second = facts.devices
    assert first.errors["uuid"] == "no answer within 1.6 s"
    assert first.errors["pcie_width"] == "not asked: uuid hangs"
    assert (first.name, first.uuid, first.pcie_width) == ("NVIDIA L4", None, None)
    assert first.clock_event_reasons == (1, 1, 1)
    assert second.errors == L4_LACKS
    assert (facts.pairs[0].level, facts.pairs[0].error) == (None, "not asked: a call about GPU 0 hangs")


def test_gpu_with_hanging_handle_does_not_affect_others(ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probe, "DEADLINE_S", 2.0)
    facts = ready(ask(nvml.two_l4().order("nvmlDeviceGetHandleByIndex_v2", nvml.HANG, gpu=1)))
    assert facts.devices[1].errors == {"handle": "no answer within 1.6 s"}
    assert facts.pairs[0].error == "GPU 1 could not be opened"


def test_hanging_driver_is_ended_and_reports_the_call(ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probe, "DEADLINE_S", 1.0)
    facts = ask(nvml.two_l4().order("nvmlDeviceGetCount_v2", nvml.HANG))
    assert isinstance(facts, Unavailable)
    assert facts.unavailable == "the NVML probe did not finish within 1 s and was ended in the call for count"


def test_library_that_hangs_while_loading_is_ended(ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probe, "DEADLINE_S", 1.0)
    facts = ask(nvml.two_l4().order("nvmlInit", nvml.HANG))
    assert isinstance(facts, Unavailable)
    assert facts.unavailable == "the NVML probe did not finish within 1 s and was ended in nvmlInit"


def test_crash_after_facts_were_sent_keeps_them(ask: Ask) -> None:
    assert ready(ask(nvml.two_l4().order("nvmlShutdown", nvml.CRASH))).count == 2


def test_invalid_data_is_unavailable() -> None:
    end = ChildEnd(
        exit_code=0,
        signal=None,
        timed_out=False,
        records=({"facts": {"state": "splendid"}},),
        chatter="",
        stderr="",
        seconds=0.1,
    )
    found = probe.read_end(end)
    assert isinstance(found, Unavailable)
    assert "Gpus.state is 'splendid'" in found.unavailable


def test_child_finds_kdoctor_despite_python_variables(library: Path, tmp_path: Path) -> None:
    variables = {**nvml.two_l4().write(tmp_path / "machine"), "PYTHONPATH": str(tmp_path), "PYTHONHOME": str(tmp_path)}
    (tmp_path / "pynvml.py").write_text("raise SystemExit('a stranger')")
    assert ready(probe.collect(context(library, variables))[Gpus]).count == 2  # type: ignore[arg-type]
