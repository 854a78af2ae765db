"""The checks of RDMA cards: their firmware, their PCIe links, and their ways to the GPUs."""

from dataclasses import replace
from typing import Any

import pytest

from helpers.cases import cases
from helpers.facts import environment, gpu, gpus, lost_gpu
from helpers.facts.pci import pci_gpu
from helpers.kdoctor_fleet.rdma import device, network, port
from helpers.saying import said
from kdoctor.engine.report import Result
from kdoctor.facts import Host, Kernel, KernelDriver, PciDevices
from kdoctor.model import Status
from kdoctor.testing import compute_check
from kdoctor_fleet.checks.network.firmware_match import firmware_match
from kdoctor_fleet.checks.network.gpu_affinity import gpu_affinity
from kdoctor_fleet.checks.network.gpudirect import gpudirect
from kdoctor_fleet.checks.network.pcie_link import pcie_link
from kdoctor_fleet.facts import Network, RdmaDevice

OLD = "28.36.1010"
GEN3, GEN4 = "8.0 GT/s PCIe", "16.0 GT/s PCIe"
MLX5_0 = f"mlx5_0 ({device(0).bus_id})"


@cases(
    ((device(0), device(1)), Status.PASS, []),
    ((device(0), device(1), device(2, firmware=OLD)), Status.FAIL, ["mlx5_2"]),
    ((device(0), device(1, firmware=OLD)), Status.FAIL, ["mlx5_0", "mlx5_1"]),
    ((device(0), device(1, firmware=OLD, board="another card")), Status.SKIP, []),
    ((device(0), device(1, firmware=None)), Status.UNKNOWN, []),
    ((device(0),), Status.SKIP, []),
    ((), Status.SKIP, []),
)
def test_firmware_of_equal_cards_is_compared(devices: tuple[RdmaDevice, ...], status: Status, named: list[str]) -> None:
    result = compute_check(firmware_match, network(*devices))
    assert result.status is status
    assert [item.finding.subject for item in result.findings] == named


def test_usual_firmware_is_that_of_most_cards() -> None:
    result = compute_check(firmware_match, network(device(0), device(1, firmware=OLD), device(2), device(3, board="x")))
    new = device(0).firmware
    assert said(result) == {
        "mlx5_1": f"firmware {OLD}; equal cards have {new} on 2, {OLD} on 1",
        "mlx5_0": f"firmware {new}, as on 2 cards",
        "mlx5_2": f"firmware {new}, as on 2 cards",
    }
    assert result.findings[0].finding.expected == f"firmware {new}"
    tied = compute_check(firmware_match, network(device(0), device(1, firmware=OLD)))
    assert {judged.finding.expected for judged in tied.findings} == {"one version on all equal cards"}
    cards = network(device(0), device(1), device(2, board=None), device(3, board=None, firmware=None))
    assert [item.subject for item in compute_check(firmware_match, cards).unjudged] == ["mlx5_2"]


def link(**changes: Any) -> Result:
    return compute_check(pcie_link, network(device(0, **changes)))


@cases(
    ({}, MLX5_0, "x16, generation 5"),
    ({"bus_id": None}, "mlx5_0", "x16, generation 5"),
    ({"link_speed": None}, MLX5_0, "x16, generation unknown"),
    ({"link_width": 8, "slot_width_max": 8}, MLX5_0, "x8, generation 5"),
    ({"link_speed": GEN4, "slot_speed_max": GEN4}, MLX5_0, "x16, generation 4"),
)
def test_link_that_uses_card_and_slot_passes(changes: dict[str, Any], subject: str, stated: str) -> None:
    assert (link(**changes).status, said(link(**changes))) == (Status.PASS, {subject: stated})


@cases(
    ({"link_width": 8}, "x16, generation 5, ", "narrower"),
    ({"link_width": 4, "slot_width_max": 8}, "x8, generation 5, ", "narrower"),
    ({"link_width": 8, "slot_width_max": None}, "x16, generation 5, ", "narrower"),
    ({"link_speed": GEN4}, "x16, generation 5, ", "slower"),
    ({"link_speed": GEN3, "slot_speed_max": GEN4}, "x16, generation 4, ", "slower"),
    ({"link_width": 8, "link_speed_max": None, "slot_speed_max": None}, "x16, as ", "narrower"),
)
def test_link_is_expected_as_card_and_slot_support(changes: dict[str, Any], expected: str, brief: str) -> None:
    (found,) = link(**changes).findings
    assert found.finding.expected.startswith(expected)
    assert brief in found.finding.headline
    assert f"-s {device(0).bus_id}" in found.finding.remedy.look[0]


def test_cards_without_a_link_are_unknown_next_to_others() -> None:
    result = compute_check(pcie_link, network(device(0), device(1, link_width=None), device(2, link_width=0)))
    assert [item.subject for item in result.unjudged] == ["mlx5_1"]  # width 0: a virtual function
    assert len(result.evidence) == 1
    assert link(link_width=None).status is Status.SKIP
    assert compute_check(pcie_link, network()).status is Status.SKIP


