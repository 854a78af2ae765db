"""Checks the shipped version matrix for gaps and contradictions, and against what was measured elsewhere."""

from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.version import Version

from helpers.cases import cases
from kdoctor.matrix.known_bad import overlap
from kdoctor.matrix.load import load_matrix, loads, shipped_text
from kdoctor.matrix.model import VersionMatrix
from kdoctor.matrix.values import numbers, python_minors, specifier
from kdoctor.yamldoc.source import read_yaml

MATRIX = load_matrix(environ={})
RELEASES = {release.version: release for release in MATRIX.releases}


def test_shipped_matrix_is_valid_and_extends_no_other() -> None:
    assert not read_yaml(shipped_text(), "version matrix").problems
    alone = loads(shipped_text(), "the shipped version matrix")
    assert (alone.releases, alone.known_bad, alone.updated) == (MATRIX.releases, MATRIX.known_bad, MATRIX.updated)


def test_every_minor_from_2_10_to_2_21_and_a_nightly_is_listed() -> None:
    minors = {release.key.release[:2] for release in MATRIX.releases if not release.prerelease}
    assert minors == {(2, minor) for minor in range(10, 22)}
    assert [release.distribution for release in MATRIX.releases if release.prerelease] == ["tensorflow", "tf-nightly"]


def test_releases_are_in_order_and_their_python_versions_only_rise() -> None:
    keys = [release.key for release in MATRIX.releases]
    assert keys == sorted(keys)
    ends = [
        tuple(numbers(minor)[1] for minor in (python_minors(row.python)[0], python_minors(row.python)[-1]))
        for row in MATRIX.releases
    ]
    assert ends == sorted(ends)
    for release in MATRIX.releases:
        minors = [numbers(minor)[1] for minor in python_minors(release.python)]
        assert minors == list(range(minors[0], minors[-1] + 1)), f"{release.version}: a gap in its Python versions"


@pytest.mark.parametrize("version", RELEASES)
def test_release_has_no_gap(version: str) -> None:
    release = RELEASES[version]
    cuda = numbers(release.cuda)
    assert release.source
    assert release.nccl.basis
    assert MATRIX.oldest_driver(release.cuda)
    for kernels in release.kernels:
        driver = MATRIX.ptx_driver(kernels, release.cuda)
        assert driver is not None
        assert kernels.ptx_isa is not None
    assert {Requirement(line).name for line in release.requires} >= {"numpy", "protobuf", "h5py"}
    assert any(Requirement(line).name in ("keras", "keras-nightly") for line in release.requires)
    assert release.cubins
    assert len(release.ptx) == 1
    assert release.ptx[0] == str(release.cubins[-1])
    assert release.kernel_gen is not None
    assert set(release.kernel_gen.cubins) == set(release.cubins[:-1])
    assert MATRIX.cudnn_major(release)
    sonames = MATRIX.sonames(release)
    assert sonames["cudart"].startswith(f"libcudart.so.{cuda[0]}")
    assert sonames["cudnn"] == f"libcudnn.so.{MATRIX.cudnn_major(release)}"
    assert ("nccl" in sonames) == (release.nccl.linkage == "dynamic")
    if release.inferred_from:
        assert RELEASES[release.inferred_from].key.release[:2] == release.key.release[:2]
    else:
        assert release.verified or release.key.release[:2] != (2, 17)


@pytest.mark.parametrize("version", [version for version, row in RELEASES.items() if row.and_cuda])
def test_extra_matches_the_build(version: str) -> None:
    release = RELEASES[version]
    major, minor = numbers(release.cuda)[:2]
    pins = {Requirement(line).name: Requirement(line).specifier for line in release.and_cuda or ()}
    runtime = pins[f"nvidia-cuda-runtime-cu{major}"]
    assert overlap(runtime, specifier(f"=={major}.{minor}.*"))
    if release.cudnn:
        assert overlap(pins[f"nvidia-cudnn-cu{major}"], specifier(f"=={release.cudnn}.*"))
    assert set(release.runpath) >= {"cuda_runtime"}


def test_drivers_rise_with_cuda() -> None:
    by_minor: dict[tuple[int, ...], list[tuple[int, ...]]] = {}
    for row in MATRIX.cuda_releases:
        assert row.driver is not None
        by_minor.setdefault(numbers(row.release)[:2], []).append(numbers(row.driver))
    highest = [max(drivers) for drivers in by_minor.values()]
    assert highest == sorted(highest)
    majors = {numbers(row.release)[0] for row in MATRIX.cuda_releases}
    assert majors == {row.major for row in MATRIX.cuda_majors}


