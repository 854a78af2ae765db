"""Matrix files of one's own: what they add and replace, and what is wrong with broken ones, with line and column."""

from __future__ import annotations

from pathlib import Path

import pytest

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


def written(folder: Path, text: str | bytes) -> str:
    file = folder / "own.yaml"
    file.write_bytes(text.encode() if isinstance(text, str) else text)
    return str(file)


def problems(folder: Path, text: str | bytes) -> str:
    with pytest.raises(MatrixError) as caught:
        load_matrix(written(folder, text), {})
    return str(caught.value)


def test_rows_are_added_and_everything_else_stays(tmp_path: Path) -> None:
    own = load_matrix(written(tmp_path, HEAD + NEW_RELEASE), {})
    added = own.release("2.22.0")
    assert added is not None
    assert added.python == ">=3.11,<3.15"
    assert added.inferred_from == "2.21.0"
    assert added.cubins == (60, 70, 80, 89, 90)
    assert own.releases[:-2] == SHIPPED.releases[:-1]
    assert own.cuda_releases == SHIPPED.cuda_releases
    assert own.updated == "2026-12-01"
    assert "own.yaml" in own.name


def test_a_row_with_the_same_key_takes_the_place_of_the_shipped_one(tmp_path: Path) -> None:
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


def test_the_variable_names_a_file_and_the_option_goes_before_it(tmp_path: Path) -> None:
    own = written(tmp_path, HEAD + NEW_RELEASE)
    assert load_matrix(None, {"KDOCTOR_MATRIX": own}).release("2.22.0")
    assert load_matrix(None, {"KDOCTOR_MATRIX": ""}) == SHIPPED
    other = tmp_path / "other.yaml"
    other.write_text(HEAD)
    assert load_matrix(str(other), {"KDOCTOR_MATRIX": own}).release("2.22.0") is None
    with pytest.raises(MatrixError, match="KDOCTOR_MATRIX"):
        load_matrix(None, {"KDOCTOR_MATRIX": str(tmp_path / "gone.yaml")})


def test_a_file_may_stand_alone(tmp_path: Path) -> None:
    own = load_matrix(written(tmp_path, shipped_text()), {})
    assert own.releases == SHIPPED.releases
    assert "own.yaml" in own.name


