from pathlib import Path

import pytest

from helpers.checklist_texts import read, untrained
from helpers.facts import environment
from helpers.locks import lock
from kdoctor.catalog.load import Catalog
from kdoctor.checklist.load import load_checklist
from kdoctor.lock.facts import WITHHELD
from kdoctor.model import Assumptions
from kdoctor.rollback.verify import for_environment, restore_variables


@pytest.mark.parametrize("name", ["cpu-smoke", "multi-gpu-keras"])
def test_checks_of_the_environment_and_a_training_are_chosen(name: str, catalog: Catalog) -> None:
    chosen, wanted = for_environment(load_checklist(name, catalog), catalog)
    assert {check.family for check in catalog.closure(wanted)} == {"versions", "smoke"}
    assert "smoke.baseline" in wanted
    assert {"versions.keras-compatible", "versions.cuda-libraries"} <= {*wanted}
    assert "versions.driver-for-cuda" not in wanted
    assert {entry.scenario.tier for entry in chosen.scenarios} == {"quick"}


def test_checklist_without_trainings_uses_those_of_the_catalog(tmp_path: Path, catalog: Catalog) -> None:
    stated = 'assumptions: {gpus: {count: 8}, driver: ">=570", image: "x", libraries: {cudnn: ">=9"}}\n'
    text = untrained("gpu.count-expected", "versions.runtime-expected", more=stated)
    chosen, wanted = for_environment(read(tmp_path, catalog, text), catalog)
    assert {"smoke.baseline", "versions.runtime-expected"} <= {*wanted}
    assert "gpu.count-expected" not in wanted
    assert chosen.assumptions == Assumptions(gpus=chosen.assumptions.gpus, libraries={"cudnn": ">=9"})


def test_variables_are_restored_except_withheld_ones_and_those_of_one_job() -> None:
    found = lock(environment(NCCL_DEBUG="WARN", LD_LIBRARY_PATH="/opt/cuda/lib64"))
    assert found.facts["environment"]["LD_LIBRARY_PATH"] == WITHHELD
    environ = {"HOME": "/root", "NCCL_P2P_DISABLE": "1", "LD_LIBRARY_PATH": "/x", "SLURM_JOB_ID": "7"}
    restore_variables(found, environ)
    assert environ == {"HOME": "/root", "NCCL_DEBUG": "WARN", "LD_LIBRARY_PATH": "/x", "SLURM_JOB_ID": "7"}


def test_trainings_of_the_checklist_are_kept(catalog: Catalog) -> None:
    own = load_checklist("cpu-smoke", catalog)
    quick = [entry for entry in own.scenarios if entry.scenario.tier == "quick"]
    assert quick
    chosen, _ = for_environment(own, catalog)
    assert [entry for entry in chosen.scenarios if entry.scenario.tier == "quick"] == quick


def test_trainings_of_the_catalog_use_two_replicas(tmp_path: Path, catalog: Catalog) -> None:
    chosen, _ = for_environment(read(tmp_path, catalog, untrained("versions.runtime-expected")), catalog)
    assert {entry.replicas for entry in chosen.scenarios} == {2}
