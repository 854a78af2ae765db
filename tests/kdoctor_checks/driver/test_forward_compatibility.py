from __future__ import annotations

import pytest

from helpers.facts import environment, gpu, gpus, h100_node
from helpers.facts.libraries import libraries, library, no_libraries
from kdoctor.engine.report import Result
from kdoctor.facts import FactGroup
from kdoctor.model import Status
from kdoctor.testing import compute_check
from kdoctor_checks.driver.forward_compatibility import forward_compatibility

COMPAT = "/usr/local/cuda/compat"


def compat(version: str = "590.44.01", found_by: str = "LD_LIBRARY_PATH") -> FactGroup:
    driver = library("cuda", version=version, path=f"{COMPAT}/libcuda.so.1", found_by=found_by)
    return libraries(driver, driver_is_compat=True)


def judged(*facts: FactGroup) -> Result:
    return compute_check(forward_compatibility, *h100_node(1), *facts)


@pytest.mark.parametrize(
    ("name", "status"),
    [  # NVIDIA: data-centre GPUs, and select RTX boards of certified servers; never GeForce
        ("NVIDIA H100 80GB HBM3", Status.PASS),
        ("Tesla T4", Status.PASS),
        ("NVIDIA GeForce RTX 4090", Status.FAIL),
        ("NVIDIA TITAN V", Status.FAIL),
        ("NVIDIA RTX A6000", Status.UNKNOWN),
        (None, Status.UNKNOWN),
    ],
)
def test_support_depends_on_the_kind_of_gpu(name: str | None, status: Status) -> None:
    assert judged(compat(), gpus(1, gpu(0, name=name))).status is status


def test_libcuda_of_the_driver_fits_every_gpu() -> None:
    assert judged(gpus(1, gpu(0, name="NVIDIA GeForce RTX 4090"))).status is Status.PASS


def test_compat_folder_is_removed_from_the_path() -> None:
    path = environment(LD_LIBRARY_PATH=COMPAT)
    finding = judged(compat(), gpus(1, gpu(0, name="NVIDIA GeForce RTX 4090")), path).findings[0].finding
    assert finding.remedy.commands == ("unset LD_LIBRARY_PATH",)
    assert finding.rollback.commands == (f"export LD_LIBRARY_PATH={COMPAT}",)


def test_compat_package_in_the_loader_cache_is_removed() -> None:
    found = compat(found_by="ld.so.cache")
    finding = judged(found, gpus(1, gpu(0, name="NVIDIA GeForce RTX 4090"))).findings[0].finding
    assert finding.remedy.commands == ("sudo apt-get remove 'cuda-compat-*'",)


def test_libcuda_older_than_the_module_fails_on_every_gpu() -> None:
    result = judged(compat("550.54.15"))
    assert result.status is Status.FAIL
    assert "550.54.15 is older than the kernel module 580.105.08" in result.findings[0].finding.observed


def test_unknown_libcuda_is_unknown_and_missing_cuda_is_skipped() -> None:
    assert judged(libraries(driver_is_compat=None)).status is Status.UNKNOWN
    assert judged(no_libraries()).status is Status.SKIP
