from typing import Any

from helpers.facts import smoke_case, smoke_run
from helpers.rows import fails, passes, skips, table, unknown
from kdoctor.facts import SmokeRun, SmokeWorker, Weights
from kdoctor.model import Severity

COMPARED = ("ddp", "adam", "nesterov", "clipping", "keras-adam", "keras-clipping", "accumulation", "layers")
METRICS: dict[str, float | None] = {
    f"{whose} {name}": value
    for name, value in (("top_2", 0.8), ("f1", 0.5))
    for whose in ("metric", "reference", "part")
}
STATISTICS = "moving statistics of the ranks differ by up to 0.1"
REFUSED = SmokeWorker(name="rank 0", outcome="raised", phase="build", error_type="RuntimeError", error_message="no")
HEALTHY: dict[str, dict[str, Any]] = {
    **{name: {} for name in COMPARED},
    "metrics-of-classes": {"measures": METRICS},
    "dropout": {"measures": {"masks": 3.0, "equal_masks": 3.0, "equal_masks_of_ranks": 0.0}},
    "batch-normalization": {"weight_deviation": 0.05, "measures": {"statistics differ": 0.1}},
    "uneven-tail": {"weight_deviation": 0.03},
    "model-built-late": {"outcome": "raised", "error_type": "WorkerFailed", "workers": (REFUSED,)},
    "lost-rank": {"workers": (REFUSED,), "measures": {"others_s": 0.8, "patience_s": 25.0}},
}
DISAGREE = Weights(variables=4, mirrored=4, nonfinite=(), replicas_agree=False)
OTHER = SmokeWorker(name="rank 1", outcome="raised", error_type="ConnectionError")
DIED = SmokeWorker(name="rank 0", outcome="died")
WAITED = {"measures": {"patience_s": 25.0}}
MASKS = {"masks": 3.0, "equal_masks": 3.0}
ABSENT = {"outcome": "skipped", "skip_reason": "torch is not installed (optional: install torch)"}


def ran(name: str = "", **changes: Any) -> SmokeRun:
    """All cases, with changes to one."""
    cases = [smoke_case(one, 2, **{**HEALTHY[one], **(changes if one == name else {})}) for one in HEALTHY]
    return smoke_run("smoke.torch-data-parallel", 2, *cases, tensorflow=None, torch="2.15.0")


test_torch_data_parallel = table(
    "smoke.torch-data-parallel",
    Severity.ERROR,
    passes(
        ran(),
        f"normalization: equal on all ranks; weights differ from one device by up to 0.05; {STATISTICS}.",
        "tail: equal on all ranks; weights differ from one device by up to 0.03.",
        "rank: the others ended after 0.8 s with RuntimeError.",
        "dropout: equal masks with the rank in the seed in 0 of 3 steps, with the same seed in 3.",
        "; top_2 0.8 (the first rank alone: 0.8), f1 0.5 (the first rank alone: 0.5).",
        of=len(HEALTHY),
    ),
    *(fails(ran(name, weight_deviation=0.1), of=[f"training {name}"]) for name in ("ddp", "clipping", "keras-adam")),
    fails(ran("metrics-of-classes", measures={**METRICS, "metric f1": 0.25}), of=["training metrics-of-classes"]),
    unknown(ran("metrics-of-classes", measures={**METRICS, "part f1": None}), "its metrics were not compared with one"),
    unknown(ran("metrics-of-classes", measures={})),
    fails(ran("layers", weights=DISAGREE), of=["training layers"]),
    fails(ran("dropout", measures={**MASKS, "equal_masks_of_ranks": 1.0}), of=["training dropout"]),
    unknown(ran("dropout", measures=MASKS), "training dropout: its masks were not compared."),
    unknown(ran("dropout", measures={})),
    fails(ran("uneven-tail", weights=DISAGREE), of=["training uneven-tail"]),
    unknown(ran("uneven-tail", weights=None)),
    fails(ran("batch-normalization", outcome="raised", error_type="ValueError"), of=["training batch-normalization"]),
    # The wrapper must refuse a model that is built late; the refusal of one rank is enough.
    fails(ran("model-built-late", outcome="trained", error_type=None, workers=()), "late: trains without an error."),
    fails(ran("model-built-late", outcome="died", signal="SIGSEGV"), expected="it trains on 2 replicas", of=1),
    fails(ran("model-built-late", workers=()), expected="it trains on 2 replicas", of=["training model-built-late"]),
    passes(ran("model-built-late", workers=(REFUSED, OTHER))),
    passes(ran("model-built-late", workers=(OTHER, REFUSED))),
    passes(ran("lost-rank", workers=()), "rank: the others ended after 0.8 s."),
    passes(ran("lost-rank", workers=(DIED,)), "rank: the others ended after 0.8 s."),
    fails(ran("lost-rank", **WAITED), "rank: the others still waited after 25 s.", of=["training lost-rank"]),
    unknown(ran("lost-rank", **WAITED, workers=()), "rank: the loss of a rank was not observed."),
    unknown(ran("lost-rank", measures={})),
    skips(
        smoke_run("smoke.torch-data-parallel", 2, *(smoke_case(name, 2, **ABSENT) for name in HEALTHY)),
        "torch is not installed",
    ),
)
