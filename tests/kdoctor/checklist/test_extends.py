from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from helpers.catalogs import small_catalog
from kdoctor.checklist.load import load_checklist
from kdoctor.checklist.problems import ChecklistError
from kdoctor.checklist.resolve import Checklist
from kdoctor.engine.catalog import Catalog
from kdoctor.model import GpuAssumption, Severity

BASE = """\
schema: kdoctor/checklist/v1
name: team
version: 3
owner: ml-platform
assumptions:
  python: ">=3.10"
  packages: {tf_keras: "~=2.21", numpy: ">=2"}
  gpus: {at_least: 2, model: "NVIDIA H100*"}
checks:
  - {id: gpu.count-expected, severity: warning}
  - id: host.memory
    parameters: {least_gib: 2, level: far}
  - id: gpu.free
  - id: versions.python-supported
  - id: smoke.baseline
scenarios:
  - {id: smoke.baseline, kind: baseline, replicas: gpus, expect: it trains}
without: {edge-case: none was written yet, failure-path: none was written yet}
waivers:
  - {check: host.memory, reason: known, owner: ada, expires: 2030-12-31}
rollback:
  decides: ada
  at_once: [versions.*]
"""
OVER = "schema: kdoctor/checklist/v1\nname: cluster\nversion: 1\nextends: ./team.yaml\n"


@pytest.fixture
def catalog() -> Catalog:
    from helpers.catalogs import gpu_check, host_check  # the assumptions of this test need two more judges

    return small_catalog(
        gpu_check("gpu.model-expected", judges=["gpus.model"]),
        host_check("versions.packages-expected", judges=["packages"]),
    )


def write(folder: Path, over: str, base: str = BASE) -> Path:
    judges = "checks:\n  - id: gpu.model-expected\n  - id: versions.packages-expected\n"
    (folder / "team.yaml").write_text(base.replace("checks:\n", judges))
    path = folder / "cluster.yaml"
    path.write_text(over)
    return path


def load(folder: Path, catalog: Catalog, over: str, base: str = BASE) -> Checklist:
    return load_checklist(str(write(folder, over, base)), catalog)


def problems(folder: Path, catalog: Catalog, over: str, base: str = BASE) -> str:
    with pytest.raises(ChecklistError) as caught:
        load(folder, catalog, over, base)
    return str(caught.value).replace(f"{folder}/", "")


def overridden(checklist: Checklist) -> dict[str, tuple[str, str]]:
    return {item.what: (item.old, item.new) for item in checklist.overrides}


def test_a_bare_overlay_is_the_base_under_another_name(tmp_path: Path, catalog: Catalog) -> None:
    checklist = load(tmp_path, catalog, OVER)
    base = load_checklist(str(tmp_path / "team.yaml"), catalog)
    assert (checklist.name, checklist.version, checklist.owner) == ("cluster", 1, "ml-platform")
    assert checklist.extends == (str(tmp_path / "team.yaml"),)
    assert checklist.entries == base.entries
    assert checklist.assumptions == base.assumptions
    assert checklist.waivers == base.waivers
    assert checklist.overrides == ()


def test_an_overlay_replaces_part_by_part(tmp_path: Path, catalog: Catalog) -> None:
    checklist = load(
        tmp_path,
        catalog,
        OVER
        + """\
owner: hpc
assumptions:
  packages: {tf-keras: "~=2.22"}
  gpus: {count: 8}
checks:
  - {id: host.memory, severity: info, parameters: {least_gib: 4}}
  - id: host.shared-memory
scenarios:
  - {id: smoke.baseline, replicas: 4}
waivers:
  - {check: host.memory, subject: "*", reason: known, owner: bob, expires: 2031-12-31}
rollback: {at_once: [host], within: an hour}
""",
    )
    assert checklist.owner == "hpc"
    assert checklist.assumptions.packages == {"tf-keras": "~=2.22", "numpy": ">=2"}
    assert checklist.assumptions.gpus == GpuAssumption(count=8, model="NVIDIA H100*")
    by_id = {entry.check.id: entry for entry in checklist.entries}
    assert by_id["host.memory"].parameters == {"least_gib": 4, "level": "far"}
    assert by_id["host.memory"].severity is Severity.INFO
    assert list(by_id)[-1] == "host.shared-memory"
    assert checklist.scenarios[0].replicas == 4
    assert checklist.scenarios[0].expect == "it trains"
    (waiver,) = checklist.waivers
    assert (waiver.owner, waiver.expires.year) == ("bob", 2031)
    assert checklist.rollback
    assert (checklist.rollback.decides, checklist.rollback.at_once) == ("ada", ("host",))
    assert overridden(checklist) == {
        "owner": ("ml-platform", "hpc"),
        "assumptions.packages.tf-keras": ("~=2.21", "~=2.22"),
        "assumptions.gpus.at_least": ("2", "nothing"),
        "checks.host.memory.parameters.least_gib": ("2", "4"),
        "scenarios.smoke.baseline.replicas": ("gpus", "4"),
        "waivers.host.memory.owner": ("ada", "bob"),
        "waivers.host.memory.expires": ("2030-12-31", "2031-12-31"),
        "rollback.at_once": ('["versions.*"]', '["host"]'),
    }
    assert {item.inherited_from for item in checklist.overrides} == {str(tmp_path / "team.yaml")}