@cases(
    (("nvidia", "nvidia_peermem"), "proprietary", "5.4.0-150", Status.PASS, "nvidia-peermem is loaded"),
    (("nvidia",), "open", "6.8.0-60", Status.PASS, "DMA-BUF: open kernel modules 570.158.01 on Linux 6.8"),
    (("nvidia",), "open", "5.12.1", Status.PASS, "DMA-BUF: open kernel modules 570.158.01 on Linux 5.12"),
    (("nvidia",), "open", "5.4.0-150", Status.FAIL,
     "nvidia-peermem is not loaded; open kernel modules on Linux 5.4"),
    (("nvidia",), "proprietary", "6.8.0-60", Status.FAIL,
     "nvidia-peermem is not loaded; proprietary kernel modules on Linux 6.8"),
    (("nvidia",), None, "6.8.0-60", Status.UNKNOWN, ""),
    (None, "open", "6.8.0-60", Status.UNKNOWN, ""),
    (("nvidia",), "open", None, Status.UNKNOWN, ""),
)  # fmt: skip
def test_way_into_gpu_memory(modules: Any, flavour: Any, release: str | None, status: Status, stated: str) -> None:
    facts = Kernel(modules=modules), KernelDriver(loaded=True, version="570.158.01", flavour=flavour)
    result = compute_check(gpudirect, network(device(0)), *facts, Host(os="Linux", kernel=release), environment())
    assert result.status is status
    assert not stated or said(result) == {"GPUDirect RDMA": stated}
    for judged in result.findings:
        assert "sudo modprobe nvidia-peermem" in judged.finding.remedy.commands


def test_driver_without_a_version_reads_gpu_memory_too() -> None:
    facts = Kernel(modules=("nvidia",)), KernelDriver(loaded=True, flavour="open"), Host(os="Linux", kernel="6.8.0")
    result = compute_check(gpudirect, network(device(0)), *facts, environment())
    assert said(result) == {"GPUDirect RDMA": "DMA-BUF: open kernel modules on Linux 6.8"}


@pytest.mark.parametrize("found", [network(), network(device(0, driver="efa"))], ids=["no RDMA", "EFA"])
def test_machine_without_infiniband_or_roce_is_skipped(found: Any) -> None:
    facts = Kernel(modules=("nvidia",)), KernelDriver(loaded=True), Host(os="Linux"), environment()
    assert compute_check(gpudirect, found, *facts).status is Status.SKIP


def near(found: Network, *indices: int, hca: str | None = None) -> Result:
    """GPUs in these places of a machine with these devices."""
    places = tuple(pci_gpu(index) for index in indices)
    devices = [gpu(number, bus_id=one.bus_id) for number, one in enumerate(places)]
    variables = environment() if hca is None else environment(NCCL_IB_HCA=hca)
    return compute_check(gpu_affinity, found, gpus(len(devices), *devices), PciDevices(devices=places), variables)


INACTIVE = port(state="DOWN")


@cases(
    (network(device(0), device(4)), (0, 4), ["mlx5_0: same PCIe switch", "mlx5_4: same PCIe switch"]),
    (network(device(0)), (0, 1, 4),
     ["mlx5_0: same PCIe switch", "mlx5_0: same NUMA node", "mlx5_0: on another NUMA node"]),
    (network(device(0, path=("0000:0c:01.0",))), (0,), ["mlx5_0: same host bridge"]),
    (network(device(0, path=("0000:77:00.0",), numa_node=1)), (0,), ["mlx5_0: on another NUMA node"]),
    (network(device(4), device(5, INACTIVE, numa_node=1)), (0,), ["mlx5_4: on another NUMA node"]),
    (network(device(1), device(0, INACTIVE)), (0,), ["mlx5_1: same NUMA node"]),
)  # fmt: skip
def test_gpus_as_near_to_devices_as_the_machine_provides_pass(found: Any, indices: Any, stated: list[str]) -> None:
    result = near(found, *indices)
    assert result.status is Status.PASS
    assert [item.observed for item in result.evidence] == [f"nearest is {text}" for text in stated]


@pytest.mark.parametrize(("second", "hca"), [(device(4, INACTIVE), None), (device(4), "mlx5_0")])
def test_device_next_to_a_gpu_that_is_not_used_fails(second: RdmaDevice, hca: str | None) -> None:
    result = near(network(device(0), second), 0, 4, hca=hca)
    assert [item.finding.subject[:5] for item in result.findings] == ["GPU 1"]
    assert "mlx5_4" in result.findings[0].finding.observed


def test_unknown_place_and_lost_gpu_are_unknown() -> None:
    assert near(network(device(0, path=None, numa_node=None)), 0).status is Status.UNKNOWN
    facts = gpus(2, gpu(0), lost_gpu(1)), PciDevices(devices=(pci_gpu(0),)), environment()
    assert [item.subject for item in compute_check(gpu_affinity, network(device(0)), *facts).unjudged] == ["GPU 1"]
    lost = replace(facts[1], devices=())
    assert compute_check(gpu_affinity, network(device(0)), facts[0], lost, facts[2]).status is Status.UNKNOWN


def test_machine_without_active_port_is_skipped() -> None:
    assert near(network(), 0).status is Status.SKIP
    assert near(network(device(0, INACTIVE)), 0).status is Status.SKIP
