"""What every check says that compares the cases of a strategy with one device."""

from collections.abc import Mapping, Sequence
from typing import Any

from helpers.facts import smoke_case, smoke_run
from helpers.rows import Row, fails, passes, skips, unknown
from kdoctor.facts import SmokeRun, Weights
from kdoctor_checks.smoke._judging import training

NAN = Weights(variables=6, mirrored=6, nonfinite=("hidden/kernel",), replicas_agree=True)
DISAGREEING = Weights(variables=6, mirrored=6, nonfinite=(), replicas_agree=False)
NOT_MIRRORED = Weights(variables=6, mirrored=0, nonfinite=(), replicas_agree=None)


def comparisons(scenario: str, names: Sequence[str], measures: Mapping[str, float | None] | None = None) -> list[Row]:
    """The rows of a check's table for these cases of its scenario, which are healthy with these measures."""

    def run(**first: Any) -> SmokeRun:
        healthy: dict[str, Any] = {"measures": measures or {}}
        cases = (smoke_case(name, 2, **{**healthy, **(first if name == names[0] else {})}) for name in names)
        return smoke_run(scenario, 2, *cases)

    skipped = (smoke_case(name, 2, outcome="skipped", skip_reason="not here") for name in names)
    return [
        passes(run(), of=[training(name) for name in names]),
        fails(run(weight_deviation=0.18), ": weights differ by up to 0.18, "),
        fails(run(losses=(1.0, 0.7)), "1, 0.7 instead of 1, 0.5"),
        fails(run(weights=NAN, weight_deviation=None), "hidden/kernel"),
        fails(run(weights=DISAGREEING), "different weights"),
        fails(run(weights=NOT_MIRRORED), "0 of 6"),
        fails(run(outcome="raised", error_type="ValueError", error_message="no"), ": ValueError in phase inspect: no."),
        fails(run(outcome="timed-out", phase="step 4", finished="step 3", steps=3), "step 4 (last finished: step 3)"),
        unknown(run(weights=None)),
        unknown(run(weight_deviation=None)),
        unknown(run(reference_losses=())),
        unknown(smoke_run(scenario, 2, smoke_case("another", 2), failure="the child died")),
        skips(smoke_run(scenario, 2, *skipped), "not here"),
    ]
