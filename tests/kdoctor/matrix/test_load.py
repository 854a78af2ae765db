"""Matrix files of users: what they add and replace, and the problems of invalid ones with line and column."""

from pathlib import Path

import pytest

from helpers.cases import cases
from kdoctor.matrix.load import MatrixError, load_matrix, loads, shipped_text

SHIPPED = load_matrix(environ={})

HEAD = 'schema: kdoctor/version-matrix/v1\nextends: shipped\nupdated: "2026-12-01"\nplatform: linux-x86_64\n'
NEW_RELEASE = """\
tensorflow:
- version: "2.22.0"
  same_as: "2.21.0"
  python: ">=3.11,<3.15"
  source: our own build farm
"""
NEWER_ON_WINDOWS = 'cuda_majors:\n- {major: 99, oldest_driver: "1.1", oldest_windows_driver: "1.1", source: a lab}\n'


def written(folder: Path, text: str | bytes) -> str:
    file = folder / "own.yaml"
    file.write_bytes(text.encode() if isinstance(text, str) else text)
    return str(file)


def problems(folder: Path, text: str | bytes) -> str:
    with pytest.raises(MatrixError) as caught:
        load_matrix(written(folder, text), {})
    return str(caught.value)


def test_older_file_does_not_make_the_shipped_rows_old(tmp_path: Path) -> None:
    own = load_matrix(written(tmp_path, HEAD.replace("2026-12-01", "2020-01-01")), {})
    assert own.updated == SHIPPED.updated


def test_row_with_its_own_code_has_no_inherited_kernels(tmp_path: Path) -> None:
    text = HEAD + 'tensorflow:\n- {version: "2.21.0+own.1", same_as: "2.21.0", cubins: [80, 90], source: our own}\n'
    release = load_matrix(written(tmp_path, text), {}).release("2.21.0+own.1")
    assert release is not None
    assert (release.kernel_gen, release.ptx_isa) == (None, None)


def test_row_with_the_same_key_replaces_the_shipped_one(tmp_path: Path) -> None:
    text = HEAD + (
        'tensorflow:\n- {version: "2.19.1", same_as: "2.19.1", glibc: "2.31", source: our own build}\n'
        'cuda_majors:\n- {major: 12, oldest_driver: "530.30.02", source: our own policy}\n'
        'gpus:\n- {capability: "8.0", architecture: Ampere, models: [A100, PPU9000], source: x y}\n'
    )
    own = load_matrix(written(tmp_path, text), {})
    row = own.release("2.19.1")
    assert row is not None
    assert row.glibc == "2.31"
    assert len(own.releases) == len(SHIPPED.releases)
    assert own.oldest_driver("12.5.1") == "530.30.02"
    assert own.capability("8.0") is not None
    assert own.capability("8.0") != SHIPPED.capability("8.0")


def test_option_takes_precedence_over_the_variable(tmp_path: Path) -> None:
    own = written(tmp_path, HEAD + NEW_RELEASE)
    assert load_matrix(None, {"KDOCTOR_MATRIX": own}).release("2.22.0")
    assert load_matrix(None, {"KDOCTOR_MATRIX": ""}) == SHIPPED
    other = tmp_path / "other.yaml"
    other.write_text(HEAD)
    assert load_matrix(str(other), {"KDOCTOR_MATRIX": own}).release("2.22.0") is None
    with pytest.raises(MatrixError, match="KDOCTOR_MATRIX"):
        load_matrix(None, {"KDOCTOR_MATRIX": str(tmp_path / "gone.yaml")})


def test_missing_shipped_file_is_named_with_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kdoctor.matrix.load.shipped_files", lambda *_: iter(()))
    with pytest.raises(MatrixError, match="not found") as caught:
        shipped_text()
    assert "keras-doctor" in str(caught.value.hint)


def test_file_that_extends_nothing_needs_every_section(tmp_path: Path) -> None:
    found = problems(tmp_path, HEAD.replace("shipped", "nothing"))
    for section in ("tensorflow", "cuda_majors", "gpus", "sources"):
        assert f"missing key '{section}'" in found


