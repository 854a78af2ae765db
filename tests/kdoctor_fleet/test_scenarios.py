from kdoctor.catalog.load import load_catalog
from kdoctor.checklist.for_scenarios import choose_scenarios


def test_trainings_over_several_nodes_run_only_if_they_are_named() -> None:
    catalog = load_catalog()
    assert [one.id for one in choose_scenarios(catalog, ("across-nodes",))] == ["smoke.across-nodes"]
    assert "smoke.across-nodes" not in {one.id for one in choose_scenarios(catalog, strategy="multi-worker")}
