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


# --- nvidia-smi -q ---------------------------------------------------------------------------------------------


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


def test_busy_and_idle_4090s() -> None:
    gpus = gpus_of("smi-q/rtx4090x8-535.154.05-mixed-load.txt")
    assert [(gpu.performance_state, gpu.pcie_generation) for gpu in gpus.devices] == [
        (2, 4), (2, 4), (2, 4), (2, 4), (8, 1), (8, 1), (2, 4), (8, 1),
    ]  # fmt: skip
    assert {gpu.pcie_width for gpu in gpus.devices} == {16}
    assert {gpu.remapped_rows_failure for gpu in gpus.devices} == {False}
    pids = [[process.pid for process in gpu.processes or ()] for gpu in gpus.devices]
    assert pids == [[58130], [2930819], [2146842], [3159481], [1100070], [], [1375347], [1102861]]


def test_addressing_mode_that_could_not_be_read() -> None:
    gpus = gpus_of("smi-q/rtx4090x8-535.154.05-addressing-unknown-error.txt")
    assert len(gpus.devices) == 8
    assert {gpu.addressing_mode for gpu in gpus.devices} == {None}
    assert {gpu.errors["addressing_mode"] for gpu in gpus.devices} == {"Unknown Error"}


def test_a10_with_rows_to_remap() -> None:
    gpus = gpus_of("smi-q/a10-535.129.03-remap-pending.txt")
    (gpu,) = gpus.devices
    assert (gpu.name, gpu.bus_id) == ("NVIDIA A10", "0000:07:00.0")
    assert (gpu.remapped_rows_uncorrectable, gpu.remapped_rows_pending, gpu.remapped_rows_failure) == (4, True, False)
    assert (gpu.ecc_uncorrected_volatile, gpu.ecc_uncorrected_aggregate) == (0, 0)
    assert (gpu.temperature_slowdown_c, gpu.temperature_margin_c) == (98, None)
    assert (gpu.virtualization_mode, gpu.fabric_state, gpu.processes) == ("passthrough", None, ())


def test_v100s_with_retired_pages() -> None:
    gpus = gpus_of("ecc/retired-pages-x8-bad.txt")
    pages = [
        (gpu.retired_pages_single_bit, gpu.retired_pages_double_bit, gpu.retired_pages_pending) for gpu in gpus.devices
    ]
    assert pages == [
        (60, 5, False), (2, 61, True), (0, 0, False), (6, 0, True),
        (0, 0, False), (20, 45, True), (0, 0, False), (8, 56, True),
    ]  # fmt: skip
    assert [gpu.bus_id for gpu in gpus.devices] == [f"{domain:04x}:00:00.0" for domain in range(1, 9)]
    assert {gpu.ecc_uncorrected_volatile for gpu in gpus.devices} == {None}


# --- nvidia-smi -q -x and the table ----------------------------------------------------------------------------


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


def test_l4_with_one_lane() -> None:
    gpus = gpus_of("smi-x/l4x2-555-one-x1-link.xml")
    assert [(gpu.bus_id, gpu.minor_number, gpu.pcie_width, gpu.pcie_width_max) for gpu in gpus.devices] == [
        ("0000:01:00.0", 1, 16, 16),
        ("0000:c1:00.0", 0, 1, 16),
    ]
    assert {gpu.performance_state for gpu in gpus.devices} == {0}


def test_one_element_of_four_with_mig() -> None:
    gpus = gpus_of("smi-x/a100-sxm4-mig-535.xml")
    assert (gpus.count, len(gpus.devices)) == (4, 1)
    assert gpus.errors["devices"].startswith("4 GPUs attached, 1 listed")
    gpu = gpus.devices[0]
    assert (gpu.mig_mode, gpu.mig_mode_pending) == (True, True)
    # Memory and errors of the instances do not belong to the GPU.
    assert (gpu.memory_total_bytes, gpu.memory_used_bytes) == (81920 * MIB, 50 * MIB)
    assert gpu.remapped_rows_pending is None
    assert gpu.errors["utilization_gpu_percent"] == "N/A"
    assert gpu.processes == ()


def test_idle_3090() -> None:
    (gpu,) = gpus_of("smi-x/rtx3090-525-idle-gen1.xml").devices
    assert (gpu.pcie_generation, gpu.pcie_generation_max, gpu.performance_state) == (1, 4, 8)
    assert gpu.virtualization_mode == "passthrough"
    assert gpu.clock_event_reasons == (EVENT_GPU_IDLE,)


def test_4090_in_slot_of_third_generation() -> None:
    (gpu,) = gpus_of("smi-x/rtx4090-535-host-gen3.xml").devices
    assert (gpu.pcie_generation, gpu.pcie_generation_max, gpu.pcie_generation_gpu_max) == (1, 3, 4)
    assert gpu.performance_state == 8


def test_fan_that_cannot_be_read() -> None:
    gpus = gpus_of("smi-table/rtx4090-525-ERR-fan-exclusive.txt")
    assert (gpus.driver_version, gpus.cuda_driver_version) == ("525.125.06", "12.0")
    (gpu,) = gpus.devices
    assert (gpu.fan_speed_percent, gpu.errors["fan_speed_percent"]) == (None, "ERR!")
    assert (gpu.compute_mode, gpu.performance_state, gpu.temperature_c) == ("exclusive-process", 5, 38)
    assert (gpu.memory_used_bytes, gpu.memory_total_bytes) == (2021 * MIB, 23028 * MIB)
    assert (gpu.name, gpu.errors["name"]) == (None, "not in the shortened name NVIDIA GeForce ...")
    assert gpu.processes is None


