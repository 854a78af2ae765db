"""Numbers of thousands of digits, which Python refuses to read, are not versions or indices. No check raises on one."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from helpers.cases import cases
from helpers.evidence.comparing import evaluate
from helpers.evidence.machines import STATED
from helpers.facts import environment, gpus, h100_node, keras, kernel, package, packages, target, tensorflow
from helpers.facts.libraries import libraries, library
from kdoctor.facts import FactGroup, Gpus
from kdoctor.facts.visible import read_mask
from kdoctor.testing import fact_table

LONG = "9" * 5000


@pytest.mark.parametrize("number", [LONG, f"2.{LONG}"])
@cases(
    lambda long: tensorflow(version=long),
    lambda long: tensorflow(cuda_version=long),
    lambda long: tensorflow(cudnn_version=long),
    lambda long: keras(version=long),
    lambda long: packages(package("tensorflow", "2.21.0"), package("keras", long), package("numpy", long)),
    lambda long: gpus(driver_version=long),
    lambda long: gpus(cuda_driver_version=long),
    lambda long: replace(kernel(), version=long),
    lambda long: libraries(library("cudnn", version=long), driver_version=long),
    lambda long: target(version=long),
    lambda long: environment(CUDA_VISIBLE_DEVICES=long, TF_GPU_ALLOCATOR=long),
)
def test_no_check_raises_on_a_long_number(number: str, make: Callable[[str], FactGroup]) -> None:
    changed = make(number)
    table = {**fact_table(*h100_node(1), scenario="smoke.baseline"), type(changed): changed}
    for name, result in evaluate(table, STATED, {Gpus}).items():
        assert "raised" not in (result.reason or ""), name


def test_long_index_is_no_gpu() -> None:
    devices = gpus(2).devices
    for index in (LONG, f"+{LONG}", f"-{LONG}", "2", "-1"):
        mask = read_mask(environment(CUDA_VISIBLE_DEVICES=f"1,{index}"), devices)
        assert (mask.visible, "does not exist" in (mask.invalid or "")) == ((devices[1],), True)
    assert read_mask(environment(CUDA_VISIBLE_DEVICES="+1,00"), devices).visible == (devices[1], devices[0])
