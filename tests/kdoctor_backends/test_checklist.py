"""The checklist of Keras on JAX."""

from kdoctor.catalog.load import load_catalog
from kdoctor.checklist.load import load_checklist


def test_checklist_of_jax_needs_no_tensorflow() -> None:
    catalog = load_catalog()
    checklist = load_checklist("multi-gpu-jax", catalog)
    assert {entry.scenario.framework for entry in checklist.scenarios} == {"jax"}
    needed = {name for entry in checklist.entries for name in (entry.check.id, *entry.check.requires)}
    assert [name for name in needed if "tensorflow" in name] == []
    assert {"smoke.gpus-worked", "gpu.count-expected", "driver.loaded"} <= needed
