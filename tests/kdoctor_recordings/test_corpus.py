"""Every recorded machine, imported. The expected facts were read from the files manually."""

from pathlib import Path

import pytest

from helpers.cases import cases
from helpers.kdoctor_recordings.corpus import corpus_snapshot, recorded
from helpers.kdoctor_recordings.dumps import group
from kdoctor.facts import Gpus, KernelDriver, KernelLog, PciDevices
from kdoctor.facts.gpus import EVENT_GPU_IDLE, EVENT_HW_POWER_BRAKE, EVENT_HW_SLOWDOWN, EVENT_SW_POWER_CAP
from kdoctor.facts.pci import (
    ACS_COMPLETION_REDIRECT,
    ACS_REQUEST_REDIRECT,
    ACS_SOURCE_VALIDATION,
    ACS_UPSTREAM_FORWARDING,
)

pytestmark = pytest.mark.corpus

MIB = 1024**2
XE9680 = [f"0000:{bus}:00.0" for bus in ("19", "3b", "4c", "5d", "9b", "bb", "cb", "db")]


def gpus_of(*names: str) -> Gpus:
    return group(corpus_snapshot(*names), Gpus)


def test_eight_h100_slowed_by_power_brake() -> None:
    gpus = gpus_of("smi-q/h100x8-535.161.08-hwslowdown-all.txt")
    assert (gpus.driver_version, gpus.cuda_driver_version, gpus.count) == ("535.161.08", "12.2", 8)
    assert [gpu.bus_id for gpu in gpus.devices] == XE9680
    assert {gpu.name for gpu in gpus.devices} == {"NVIDIA H100 80GB HBM3"}
    assert {gpu.clock_event_reasons for gpu in gpus.devices} == {(EVENT_HW_SLOWDOWN | EVENT_HW_POWER_BRAKE,)}
    assert {(gpu.clock_sm_mhz, gpu.clock_sm_max_mhz) for gpu in gpus.devices} == {(86, 1980)}
    assert {(gpu.pcie_generation, gpu.pcie_width, gpu.pcie_width_max) for gpu in gpus.devices} == {(5, 16, 16)}
    assert [gpu.pcie_replay_counter for gpu in gpus.devices] == [67, 63, 52, 43, 49, 53, 82, 67]
    assert {gpu.temperature_slowdown_margin_c for gpu in gpus.devices} == {-2}
    assert {gpu.remapped_rows_failure for gpu in gpus.devices} == {False}
    assert {gpu.retired_pages_pending for gpu in gpus.devices} == {None}


def test_busy_v100s_in_virtual_machine() -> None:
    gpus = gpus_of("smi-x/gtx-v100s-x8-460.73.xml")
    assert (gpus.driver_version, gpus.count, len(gpus.devices)) == ("460.73.01", 8, 8)
    first = gpus.devices[0]
    assert (first.utilization_gpu_percent, first.memory_used_bytes) == (97, 31689 * MIB)
    assert [[process.pid for process in gpu.processes or ()] for gpu in gpus.devices] == [[37305]] * 8
    assert {gpu.persistence_mode for gpu in gpus.devices} == {False}
    assert {gpu.virtualization_mode for gpu in gpus.devices} == {"passthrough"}
    capped = [gpu.bus_id for gpu in gpus.devices if gpu.clock_event_reasons == (EVENT_SW_POWER_CAP,)]
    assert capped == ["0000:00:10.0", "0000:00:13.0"]
    assert {gpu.clock_event_reasons for gpu in gpus.devices} == {(0,), (EVENT_SW_POWER_CAP,)}
    assert {(gpu.ecc_uncorrected_volatile, gpu.retired_pages_pending) for gpu in gpus.devices} == {(0, False)}
    assert {gpu.errors["remapped_rows_failure"] for gpu in gpus.devices} == {"N/A"}


