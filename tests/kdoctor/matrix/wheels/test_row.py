"""The row of a wheel, key by key."""

import datetime as dt
from typing import Any

import pytest
import yaml
from packaging.tags import parse_tag

from helpers.cases import cases
from kdoctor.errors import UsageError
from kdoctor.matrix.wheels.fatbins import Image
from kdoctor.matrix.wheels.row import canonical, document, kernels_of, row_of
from kdoctor.matrix.wheels.wheel import WheelFacts


def machine_code(*names: str) -> frozenset[Image]:
    return frozenset(Image("machine code", name) for name in names)


def ptx(**targets: str) -> frozenset[Image]:
    return frozenset(Image("PTX", name.removeprefix("sm_"), isa) for name, isa in targets.items())


def facts(**changes: Any) -> WheelFacts:
    values: dict[str, Any] = {
        "name": "tensorflow-2.99.0-cp311-cp311-manylinux_2_27_x86_64.whl",
        "distribution": "tensorflow",
        "version": "2.99.0",
        "tags": parse_tag("cp311-cp311-manylinux_2_27_x86_64"),
        "requires": (),
        "and_cuda": (),
        "with_cuda": (),
        "cuda": "12.5.1",
        "cudnn": "9",
        "images": {"nv_fatbin": machine_code("80")},
        "runpath": (),
        "nccl": None,
    }
    return WheelFacts(**{**values, **changes})


@cases(("tensorflow", None), ("tf_nightly", "tf-nightly"), ("TF.Nightly", "tf-nightly"))
def test_another_distribution_is_stated(name: str, stated: str | None) -> None:
    assert row_of(facts(distribution=name)).get("distribution") == stated


@cases(
    ("cp311-none-any", "==3.11.*"),
    ("cp39.cp310-none-any", ">=3.9"),
    ("cp310.cp39-none-any", ">=3.9"),
    ("py3-none-any", None),
)
def test_python_is_exact_for_a_wheel_of_one(tag: str, python: str | None) -> None:
    assert row_of(facts(tags=parse_tag(tag))).get("python") == python


@cases(
    (("nvidia-cudnn-cu12<10.0,>=9.3.0.75",), "9.3"),
    (("nvidia-cudnn-cu12==8.9.4.25",), "8.9"),
    (("nvidia-cudnn-cu12<10",), None),
    (("nvidia-cublas-cu12>=12.5", "nvidia-cudnn-cu13>=9.12.0.46"), "9.12"),
    (("nvidia-cublas-cu12>=12.5",), None),
    ((), None),
)
def test_cudnn_is_the_oldest_that_the_extra_accepts(lines: tuple[str, ...], cudnn: str | None) -> None:
    row = row_of(facts(and_cuda=lines))
    assert row.get("cudnn") == cudnn
    assert row.get("and_cuda") == (list(lines) or None) or row["and_cuda"] == [canonical(line) for line in lines]


@cases(
    ("2.27.7", ("nvidia-nccl-cu12>=2.30",), "static", "2.27.7"),
    (None, ("nvidia-cublas-cu12", "nvidia-nccl-cu12<3,>=2.27"), "dynamic", "<3,>=2.27"),
    (None, (), "dynamic", None),
)
def test_nccl_inside_comes_before_the_wheel(
    inside: str | None, lines: tuple[str, ...], linkage: str, version: str | None
) -> None:
    nccl = row_of(facts(nccl=inside, and_cuda=lines))["nccl"]
    assert (nccl["linkage"], nccl.get("version")) == (linkage, version)


def test_kernels_of_a_place() -> None:
    images = machine_code("90", "80", "100", "90a") | ptx(sm_90="8.9", sm_90a="8.10", sm_120f="8.7", sm_100="8.2")
    found = facts(images={"nv_fatbin": images})
    assert kernels_of(found, "nv_fatbin") == {
        "cubins": [80, 90, 100],
        "ptx": [90, "90a", 100, "120f"],
        "ptx_isa": "8.10",
    }
    assert kernels_of(found, "kernel_gen") == {"cubins": [], "ptx": [], "ptx_isa": None}


@cases(
    (machine_code("80"), {"cubins": [80], "ptx": [], "ptx_isa": None}),
    (ptx(sm_90="8.5"), {"cubins": [], "ptx": [90], "ptx_isa": "8.5"}),
    (frozenset(), None),
    (machine_code("90a"), None),
)
def test_code_of_the_kernel_generator_is_stated_if_there_is_any(
    generated: frozenset[Image], stated: dict[str, Any] | None
) -> None:
    row = row_of(facts(images={"nv_fatbin": machine_code("80"), "kernel_gen": generated}))
    assert row.get("kernel_gen") == stated


def test_document_states_what_was_read_and_when() -> None:
    found = facts()
    whole = yaml.safe_load(document(found, dt.date(2026, 11, 24)))
    assert (next(iter(whole)), next(iter(whole["tensorflow"][0]))) == ("schema", "version")
    assert (whole["schema"], whole["extends"], str(whole["updated"])) == (
        "kdoctor/version-matrix/v1", "shipped", "2026-11-24",
    )  # fmt: skip
    (row,) = whole["tensorflow"]
    assert row["source"] == [f"the wheel {found.name}"]
    assert row["verified"] == f"2026-11-24: read from {found.name}"
    assert row["cubins"] == [80]


@pytest.mark.parametrize(("change", "reason"), [({"images": {}}, "no GPU code"), ({"cuda": None}, "not TensorFlow")])
def test_wheel_that_is_not_a_cuda_build_is_refused(change: dict[str, Any], reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        document(facts(**change), dt.date(2026, 11, 24))
