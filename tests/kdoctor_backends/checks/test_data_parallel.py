from typing import Any

from helpers.comparison_checks import comparisons
from helpers.facts import smoke_case, smoke_run
from helpers.rows import fails, skips, table, unknown
from kdoctor.facts import SmokeCase, SmokeRun
from kdoctor.model import Action, Severity
from kdoctor_backends.checks.smoke.data_parallel import data_parallel

CASES = ("fit", "batch-normalization", "smaller-tail")


def ran(*cases: SmokeCase, replicas: int = 2, **changes: Any) -> SmokeRun:
    return smoke_run("smoke.data-parallel", replicas, *cases, tensorflow=None, jax="0.10.2", **changes)


test_data_parallel = table(
    "smoke.data-parallel",
    Severity.ERROR,
    *comparisons("smoke.data-parallel", CASES),
    skips(ran(*(smoke_case(name, 1) for name in CASES), replicas=1)),
    unknown(ran(*(smoke_case(name, 2) for name in CASES), replicas=4), "2 of 4 replicas"),
    fails(  # another Keras is not advised
        ran(smoke_case("fit", 2, weight_deviation=0.18), keras="keras 3.5.0"),
        "(keras 3.5.0 on JAX 0.10.2, 2 devices).",
        "keras 3.5.0 is not known to",
        action=Action.CHANGE_CODE,
    ),
    fails(
        ran(smoke_case("fit", 2, outcome="raised", error_type="TypeError", error_message="no", phase="trace")),
        "fail training fit: TypeError in phase trace: no.",
        "Replace JAX 0.10.2 or keras 3.15.1 so that",
        expected="it trains on 2 devices",
    ),
)


def test_does_not_require_tensorflow() -> None:
    assert data_parallel.requires == ()
