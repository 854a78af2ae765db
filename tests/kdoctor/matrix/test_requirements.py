"""The requirements of a release, and parsing of release names."""

import pytest

from helpers.cases import cases
from kdoctor.matrix.load import load_matrix
from kdoctor.matrix.requirements import UnknownReleaseError, find_release, requirements

MATRIX = load_matrix(environ={})


@cases(
    ("2.19", "2.19.1"),
    ("2.19.0", "2.19.0"),
    ("2.19.1", "2.19.1"),
    ("2.15", "2.15.1"),
    ("2.15.0", "2.15.0"),
    ("2.15.0.post1", "2.15.0.post1"),
    ("2.10", "2.10.1"),
    (" 2.21 ", "2.21.0"),
    ("nightly", "2.23.0.dev20261026"),
    ("2.22", "2.22.0rc0"),  # no final release yet
    ("2.23", "2.23.0.dev20261026"),
    ("2.23.0.dev20261026", "2.23.0.dev20261026"),
)
def test_text_finds_its_release(text: str, version: str) -> None:
    assert find_release(MATRIX, text).version == version


@pytest.mark.parametrize("text", ["", "latest", "two", "2.19.x"])
def test_text_that_is_not_a_version_is_refused(text: str) -> None:
    with pytest.raises(UnknownReleaseError, match="not a TensorFlow version"):
        find_release(MATRIX, text)


def test_requirements_of_2_19() -> None:
    needs = requirements(MATRIX, "2.19")
    assert (needs.oldest_driver, needs.ptx_driver) == ("525.60.13", "555.42.02")
    assert needs.release.cudnn == "9.3"
    assert [kind.capability for kind in needs.by_machine_code] == ["6.0", "6.1", "7.0", "7.5", "8.0", "8.6", "8.9"]
    assert [kind.capability for kind in needs.by_ptx] == ["9.0"]
    assert "10.0" not in {kind.capability for kind in (*needs.by_ptx, *needs.by_machine_code)}
    assert needs.sonames["cudnn"] == "libcudnn.so.9"
    assert "nccl" not in needs.sonames
    assert needs.release.nccl.linkage == "static"
