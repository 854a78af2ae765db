from __future__ import annotations

from typing import Any

import pytest

from helpers.facts import gpu, gpus, h100_node, host
from kdoctor.facts.plausible import plausible


@pytest.mark.parametrize(
    ("field", "value"),
    [
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
    ],
)
def test_value_that_cannot_be_is_not_read(field: str, value: Any) -> None:
    (cleaned,) = plausible(gpus(1, gpu(0, **{field: value}))).devices
    assert getattr(cleaned, field) is None
    assert field in cleaned.errors


@pytest.mark.parametrize(
    ("field", "value"), [("temperature_margin_c", -3), ("memory_used_bytes", 0), ("utilization_gpu_percent", 0)]
)
def test_possible_value_stays(field: str, value: int) -> None:
    (cleaned,) = plausible(gpus(1, gpu(0, **{field: value}))).devices
    assert getattr(cleaned, field) == value
    assert field not in cleaned.errors


def test_healthy_machine_is_unchanged() -> None:
    for group in h100_node(8):
        assert plausible(group) is group
    assert plausible(host(cpus=0)).cpus is None