def test_every_source_is_listed_and_every_listed_source_is_used() -> None:
    rows: list[Any] = [
        *MATRIX.releases, *MATRIX.cuda_majors, *MATRIX.cuda_releases, *MATRIX.cudnn, *MATRIX.gpus,
        *MATRIX.libraries, *MATRIX.jax, *MATRIX.ptx_versions, *MATRIX.platforms, *MATRIX.forward_compatibility,
        *MATRIX.keras_releases, *MATRIX.keras_features, *MATRIX.known_bad,
    ]  # fmt: skip
    used = [source for row in rows for source in row.source]
    assert all(MATRIX.citation(source) for source in used)
    assert all(row.source for row in rows)
    assert set(MATRIX.sources) <= set(used)


def test_every_architecture_of_a_build_runs_on_a_known_gpu() -> None:
    known = {kind.number for kind in MATRIX.gpus}
    for release in MATRIX.releases:
        for cubin in release.cubins:
            assert any(gpu // 10 == cubin // 10 and gpu >= cubin for gpu in known), (release.version, cubin)


def test_registering_libraries_are_loaded_by_the_newest_build() -> None:
    assert set(MATRIX.registering) <= set(MATRIX.sonames(RELEASES["2.21.0"]))


@pytest.mark.parametrize("row", MATRIX.known_bad, ids=lambda row: f"{row.id}-{row.effect}")
def test_known_bad_row_has_a_fix_and_its_pins_exclude_it(row: object) -> None:
    assert row in MATRIX.known_bad
    for bad in MATRIX.known_bad:
        if bad is not row:
            continue
        assert bad.fix
        assert bad.symptom
        for name, spec in bad.ended_by.items():
            if name in bad.when:
                assert not overlap(specifier(spec), specifier(bad.when[name])), "the fixed versions are bad, too"
        for line in bad.install:
            pin = Requirement(line)
            name = "cudnn" if pin.name.startswith("nvidia-cudnn") else pin.name
            assert not overlap(pin.specifier, specifier(bad.when[name])), "the pin allows the combination"


@cases(
    ({"tensorflow": "2.16.1"}, {"tf2161_runpath"}),
    ({"tensorflow": "2.16.2"}, set()),
    ({"tensorflow": "2.20.0", "capability": "12.0"}, {"blackwell_invalid_ptx"}),
    ({"tensorflow": "2.21.0", "capability": "12.0"}, {"tf2161_runpath", "blackwell_xla_ptx85"}),
    ({"tensorflow": "2.21.0", "capability": "9.0"}, {"tf2161_runpath"}),
    ({"cudnn": "9.11.0", "capability": "7.0"}, {"cudnn_too_new_pre_turing"}),
    ({"cudnn": "9.10.2", "capability": "7.0"}, set()),
    ({"cudnn": "9.11.0", "capability": "7.5"}, set()),
    ({"tensorflow": "2.21.0", "cudnn": "9.5.1"}, {"tf2161_runpath", "cudnn_too_old_tf221"}),
    ({"tensorflow": "2.21.0", "cudnn": "9.24.0.43"}, {"tf2161_runpath"}),
    ({"tensorflow": "2.19.1", "cudnn": "9.5.1"}, set()),
    ({"tensorflow": "2.17.1", "numpy": "2.0.2"}, {"numpy2_abi"}),
    ({"tensorflow": "2.17.1", "numpy": "1.26.4"}, set()),
    ({"tensorflow": "2.18.0", "numpy": "2.0.2"}, set()),
)
def test_versions_match_the_reported_combinations(versions: dict[str, str], failures: set[str]) -> None:
    assert {row.id for row in MATRIX.known_bad_for(versions)} == failures


def test_only_known_builds_allow_numpy_2() -> None:
    """Builds before 2.18 without an upper bound on NumPy in their METADATA."""
    uncapped = []
    for release in MATRIX.releases:
        asked = release.requirement("numpy", "3.10")
        assert asked is not None
        if release.key < Version("2.18") and overlap(asked.specifier, SpecifierSet(">=2")):
            uncapped.append(release.version)
    assert uncapped == ["2.10.0", "2.10.1", "2.11.0", "2.11.1", "2.14.0"]


def test_matrix_is_immutable() -> None:
    assert isinstance(MATRIX, VersionMatrix)
    with pytest.raises(AttributeError):
        MATRIX.updated = "now"  # type: ignore[misc]