def test_what_is_inherited_can_be_left_out_with_a_reason(tmp_path: Path, catalog: Catalog) -> None:
    without = "without: {gpu.free: shared nodes, host.memory: not ours, smoke.baseline: slow, baseline: slow}\n"
    checklist = load(tmp_path, catalog, OVER + without)
    ids = [entry.check.id for entry in checklist.entries]
    assert ids == [
        "gpu.model-expected", "versions.packages-expected", "gpu.count-expected", "versions.python-supported"
    ]  # fmt: skip
    assert checklist.scenarios == ()
    assert checklist.waivers == ()
    assert checklist.without["gpu.free"] == "shared nodes"
    assert overridden(checklist)["checks.gpu.free"] == ("listed", "nothing")


def test_a_scenario_that_comes_back_ends_the_reason_to_do_without(tmp_path: Path, catalog: Catalog) -> None:
    (tmp_path / "middle.yaml").write_text(
        OVER.replace("cluster", "middle") + "without: {smoke.baseline: slow, baseline: slow}\n"
    )
    over = OVER.replace("team", "middle") + (
        "checks: [{id: smoke.baseline}]\n"
        "scenarios: [{id: smoke.baseline, kind: baseline, replicas: 2, expect: it trains}]\n"
    )
    checklist = load(tmp_path, catalog, over)
    assert [entry.scenario.id for entry in checklist.scenarios] == ["smoke.baseline"]
    assert set(checklist.without) == {"edge-case", "failure-path"}
    assert [Path(name).name for name in checklist.extends] == ["middle.yaml", "team.yaml"]


def test_a_shipped_checklist_can_be_extended_by_name(tmp_path: Path, catalog: Catalog) -> None:
    from dataclasses import replace

    write(tmp_path, OVER)
    shipped = replace(catalog, checklists={"shipped": tmp_path / "team.yaml"})
    (tmp_path / "mine.yaml").write_text(OVER.replace("./team.yaml", "shipped") + "owner: me\n")
    checklist = load_checklist(str(tmp_path / "mine.yaml"), shipped)
    assert checklist.extends == ("shipped (shipped)",)
    assert checklist.overrides[0].inherited_from == "shipped (shipped)"


@pytest.mark.parametrize(
    ("over", "expected"),
    [
        (
            OVER + "checks: [{id: gpu.fre}]",
            "cluster.yaml:5:15: unknown check 'gpu.fre'; did you mean 'gpu.free'?",
        ),
        (
            OVER.replace("version: 1\n", ""),
            "cluster.yaml:1:1: 'version' is missing: a checklist that extends another still has its own",
        ),
        (
            OVER + "without: {gpu.fre: x}",
            "cluster.yaml:5:11: nothing of the name 'gpu.fre' is inherited; did you mean 'gpu.free'?",
        ),
        (
            OVER + "checks: [{id: gpu.free}]\nwithout: {gpu.free: x}",
            "cluster.yaml:6:11: gpu.free is listed in this checklist and named under 'without': keep one",
        ),
        (
            OVER.replace("./team", "./teem"),
            "cluster.yaml:4:10: extends './teem.yaml': teem.yaml: there is no such file; did you mean 'team.yaml'?",
        ),
        (
            OVER.replace("./team.yaml", "cpu-smok"),
            "cluster.yaml:4:10: extends 'cpu-smok': cpu-smok: no checklist of that name is shipped",
        ),
        (OVER.replace("./team.yaml", "[a, b]"), "cluster.yaml:4:10: 'extends' names one checklist, by name or path"),
        (OVER.replace("./team.yaml", "./cluster.yaml"), (
            "cluster.yaml:4:10: checklists extend each other in a circle: cluster.yaml -> cluster.yaml"
        )),
    ],
)  # fmt: skip
def test_mistakes_are_told_where_they_stand(tmp_path: Path, catalog: Catalog, over: str, expected: str) -> None:
    assert problems(tmp_path, catalog, over).startswith(expected)


def test_a_mistake_below_is_told_with_the_file_that_it_stands_in(tmp_path: Path, catalog: Catalog) -> None:
    told = problems(tmp_path, catalog, OVER, BASE.replace("id: gpu.free", "id: gpu.fre"))
    assert told == "team.yaml:15:9: unknown check 'gpu.fre'; did you mean 'gpu.free'?"


def test_a_circle_is_told_whole(tmp_path: Path, catalog: Catalog) -> None:
    for name, below in (("a", "b"), ("b", "c"), ("c", "b")):
        (tmp_path / f"{name}.yaml").write_text(OVER.replace("./team.yaml", f"./{below}.yaml"))
    with pytest.raises(ChecklistError) as caught:
        load_checklist(str(tmp_path / "a.yaml"), catalog)
    told = str(caught.value).replace(f"{tmp_path}/", "")
    assert told == "c.yaml:4:10: checklists extend each other in a circle: b.yaml -> c.yaml -> b.yaml"


def test_another_schema_below_is_refused(tmp_path: Path, catalog: Catalog) -> None:
    told = problems(tmp_path, catalog, OVER, BASE.replace("checklist/v1", "checklist/v2"))
    assert told.startswith("team.yaml:1:9: the schema kdoctor/checklist/v2 is not known to this kdoctor")


def test_the_schema_for_editors_knows_overlays() -> None:
    import jsonschema

    from kdoctor.checklist.document import json_schema

    validator = jsonschema.Draft202012Validator(json_schema())
    over = yaml.safe_load(OVER + "scenarios: [{id: smoke.baseline, replicas: 4}]")
    validator.validate(over)
    assert not validator.is_valid({key: value for key, value in over.items() if key != "extends"})