def test_capture_of_h100() -> None:
    gpus = gpus_of("capture/h100-80gb-590.48.txt")
    assert (gpus.driver_version, gpus.cuda_driver_version, gpus.count) == ("590.48.01", "13.1", 1)
    (gpu,) = gpus.devices
    assert (gpu.bus_id, gpu.pcie_replay_counter) == ("0000:00:09.0", 9)
    assert (gpu.fabric_state, gpu.fabric_status, gpu.recovery_action) == ("completed", "success", "none")
    assert (gpu.temperature_slowdown_margin_c, gpu.temperature_shutdown_margin_c) == (-2, -8)
    assert gpu.nvlinks is not None
    assert [(link.active, link.speed_gbs) for link in gpu.nvlinks] == [(True, 26.562)] * 18
    assert (gpu.cpu_affinity, gpu.numa_affinity, gpu.gpu_numa_id) == (tuple(range(20)), (0,), None)
    # Read idle, then under load: both readings of the clocks, and the processes of the load.
    assert gpu.clock_event_reasons == (EVENT_GPU_IDLE, 0)
    assert [process.pid for process in gpu.processes or ()] == [11327, 11328, 11345]


def test_lspci_of_eight_h100s() -> None:
    pci = group(corpus_snapshot("pci/h100x8-xe9680-lspci-vvv.txt"), PciDevices)
    assert [gpu.bus_id for gpu in pci.gpus] == XE9680
    assert [switch.bus_id for switch in pci.switches] == [f"0000:{bus}:00.0" for bus in ("83", "84", "85", "86")]
    for gpu in pci.gpus:
        assert (gpu.link_speed, gpu.link_speed_max, gpu.link_width) == ("32.0 GT/s PCIe", "32.0 GT/s PCIe", 16)
        assert (gpu.device_id, gpu.driver) == ("2330", "nvidia")
        assert gpu.path is not None
        assert [bridge.acs_redirects for bridge in (*gpu.path, gpu)] == [False] * 4
    assert [gpu.numa_node for gpu in pci.gpus] == [0] * 4 + [1] * 4
    assert len({gpu.path[0].bus_id for gpu in pci.gpus if gpu.path}) == 8
    redirects = ACS_SOURCE_VALIDATION | ACS_REQUEST_REDIRECT | ACS_COMPLETION_REDIRECT | ACS_UPSTREAM_FORWARDING
    above = [(switch.path[-1].bus_id, switch.path[-1].acs_control) for switch in pci.switches if switch.path]
    assert above == [(f"0000:82:0{port}.0", redirects) for port in range(4)]


def test_lspci_and_nvidia_smi_of_one_kind_of_machine_join_by_address() -> None:
    facts = corpus_snapshot(
        "smi-q/h100x8-535.161.08-hwslowdown-all.txt",
        "pci/h100x8-xe9680-lspci-vvv.txt",
        "kmsg/xid119-gsp-timeout-xe9680.log",
    )
    pci, log = group(facts, PciDevices), group(facts, KernelLog)
    for gpu in group(facts, Gpus).devices:
        assert pci.find(gpu.bus_id) is not None
    assert {event.bus_id for event in log.events if event.kind != "unclassified"} == {"0000:9b:00.0"}


@cases(
    ("proc/nvidia-version-proprietary-580.173.02.txt", "580.173.02", "proprietary"),
    ("proc/nvidia-version-open-570.158.01.txt", "570.158.01", "open"),
)
def test_both_kernel_modules(file: str, version: str, flavour: str) -> None:
    driver = group(corpus_snapshot(file), KernelDriver)
    assert (driver.loaded, driver.version, driver.flavour, driver.nodes) == (True, version, flavour, None)


NOT_READ = {"hwloc", "nccl", "logs"}
"""Folders of formats that are not read, and of logs of jobs."""


def test_no_recorded_file_is_forgotten() -> None:
    root = recorded("INDEX.md").parent
    here = "".join(file.read_text(encoding="utf-8") for file in Path(__file__).parent.glob("test_*.py"))
    # A recording in a later collection is read by the test of screens.
    folders = [path for path in root.iterdir() if path.is_dir() and path.name not in {"second", "third", *NOT_READ}]
    files = [file for folder in folders for file in folder.iterdir() if ".tar" not in file.name]
    assert [file.name for file in files if f"{file.parent.name}/{file.name}" not in here] == []
