from typing import Any, get_args

from helpers.catalogs import small_catalog
from kdoctor.catalog.load import load_catalog
from kdoctor.engine.listing import Kind, make_listing

KINDS: tuple[Kind, ...] = get_args(Kind)


def test_only_what_was_asked_for_is_listed() -> None:
    for kind in KINDS:
        listing = make_listing(small_catalog(), [kind])
        assert [name for name in KINDS if getattr(listing, name) is not None] == [kind]


def test_each_check_and_scenario_is_listed_with_every_field() -> None:
    catalog = load_catalog()
    listing = make_listing(catalog, KINDS)
    for kind in ("checks", "scenarios"):
        own: Any = getattr(catalog, kind)
        listed: Any = getattr(listing, kind)
        assert [item.id for item in listed] == list(own)
        for item in listed:
            for name, value in item:
                assert name == "parameters" or value == getattr(own[item.id], name)


def test_parameters_are_listed_with_type_and_default() -> None:
    checks = {check.id: check for check in make_listing(small_catalog(), ["checks"]).checks or ()}
    parameters = [(item.name, item.type, item.default) for item in checks["host.memory"].parameters]
    assert parameters[0] == ("least_gib", "float", 1.0)
    assert [name for name, _, _ in parameters] == ["least_gib", "names", "level"]