@cases(
    ("", ":1:1", "the file is empty"),
    ("a: [", ":", "YAML"),
    (b"\xff\xfe", ":1:1", "not UTF-8"),
    ("- 1\n", ":1:1", "expected a mapping"),
    ("schema: kdoctor/version-matrix/v2\n", ":1:9", "version-matrix/v2"),
    ("schema: kdoctor/checklist/v1\n", ":1:9", "expected kdoctor/version-matrix/v1"),
    ("updated: x\n", ":1:1", "'schema'"),
    (HEAD + "tensorfow: []\n", ":5:1", "did you mean 'tensorflow'?"),
    (HEAD.replace("shipped", "shiped"), ":2:10", "did you mean 'shipped'?"),
    (HEAD.replace('"2026-12-01"', '"yesterday"'), ":3:10", "'updated'"),
    (HEAD.replace('"2026-12-01"', "2026-12-01"), ":3:10", "put it in quotes"),
    (HEAD.replace("linux-x86_64", "linux-aarch64"), ":4:11", "'linux-aarch64'"),
    (HEAD + "keras: 3\n", ":5:8", "expected a list"),
    (HEAD + "gpus: [3]\n", ":5:8", "expected a mapping"),
    (HEAD + NEW_RELEASE.replace('"2.22.0"', "2.22"), ":6:12", "put it in quotes"),
    (HEAD + NEW_RELEASE.replace('"2.22.0"', '"2.x.0"'), ":6:12", "a version (PEP 440)"),
    (HEAD + NEW_RELEASE.replace('"2.21.0"', '"2.12.9"'), ":7:12", "TensorFlow 2.12.9"),
    (HEAD + NEW_RELEASE.replace(">=3.11,<3.15", "3.11-3.14"), ":8:11", "a version specifier (PEP 440)"),
    (HEAD + NEW_RELEASE.replace(">=3.11,<3.15", ">=4"), ":8:11", "'>=4'"),
    (HEAD + NEW_RELEASE + '  cuda: "14.0"\n', ":10:9", "CUDA 14.0"),
    (HEAD + NEW_RELEASE + "  cubins: [90, 80]\n", ":10:11", "[90, 80]"),
    (HEAD + NEW_RELEASE + "  nccl: {linkage: odd, basis: x}\n", ":10:19", "static, dynamic"),
    (HEAD + NEW_RELEASE + "  and_cuda: [nvidia-cudnn-cu13==9.20]\n", ":10:13", "nvidia-cudnn-cu13"),
    (HEAD + NEW_RELEASE + "  requires: ['numpy >> 2']\n", ":10:14", "a requirement (PEP 508)"),
    (HEAD + NEW_RELEASE + "  runpaht: []\n", ":10:3", "did you mean 'runpath'?"),
    (HEAD + NEW_RELEASE.replace("our own build farm", "weel"), ":9:11", "did you mean 'wheel'?"),
    (HEAD + NEW_RELEASE.replace("  source: our own build farm\n", ""), ":6:3", "missing key 'source'"),
    (HEAD + NEW_RELEASE + NEW_RELEASE.removeprefix("tensorflow:\n"), ":10:3", "duplicate row with version 2.22.0"),
    (HEAD + 'tensorflow:\n- {version: "2.22.0", source: a b}\n', ":6:3", "missing key 'python'"),
    (HEAD + 'cuda_majors:\n- {major: 12, oldest_driver: "440.1", source: a b}\n', ":", "CUDA 11"),
    (HEAD + 'cuda_releases:\n- {release: "12.5.1", driver: "500.1", source: a b}\n', ":6:31", "525.60.13"),
    (HEAD + 'cuda_releases:\n- {release: "14.0.0", driver: "700.1", source: a b}\n', ":6:3", "CUDA 14"),
    (HEAD + NEW_RELEASE + "  runpath: []\n", ":10:12", "'runpath' has no folder"),
    (HEAD + NEW_RELEASE + '  ptx_isa: "99.9"\n', ":6:3", "no driver for PTX 99.9"),
    (HEAD + NEW_RELEASE.replace("our own build farm", "nowhere"), ":9:11", "source 'nowhere' is not listed"),
    (HEAD + NEWER_ON_WINDOWS, ":6:3", "which is not newer than"),
    (HEAD + 'gpus:\n- {capability: "9", architecture: H, models: [X1], source: a b}\n', ":6:16", "compute capability"),
    (HEAD + 'gpus:\n- {capability: "9.9", architecture: H, source: a b}\n', ":6:3", "'arm_models'"),
    (HEAD + "keras: []\nkeras: []\n", ":6:1", "duplicate key 'keras'"),
    (HEAD + "keras: &x []\ngpus: *x\n", ":6:7", "alias"),
    (HEAD.replace("linux", "!!python/name:os.system linux"), ":4:11", "tag"),
)
def test_mistake_is_reported_at_its_place(tmp_path: Path, text: str | bytes, place: str, named: str) -> None:
    found = problems(tmp_path, text)
    assert f"own.yaml{place}" in found
    assert named in found


@pytest.mark.parametrize("cut", [1000, 9000, 20000, 30000])
def test_truncated_matrix_is_refused(cut: int) -> None:
    with pytest.raises(MatrixError):
        loads(shipped_text()[:cut])


def test_models_are_added_to_each_list_of_a_capability(tmp_path: Path) -> None:
    known = SHIPPED.capability("9.0")
    assert known is not None
    for key in ("data_center", "models", "arm_models"):
        text = f'gpus:\n- {{capability: "9.0", {key}: [X9000], source: a lab}}\n'
        found = load_matrix(written(tmp_path, HEAD + text), {}).capability("9.0")
        assert found is not None
        for each in ("data_center", "models", "arm_models"):
            assert getattr(found, each) == (*getattr(known, each), *(("X9000",) if each == key else ())), key
        assert (found.architecture, found.source) == (known.architecture, ("a lab",))


def test_every_contradiction_is_reported(tmp_path: Path) -> None:
    rows = [
        f'- {{version: "{version}", same_as: "2.21.0", source: a lab, runpath: []}}\n'
        for version in ("2.98.0", "2.99.0")
    ]
    text = HEAD + (
        'cuda_releases:\n- {release: "99.1", driver: "999.1", source: a lab}\n'
        '- {release: "12.9.9", driver: "500.1", source: a lab}\n- {release: "12.9.8", driver: "500.2", source: a lab}\n'
        f"tensorflow:\n{''.join(rows)}"
        'gpus:\n- {capability: "19.0", architecture: X, source: a lab}\n'
    )
    with pytest.raises(MatrixError) as caught:
        load_matrix(written(tmp_path, text), {})
    found = [problem.message for problem in caught.value.problems]
    for part in ("CUDA 99.1", "driver 500.1", "driver 500.2", "TensorFlow 2.98.0", "TensorFlow 2.99.0", "'models'"):
        assert [part in problem for problem in found].count(True) == 1, part
