from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from helpers.cases import cases
from helpers.catalogs import host_check, small_catalog
from kdoctor.catalog.load import Catalog
from kdoctor.checklist.load import load_checklist
from kdoctor.checklist.problems import ChecklistError
from kdoctor.checklist.resolve import Checklist
from kdoctor.checklist.schema import ChecklistDocument
from kdoctor.checklist.text import plain_text, resolved_text

STATED = """\
  framework: {tensorflow: "~=2.21.0", keras: ">=3.15", flavour: keras, backend: tensorflow}
  sdk: {cuda: "~=12.5", cudnn: ">=9"}
  driver: ">=570.124.06"
  libraries: {cudnn: ">=9.3", nccl: ">=2.21"}
  flags: {xla_gpu_autotune_level: "4", tf_xla_auto_jit: unset, keras.floatx: float32}
  image: "registry.example/train:*"
"""
HEAD = """\
schema: kdoctor/checklist/v1
name: job
version: 1
owner: ada
without: {baseline: slow, edge-case: slow, failure-path: slow}
"""
CHECKS = "checks: [{id: versions.runtime-expected}, {id: environment.variables-expected}]\n"


@pytest.fixture
def catalog() -> Catalog:
    return small_catalog(
        host_check("versions.runtime-expected", judges=["framework", "sdk", "driver", "libraries", "image"]),
        host_check("environment.variables-expected", judges=["environment", "flags"]),
    )


def read(folder: Path, catalog: Catalog, stated: str, checks: str = CHECKS) -> Checklist:
    path = folder / "job.yaml"
    path.write_text(f"{HEAD}{checks}assumptions:\n{stated}")
    return load_checklist(str(path), catalog)


def problem(folder: Path, catalog: Catalog, stated: str, checks: str = CHECKS) -> str:
    with pytest.raises(ChecklistError) as caught:
        read(folder, catalog, stated, checks)
    return "\n".join(item.message for item in caught.value.problems)


def test_assumptions_survive_writing(tmp_path: Path, catalog: Catalog) -> None:
    first = read(tmp_path, catalog, STATED)
    for text in (plain_text(first), resolved_text(first)):
        (tmp_path / "again.yaml").write_text(text)
        assert load_checklist(str(tmp_path / "again.yaml"), catalog).assumptions == first.assumptions


@cases(
    ("  framework: {}", "tensorflow, keras, flavour or backend"),
    ("  sdk: {}", "cuda or cudnn"),
    ("  framework: {flavor: keras}", "'flavour'"),
    ("  framework: {flavour: keras2}", "keras, tf-keras"),
    ("  framework: {tensorflow: 2.21}", '"2.21"'),
    ('  sdk: {cuda: "12.5"}', '"==12.5" or "~=12.5"'),
    ("  driver: 570", '"570"'),
    ('  libraries: {cudnnn: ">=9"}', "'cudnn'"),
    ('  libraries: {cuda: ">=9"}', "'cuda' is not a library"),
    ("  libraries: {nccl: newest}", "'newest'"),
    ("  flags: {floatx: float32}", "'keras.floatx'"),
    ('  flags: {TF_DETERMINISTIC_OPS: "1"}', "'environment'"),
    ("  flags: {xla_gpu_autotune_level: 4}", '"4"'),
    ('  image: ""', "'image' is empty"),
)
def test_mistake_is_reported(tmp_path: Path, catalog: Catalog, stated: str, named: str) -> None:
    assert named in problem(tmp_path, catalog, stated)


@cases(
    ('  driver: ">=570"', "versions.runtime-expected"),
    ('  libraries: {nccl: ">=2"}', "versions.runtime-expected"),
    ("  framework: {backend: jax}", "versions.runtime-expected"),
    ('  sdk: {cuda: ">=12"}', "versions.runtime-expected"),
    ("  image: x", "versions.runtime-expected"),
    ("  flags: {keras.floatx: float32}", "environment.variables-expected"),
)
def test_assumption_adds_the_check_that_judges_it(tmp_path: Path, catalog: Catalog, stated: str, judge: str) -> None:
    checklist = read(tmp_path, catalog, stated, "checks: [{id: host.memory}]\n")
    assert [entry.check.id for entry in checklist.entries] == ["host.memory", judge]
    (line,) = [line for line in resolved_text(checklist).splitlines() if judge in line]
    assert line.endswith(f"judges assumptions.{stated.split(':', maxsplit=1)[0].strip()}")
    # Written out, it is the same checklist.
    assert f"id: {judge}," in plain_text(checklist)
    (tmp_path / "again.yaml").write_text(plain_text(checklist))
    assert plain_text(load_checklist(str(tmp_path / "again.yaml"), catalog)) == plain_text(checklist)


def over(folder: Path, rest: str) -> Path:
    """A checklist that extends one without any assumption."""
    base = "checks: [{id: host.memory}, {id: versions.runtime-expected}]\n"
    (folder / "job.yaml").write_text(f"{HEAD}{base}")
    path = folder / "over.yaml"
    path.write_text(f"schema: kdoctor/checklist/v1\nname: over\nversion: 1\nextends: ./job.yaml\n{rest}")
    return path


def test_extending_checklist_need_not_list_the_judge(tmp_path: Path, catalog: Catalog) -> None:
    path = over(
        tmp_path,
        "assumptions: {environment: {TF_DETERMINISTIC_OPS: '1'}}\n"
        "waivers: [{check: environment.variables-expected, reason: known, owner: ada, expires: 2030-12-31}]\n"
        "rollback: {decides: ada, at_once: [environment.*]}\n",
    )
    entries = load_checklist(str(path), catalog).entries
    assert entries[-1].check.id == "environment.variables-expected"
    assert entries[-1].added_for == ("environment",)


def test_leaving_out_the_judge_of_an_assumption_is_refused(tmp_path: Path, catalog: Catalog) -> None:
    path = over(tmp_path, "assumptions: {driver: '>=570'}\nwithout: {versions.runtime-expected: 'we do not care'}\n")
    with pytest.raises(ChecklistError) as caught:
        load_checklist(str(path), catalog)
    (found,) = caught.value.problems
    assert "versions.runtime-expected" in found.message
    assert "'without'" in found.message
    assert found.line == 5


def test_json_schema_validates_assumptions() -> None:
    validator = jsonschema.Draft202012Validator(ChecklistDocument.json_schema())
    document: dict[str, Any] = yaml.load(f"{HEAD}{CHECKS}assumptions:\n{STATED}", Loader=yaml.SafeLoader)
    validator.validate(document)
    for name, wrong in (
        ("libraries", {"cudnnn": ">=9"}),
        ("flags", {"TF_DETERMINISTIC_OPS": "1"}),
        ("framework", {"flavour": "keras2"}),
        ("sdk", {"cudart": ">=12"}),
    ):
        assert not validator.is_valid({**document, "assumptions": {name: wrong}})
