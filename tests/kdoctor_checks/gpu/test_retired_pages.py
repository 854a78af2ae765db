from __future__ import annotations

import re
from typing import Any

import pytest

from helpers.facts import gpus, lost_gpu, v100
from kdoctor.model import Severity, Status
from kdoctor.testing import compute_check
from kdoctor_checks.gpu.retired_pages import retired_pages


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({}, Status.PASS),
        ({"retired_pages_single_bit": 50, "retired_pages_double_bit": 9}, Status.PASS),
        ({"retired_pages_single_bit": 50, "retired_pages_double_bit": 10}, Status.FAIL),
        (
            {"retired_pages_single_bit": None, "errors": {"retired_pages_single_bit": "NVML_ERROR_UNKNOWN"}},
            Status.UNKNOWN,
        ),
        (
            {"retired_pages_double_bit": None, "errors": {"retired_pages_double_bit": "NVML_ERROR_UNKNOWN"}},
            Status.UNKNOWN,
        ),
    ],
)
def test_sixty_pages_fail(change: dict[str, Any], status: Status) -> None:
    result = compute_check(retired_pages, gpus(3, v100(0), v100(1), v100(2, **change)))
    assert (result.status, result.severity) == (status, Severity.ERROR)
    named = [item.finding.subject for item in result.findings] + [item.subject for item in result.unjudged]
    assert named == ([] if status is Status.PASS else ["GPU 2 (0000:30:00.0)"])


def test_lost_gpu_is_unknown() -> None:
    result = compute_check(retired_pages, gpus(2, v100(0), lost_gpu(1)))
    assert result.status is Status.UNKNOWN
    assert [item.subject for item in result.evidence] == ["GPU 0 (0000:10:00.0)"]


def test_finding_has_commands() -> None:
    finding = compute_check(retired_pages, gpus(1, v100(0, retired_pages_double_bit=61))).findings[0].finding
    assert re.match(r"61 .*\(0 single.*61 double", finding.observed)
    assert finding.remedy.look == ("nvidia-smi -q -d PAGE_RETIREMENT",)


def test_unsupported_gpus_are_skipped() -> None:
    errors = {
        "retired_pages_single_bit": "NVML_ERROR_NOT_SUPPORTED",
        "retired_pages_double_bit": "NVML_ERROR_NOT_SUPPORTED",
    }
    result = compute_check(
        retired_pages,
        gpus(
            2,
            *(
                v100(index, retired_pages_single_bit=None, retired_pages_double_bit=None, errors=errors)
                for index in range(2)
            ),
        ),
    )
    assert result.status is Status.SKIP
    assert "Tesla V100-DGXS-32GB" in (result.reason or "")
