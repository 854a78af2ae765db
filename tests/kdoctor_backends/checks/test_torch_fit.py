from typing import Any

from helpers.facts import smoke_case, smoke_run
from helpers.rows import fails, passes, table, unknown
from kdoctor.facts import SmokeRun
from kdoctor.model import Severity


def ran(fit: dict[str, Any], distribution: dict[str, Any]) -> SmokeRun:
    cases = smoke_case("fit", 2, **fit), smoke_case("distribution", 2, **distribution)
    return smoke_run("smoke.torch-data-parallel", 2, *cases, tensorflow=None, torch="2.15.0")


EQUAL = {"measures": {"ranks differ": 0.0}}
ALL = {"measures": {"devices used": 2.0}}


REFUSED = {"outcome": "raised", "error_type": "NotImplementedError"}

test_torch_fit = table(
    "smoke.torch-fit",
    Severity.WARNING,
    passes(
        ran(EQUAL, ALL),
        "training fit: weights of the ranks differ by up to 0.",
        "training distribution: DataParallel over 2 devices trains on 2.",
        of=2,
    ),
    passes(ran(EQUAL, REFUSED)),
    fails(ran({"measures": {"ranks differ": 0.19}}, ALL), of=["training fit"]),
    fails(ran(EQUAL, {"measures": {"devices used": 1.0}}), of=["training distribution"]),
    unknown(ran({"measures": {}}, ALL)),
    unknown(ran(EQUAL, {"measures": {}})),
)
