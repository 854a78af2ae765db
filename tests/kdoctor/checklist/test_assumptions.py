from __future__ import annotations

from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from helpers.catalogs import host_check, small_catalog
from kdoctor.checklist.document import json_schema
from kdoctor.checklist.load import load_checklist
from kdoctor.checklist.problems import ChecklistError
from kdoctor.checklist.resolve import Checklist
from kdoctor.checklist.text import plain_text, resolved_text
from kdoctor.engine.catalog import Catalog
from kdoctor.model import Assumptions

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


def test_all_that_a_run_depends_on_can_be_stated(tmp_path: Path, catalog: Catalog) -> None:
    assert read(tmp_path, catalog, STATED).assumptions == Assumptions(
        framework={"tensorflow": "~=2.21.0", "keras": ">=3.15", "flavour": "keras", "backend": "tensorflow"},
        sdk={"cuda": "~=12.5", "cudnn": ">=9"},
        driver=">=570.124.06",
        libraries={"cudnn": ">=9.3", "nccl": ">=2.21"},
        flags={"xla_gpu_autotune_level": "4", "tf_xla_auto_jit": "unset", "keras.floatx": "float32"},
        image="registry.example/train:*",
    )


def test_written_out_it_is_the_same(tmp_path: Path, catalog: Catalog) -> None:
    first = read(tmp_path, catalog, STATED)
    for text in (plain_text(first), resolved_text(first)):
        (tmp_path / "again.yaml").write_text(text)
        assert load_checklist(str(tmp_path / "again.yaml"), catalog).assumptions == first.assumptions


def test_one_over_another_replaces_single_ones(tmp_path: Path, catalog: Catalog) -> None:
    read(tmp_path, catalog, STATED)
    (tmp_path / "over.yaml").write_text(
        "schema: kdoctor/checklist/v1\nname: over\nversion: 1\nextends: ./job.yaml\n"
        'assumptions: {libraries: {cudnn: ">=9.5"}, driver: ">=580"}\n'
    )
    over = load_checklist(str(tmp_path / "over.yaml"), catalog)
    assert over.assumptions.libraries == {"cudnn": ">=9.5", "nccl": ">=2.21"}
    assert {(item.what, item.old, item.new) for item in over.overrides} == {
        ("assumptions.libraries.cudnn", ">=9.3", ">=9.5"),
        ("assumptions.driver", ">=570.124.06", ">=580"),
    }


@pytest.mark.parametrize(
    ("stated", "told"),
    [
        ("  framework: {}", "'framework' states nothing: give tensorflow, keras, flavour or backend"),
        ("  sdk: {}", "'sdk' states nothing: give cuda or cudnn"),
        ("  framework: {flavor: keras}", "unknown key 'flavor'; did you mean 'flavour'?"),
        ("  framework: {flavour: keras2}", "'flavour' is 'keras2'; expected one of keras, tf-keras"),
        ("  framework: {tensorflow: 2.21}", "YAML reads 'tensorflow' as the number 2.21: put it in quotes"),
        ('  sdk: {cuda: "12.5"}', 'for this release write "==12.5" or "~=12.5"'),
        ("  driver: 570", "YAML reads 'driver' as the number 570: put it in quotes"),
        ('  libraries: {cudnnn: ">=9"}', "'cudnnn' is no library that TensorFlow opens; did you mean 'cudnn'?"),
        ('  libraries: {cuda: ">=9"}', "'cuda' is no library that TensorFlow opens"),
        ("  libraries: {nccl: newest}", "'newest' is no version specifier"),
        ("  flags: {floatx: float32}", "'floatx' is no flag of XLA"),
        ('  flags: {TF_DETERMINISTIC_OPS: "1"}', "a variable stands under 'environment'"),
        ("  flags: {xla_gpu_autotune_level: 4}", "YAML reads 'xla_gpu_autotune_level' as the number 4"),
        ('  image: ""', "'image' is empty"),
    ],
)
def test_mistakes_are_told(tmp_path: Path, catalog: Catalog, stated: str, told: str) -> None:
    assert told in problem(tmp_path, catalog, stated)


@pytest.mark.parametrize(
    ("stated", "judge"),
    [
        ('  driver: ">=570"', "versions.runtime-expected"),
        ('  libraries: {nccl: ">=2"}', "versions.runtime-expected"),
        ("  framework: {backend: jax}", "versions.runtime-expected"),
        ('  sdk: {cuda: ">=12"}', "versions.runtime-expected"),
        ("  image: x", "versions.runtime-expected"),
        ("  flags: {keras.floatx: float32}", "environment.variables-expected"),
    ],
)
def test_what_no_check_of_the_list_judges_is_refused(tmp_path: Path, catalog: Catalog, stated: str, judge: str) -> None:
    told = problem(tmp_path, catalog, stated, "checks: [{id: host.memory}]\n")
    assert told.startswith("no check of this list judges the assumption")
    assert f"add {judge} to 'checks'" in told


def test_the_published_schema_knows_them() -> None:
    validator = jsonschema.Draft202012Validator(json_schema())
    document: dict[str, Any] = yaml.load(f"{HEAD}{CHECKS}assumptions:\n{STATED}", Loader=yaml.SafeLoader)
    validator.validate(document)
    for name, wrong in (
        ("libraries", {"cudnnn": ">=9"}),
        ("flags", {"TF_DETERMINISTIC_OPS": "1"}),
        ("framework", {"flavour": "keras2"}),
        ("sdk", {"cudart": ">=12"}),
    ):
        assert not validator.is_valid({**document, "assumptions": {name: wrong}})
