from __future__ import annotations

import re
from typing import Any

import pytest

from helpers.facts import MIB, gpu, gpus
from kdoctor.model import Severity, Status
from kdoctor.testing import compute_check
from kdoctor_checks.gpu.resizable_bar import resizable_bar


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({}, Status.PASS),
        ({"bar1_total_bytes": 81559 * MIB}, Status.PASS),
        ({"bar1_total_bytes": 81559 * MIB - 1}, Status.FAIL),
        ({"bar1_total_bytes": None, "errors": {"bar1_total_bytes": "NVML_ERROR_UNKNOWN"}}, Status.UNKNOWN),
        ({"memory_total_bytes": None, "errors": {"memory_total_bytes": "NVML_ERROR_UNKNOWN"}}, Status.UNKNOWN),
    ],
)
def test_small_bar_is_a_note(change: dict[str, Any], status: Status) -> None:
    result = compute_check(resizable_bar, gpus(3, gpu(0), gpu(1), gpu(2, **change)))
    assert (result.status, result.severity) == (status, Severity.INFO)
    named = [item.finding.subject for item in result.findings] + [item.subject for item in result.unjudged]
    assert named == ([] if status is Status.PASS else ["GPU 2 (0000:30:00.0)"])


def test_finding_has_commands() -> None:
    finding = compute_check(resizable_bar, gpus(1, gpu(0, bar1_total_bytes=256 * MIB))).findings[0].finding
    assert re.search(r"256 MiB.*79.6 GiB", finding.observed)
    assert finding.remedy.look == ("nvidia-smi -q -d MEMORY",)


def test_unsupported_gpus_are_skipped() -> None:
    errors = {"bar1_total_bytes": "NVML_ERROR_NOT_SUPPORTED"}
    result = compute_check(
        resizable_bar, gpus(2, *(gpu(index, bar1_total_bytes=None, errors=errors) for index in range(2)))
    )
    assert result.status is Status.SKIP
    assert "NVIDIA H100 80GB HBM3" in (result.reason or "")
    assert "no resizable BAR" not in (result.reason or "")
    assert compute_check(resizable_bar, gpus(0)).reason == "the driver lists no GPU"


@pytest.mark.parametrize(
    ("name", "architecture", "capability", "status"),
    [
        ("NVIDIA GeForce GTX 1660 Ti", None, None, Status.SKIP),
        ("Quadro P400", None, None, Status.SKIP),
        ("NVIDIA GeForce RTX 2080 SUPER", "Turing", None, Status.SKIP),
        ("Tesla T4", None, "7.5", Status.SKIP),
        ("NVIDIA GeForce RTX 4090", None, None, Status.FAIL),
        ("NVIDIA GeForce RTX 3080", "Ampere", "8.6", Status.FAIL),
        ("NVIDIA RTX 6000 Ada Generation", None, None, Status.FAIL),
        ("NVIDIA RTX PRO 6000 Blackwell Workstation Edition", None, None, Status.FAIL),
    ],
)
def test_cards_without_resizable_bar_are_not_judged(
    name: str, architecture: str | None, capability: str | None, status: Status
) -> None:
    device = gpu(0, name=name, architecture=architecture, compute_capability=capability, bar1_total_bytes=256 * MIB)
    assert compute_check(resizable_bar, gpus(1, device)).status is status


def test_card_without_resizable_bar_passes_if_its_bar_covers_the_memory() -> None:
    device = gpu(0, name="Tesla T4", architecture="Turing", bar1_total_bytes=81559 * MIB)
    assert compute_check(resizable_bar, gpus(1, device)).status is Status.PASS
