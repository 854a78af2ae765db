from __future__ import annotations

from dataclasses import replace

from helpers.facts import environment, gpu, gpus
from helpers.facts.pci import pci_gpu
from helpers.kdoctor_fleet.rdma import device, network, port
from kdoctor.facts import FactGroup, PciDevices
from kdoctor.model import Status
from kdoctor.testing import compute_check
from kdoctor_fleet.checks.network.gpu_affinity import gpu_affinity
from kdoctor_fleet.facts import Network


def machine(found: Network, *indices: int) -> tuple[FactGroup, ...]:
    places = [pci_gpu(index) for index in indices]
    devices = [gpu(number, bus_id=one.bus_id) for number, one in enumerate(places)]
    return found, gpus(len(devices), *devices), PciDevices(devices=tuple(places)), environment()


def test_gpus_next_to_their_devices_pass() -> None:
    result = compute_check(gpu_affinity, *machine(network(device(0), device(4)), 0, 4))
    assert result.status is Status.PASS
    assert [evidence.observed for evidence in result.evidence] == [
        "nearest is mlx5_0: same PCIe switch",
        "nearest is mlx5_4: same PCIe switch",
    ]


def test_device_next_to_a_gpu_that_is_down_fails() -> None:
    found = network(device(0), device(4, port(state="DOWN")))
    result = compute_check(gpu_affinity, *machine(found, 0, 4))
    assert result.status is Status.FAIL
    assert [item.finding.subject[:5] for item in result.findings] == ["GPU 1"]
    assert "mlx5_4" in result.findings[0].finding.observed


def test_device_that_nccl_may_not_use_fails() -> None:
    facts = machine(network(device(0), device(4)), 0, 4)
    result = compute_check(gpu_affinity, *facts[:3], environment(NCCL_IB_HCA="mlx5_0"))
    assert [item.finding.subject[:5] for item in result.findings] == ["GPU 1"]


def test_one_device_for_two_sockets_passes() -> None:
    result = compute_check(gpu_affinity, *machine(network(device(0)), 0, 1, 4))
    assert result.status is Status.PASS
    assert [evidence.observed.partition(": ")[2] for evidence in result.evidence] == [
        "same PCIe switch",
        "same NUMA node",
        "on another NUMA node",
    ]


def test_unknown_place_is_unknown() -> None:
    found, many, pci, variables = machine(network(device(0, path=None, numa_node=None)), 0)
    assert compute_check(gpu_affinity, found, many, pci, variables).status is Status.UNKNOWN
    assert isinstance(pci, PciDevices)
    lost = replace(pci, devices=())
    assert compute_check(gpu_affinity, network(device(0)), many, lost, variables).status is Status.UNKNOWN


def test_machine_without_active_port_is_skipped() -> None:
    assert compute_check(gpu_affinity, *machine(network(), 0)).status is Status.SKIP
    assert compute_check(gpu_affinity, *machine(network(device(0, port(state="DOWN"))), 0)).status is Status.SKIP


def test_device_that_is_as_far_as_the_active_one_is_not_missed() -> None:
    far = network(device(4), device(5, port(state="DOWN"), numa_node=1))
    result = compute_check(gpu_affinity, *machine(far, 0))
    assert [item.observed for item in result.evidence] == ["nearest is mlx5_4: on another NUMA node"]


def test_nearer_device_is_not_needed_if_the_active_one_is_on_the_same_node() -> None:
    near = network(device(1), device(0, port(state="DOWN")))
    result = compute_check(gpu_affinity, *machine(near, 0))
    assert [item.observed for item in result.evidence] == ["nearest is mlx5_1: same NUMA node"]