# --- captures --------------------------------------------------------------------------------------------------


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


def test_capture_of_l40s() -> None:
    gpus = gpus_of("capture/l40s-595.80.txt")
    assert (gpus.driver_version, gpus.count) == ("595.80", 1)
    (gpu,) = gpus.devices
    assert (gpu.nvlinks, gpu.errors["nvlinks"]) == (None, "NVML_ERROR_NOT_SUPPORTED")
    assert (gpu.pcie_generation, gpu.pcie_width, gpu.addressing_mode) == (4, 16, "hmm")
    assert (gpu.fabric_state, gpu.remapped_rows_pending) == (None, False)


# --- topology and NVLink ---------------------------------------------------------------------------------------


def levels(gpus: Gpus) -> dict[tuple[int, int], str | int | None]:
    return {(pair.first, pair.second): pair.level or pair.nvlinks for pair in gpus.pairs}


def test_pairs_behind_one_switch_and_several() -> None:
    gpus = gpus_of("topo/nccl667-4gpu-pxb-pix-sys.txt")
    assert levels(gpus) == {
        (0, 1): "PXB", (0, 2): "SYS", (0, 3): "SYS", (1, 2): "SYS", (1, 3): "SYS", (2, 3): "PIX",
    }  # fmt: skip
    assert [gpu.numa_affinity for gpu in gpus.devices] == [(0,), (0,), (1,), (1,)]
    assert gpus.devices[0].cpu_affinity == (*range(28), *range(56, 84))


def test_matrix_with_adapter_and_without_numa_columns() -> None:
    gpus = gpus_of("topo/quda669-8gpu-pix-pxb-sys-nonuma-column.txt")
    found = levels(gpus)
    assert len(found) == 28
    assert (found[0, 1], found[0, 2], found[3, 4], found[6, 7]) == ("PIX", "PXB", "SYS", "PIX")
    assert [gpu.cpu_affinity for gpu in gpus.devices] == [tuple(range(14))] * 4 + [tuple(range(14, 28))] * 4
    assert {gpu.numa_affinity for gpu in gpus.devices} == {None}


def test_missing_numa_affinity_is_unknown() -> None:
    gpus = gpus_of("topo/club3090-178-2x3090-sys-numa-na.txt")
    assert levels(gpus) == {(0, 1): "SYS"}
    assert [gpu.numa_affinity for gpu in gpus.devices] == [None, (1,)]
    assert gpus.devices[0].errors["numa_affinity"] == "N/A"
    assert gpus.devices[0].cpu_affinity == (*range(8), *range(16, 24))


def test_geforce_without_peer_access() -> None:
    gpus = gpus_of("topo/club3090-1229-2x5090-p2p-rw-gns.txt")
    (pair,) = gpus.pairs
    assert (pair.p2p_read, pair.p2p_write, pair.p2p_nvlink, pair.level) == ("GNS", "GNS", None, None)


def test_eighteen_links_between_all_h100s() -> None:
    gpus = gpus_of("topo/ml-engineering-8xh100-nv18.txt")
    assert set(levels(gpus).values()) == {18}
    assert len(gpus.pairs) == 28
    assert [gpu.numa_affinity for gpu in gpus.devices] == [(0,)] * 4 + [(1,)] * 4


def test_twelve_links_on_every_a100() -> None:
    gpus = gpus_of("nvlink/a100x8-status-gpud.txt")
    assert len(gpus.devices) == 8
    for gpu in gpus.devices:
        assert gpu.nvlinks is not None
        assert [(link.index, link.active, link.speed_gbs) for link in gpu.nvlinks] == [
            (n, True, 25.0) for n in range(12)
        ]


def test_a100_whose_links_are_all_inactive() -> None:
    (gpu,) = gpus_of("nvlink/a100-inactive-links-azure.txt").devices
    assert gpu.index == 6
    assert gpu.nvlinks is not None
    assert [link.active for link in gpu.nvlinks] == [False]
    assert gpu.errors["nvlinks"].endswith("all links are inactive")


# --- the kernel ------------------------------------------------------------------------------------------------


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


def test_h100_with_unresponsive_gsp() -> None:
    log = group(corpus_snapshot("kmsg/xid119-gsp-timeout-xe9680.log"), KernelLog)
    xids = [event for event in log.events if event.kind == "xid"]
    assert {(event.code, event.bus_id) for event in xids} == {(119, "0000:9b:00.0")}
    assert xids[0].time == "Sun Feb 23 16:24:18 2025"


def test_double_bit_error_and_its_consequences() -> None:
    log = group(corpus_snapshot("kmsg/xid48-63-94-h100-dmesg-iso.log"), KernelLog)
    xids = [event for event in log.events if event.kind == "xid"]
    codes = [event.code for event in xids]
    assert codes[:3] == [48, 63, 94]
    assert set(codes) == {48, 63, 94}
    assert {event.bus_id for event in xids} == {"0000:19:00.0"}


def test_gpu_off_the_bus_without_xid() -> None:
    log = group(corpus_snapshot("kmsg/xid-and-fallen-off-lines.log"), KernelLog)
    told = [(event.kind, event.bus_id, event.code) for event in log.events]
    assert ("fallen-off-the-bus", "0000:b3:00.0", None) in told
    assert ("xid", "0000:0f:00.0", 64) in told
    assert ("xid", "0000:0f:00.0", 94) in told
    assert ("iommu-fault", "0000:02:00.0", None) in told


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
