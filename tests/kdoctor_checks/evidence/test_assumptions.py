"""Every assumption that does not hold fails."""

from typing import Any

import pytest

from helpers.evidence.checks import CHECKS, judged
from kdoctor.check import Check
from kdoctor.model import ASSUMPTIONS, Assumptions, GpuAssumption, Status

WRONG: dict[str, dict[str, Any]] = {
    "python": {"python": ">=3.12"},
    "packages": {"packages": {"tensorflow": "~=2.20.0"}},
    "gpus.count": {"gpus": GpuAssumption(count=4)},
    "gpus.model": {"gpus": GpuAssumption(model="NVIDIA A100*")},
    "environment": {"environment": {"NCCL_P2P_DISABLE": "1"}},
    "framework": {"framework": {"flavour": "tf-keras"}},
    "sdk": {"sdk": {"cuda": ">=13"}},
    "driver": {"driver": "<570"},
    "libraries": {"libraries": {"cudnn": "<9"}},
    "flags": {"flags": {"keras.floatx": "float64"}},
    "image": {"image": "job/serve:*"},
}
"""Name of an assumption to values that do not hold on the H100 node."""


@pytest.mark.parametrize(
    ("check", "assumption"),
    [(check, assumption) for check in CHECKS for assumption in check.judges],
    ids=lambda item: item.id if isinstance(item, Check) else item,
)
def test_assumption_that_does_not_hold_fails(check: Check, assumption: str) -> None:
    assert judged(check, assumptions=Assumptions(**WRONG[assumption])).status is Status.FAIL


def test_every_assumption_is_judged() -> None:
    assert {assumption for check in CHECKS for assumption in check.judges} == set(WRONG) == ASSUMPTIONS
