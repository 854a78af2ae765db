from dataclasses import fields, is_dataclass, replace
from typing import Any, get_type_hints

import pytest

from helpers.cases import cases
from helpers.facts import gpu, gpus, h100_node, host, pci
from kdoctor.facts import PciBridge, PciDevices
from kdoctor.facts.bounds import AtMost, Identity
from kdoctor.facts.plausible import plausible
from kdoctor.facts.sampling import GpuUse, Spread
from kdoctor.testing import healthy_node


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


def declared(mark: type[Any]) -> dict[str, tuple[tuple[Any, ...], str, Any]]:
    """By name, each field of a healthy machine that is declared with this mark: the records of a list, and the mark."""
    found: dict[str, tuple[tuple[Any, ...], str, Any]] = {}

    def visit(records: tuple[Any, ...]) -> None:
        for record in filter(is_dataclass, records):
            hints = get_type_hints(type(record), include_extras=True)
            for field in fields(record):
                value, marks = getattr(record, field.name), getattr(hints[field.name], "__metadata__", ())
                for one in marks if value is not None else ():
                    if isinstance(one, mark):
                        entry = (records[records.index(record) :], field.name, one)
                        found.setdefault(f"{type(record).__name__}.{field.name}", entry)
                visit(value if isinstance(value, tuple) else tuple(value.values()) if isinstance(value, dict) else ())

    for group in healthy_node().values():
        visit((group,))
    return found


@pytest.mark.parametrize("name", declared(AtMost))
def test_numbers_that_contradict_each_other_are_not_read(name: str) -> None:
    (record, *_), field, mark = declared(AtMost)[name]
    most = getattr(record, mark.field)
    cleaned: tuple[Any, ...] = plausible((replace(record, **{field: most + 1}),))
    assert not cleaned or (getattr(cleaned[0], field), getattr(cleaned[0], mark.field)) == (None, None)
    assert plausible((replace(record, **{field: most}),))


@pytest.mark.parametrize("name", [name for name, entry in declared(Identity).items() if len(entry[0]) > 1])
def test_different_records_of_one_identity_are_not_read(name: str) -> None:
    (first, second, *others), field, _ = declared(Identity)[name]
    third = replace(second, **{field: getattr(first, field)})
    found: tuple[Any, ...] = plausible((first, third, *others))
    kept = found[: len(found) - len(others)]
    assert found[len(kept) :] == tuple(others)
    assert kept == (first,) if third == first else all(getattr(record, field) is None for record in kept)
    assert plausible((first, second, *others, first)) == (first, second, *others)


def test_gpu_that_is_listed_twice_hides_another() -> None:
    """The count says that one of eight was not judged."""
    listed = (*(gpu(index) for index in range(7)), gpu(3))
    found = plausible(gpus(8, *listed))
    assert (found.count, [item.index for item in found.devices]) == (8, list(range(7)))
    listed = (*(gpu(index) for index in range(7)), gpu(7, bus_id=gpu(3).bus_id))
    found = plausible(gpus(8, *listed))
    assert [item.index for item in found.devices if item.bus_id is None] == [3, 7]
    assert (found.count, len(found.devices), "count" in found.errors) == (None, 8, True)
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
