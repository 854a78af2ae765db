"""Which random layers are measured, and the reasons of the others."""

from __future__ import annotations

from typing import Any

import pytest

from helpers.kdoctor_job.job_runs import trials

pytestmark = pytest.mark.tensorflow


@pytest.fixture(scope="module")
def draws() -> dict[str, Any]:
    """Layers that are called in several ways, in a child process."""
    return trials("draws")


def test_layers_that_the_model_calls_are_measured(draws: dict[str, Any]) -> None:
    assert draws["found"]["equal_draws"] == ["same"]
    assert draws["found"]["different_draws"] == ["other"]


def test_layer_that_is_not_measured_keeps_the_reason(draws: dict[str, Any]) -> None:
    undrawn = draws["found"]["undrawn"]
    assert undrawn.keys() == {"zeros", "never", "refusing"}
    assert "equal in all of 16 calls" in undrawn["zeros"]
    assert "does not call it" in undrawn["never"]
    assert "ValueError: not alone" in undrawn["refusing"]


def test_model_that_cannot_be_called_is_the_reason(draws: dict[str, Any]) -> None:
    assert draws["closed"]["equal_draws"] == draws["closed"]["different_draws"] == []
    assert len(draws["closed"]["undrawn"]) == 5
    assert all(
        "calling the model with the first batch raised TypeError" in why for why in draws["closed"]["undrawn"].values()
    )
