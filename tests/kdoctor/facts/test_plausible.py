from dataclasses import replace
from typing import Any

import pytest

from helpers.cases import cases
from helpers.facts import gpu, gpus, h100_node, host, pci
from kdoctor.facts import PciBridge, PciDevices
from kdoctor.facts.plausible import plausible
from kdoctor.facts.sampling import GpuUse, Spread


@cases(
    ("temperature_c", 0),
    ("clock_sm_mhz", 0),
    ("memory_total_bytes", 0),
    ("pcie_width", 0),
    ("pcie_generation", 99),
    ("bus_id", ""),
    ("name", " "),
    ("memory_used_bytes", -1),
    ("ecc_uncorrected_volatile", 2**64 - 1),
    ("power_draw_w", float("nan")),
)
def test_value_that_cannot_be_is_not_read(field: str, value: Any) -> None:
    (cleaned,) = plausible(gpus(1, gpu(0, **{field: value}))).devices
    assert getattr(cleaned, field) is None
    assert field in cleaned.errors


@cases(("temperature_margin_c", -3), ("memory_used_bytes", 0), ("utilization_gpu_percent", 0))
def test_possible_value_stays(field: str, value: int) -> None:
    (cleaned,) = plausible(gpus(1, gpu(0, **{field: value}))).devices
    assert getattr(cleaned, field) == value
    assert field not in cleaned.errors


def test_healthy_machine_is_unchanged() -> None:
    for group in h100_node(8):
        assert plausible(group) is group
    assert plausible(host(cpus=0)).cpus is None


def test_gpu_that_is_listed_twice_hides_another() -> None:
    """The count says that one of eight was not judged."""
    listed = (*(gpu(index) for index in range(7)), gpu(3))
    found = plausible(gpus(8, *listed))
    assert (found.count, [item.index for item in found.devices]) == (8, list(range(7)))
    listed = (*(gpu(index) for index in range(7)), gpu(7, bus_id=gpu(3).bus_id))
    assert [item.index for item in plausible(gpus(8, *listed)).devices] == list(range(7))
    unread = (*(gpu(index) for index in range(6)), gpu(6, bus_id=None), gpu(7, bus_id=None))
    assert len(plausible(gpus(8, *unread)).devices) == 8


def test_bridge_above_several_devices_has_one_reading() -> None:
    bridge = PciBridge(bus_id="0000:01:00.0", device_id="1", link_width=16, link_speed="16.0 GT/s PCIe")
    above = (bridge, replace(bridge, link_width=None), replace(bridge, link_width=8))
    devices = tuple(replace(device, path=(one,)) for device, one in zip(pci(3).devices, above, strict=False))
    found = plausible(PciDevices(devices=devices))
    assert [device.path for device in found.devices] == [(replace(bridge, link_width=None),)] * 3


def test_pair_that_is_listed_twice_with_different_values_was_not_read() -> None:
    pairs = gpus(4).pairs
    turned = replace(pairs[0], first=pairs[0].second, second=pairs[0].first)
    other = replace(turned, level="SYS")
    itself, absent = replace(pairs[0], second=pairs[0].first), replace(pairs[0], second=9)
    assert len(plausible(gpus(4, pairs=(*pairs, turned))).pairs) == 6
    assert plausible(gpus(4, pairs=(other, *pairs, itself, absent))).pairs == pairs[1:]


@pytest.mark.parametrize("value", [-1.0, float("inf"), float("-inf"), float("nan"), 1e30])
def test_samples_that_cannot_be_are_not_read(value: float) -> None:
    use = GpuUse(
        samples=3,
        memory_used_bytes=Spread(low=value, mean=1.0, high=2.0),
        processes=Spread(low=0.0, mean=1.0, high=value),
        temperature_margin_c=Spread(low=-2.0, mean=0.0, high=5.0),
    )
    cleaned = plausible(use)
    assert (cleaned.memory_used_bytes, cleaned.processes) == (None, None)
    assert cleaned.temperature_margin_c == use.temperature_margin_c
    assert plausible(replace(use, memory_used_bytes=Spread(low=3.0, mean=2.0, high=9.0))).memory_used_bytes is None
