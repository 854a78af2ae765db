"""Names of GPUs in a matrix of a few models: parts of names, several models, and suggestions."""

import pytest

from helpers.cases import cases
from helpers.matrices import SOURCE, small_matrix
from kdoctor.matrix.gpus import GpuNameError, find_gpu
from kdoctor.matrix.model import GpuKind

KINDS = (
    GpuKind(capability="7.0", architecture="A", data_center=("X70",), models=("Titan V",), source=SOURCE),
    GpuKind(
        capability="8.0", architecture="B", data_center=("X80 Large",), arm_models=("X80 Small", "GX8"), source=SOURCE
    ),
    GpuKind(capability="8.7", architecture="B", arm_models=("Orin",), source=SOURCE),
    GpuKind(capability="9.0", architecture="C", data_center=("X90",), models=("X90 Desk",), source=SOURCE),
    GpuKind(capability="10.0", architecture="D", data_center=("Y1", "Y2", "Y3", "YYY 1"), source=SOURCE),
    GpuKind(capability="11.0", architecture="E", models=("YYY 2", "YYY 3", "YYY 4", "YYY 5", "YYY 6"), source=SOURCE),
)
MATRIX = small_matrix(gpus=KINDS)


@cases(
    ("X70", "7.0", False, True),
    ("Titan V", "7.0", False, False),
    ("NVIDIA X80 Large 40GB", "8.0", False, True),
    ("X80 Small", "8.0", True, False),
    ("X80", "8.0", False, False),  # either of them
    ("NVIDIA X80", "8.0", False, False),
    ("GX8", "8.0", True, False),
    ("X90", "9.0", False, True),
    ("X90 Desk", "9.0", False, False),  # the longer name counts
    ("2x X90", "9.0", False, True),
    ("8.0", "8.0", False, True),
    ("8.7", "8.7", True, False),
    ("10.0", "10.0", False, True),
    ("9.0", "9.0", False, False),  # a desktop GPU has it as well
    ("sm_100", "10.0", False, True),
    ("Orin Large", "8.7", True, False),
)
def test_model_and_what_is_known_about_it(name: str, capability: str, *, arm_only: bool, data_center: bool) -> None:
    found = find_gpu(MATRIX, name)
    assert (found.name, found.capability, found.arm_only, found.data_center) == (
        name,
        capability,
        arm_only,
        data_center,
    )


def test_capability_without_a_row_is_judged_by_its_number() -> None:
    found = find_gpu(MATRIX, "13.1")
    assert (found.name, found.capability) == ("a GPU of compute capability 13.1", "13.1")
    assert (found.arm_only, found.data_center) == (False, False)
    assert find_gpu(MATRIX, "8.0").shown == "compute capability 8.0"
    assert find_gpu(MATRIX, "X70").shown == "X70 (7.0)"


def test_ambiguous_name_lists_six_models() -> None:
    with pytest.raises(GpuNameError) as caught:
        find_gpu(MATRIX, "YYY")
    text = str(caught.value)
    assert "YYY 1 (10.0), YYY 2 (11.0)" in text
    assert "YYY 6 (11.0)" in text
    assert "..." not in text
    more = (*KINDS, GpuKind(capability="12.0", architecture="F", models=("YYY 7",), source=SOURCE))
    with pytest.raises(GpuNameError) as caught:
        find_gpu(small_matrix(gpus=more), "YYY")
    assert "YYY 6 (11.0), ..." in str(caught.value)
    assert "YYY 7" not in str(caught.value)


@cases(
    ("80", "did you mean '8.0'?"),
    ("100", "did you mean '10.0'?"),
    ("99", None),
    ("X7O", "did you mean 'X70'?"),
    ("X71", "did you mean 'X70'?"),
    ("Titan W", "did you mean 'Titan V'?"),
    ("something else", None),
    ("ab", None),
    ("V Titan", "did you mean 'Titan V'?"),
    ("X70Q", "did you mean 'X70'?"),
)
def test_unknown_name_and_its_suggestion(name: str, suggestion: str | None) -> None:
    with pytest.raises(GpuNameError, match="unknown GPU") as caught:
        find_gpu(MATRIX, name)
    assert ("did you mean" in str(caught.value)) is (suggestion is not None)
    assert (suggestion or "") in str(caught.value)
