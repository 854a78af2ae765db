from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest
import yaml

from helpers.cases import cases
from helpers.catalogs import gpu_check, host_check, small_catalog
from kdoctor.catalog.load import Catalog
from kdoctor.checklist.load import load_checklist
from kdoctor.checklist.problems import ChecklistError
from kdoctor.checklist.resolve import Checklist
from kdoctor.checklist.schema import ChecklistDocument
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


def test_overlay_replaces_single_keys(tmp_path: Path, catalog: Catalog) -> None:
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


def test_inherited_rule_for_a_check_that_is_left_out_has_no_effect(tmp_path: Path, catalog: Catalog) -> None:
    base = BASE.replace("[versions.*]", "[host.memory]")
    write(tmp_path, "", base)
    over = OVER + "without: {host.memory: not ours}\n"
    assert load(tmp_path, catalog, over, base).rollback is not None
    with pytest.raises(ChecklistError, match=r"cluster\.yaml:6:.* matches no check"):
        load(tmp_path, catalog, over + "rollback: {decides: ada, at_once: [host.memory]}\n", base)


def test_scenario_that_is_listed_again_drops_the_inherited_reason(tmp_path: Path, catalog: Catalog) -> None:
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


def test_what_is_left_out_again_has_the_nearest_reason(tmp_path: Path, catalog: Catalog) -> None:
    (tmp_path / "middle.yaml").write_text(
        OVER.replace("cluster", "middle") + "without: {baseline: slow, smoke.baseline: slow}\n"
    )
    over = OVER.replace("team", "middle") + "without: {baseline: too slow}\n"
    assert load(tmp_path, catalog, over).without["baseline"] == "too slow"
    with pytest.raises(ChecklistError, match=r"nothing named 'smoke\.baseline'"):
        load(tmp_path, catalog, over.replace("baseline: too", "smoke.baseline: too"))
    listed = "scenarios: [{id: smoke.baseline, kind: baseline, replicas: 2, expect: it trains}]\n"
    with pytest.raises(ChecklistError, match="the reason for leaving it out is obsolete"):
        load(tmp_path, catalog, f"{over}checks: [{{id: smoke.baseline}}]\n{listed}")


def test_shipped_checklist_is_extended_by_name(tmp_path: Path, catalog: Catalog) -> None:
    write(tmp_path, OVER)
    shipped = replace(catalog, checklists={"shipped": tmp_path / "team.yaml"})
    (tmp_path / "mine.yaml").write_text(OVER.replace("./team.yaml", "shipped") + "owner: me\n")
    checklist = load_checklist(str(tmp_path / "mine.yaml"), shipped)
    assert checklist.extends == ("shipped (shipped)",)
    assert checklist.overrides[0].inherited_from == "shipped (shipped)"


@cases(
    (OVER + "checks: [{id: gpu.fre}]", "5:15", ["'gpu.fre'", "'gpu.free'"]),
    (OVER.replace("version: 1\n", ""), "1:1", ["missing", "'version'"]),
    (OVER + "without: {gpu.fre: x}", "5:11", ["'gpu.fre'", "'gpu.free'"]),
    (OVER + "checks: [{id: gpu.free}]\nwithout: {gpu.free: x}", "6:11", ["gpu.free", "both"]),
    (OVER.replace("./team", "./teem"), "4:10", ["'./teem.yaml'", "'team.yaml'"]),
    (OVER.replace("./team.yaml", "cpu-smok"), "4:10", ["'cpu-smok'", "Available: none"]),
    (OVER.replace("./team.yaml", "[a, b]"), "4:10", ["'extends'"]),
    (OVER.replace("./team.yaml", "./cluster.yaml"), "4:10", ["cluster.yaml -> cluster.yaml"]),
)
def test_mistake_is_reported_at_its_place(
    tmp_path: Path, catalog: Catalog, over: str, place: str, named: list[str]
) -> None:
    found = problems(tmp_path, catalog, over)
    assert found.startswith(f"cluster.yaml:{place}: ")
    assert [name for name in named if name not in found] == []


def test_mistake_in_the_base_names_the_file_of_the_base(tmp_path: Path, catalog: Catalog) -> None:
    found = problems(tmp_path, catalog, OVER, BASE.replace("id: gpu.free", "id: gpu.fre"))
    assert found.startswith("team.yaml:15:9: ")
    assert "'gpu.fre'" in found


def test_circle_of_three_files_is_reported(tmp_path: Path, catalog: Catalog) -> None:
    for name, below in (("a", "b"), ("b", "c"), ("c", "b")):
        (tmp_path / f"{name}.yaml").write_text(OVER.replace("./team.yaml", f"./{below}.yaml"))
    with pytest.raises(ChecklistError) as caught:
        load_checklist(str(tmp_path / "a.yaml"), catalog)
    found = str(caught.value).replace(f"{tmp_path}/", "")
    assert found.startswith("c.yaml:4:10: ")
    assert "b.yaml -> c.yaml -> b.yaml" in found


def test_base_of_another_schema_is_refused(tmp_path: Path, catalog: Catalog) -> None:
    found = problems(tmp_path, catalog, OVER, BASE.replace("checklist/v1", "checklist/v2"))
    assert found.startswith("team.yaml:1:9: ")
    assert "kdoctor/checklist/v2" in found


def test_json_schema_accepts_overlays() -> None:
    validator = jsonschema.Draft202012Validator(ChecklistDocument.json_schema())
    over = yaml.safe_load(OVER + "scenarios: [{id: smoke.baseline, replicas: 4}]")
    validator.validate(over)
    assert not validator.is_valid({key: value for key, value in over.items() if key != "extends"})