def test_one_that_stands_alone_must_have_every_section(tmp_path: Path) -> None:
    said = problems(tmp_path, HEAD.replace("shipped", "nothing"))
    for section in ("tensorflow", "cuda_majors", "gpus", "keras", "sources"):
        assert f"'{section}' is missing" in said


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        ("", ":1:1", "the file is empty"),
        ("a: [", ":", "not YAML"),
        (b"\xff\xfe", ":1:1", "not UTF-8"),
        ("- 1\n", ":1:1", "expected a mapping"),
        ("schema: kdoctor/version-matrix/v2\n", ":1:9", "newer than this kdoctor knows"),
        ("schema: kdoctor/checklist/v1\n", ":1:9", "expected kdoctor/version-matrix/v1"),
        ("updated: x\n", ":1:1", "'schema' is missing"),
        (HEAD + "tensorfow: []\n", ":5:1", "did you mean 'tensorflow'?"),
        (HEAD.replace("shipped", "shiped"), ":2:10", "did you mean 'shipped'?"),
        (HEAD.replace('"2026-12-01"', '"yesterday"'), ":3:10", "'updated'"),
        (HEAD.replace('"2026-12-01"', "2026-12-01"), ":3:10", "put it in quotes"),
        (HEAD.replace("linux-x86_64", "linux-aarch64"), ":4:11", "not that of the matrix that this one extends"),
        (HEAD + "keras: 3\n", ":5:8", "expected a list of rows"),
        (HEAD + "gpus: [3]\n", ":5:8", "expected a mapping"),
        (HEAD + NEW_RELEASE.replace('"2.22.0"', "2.22"), ":6:12", "put it in quotes"),
        (HEAD + NEW_RELEASE.replace('"2.22.0"', '"2.x.0"'), ":6:12", "no version (PEP 440)"),
        (HEAD + NEW_RELEASE.replace('"2.21.0"', '"2.12.9"'), ":7:12", "no TensorFlow 2.12.9 stands before this row"),
        (HEAD + NEW_RELEASE.replace(">=3.11,<3.15", "3.11-3.14"), ":8:11", "no version specifier"),
        (HEAD + NEW_RELEASE.replace(">=3.11,<3.15", ">=4"), ":8:11", "no Python version meets"),
        (HEAD + NEW_RELEASE + '  cuda: "14.0"\n', ":10:9", "does not know CUDA 14.0"),
        (HEAD + NEW_RELEASE + "  cubins: [90, 80]\n", ":10:11", "rising architectures"),
        (HEAD + NEW_RELEASE + "  nccl: {linkage: odd, basis: x}\n", ":10:19", "expected one of static, dynamic"),
        (HEAD + NEW_RELEASE + "  and_cuda: [nvidia-cudnn-cu13==9.20]\n", ":10:13", "asks for nvidia-cudnn-cu13"),
        (HEAD + NEW_RELEASE + "  requires: ['numpy >> 2']\n", ":10:14", "no requirement (PEP 508)"),
        (HEAD + NEW_RELEASE + "  runpaht: []\n", ":10:3", "did you mean 'runpath'?"),
        (HEAD + NEW_RELEASE.replace("our own build farm", "weel"), ":9:11", "did you mean 'wheel'?"),
        (HEAD + NEW_RELEASE.replace("  source: our own build farm\n", ""), ":6:3", "'source' is missing"),
        (HEAD + NEW_RELEASE + NEW_RELEASE.removeprefix("tensorflow:\n"), ":10:3", "stands here twice"),
        (HEAD + 'tensorflow:\n- {version: "2.22.0", source: a b}\n', ":6:3", "'python' is missing"),
        (HEAD + 'cuda_majors:\n- {major: 12, oldest_driver: "440.1", source: a b}\n', ":", "one of the two is wrong"),
        (
            HEAD + 'cuda_releases:\n- {release: "12.5.1", driver: "500.1", source: a b}\n',
            ":6:31",
            "older than its major",
        ),
        (
            HEAD + 'cuda_releases:\n- {release: "14.0.0", driver: "700.1", source: a b}\n',
            ":6:3",
            "does not know this major",
        ),
        (HEAD + 'gpus:\n- {capability: "9.0", architecture: H, models: [A100], source: a b}\n', ":6:3", "A100"),
        (
            HEAD + 'gpus:\n- {capability: "9", architecture: H, models: [X1], source: a b}\n',
            ":6:16",
            "compute capability",
        ),
        (HEAD + 'gpus:\n- {capability: "9.0", architecture: H, source: a b}\n', ":6:3", "names no model"),
        (HEAD + "keras: []\nkeras: []\n", ":6:1", "stands here twice"),
        (HEAD + "keras: &x []\ngpus: *x\n", ":6:7", "alias"),
        (HEAD.replace("linux", "!!python/name:os.system linux"), ":4:11", "tag"),
    ],
)
def test_a_mistake_is_told_with_its_place(tmp_path: Path, text: str | bytes, place: str, message: str) -> None:
    said = problems(tmp_path, text)
    assert f"own.yaml{place}" in said
    assert message in said


def test_every_mistake_is_told_at_once(tmp_path: Path) -> None:
    said = problems(tmp_path, HEAD + "keras: 3\nfoo: 1\n" + NEW_RELEASE.replace(">=3.11,<3.15", "new"))
    assert said.count("own.yaml:") == 3


@pytest.mark.parametrize("name", ["gone.yaml", "a-folder"])
def test_a_file_that_cannot_be_read_is_told(tmp_path: Path, name: str) -> None:
    (tmp_path / "a-folder").mkdir()
    with pytest.raises(MatrixError, match=name):
        load_matrix(str(tmp_path / name), {})


def test_an_empty_option_is_no_file() -> None:
    with pytest.raises(MatrixError):
        load_matrix("", {})


@pytest.mark.parametrize("cut", [1000, 9000, 20000, 30000])
def test_a_truncated_matrix_is_refused(cut: int) -> None:
    with pytest.raises(MatrixError):
        loads(shipped_text()[:cut])
