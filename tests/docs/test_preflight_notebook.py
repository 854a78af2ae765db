"""The example notebook runs in a real kernel, and its committed outputs are those of the current code."""

import re
from typing import Any

import pytest

from helpers.notebook import NOTEBOOK, code_cells, executed, shown, stored, without_numbers


@pytest.fixture(scope="module")
def cells() -> list[dict[str, Any]]:
    """The code cells with new outputs."""
    return code_cells(executed())


def problems(cell: dict[str, Any]) -> str:
    """The part of the table that is not folded."""
    return shown(cell, "text/html").split("<details")[0]


@pytest.mark.smoke_full
def test_first_preflight_finds_exactly_two_errors(cells: list[dict[str, Any]]) -> None:
    assert problems(cells[2]).count("FAIL</b>") == 2
    for check in ("job.model-in-scope", "job.final-batch"):
        assert check in problems(cells[2])


@pytest.mark.smoke_full
def test_result_is_displayed_once_with_plain_text(cells: list[dict[str, Any]]) -> None:
    for cell in cells[2:4]:
        kinds = [output["output_type"] for output in cell["outputs"]]
        assert (kinds.count("execute_result"), kinds.count("display_data")) == (1, 0)
        assert shown(cell, "text/plain").startswith("kdoctor ")


@pytest.mark.smoke_full
def test_corrected_job_is_ready_in_one_line_and_trains(cells: list[dict[str, Any]]) -> None:
    assert "<table" not in problems(cells[3])
    (printed,) = (output["text"] for output in cells[3]["outputs"] if output["output_type"] == "stream")
    assert re.fullmatch(r"kdoctor: READY in .*\n", printed)
    assert cells[4]["outputs"][-1]["text"] == "trained 1 epoch\n"


@pytest.mark.smoke_full
def test_stored_outputs_are_current(cells: list[dict[str, Any]]) -> None:
    """All but numbers. Whether the input pipeline is fast enough depends on the machine, and is folded."""
    for old, new in zip(code_cells(stored()), cells, strict=True):
        assert [output["output_type"] for output in old["outputs"]] == [item["output_type"] for item in new["outputs"]]
        for kind in ("text/plain", "text/html"):
            one, other = (without_numbers(shown(cell, kind).split("<details")[0]) for cell in (old, new))
            assert one == other, "run python -m helpers.notebook"
        ids = [sorted(re.findall(r"<code>(job\.[\w-]+)", shown(cell, "text/html"))) for cell in (old, new)]
        assert ids[0] == ids[1]


def test_notebook_is_stored_with_outputs_and_without_paths_of_a_machine() -> None:
    assert [cell["execution_count"] for cell in code_cells(stored())] == [1, 2, 3, 4, 5]
    assert not re.search(r"/(?:home|root|work|tmp|Users)/", NOTEBOOK.read_text(encoding="utf-8"))
