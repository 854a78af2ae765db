from dataclasses import replace

from kdoctor.catalog.load import Catalog
from kdoctor.checklist.gpus import CPU_REPLICAS, with_gpus
from kdoctor.checklist.load import load_checklist
from kdoctor.checklist.resolve import Checklist
from kdoctor.model import GpuAssumption


def test_number_replaces_that_of_the_checklist(catalog: Catalog) -> None:
    changed = with_gpus(load_checklist("multi-gpu-keras", catalog), catalog, 7)
    assert changed.assumptions.gpus == GpuAssumption(count=7)
    assert {entry.replicas for entry in changed.scenarios} == {"gpus"}


def test_no_gpus_train_on_the_cpu(catalog: Catalog) -> None:
    changed = with_gpus(load_checklist("multi-gpu-keras", catalog), catalog, 0)
    assert not changed.assumptions.expects_gpus
    assert {entry.replicas for entry in changed.scenarios} == {CPU_REPLICAS}
    assert not any("GPU" in entry.expect for entry in changed.scenarios)
    four = replace(changed, scenarios=tuple(replace(entry, replicas=4) for entry in changed.scenarios))
    assert with_gpus(four, catalog, 0).scenarios == four.scenarios


def test_check_of_the_number_is_added_once(catalog: Catalog) -> None:
    listed = load_checklist("multi-gpu-keras", catalog)
    assert with_gpus(listed, catalog, 2).entries == listed.entries
    counting = {check.id for check in catalog.checks.values() if "gpus.count" in check.judges}
    bare = with_gpus(_without(listed, counting), catalog, 2)
    assert counting <= {entry.check.id for entry in bare.entries}


def _without(checklist: Checklist, ids: set[str]) -> Checklist:
    return replace(checklist, entries=tuple(entry for entry in checklist.entries if entry.check.id not in ids))
