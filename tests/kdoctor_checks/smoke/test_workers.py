"""The checks of trainings in several processes."""

from typing import Any

from helpers.facts import smoke_case, smoke_run
from helpers.rows import fails, passes, table, unknown
from kdoctor.facts import SmokeRun, SmokeWorker
from kdoctor.model import Action, Severity

SAVED: dict[str, float | None] = {"variables": 4.0, "equal to worker 0": 4.0, "equal to worker 1": 4.0}


def worker(number: int = 0, outcome: Any = "trained", **changes: Any) -> SmokeWorker:
    values: dict[str, Any] = {"losses": (1.0, 0.5), "weight_deviation": 0.0, "phase": "train", **changes}
    return SmokeWorker(name=f"worker {number}", outcome=outcome, **values)


def together(*workers: SmokeWorker, saved: dict[str, float | None] = SAVED, **changes: Any) -> SmokeRun:
    case = smoke_case("custom-loop", 2, workers=workers or (worker(), worker(1)), **changes)
    return smoke_run("smoke.multi-worker", 2, case, smoke_case("chief-saves", 2, measures=saved))


def failed(message: str) -> dict[str, Any]:
    return {"outcome": "raised", "error_type": "WorkerFailed", "error_message": message}


UNHEALTHY = "worker 0: UnavailableError in phase build: The following tasks are unhealthy:\n/job:worker/task:1"

test_multi_worker = table(
    "smoke.multi-worker",
    Severity.ERROR,
    passes(together(), ": 2 workers agree"),
    fails(together(worker(), worker(1, weight_deviation=0.2)), "on worker 1, weights differ by up to 0.2"),
    fails(together(worker(), worker(1, losses=(1.0, 0.6))), "worker 1"),
    fails(together(weight_deviation=0.3), "0.3"),
    unknown(together(saved={"variables": 4.0})),
    unknown(together(worker())),
    fails(
        together(worker(outcome="raised"), **failed(UNHEALTHY)),
        "are unhealthy: /job:worker/task:1.",
        "--keep-artifacts",
        action=Action.CONFIGURE,
    ),
)


def fit(**changes: Any) -> SmokeRun:
    return smoke_run("smoke.multi-worker", 2, smoke_case("fit", 2, **changes))


REFUSED: dict[str, Any] = {
    "outcome": "raised",
    "error_type": "ValueError",
    "error_message": "Attempt to convert",
    "phase": "train",
}
PER_REPLICA = "worker 0: ValueError in phase data: Attempt to convert a value (PerReplica:{\n  0: 1.0\n}) with no type."
MULTI = "MultiWorkerMirroredStrategy"

test_multi_worker_fit = table(
    "smoke.multi-worker-fit",
    Severity.WARNING,
    passes(fit()),
    fails(
        fit(**REFUSED),
        *("keras 3.15.1", MULTI, "ValueError in phase train: Attempt to convert"),
        *("tf_keras", "custom training loop", "JAX"),
    ),
    *(fails(fit(**change), MULTI) for change in ({"weight_deviation": 0.1}, {"losses": (1.0, 0.9)})),
    fails(fit(**{**failed(PER_REPLICA), "phase": "data"}), "a value (PerReplica:{ ... }) with no type."),
    unknown(smoke_run("smoke.multi-worker", 2, smoke_case("custom-loop", 2))),
)


def served(
    name: str = "custom-loop", finite: float | None = 4.0, workers: float | None = 2.0, **changes: Any
) -> SmokeRun:
    measures = {"weights": 4.0, "finite": finite, **({} if workers is None else {"workers": workers})}
    return smoke_run("smoke.parameter-server", 2, smoke_case(name, 1, measures=measures, **changes))


test_parameter_server = table(
    "smoke.parameter-server",
    Severity.ERROR,
    passes(served(), "2 workers; losses 1, 0.5."),
    passes(served(workers=None), "0 workers; losses 1, 0.5."),
    fails(served(finite=3.0), "3 of 4 weights are finite; losses 1, 0.5."),
    unknown(served(finite=None)),
    unknown(served(losses=(1.0,))),
)

test_parameter_server_fit = table(
    "smoke.parameter-server-fit",
    Severity.WARNING,
    passes(served("fit")),
    fails(
        served("fit", **REFUSED),
        *("keras 3.15.1", "ParameterServerStrategy", "ValueError", "ClusterCoordinator.schedule"),
    ),
    unknown(served()),
)

STACKS = 'worker 0:\nCurrent thread 0x1 (most recent call first):\n  File "/x/eager/context.py", line 745 in wait\n'
KILLED = worker(1, "died", signal="SIGKILL")
RAISED = worker(outcome="raised", error_type="UnavailableError")


def lost(
    first: SmokeWorker = RAISED, others_s: float | None = 10.0, patience_s: float | None = 25.0, **changes: Any
) -> SmokeRun:
    measures = {"patience_s": patience_s, **({} if others_s is None else {"others_s": others_s})}
    values = {"workers": (first, KILLED), "measures": measures, **changes}
    return smoke_run("smoke.lost-worker", 2, *(smoke_case(name, 2, **values) for name in ("dies", "never-comes")))


test_lost_worker = table(
    "smoke.lost-worker",
    Severity.WARNING,
    passes(lost(worker(outcome="died"), 3.0), ": worker 0 ended with an exit after 3 s"),
    fails(lost(worker()), ": worker 0 continued training alone"),
    fails(
        lost(worker(outcome="timed-out", phase="strategy"), None, stacks=STACKS),
        "in phase strategy at eager/context.py:745 wait",
        "without an error; kdoctor ended it after 25 s.",
    ),
    fails(lost(worker(outcome="raised"), None, None), "kdoctor ended it after 0 s."),
    unknown(lost(measures={"others_s": 3.0}), "the workers were not watched"),
    unknown(lost(workers=())),
)


def of_missing(*processes: SmokeWorker) -> SmokeRun:
    return smoke_run("smoke.misuse", 2, smoke_case("no-such-device", 2, workers=processes))


SUBJECT = "training no-such-device"

test_no_such_device = table(
    "smoke.no-such-device",
    Severity.WARNING,
    passes(of_missing(worker(outcome="raised", error_type="ValueError")), said={SUBJECT: "refused with ValueError"}),
    fails(of_missing(worker()), said={SUBJECT: "trains on 2 replicas, one of which does not exist"}),
    fails(of_missing(worker(outcome="died", exit_code=3)), said={SUBJECT: "terminated by 3"}),
    fails(of_missing(worker(outcome="timed-out", seconds=19.7)), "without an error; kdoctor ended it after 20 s."),
    unknown(of_missing()),
)
