"""The shipped rows of the version matrix equal the real wheels. ``make test-wheels`` downloads each wheel (12 GB)."""

import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement

from kdoctor.matrix.load import load_matrix
from kdoctor.matrix.model import Release
from kdoctor.matrix.wheels.download import download
from kdoctor.matrix.wheels.row import canonical, kernels_of, row_of
from kdoctor.matrix.wheels.wheel import read_wheel

pytestmark = [pytest.mark.wheels, pytest.mark.skipif(sys.platform != "linux", reason="the wheels are for Linux")]

MATRIX = load_matrix(environ={})
NOT_IN_A_WHEEL = {"python", "cudnn"}
"""A wheel is for one Python version, and states only the major version of cuDNN."""


def shipped(release: Release, key: str) -> Any:
    """What the matrix says, in the form of the program that reads wheels."""
    value = getattr(release, key)
    if key in ("requires", "and_cuda"):
        return sorted(canonical(line) for line in value or ())
    if key == "ptx":
        return [int(target) if target.isdecimal() else target for target in value]
    if key == "kernel_gen":
        targets = [int(target) if target.isdecimal() else target for target in value.ptx]
        return {"cubins": list(value.cubins), "ptx": targets, "ptx_isa": value.ptx_isa}
    if key == "nccl":
        return (value.linkage, value.version)
    return list(value) if isinstance(value, tuple) else value


@pytest.mark.parametrize("version", [release.version for release in MATRIX.releases])
def test_row_equals_the_wheel(version: str, tmp_path: Path) -> None:
    release = MATRIX.release(version)
    assert release is not None
    found = row_of(read_wheel(download(Requirement(f"{release.distribution}=={version}"), tmp_path)))
    shutil.rmtree(tmp_path)
    found["nccl"] = (found["nccl"]["linkage"], found["nccl"].get("version"))
    found |= {key: sorted(found[key]) for key in ("requires", "and_cuda") if key in found}
    expected = {key: shipped(release, key) for key in found if key not in NOT_IN_A_WHEEL}
    assert {key: value for key, value in found.items() if key not in NOT_IN_A_WHEEL} == expected


@pytest.mark.parametrize("processor", ["x86_64", "aarch64"])
@pytest.mark.parametrize("row", MATRIX.jax, ids=lambda row: f"{row.version}-{row.extra}")
def test_row_of_jax_equals_the_wheels(row: Release, processor: str, tmp_path: Path) -> None:
    pins: set[str] = set()
    found = []
    for part in ("plugin", "pjrt"):
        (tmp_path / part).mkdir()
        wanted = Requirement(f"jax-{row.extra}-{part}=={row.version}")
        facts = read_wheel(download(wanted, tmp_path / part, processor))
        found.append(kernels_of(facts, "nv_fatbin"))
        assert set(facts.images) == {"nv_fatbin"}
        assert facts.nccl is None
        assert facts.glibc == row.glibc
        pins |= {canonical(line) for line in facts.with_cuda}
    shutil.rmtree(tmp_path)
    cubins = set(found[0]["cubins"]) & set(found[1]["cubins"])
    assert (tuple(sorted(cubins)), row.ptx_isa) == (row.cubins, found[0]["ptx_isa"])
    assert pins == {canonical(line) for line in row.and_cuda or ()}
