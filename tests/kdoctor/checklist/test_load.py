from datetime import date
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from helpers.catalogs import small_catalog
from helpers.checklist_texts import FULL, HEAD, NO_SCENARIOS, read
from kdoctor.catalog.load import Catalog
from kdoctor.checklist.schema import ChecklistDocument
from kdoctor.engine.report import Waiver
from kdoctor.model import GpuAssumption, Severity


@pytest.fixture
def catalog() -> Catalog:
    return small_catalog()


def test_whole_checklist_is_read(tmp_path: Path, catalog: Catalog) -> None:
    checklist = read(tmp_path, catalog, FULL)
    assert (checklist.name, checklist.version, checklist.owner) == ("job", 3, "ml-platform")
    assert checklist.assumptions.python == ">=3.10,<3.14"
    assert checklist.assumptions.gpus == GpuAssumption(count=8)
    first, second, *_ = checklist.entries
    assert (first.check.id, first.severity) == ("gpu.count-expected", Severity.WARNING)
    assert first.accept_unknown == "a container hides them"
    assert second.parameters == {"least_gib": 2, "names": ("a", "b"), "level": "far"}
    (training,) = checklist.scenarios
    assert (training.replicas, training.expect, training.note.kind) == ("gpus", "it trains", "baseline")
    assert checklist.waivers == (
        Waiver(check="host.memory", subject="host*", reason="known", owner="ada", expires=date(2030, 12, 31)),
    )
    assert checklist.rollback
    assert checklist.rollback.at_once == ("versions.*",)


def test_severity_defaults_to_that_of_the_check(tmp_path: Path, catalog: Catalog) -> None:
    checklist = read(tmp_path, catalog, HEAD + "checks: [{id: host.shared-memory}]" + NO_SCENARIOS)
    assert checklist.entries[0].severity is Severity.WARNING


def test_quoted_date_and_byte_order_mark_are_read(tmp_path: Path, catalog: Catalog) -> None:
    text = "\ufeff" + FULL.replace("2030-12-31", "'2030-12-31'")
    assert read(tmp_path, catalog, text).waivers[0].expires == date(2030, 12, 31)


def test_schema_accepts_valid_and_refuses_invalid_documents() -> None:
    document: dict[str, Any] = yaml.load(FULL.replace("2030-12-31", "'2030-12-31'"), Loader=yaml.SafeLoader)
    validator = jsonschema.Draft202012Validator(ChecklistDocument.json_schema())
    jsonschema.Draft202012Validator.check_schema(ChecklistDocument.json_schema())
    validator.validate(document)
    wrongs: tuple[dict[str, Any], ...] = (
        {"extra": 1},
        {"checks": []},
        {"version": "3"},
        {"schema": "kdoctor/checklist/v2"},
    )
    for wrong in wrongs:
        assert not validator.is_valid({**document, **wrong})
