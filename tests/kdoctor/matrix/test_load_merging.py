"""How rows of a user's file are merged with others, and which contradictions are reported."""

from pathlib import Path

import pytest

from kdoctor.matrix.load import MatrixError, load_matrix

SHIPPED = load_matrix(environ={})
HEAD = 'schema: kdoctor/version-matrix/v1\nextends: shipped\nupdated: "2026-12-01"\nplatform: linux-x86_64\n'


def own(folder: Path, text: str) -> str:
    file = folder / "own.yaml"
    file.write_text(HEAD + text, encoding="utf-8")
    return str(file)


def problems(folder: Path, text: str) -> list[str]:
    with pytest.raises(MatrixError) as caught:
        load_matrix(own(folder, text), {})
    return [problem.message for problem in caught.value.problems]


def release(version: str, more: str = "") -> str:
    return f'- {{version: "{version}", same_as: "2.21.0", source: a lab{more}}}\n'


def test_release_may_be_the_same_as_one_above_it(tmp_path: Path) -> None:
    text = "tensorflow:\n" + release("2.98.0", ', glibc: "2.99"') + release("2.99.0").replace("2.21.0", "2.98.0")
    found = load_matrix(own(tmp_path, text), {})
    base, first, second = (found.release(version) for version in ("2.21.0", "2.98.0", "2.99.0"))
    assert base is not None
    assert first is not None
    assert second is not None
    assert (first.glibc, second.glibc) == ("2.99", "2.99")
    assert (first.cubins, first.inferred_from, second.inferred_from) == (base.cubins, "2.21.0", "2.98.0")
    assert second.source == ("a lab",)
    assert found.releases[-2:] == (first, second)


def test_requirements_of_other_makers_may_be_in_the_extra(tmp_path: Path) -> None:
    text = release("2.99.0", ", and_cuda: [something>=1, 'nvidia-cudnn-cu12>=9']")
    assert load_matrix(own(tmp_path, f"tensorflow:\n{text}"), {}).release("2.99.0") is not None


def test_every_contradiction_is_reported(tmp_path: Path) -> None:
    text = (
        'cuda_releases:\n- {release: "99.1", driver: "999.1", source: a lab}\n'
        '- {release: "12.9.9", driver: "500.1", source: a lab}\n- {release: "12.9.8", driver: "500.2", source: a lab}\n'
        f"tensorflow:\n{release('2.98.0', ', runpath: []')}{release('2.99.0', ', runpath: []')}"
        'gpus:\n- {capability: "19.0", architecture: X, source: a lab}\n'
    )
    found = problems(tmp_path, text)
    for part in ("CUDA 99.1", "driver 500.1", "driver 500.2", "TensorFlow 2.98.0", "TensorFlow 2.99.0", "'models'"):
        assert [part in problem for problem in found].count(True) == 1, part


def test_file_may_lower_the_driver_of_a_major_release(tmp_path: Path) -> None:
    """Then the shipped releases of that CUDA, whose drivers are known, are not contradictions."""
    row = next(row for row in SHIPPED.cuda_majors if row.major == 12)
    assert row.oldest_driver == "525.60.13"
    for driver in ("520.1", "530.1"):
        drivers = f'oldest_driver: "{driver}", oldest_windows_driver: "527.41"'
        text = f"cuda_majors:\n- {{major: 12, {drivers}, source: a lab}}\n"
        found = load_matrix(own(tmp_path, text), {})
        assert found.oldest_driver("12.5.1") == driver


def test_models_are_added_to_each_list_of_a_capability(tmp_path: Path) -> None:
    known = SHIPPED.capability("9.0")
    assert known is not None
    for key in ("data_center", "models", "arm_models"):
        text = f'gpus:\n- {{capability: "9.0", {key}: [X9000], source: a lab}}\n'
        found = load_matrix(own(tmp_path, text), {}).capability("9.0")
        assert found is not None
        for each in ("data_center", "models", "arm_models"):
            assert getattr(found, each) == (*getattr(known, each), *(("X9000",) if each == key else ())), key
        assert (found.architecture, found.source) == (known.architecture, ("a lab",))


def test_sources_of_all_files_may_be_cited(tmp_path: Path) -> None:
    text = f"sources: {{farm: our build farm}}\ntensorflow:\n{release('2.99.0').replace('a lab', 'farm')}"
    found = load_matrix(own(tmp_path, text), {})
    assert found.citation("farm") == "our build farm"
    assert {**found.sources} == {**SHIPPED.sources, "farm": "our build farm"}
