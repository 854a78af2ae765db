import json
from dataclasses import replace
from typing import Any

import jsonschema
import pytest
from pydantic import ValidationError

import kdoctor
from helpers.reports import LONG_COMMAND, MARKUP_COMMAND, TRAININGS, cpu_report, gpu_report, with_text
from kdoctor.engine.report import Report
from kdoctor.report.formats import render
from kdoctor.report.json import ReportDocument, report_schema

AWKWARD = 'quote " pipe | é \x00 \x1b[0m \udcff </script> \u2028'


def document(report: Report) -> Any:
    return json.loads(render(report, "json"))


@pytest.mark.parametrize("report", [cpu_report(), gpu_report(), with_text(cpu_report(), AWKWARD)])
def test_report_follows_its_schema(report: Report) -> None:
    schema = report_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.Draft202012Validator(schema).validate(document(report))


def test_head_is_as_documented() -> None:
    read = document(gpu_report())
    expected = {
        "schema": "kdoctor/report/v1",
        "kdoctor": kdoctor.__version__,
        "verdict": "fail",
        "exit_code": 1,
        "target": "/opt/job/bin/python (CPython 3.11.7, venv; chosen by --python)",
        "checklist": {"name": "multi-gpu-keras", "version": 1, "options": "", "expectations": ""},
        "counts": {"pass": 0, "fail": 2, "skip": 2, "unknown": 1},
        "duration_s": 192.0,
        "interrupted": False,
    }
    assert {key: read[key] for key in expected} == expected


def test_result_is_as_documented() -> None:
    failed = document(gpu_report())["results"][1]
    assert (failed["id"], failed["family"], failed["status"], failed["severity"], failed["reason"]) == (
        "versions.driver-for-cuda",
        "versions",
        "fail",
        "error",
        None,
    )
    (finding,) = failed["findings"]
    assert finding["remedy"]["action"] == "reinstall"
    assert finding["remedy"]["commands"][1] == "sed -i 's/[bold]x[/bold]/[red]y/' \"$HOME/[cfg].toml\""
    assert finding["rollback"] == {
        "kind": "commands",
        "why": "tensorflow 2.20.0, as recorded",
        "commands": ["python -m pip install 'tensorflow==2.20.0'"],
    }
    assert finding["waiver"] is None


def test_pass_keeps_its_evidence() -> None:
    first = document(cpu_report())["results"][0]
    assert first["evidence"] == [{"subject": "tensorflow", "observed": "2.21.0", "brief": ""}]


def test_waivers_decisions_drift_and_scenarios_are_written() -> None:
    read = document(gpu_report())
    waived = read["results"][3]["findings"][0]["waiver"]
    assert waived == {
        "reason": "the riser card is replaced in March",
        "owner": "ml-platform",
        "expires": "2030-12-31",
        "expired": False,
    }
    assert read["decisions"][0] == {
        "action": "roll back at once",
        "checks": ["versions.driver-for-cuda"],
        "decides": "the owner of the machine",
        "within": "30 minutes",
        "criteria": ["at_once: versions.*"],
        "steps": [
            {"summary": "Install tensorflow 2.20.0:", "commands": [LONG_COMMAND, MARKUP_COMMAND]},
            {"summary": "Check again:", "commands": ["kdoctor check"]},
        ],
    }
    assert read["unused_waivers"][0]["check"] == "topology.pairs"
    assert read["drift"]["changes"][0] == {
        "fact": "driver.version",
        "old": "580.105.08",
        "new": "575.57.08",
        "explains": ["versions.driver-for-cuda", "gpu.visible-to-driver"],
    }
    assert document(cpu_report())["drift"] is None
    assert [scenario["kind"] for scenario in document(cpu_report())["scenarios"]] == ["baseline", "edge-case"]


def test_results_keep_the_checklists_order() -> None:
    assert [item["id"] for item in document(gpu_report())["results"]] == [item.id for item in gpu_report().results]


def test_text_is_ascii_and_ends_with_a_line_feed() -> None:
    text = render(with_text(cpu_report(), AWKWARD), "json")
    assert text.isascii()
    assert text.endswith("}\n")


def test_document_is_read_back() -> None:
    text = render(gpu_report(), "json")
    assert ReportDocument.model_validate_json(text).model_dump(mode="json", by_alias=True) == json.loads(text)


def test_numbers_are_written_as_floats() -> None:
    training = replace(TRAININGS[0], step_s=2, measures={"transfers": 3, "missing": None})
    (written,) = document(cpu_report(trainings=(training,), duration_s=1.23456))["trainings"]
    assert isinstance(written["step_s"], float)
    assert str(written["measures"]) == "{'transfers': 3.0, 'missing': None}"


def test_wrong_value_is_refused() -> None:
    with pytest.raises(ValidationError, match="replicas"):
        render(cpu_report(trainings=(replace(TRAININGS[0], replicas="two"),)), "json")  # type: ignore[arg-type]
