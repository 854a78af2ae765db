from helpers.catalogs import small_catalog
from kdoctor.engine.listing import make_listing


def test_only_what_was_asked_for_is_listed() -> None:
    catalog = small_catalog()
    for kind in ("checks", "scenarios", "checklists"):
        listing = make_listing(catalog, [kind])
        assert [name for name in ("checks", "scenarios", "checklists") if getattr(listing, name) is not None] == [kind]


def test_checks_are_listed_with_their_parameters() -> None:
    checks = {check.id: check for check in make_listing(small_catalog(), ["checks"]).checks or ()}
    assert list(checks) == list(small_catalog().checks)
    parameters = [(item.name, item.type, item.default) for item in checks["host.memory"].parameters]
    assert parameters[0] == ("least_gib", "float", 1.0)
    assert [name for name, _, _ in parameters] == ["least_gib", "names", "level"]
    assert checks["host.shared-memory"].requires == ("host.memory",)
    assert checks["gpu.free"].needs_gpus


def test_scenarios_are_listed() -> None:
    (scenario,) = make_listing(small_catalog(), ["scenarios"]).scenarios or ()
    assert (scenario.id, scenario.version, scenario.cases, scenario.deadline_s) == ("smoke.baseline", 1, ("only",), 1.0)
