"""Every check of the job family: on a good job, on each bad fact, and on missing facts."""

from dataclasses import replace
from typing import Any

import pytest

from helpers.cases import cases
from helpers.checks import ALL
from helpers.facts import smoke_case, smoke_run
from helpers.saying import briefs, said
from kdoctor.engine.report import Result
from kdoctor.facts import SmokeRun, SmokeRuns
from kdoctor.matrix.keras import KnownFeature
from kdoctor.model import Evidence, Finding, Outcome, Status, Unjudged
from kdoctor.testing import compute_check
from kdoctor_job.checks.job._keras_features import judge_feature
from kdoctor_job.checks.job._reported import differences
from kdoctor_job.facts import (
    JobComparison,
    JobData,
    JobEvaluation,
    JobMemory,
    JobModel,
    JobOption,
    JobProblem,
    JobRun,
    JobTraining,
)

CHECKS = {name: check for name, check in ALL.items() if check.family == "job"}

MODEL = JobModel(
    name="Sequential",
    made_in="scope",
    built=True,
    compiled=True,
    compiled_in="scope",
    trainable=6,
    mirrored=6,
    normalisations=("normalise",),
    optimizer="Adam",
    learning_rate=0.004,
    default_learning_rate=0.001,
    keras="keras 3.15.1",
    clipping=(),
    steps_per_execution=1,
    options={},
    random_layers=(),
)
DATA = JobData(
    kind="tf.data", endless=False, batches=10, batch=64, final_batch=64, prefetched=True, seconds_per_batch=0.001
)
LOGS = {"loss": 0.9, "accuracy": 0.5}
OWN = JobComparison(
    optimizer="Adam", deviation=1e-6, noise=1e-6, logs=LOGS, reference_logs=LOGS, reordered_logs={"accuracy": 0.5}
)
TRAINING = JobTraining(
    steps=3,
    own_losses=(1.0, 0.9, 0.8),
    step_s=0.01,
    losses=(1.0, 0.95, 0.9),
    reference_losses=(1.0, 0.95, 0.9),
    deviation=1e-6,
    own=OWN,
    scale_hidden="the steps of Adam do not scale with the gradient",
    evaluations=(JobEvaluation(final_batch=61, logs=LOGS, reference=LOGS),),
    memory=(JobMemory(device="/device:GPU:0", peak_bytes=40, limit_bytes=80),),
)

SGD = {"scale_hidden": "", "deviation": None, "losses": (), "reference_losses": ()}
"""A job with SGD, which needs no second comparison."""


NOISY = {"deviation": 0.5, "noise": 0.3}
"""With SGD, another order of the examples changes the weights as much as the replicas do."""


def own(**changes: Any) -> dict[str, Any]:
    return {"own": replace(OWN, **changes)}


def validated(loss: float, reference: float) -> dict[str, Any]:
    return {"logs": {**LOGS, "val_loss": loss}, "reference_logs": {**LOGS, "val_loss": reference}}


def option(name: str, value: str, **facts: Any) -> dict[str, Any]:
    """A training in which an option was measured."""
    return {"options": (JobOption(name=name, value=value, **facts),)}


def evaluated(*found: tuple[int, float]) -> dict[str, Any]:
    """Evaluations that end in a batch of some examples, with the accuracy on all replicas; it is 0.5 on one device."""
    evaluations = (
        JobEvaluation(final_batch=size, logs={**LOGS, "accuracy": value}, reference=LOGS) for size, value in found
    )
    return {"evaluations": tuple(evaluations)}


AVERAGED = {"options": {"use_ema": "use_ema=True"}}
DIFFERS = {"effect": 0.4, "deviation": 0.5}
SEVERAL_STEPS = {"steps_per_execution": 2, "keras": "keras 3.99"}
CLIPS = {"clipping": ("clipnorm=1",)}
WRONG = {"effect": 0.4, "deviation": 0.3, "without": 1e-6}
RIGHT = {"effect": 0.4, "deviation": 1e-6}

OWN_RANDOM = {"random_layers": ("mine",), "own_random_layers": ("mine",)}
UNDRAWN = {"undrawn": {"drop": "its results are equal", "mine": "calling it alone raised ValueError"}}


def run(
    *, model: dict[str, Any] | None = None, data: dict[str, Any] | None = None, training: dict[str, Any] | None = None,
    **case: Any,
) -> SmokeRun:  # fmt: skip
    job = JobRun(
        model=replace(MODEL, **(model or {})),
        data=replace(DATA, **(data or {})),
        training=replace(TRAINING, **(training or {})),
    )
    return smoke_run("smoke.own-model", 4, replace(smoke_case("own-model", 4), **{"job": job, **case}))


def judge(check_id: str, facts: SmokeRun, **parameters: Any) -> Result:
    return compute_check(CHECKS[check_id], facts, **parameters)


@pytest.mark.parametrize("check_id", CHECKS)
def test_good_job_passes_with_evidence(check_id: str) -> None:
    result = judge(check_id, run())
    assert (result.status, result.reason) == (Status.PASS, None)
    assert result.evidence


@pytest.mark.parametrize("check_id", CHECKS)
def test_missing_facts_are_unknown(check_id: str) -> None:
    """Nothing ran, the child ended early, or no model was given."""
    check = CHECKS[check_id]
    assert compute_check(check, missing={SmokeRuns: "not run"}).status is Status.UNKNOWN
    assert judge(check_id, smoke_run("smoke.own-model", 4, failure="it died", cases=())).status is Status.UNKNOWN
    assert judge(check_id, run(job=None)).status is Status.UNKNOWN


BAD: list[tuple[str, dict[str, Any], str]] = [
    ("job.data-readable", {"data": {"problem": "it is empty"}}, "it is empty"),
    ("job.model-in-scope", {"model": {"made_in": "outside"}}, "outside"),
    ("job.model-in-scope", {"model": {"made_in": "another strategy"}}, "another"),
    ("job.optimizer-in-scope", {"model": {"compiled_in": "outside"}}, "outside"),
    ("job.variables-mirrored", {"model": {"mirrored": 4, "not_mirrored": ("a/kernel", "a/bias")}}, "a/kernel, a/bias"),
    ("job.batch-divides", {"data": {"batch": 62}}, "62 examples"),
    ("job.batch-is-global", {"data": {"batch": 28}}, "7 for each"),
    ("job.final-batch", {"data": {"final_batch": 5}}, "5 examples over 4"),
    ("job.final-batch", {"data": {"final_batch": 3}}, "3 examples over 4"),
    ("job.epoch-ends", {"data": {"endless": True}}, "infinite"),
    ("job.prefetch", {"data": {"prefetched": False}}, "prefetch"),
    ("job.learning-rate", {"model": {"learning_rate": 0.0010000000474974513}}, "0.001, the default of Adam"),
    (
        "job.clipping",
        {"model": CLIPS, "training": option("clipping", "clipnorm=1", effect=1e-6)},
        "measured with keras",
    ),
    (
        "job.clipping",
        {"model": CLIPS, "training": option("clipping", "clipnorm=1", **WRONG)},
        "0.3, without it by 1e-06",
    ),
    (
        "job.clipping",
        {"model": {**CLIPS, "keras": "tf_keras 2.21.0"}, "training": option("clipping", "clipnorm=1", **WRONG)},
        "measured here",
    ),
    (
        "job.clipping",
        {"model": {"clipping": ("clipvalue=1",), "keras": "keras 3.13.0"}, "training": {"own": None}},
        "was not measured, but",
    ),
    (
        "job.steps-per-execution",
        {"model": {"steps_per_execution": 8}, "training": {"steps": 1}},
        "8 on 4 replicas: InvalidArgumentError",
    ),
    (
        "job.steps-per-execution",
        {
            "model": {"steps_per_execution": 8, "keras": "tf_keras 2.21.0"},
            "training": option("steps_per_execution", "steps_per_execution=8", problem="ValueError: no"),
        },
        "8 on 4 replicas: ValueError: no. Without it, the job trains (measured here)",
    ),
    (
        "job.options",
        {
            "model": {"options": {"jit_compile": "jit_compile=True"}},
            "training": option("jit_compile", "jit_compile=True", problem="ValueError: no"),
        },
        "jit_compile=True on 4 replicas: ValueError: no",
    ),
    (
        "job.options",
        {"model": AVERAGED, "training": option("use_ema", "use_ema=True", **WRONG)},
        "use_ema=True on 4 replicas: weights differ from one device's by 0.3",
    ),
    ("job.options", {"training": option("optimizer built late", "late", problem="ValueError: no")}, "ValueError: no"),
    ("job.metrics", {"training": own(logs={"loss": 0.9, "accuracy": 0.6})}, "accuracy is 0.6 instead of 0.5"),
    ("job.metrics", {"training": own(logs={"loss": 0.9})}, "accuracy is not reported instead of 0.5"),
    ("job.metrics", {"training": evaluated((61, 0.6), (64, 0.6))}, "accuracy is 0.6 instead of 0.5"),
    ("job.metrics", {"training": own(**validated(0.9, 0.8))}, "val_loss is 0.9 instead of 0.8"),
    ("job.evaluate", {"training": evaluated((61, 0.51), (64, 0.5))}, "0.51 instead of 0.5 (with a final batch of 61"),
    (
        "job.evaluate",
        {"training": {"evaluations": (JobEvaluation(final_batch=61, problem="ValueError: no", reference=LOGS),)}},
        "ValueError: no",
    ),
    ("job.equals-one-device", {"training": own(deviation=0.3)}, "0.3 after 3 steps"),
    ("job.equals-one-device", {"training": {**SGD, **own(deviation=0.3)}}, "0.3 after 3 steps"),
    ("job.random-layers", {"model": {"random_layers": ("drop",)}, "training": {"equal_draws": ("drop",)}}, "here"),
    ("job.random-layers", {"model": {"random_layers": ("dropout",)}}, "dropout on 4 replicas"),
    ("job.random-layers", {"model": {"random_layers": None}, "training": {"stilled": ("noise",)}}, "noise on 4"),
    ("job.random-layers", {"model": {"random_layers": ("drop",)}, "training": UNDRAWN}, "drop on 4 replicas"),
    ("job.random-layers", {"training": {"equal_draws": ("mine",), "stilled": ("mine",)}}, "mine on 4 replicas"),
    ("job.input-bound", {"data": {"seconds_per_batch": 0.02}}, "0.02 s"),
    ("job.memory-headroom", {"training": {"memory": (JobMemory(device="g", peak_bytes=75, limit_bytes=80),)}}, "94%"),
    ("job.trains", {"training": {"problem": "OOM"}}, "OOM"),
    ("job.trains", {"training": {"own_losses": (1.0, None)}}, "not finite"),
    ("job.trains", {"training": {"nonfinite": ("a/kernel",)}}, "a/kernel"),
    ("job.equals-one-device", {"training": {"deviation": 1.0}}, "1 after 3 steps"),
    ("job.equals-one-device", {"training": {"deviation": 1.0, "stretch": 2.0}}, "2 times as far"),
    ("job.equals-one-device", {"training": {**NOISY, "stretch": 0.5, "stretch_noise": 1.01}}, "0.5 times as far"),
    ("job.reported-loss", {"training": {"losses": (0.25, 0.24, 0.22)}}, "instead of 1, 0.95, 0.9"),
    ("job.reported-loss", {"training": {**SGD, **own(logs={"loss": 0.45})}}, "0.45 instead of 0.9"),
]


@pytest.mark.parametrize(("check_id", "changes", "decisive"), BAD)
def test_bad_fact_fails(check_id: str, changes: dict[str, Any], decisive: str) -> None:
    result = judge(check_id, run(**changes))
    assert result.status is Status.FAIL
    assert decisive in result.findings[0].finding.observed


UNJUDGED: list[tuple[str, dict[str, Any]]] = [
    ("job.batch-divides", {"data": {"batch": None}}),
    ("job.batch-divides", {"replicas": None}),
    ("job.final-batch", {"data": {"final_batch": None}}),
    ("job.epoch-ends", {"data": {"endless": None}}),
    ("job.learning-rate", {"model": {"learning_rate": None}}),
    ("job.clipping", {"model": {"clipping": None}}),
    *(
        (
            "job.clipping",
            {"model": {**CLIPS, "keras": keras}, "training": option("clipping", "clipnorm=1", effect=1e-6)},
        )
        for keras in ("keras 3.16.0", None)
    ),
    ("job.clipping", {"model": CLIPS, "training": {"own": None}, "strategy": "MultiWorkerMirroredStrategy"}),
    ("job.clipping", {"model": {"clipping": ("clipnorm=1",)}, "replicas": None}),
    ("job.steps-per-execution", {"model": {"steps_per_execution": None}}),
    (
        "job.steps-per-execution",
        {"model": {"steps_per_execution": 2, "keras": "keras 3.1.1"}, "training": {"own": None}},
    ),
    ("job.random-layers", {"model": {"random_layers": None}, "training": {"deviation": None, "own_losses": ()}}),
    ("job.random-layers", {"model": OWN_RANDOM, "training": UNDRAWN}),
    ("job.random-layers", {"model": OWN_RANDOM, "training": {"steps": 0, "not_run": "no copy"}}),
    ("job.random-layers", {"model": {"random_layers": None}, "training": {**UNDRAWN, "stilled": ("drop",)}}),
    ("job.options", {"model": {"options": None}}),
    ("job.options", {"model": AVERAGED, "training": {"own": None}}),
    ("job.options", {"model": AVERAGED, "training": own(rounded_share=0.9)}),
    ("job.metrics", {"training": {"own": None}}),
    ("job.metrics", {"training": own(deviation=0.5)}),
    ("job.evaluate", {"training": {"evaluations": ()}}),
    ("job.equals-one-device", {"training": own(rounded_share=0.9, noise=0.2)}),
    ("job.equals-one-device", {"training": own(not_compared="no weight moves", deviation=None)}),
    ("job.equals-one-device", {"training": {"own": None, "deviation": None}}),
    ("job.random-layers", {"model": {"random_layers": ("dropout",), "keras": "keras nightly"}}),
    ("job.variables-mirrored", {"model": {"trainable": 0, "mirrored": 0}}),
    ("job.input-bound", {"training": {"step_s": None}}),
    ("job.memory-headroom", {"training": {"memory": ()}}),
    ("job.trains", {"training": {"not_run": "not compiled"}}),
    ("job.trains", {"training": {"own_losses": ()}}),
    ("job.equals-one-device", {"training": {"deviation": None}}),
    ("job.equals-one-device", {"training": {"not_compared": "no weight moves"}}),
    ("job.equals-one-device", {"training": {"deviation": 0.5, "noise": 0.5}}),
    ("job.equals-one-device", {"training": {**NOISY, "stretch": 1.25, "stretch_noise": 1.0}}),
    ("job.equals-one-device", {"training": {**NOISY, "noise": 0.51, "stretch": 2.0, "stretch_noise": 1.01}}),
    ("job.equals-one-device", {"training": {**NOISY, "stretch": 2.0, "stretch_noise": 0.85}}),
    ("job.metrics", {"training": {**NOISY, **evaluated((64, 0.6))}}),
    ("job.evaluate", {"training": {**NOISY, **evaluated((61, 0.6))}}),
    ("job.reported-loss", {"training": {"losses": (), "own": None}}),
    ("job.reported-loss", {"training": {"losses": (0.25, 0.24, 0.22), "deviation": 0.3, "noise": 0.03}}),
    ("job.reported-loss", {"training": {**SGD, **own(logs={"loss": 0.45}, rounded_share=0.9)}}),
    *((check_id, {"data": {"unread": "used up"}}) for check_id in ("job.data-readable", "job.epoch-ends")),
]


@pytest.mark.parametrize(("check_id", "changes"), UNJUDGED)
def test_missing_evidence_is_unknown(check_id: str, changes: dict[str, Any]) -> None:
    assert judge(check_id, run(**changes)).status is Status.UNKNOWN


@cases(
    ("job.prefetch", {"data": {"prefetched": None, "kind": "arrays"}}),
    ("job.variables-mirrored", {"model": {"built": False}}),
    ("job.optimizer-in-scope", {"model": {"compiled_in": None}}),
    ("job.batch-is-global", {"replicas": 1}),
    ("job.clipping", {"model": {"optimizer": None}}),
    ("job.clipping", {"model": {"clipping": ("clipnorm=1",)}, "replicas": 1}),
    ("job.steps-per-execution", {"model": {"compiled": False}}),
    ("job.steps-per-execution", {"model": {"steps_per_execution": 2}, "replicas": 1}),
    ("job.random-layers", {"model": {"random_layers": ("dropout",)}, "replicas": 1}),
    ("job.options", {"model": {"compiled": False}}),
    ("job.options", {"model": AVERAGED, "replicas": 1}),
    ("job.metrics", {"replicas": 1}),
    ("job.evaluate", {"replicas": 1}),
    ("job.evaluate", {"training": evaluated((64, 0.5))}),
    ("job.equals-one-device", {"replicas": 1}),
)
def test_is_skipped_without_a_subject(check_id: str, changes: dict[str, Any]) -> None:
    assert judge(check_id, run(**changes)).status is Status.SKIP


@cases(
    # A batch of n over R replicas is split into chunks of ceil(n / R), see docs/smoke.md.
    ("job.final-batch", {"data": {"final_batch": 4}}),
    ("job.final-batch", {"data": {"final_batch": 7}}),
    ("job.final-batch", {"data": {"final_batch": 5}, "model": {"normalisations": ()}}),
    ("job.final-batch", {"data": {"final_batch": None, "full_batches_only": True}}),
    ("job.epoch-ends", {"data": {"endless": True, "steps_per_epoch": 100}}),
    ("job.learning-rate", {"model": {"learning_rate": None, "schedule": "CosineDecay"}}),
    ("job.batch-is-global", {"data": {"batch": 32}}),
    ("job.clipping", {"model": {**CLIPS, "keras": "tf_keras 2.21.0"}, "training": {"own": None}}),
    # A measurement on this machine counts more than the version matrix.
    ("job.clipping", {"model": CLIPS, "training": option("clipping", "clipnorm=1", **RIGHT)}),
    ("job.steps-per-execution", {"model": {"steps_per_execution": 8}}),
    ("job.random-layers", {"model": {"random_layers": ("a",)}, "training": {"different_draws": ("a",)}}),
    ("job.random-layers", {"model": OWN_RANDOM, "training": {"different_draws": ("mine",)}}),
    ("job.options", {"model": AVERAGED}),
    ("job.equals-one-device", {"training": SGD}),
    ("job.reported-loss", {"training": SGD}),
    # Another order of the examples on one device changes the accuracy as much.
    ("job.metrics", {"training": own(logs={"accuracy": 0.6}, reordered_logs={"accuracy": 0.58})}),
    ("job.metrics", {"training": own(**validated(0.8, 0.8))}),
    ("job.steps-per-execution", {"model": {"steps_per_execution": 8, "keras": "tf_keras 2.21.0"}}),
    ("job.random-layers", {"model": {"random_layers": ("dropout",), "keras": "tf_keras 2.21.0"}}),
)
def test_borderline_facts_pass(check_id: str, changes: dict[str, Any]) -> None:
    assert judge(check_id, run(**changes)).status is Status.PASS


def test_examined_arguments_of_fit_are_named() -> None:
    job = JobRun(model=MODEL, data=DATA, training=TRAINING, fit_arguments=("class_weight", "validation_data"))
    for given, part in ((run(job=job), "trained with class_weight, validation_data"), (run(), "--fit-arguments")):
        evidence = {one.subject: one.observed for one in judge("job.trains", given).evidence}
        assert part in evidence["arguments of fit"]


def test_least_per_replica_is_a_parameter() -> None:
    assert judge("job.batch-is-global", run(data={"batch": 8}), least_per_replica=2).status is Status.PASS


def test_model_that_cannot_be_created_fails_with_its_error() -> None:
    problem = JobRun(problem=JobProblem(part="model", message="build raised ValueError: no"))
    result = judge("job.model-and-data", run(job=problem))
    assert result.status is Status.FAIL
    assert result.findings[0].finding.observed == "build raised ValueError: no"


@pytest.mark.parametrize(("phase", "subject"), [("model", "model"), ("data", "data"), ("strategy", "job")])
def test_hanging_function_fails_with_its_phase(phase: str, subject: str) -> None:
    hung = run(job=None, outcome="timed-out", phase=phase, seconds=600.0)
    result = judge("job.model-and-data", hung)
    assert result.status is Status.FAIL
    assert result.findings[0].finding.subject == subject
    assert f"phase {phase}" in result.findings[0].finding.observed


def test_hanging_training_fails_as_a_training() -> None:
    hung = run(job=JobRun(model=MODEL, data=DATA), outcome="timed-out", phase="train", seconds=600.0)
    assert judge("job.trains", hung).status is Status.FAIL
    assert judge("job.model-and-data", hung).status is Status.PASS
    assert judge("job.equals-one-device", hung).status is Status.UNKNOWN


def test_optimizer_built_in_the_first_step_is_to_be_built_in_the_scope() -> None:
    result = judge(
        "job.trains", run(training={"problem": "InvalidArgumentError: You must feed a value for placeholder"})
    )
    assert "optimizer.build(" in result.findings[0].finding.remedy.summary


def test_hang_after_an_option_failed_is_a_training_that_hangs() -> None:
    training = JobTraining(steps=8, options=(JobOption(name="jit_compile", value="jit_compile=True", problem="no"),))
    hung = run(job=JobRun(model=MODEL, data=DATA, training=training), outcome="timed-out", phase="build", seconds=600.0)
    assert judge("job.trains", hung).status is Status.FAIL


def test_comparison_that_did_not_end_is_unknown() -> None:
    training = JobTraining(steps=3, own_losses=(1.0, 0.9, 0.8))
    hung = run(job=JobRun(model=MODEL, data=DATA, training=training), outcome="timed-out", phase="reference", seconds=9)
    assert judge("job.trains", hung).status is Status.PASS
    for check_id in ("job.equals-one-device", "job.metrics", "job.evaluate", "job.reported-loss"):
        assert judge(check_id, hung).status is Status.UNKNOWN


def reference_trainings(deviation: float | None, noise: float | None) -> dict[str, Any]:
    return {"training": {"deviation": deviation, "noise": noise}}


@cases(
    ("job.equals-one-device", reference_trainings(0.05, None), Status.PASS),
    ("job.equals-one-device", reference_trainings(0.0501, None), Status.FAIL),
    # A difference of at most ten times that of another order of the examples shows nothing.
    ("job.equals-one-device", reference_trainings(0.5, 0.0499), Status.FAIL),
    ("job.equals-one-device", reference_trainings(0.5, 0.05), Status.UNKNOWN),
    ("job.equals-one-device", reference_trainings(0.06, 0.01), Status.UNKNOWN),
    ("job.equals-one-device", reference_trainings(1.0, 0.06), Status.FAIL),
    ("job.equals-one-device", reference_trainings(0.06, float("nan")), Status.UNKNOWN),
    ("job.equals-one-device", {"training": own(deviation=0.01)}, Status.PASS),
    ("job.equals-one-device", {"training": own(deviation=0.0101)}, Status.FAIL),
    ("job.memory-headroom", {"training": {"memory": (JobMemory(device="g", peak_bytes=9, limit_bytes=10),)}},
     Status.PASS),
    ("job.memory-headroom", {"training": {"memory": (JobMemory(device="g", peak_bytes=91, limit_bytes=100),)}},
     Status.FAIL),
    ("job.batch-is-global", {"data": {"batch": None}}, Status.UNKNOWN),
    ("job.batch-is-global", {"replicas": None}, Status.UNKNOWN),
    ("job.batch-is-global", {"data": {"batch": 35}}, Status.PASS),  # 8.75 for each of 4
    ("job.batch-is-global", {"data": {"batch": 31}}, Status.FAIL),
    # The metrics of a job whose weights differ by the tolerance are still compared.
    ("job.metrics", {"training": own(deviation=0.01)}, Status.PASS),
    ("job.metrics", {"training": own(deviation=0.0101)}, Status.UNKNOWN),
    ("job.metrics", {"training": own(deviation=None)}, Status.UNKNOWN),
    ("job.metrics", {"training": own(deviation=0.01, **validated(0.9, 0.8))}, Status.FAIL),
    ("job.metrics", {"training": own(not_compared="no weight moves")}, Status.UNKNOWN),
    ("job.metrics", {"training": own(logs={})}, Status.UNKNOWN),
    ("job.model-and-data", {}, Status.PASS),
    # A learning rate is the default if float32 cannot tell them apart, and kdoctor allows ten parts in a million.
    ("job.learning-rate", {"model": {"learning_rate": 0.001 * (1 + 0.9e-5)}}, Status.FAIL),
    ("job.learning-rate", {"model": {"learning_rate": 0.001 * (1 + 1.5e-5)}}, Status.PASS),
    ("job.learning-rate", {"model": {"learning_rate": 0.001}, "replicas": 1}, Status.PASS),
    ("job.options", {"model": AVERAGED}, Status.PASS),
    ("job.batch-divides", {"data": {"batch": None}}, Status.UNKNOWN),
    ("job.steps-per-execution", {"model": {"compiled": False}}, Status.SKIP),
    ("job.learning-rate", {"model": {"optimizer": None}}, Status.SKIP),
    ("job.learning-rate", {"replicas": None}, Status.UNKNOWN),
    # An option counts as right up to a tenth of what it changes, and of a tenth.
    ("job.options", {"model": AVERAGED, "training": option("use_ema", "on", effect=0.05, deviation=0.005)},
     Status.PASS),
    ("job.options", {"model": AVERAGED, "training": option("use_ema", "on", effect=0.05, deviation=0.0051)},
     Status.UNKNOWN),
    ("job.options", {"model": AVERAGED, "training": option("use_ema", "on", effect=0.4, deviation=0.01)},
     Status.PASS),
    ("job.options", {"model": AVERAGED, "training": option("use_ema", "on", effect=0.4, deviation=0.0101)},
     Status.UNKNOWN),
    # It is the cause if the replicas differ by at most a tenth of that without it.
    ("job.options", {"model": AVERAGED, "training": option("use_ema", "on", **DIFFERS, without=0.05)},
     Status.FAIL),
    ("job.options", {"model": AVERAGED, "training": option("use_ema", "on", **DIFFERS, without=0.06)},
     Status.UNKNOWN),
    ("job.options", {"model": AVERAGED, "training": own(deviation=0.01)}, Status.PASS),
    ("job.options", {"model": AVERAGED, "training": own(deviation=0.0101)},
     Status.UNKNOWN),
    ("job.options", {"model": AVERAGED, "training": own(rounded_share=0.5)}, Status.PASS),
    ("job.options", {"model": AVERAGED, "training": own(rounded_share=0.51)}, Status.UNKNOWN),
    ("job.options", {"model": AVERAGED, "training": option("use_ema", "on", effect=0.4, deviation=0.1 * 0.1)},
     Status.PASS),
    # Random numbers explain a difference if the weights differ by more than the tolerance, or most are rounded.
    ("job.metrics", {"training": {**own(rounded_share=0.5), **evaluated((64, 0.6))}}, Status.FAIL),
    ("job.metrics", {"training": {**own(rounded_share=0.51), **evaluated((64, 0.6))}}, Status.UNKNOWN),
    ("job.metrics", {"training": {"deviation": 0.01, "noise": 0.3, **evaluated((64, 0.6))}}, Status.FAIL),
    ("job.metrics", {"training": {"deviation": 0.0101, "noise": 0.3, **evaluated((64, 0.6))}}, Status.UNKNOWN),
    ("job.metrics", {"training": evaluated((61, 0.6), (64, 0.5))}, Status.PASS),  # the largest batch counts
    ("job.equals-one-device", {"training": {**NOISY, "noise": 0.5, "stretch": 2.0, "stretch_noise": 1.01}},
     Status.FAIL),
    ("job.equals-one-device", {"training": {**NOISY, "stretch": 2.0, "stretch_noise": 1.01}}, Status.FAIL),
    ("job.input-bound", {"data": {"seconds_per_batch": 0.01}}, Status.FAIL),  # as long as a step
    ("job.input-bound", {"data": {"seconds_per_batch": 0.0099}}, Status.PASS),
    ("job.random-layers", {"model": {"random_layers": None}, "training": {"deviation": None}}, Status.PASS),
    ("job.random-layers", {"model": {"random_layers": None}, "training": {"own_losses": ()}}, Status.PASS),
    ("job.steps-per-execution", {"model": SEVERAL_STEPS, "training": {"steps": 2}},
     Status.PASS),
    ("job.steps-per-execution", {"model": SEVERAL_STEPS, "training": {"steps": 1}},
     Status.UNKNOWN),
)  # fmt: skip
def test_limits(check_id: str, changes: dict[str, Any], status: Status) -> None:
    assert judge(check_id, run(**changes)).status is status


@cases(
    ("job.memory-headroom",
     {"training": {"memory": (JobMemory(device="g", peak_bytes=3 * 2**30, limit_bytes=4 * 2**30),)}},
     "g", "peak 3.00 of 4.00 GiB (75%)"),
    ("job.batch-is-global", {"data": {"batch": 35}}, "batch", "8 examples for each of 4 replicas"),
    ("job.model-and-data", {"data": {"kind": "PyDataset"}}, "data", "PyDataset"),
    ("job.model-and-data", {"model": {"name": "Ours"}}, "model", "Ours"),
    ("job.metrics", {}, "fit", "accuracy, as on one device"),
    ("job.metrics", {"training": own(logs={"loss": 1.0}, reference_logs={"loss": 1.0})}, "fit",
     "no metrics besides the loss"),
    ("job.metrics", {"training": own(**validated(0.8, 0.8))}, "validation", "val_loss, as on one device"),
    ("job.metrics", {}, "evaluate", "loss, accuracy, as on one device"),
    ("job.metrics", {"training": own(not_compared="no weight moves")}, "fit",
     "its metrics were not compared with one device: no weight moves"),
    ("job.metrics", {"training": {"own": None, "not_compared": "no copy"}}, "fit",
     "its metrics were not compared with one device: no copy"),
    ("job.metrics", {"training": {"own": None}}, "fit",
     "its metrics were not compared with one device: it was not run"),
    ("job.equals-one-device", {"training": own(not_compared="no copy")}, "your model with Adam",
     "not compared with one device: no copy"),
    ("job.equals-one-device", {"training": own(deviation=None)}, "your model with Adam",
     "not compared with one device: the weights are not finite"),
    ("job.equals-one-device", {"training": {"deviation": None}}, "your model with plain SGD",
     "not compared with one device: the weights are not finite"),
    ("job.equals-one-device", {"training": {"not_compared": "no copy"}}, "your model with plain SGD",
     "not compared with one device: no copy"),
    ("job.equals-one-device", {"training": {"deviation": None}, "outcome": "died", "phase": "reference"},
     "your model with plain SGD", "not compared with one device: the case ended in phase reference"),
    ("job.equals-one-device", {"training": {"steps": 1, "stilled": ("drop",)}}, "your model with plain SGD",
     "weights match one device's (relative difference 1e-06 after 1 step; in inference mode: drop)"),
    ("job.equals-one-device", {"training": own(rounded=("a/bias",))}, "your model with Adam",
     "weights match one device's (relative difference 1e-06 after 3 steps; rounding decides a/bias)"),
    ("job.data-readable", {"data": {"unread": "used up"}}, "data", "used up"),
    ("job.epoch-ends", {}, "data", "10 batches"),
    ("job.batch-divides", {"data": {"batch": 64}}, "batch", "64 examples, 16 per replica"),
    ("job.batch-divides", {"data": {"batch": 62}}, "batch",
     "62 examples cannot be split evenly over 4 replicas"),
    ("job.batch-is-global", {"data": {"batch": 31}}, "batch",
     "31 examples for 4 replicas, 7 for each; this looks like a per-replica batch size"),
    ("job.final-batch", {"model": {"normalisations": ()}, "data": {"final_batch": 3}}, "final batch",
     "3 examples; no layer is affected by an empty replica"),
    ("job.final-batch", {"model": {"normalisations": ()}, "data": {"final_batch": None}}, "final batch",
     "unknown size; no layer is affected by an empty replica"),
    ("job.final-batch", {"data": {"final_batch": 61}}, "final batch", "61 examples feed all of 4 replicas"),
    ("job.final-batch", {"data": {"endless": True}}, "final batch", "none, because the dataset is infinite"),
    ("job.evaluate", {"replicas": None}, "evaluate", "the number of replicas is not known"),
    ("job.evaluate", {}, "evaluate",
     "loss, accuracy, as on one device with a final batch of 61 examples over 4 replicas"),
    ("job.evaluate", {"training": {"evaluations": ()}}, "evaluate",
     "not compared with one device: evaluate was not run"),
    ("job.evaluate", {"training": {"evaluations": (), "not_compared": "no copy"}}, "evaluate",
     "not compared with one device: no copy"),
    ("job.reported-loss", {}, "loss", "1, 0.95, 0.9, as on one device"),
    ("job.reported-loss", {"training": SGD}, "loss", "0.9, as on one device"),
    ("job.reported-loss", {"training": {**SGD, **own(not_compared="no copy")}}, "loss",
     "it was not compared with one device"),
    ("job.reported-loss", {"training": {**SGD, **own(logs={"accuracy": 0.5})}}, "loss",
     "it was not compared with one device"),
    ("job.reported-loss", {"training": {**SGD, **own(reference_logs={"accuracy": 0.5})}}, "loss",
     "it was not compared with one device"),
    ("job.reported-loss", {"training": {"losses": (4.0, 3.8, 3.6)}}, "loss", "4, 3.8, 3.6 instead of 1, 0.95, 0.9"),
    ("job.random-layers", {}, "random layers", "none"),
    ("job.random-layers", {"training": {"different_draws": ("mine",)}}, "random layers",
     "mine: different numbers on each replica (measured here)"),
    ("job.random-layers", {"model": {"random_layers": None}, "training": {"stilled": ()}}, "random layers", "none"),
    ("job.steps-per-execution", {}, "steps_per_execution", "1"),
    ("job.steps-per-execution", {"model": {"steps_per_execution": 0}}, "steps_per_execution", "1"),
    ("job.steps-per-execution", {"model": {"steps_per_execution": None}}, "steps_per_execution",
     "the model does not report it"),
    ("job.equals-one-device", {"training": own(rounded_share=0.5)}, "your model with Adam",
     "weights match one device's (relative difference 1e-06 after 3 steps)"),
    ("job.epoch-ends", {"data": {"batches": None}}, "data", "many batches"),
    ("job.epoch-ends", {"data": {"endless": True, "steps_per_epoch": 1}}, "data",
     "infinite, with 1 step per epoch"),
    ("job.learning-rate", {}, "learning rate", "0.004 on 4 replicas"),
    ("job.learning-rate", {"model": {"learning_rate": 0.001}}, "learning rate",
     "0.001, the default of Adam, on 4 replicas"),
    ("job.learning-rate", {"model": {"schedule": "CosineDecay"}}, "learning rate", "set by CosineDecay"),
    ("job.learning-rate", {"model": {"learning_rate": None}}, "learning rate", "Adam does not report it"),
    ("job.options", {}, "options",
     "none of jit_compile, gradient_accumulation_steps, loss scaling, use_ema, weight_decay, run_eagerly"),
    ("job.trains", {}, "training", "3 steps, losses 1, 0.9, 0.8"),
    ("job.trains", {"training": option("use_ema", "use_ema=True", problem="it raised")}, "training",
     "3 steps without use_ema=True, losses 1, 0.9, 0.8"),
    ("job.trains", {"training": {"own_losses": (1.0, None), "nonfinite": ("a/bias",)}}, "your model",
     "losses 1, not finite; NaN or infinity in a/bias"),
    ("job.trains", {"training": {"own_losses": (1.0, None)}}, "your model", "losses 1, not finite"),
    ("job.equals-one-device", {"training": {"not_run": "not compiled"}}, "training", "not compiled"),
    ("job.input-bound", {"training": {"not_run": "not compiled"}}, "training", "not compiled"),
    ("job.random-layers", {"model": OWN_RANDOM, "training": UNDRAWN}, "random layers",
     "mine was not measured: calling it alone raised ValueError"),
    ("job.random-layers", {"model": OWN_RANDOM, "training": {"not_run": "no copy"}}, "random layers",
     "mine was not measured: no copy"),
    ("job.random-layers", {"model": OWN_RANDOM}, "random layers",
     "mine was not measured: no copy of the model was trained"),
    ("job.random-layers", {"training": {"equal_draws": ("mine",)}, "replicas": None}, "random layers",
     "mine on an unknown number of replicas: equal numbers on two of them (measured here)"),
    ("job.options", {"model": AVERAGED, "replicas": None}, "use_ema",
     "use_ema=True on an unknown number of replicas: weights match one device's (measured here)"),
    ("job.clipping", {"model": CLIPS, "training": {"own": None}, "strategy": None}, "optimizer Adam",
     "measured under MirroredStrategy only, not under an unknown strategy"),
    ("job.clipping", {"model": CLIPS, "training": {"own": None}, "strategy": "TPUStrategy"}, "optimizer Adam",
     "measured under MirroredStrategy only, not under TPUStrategy"),
)  # fmt: skip
def test_outcome_names_what_was_measured(check_id: str, changes: dict[str, Any], subject: str, text: str) -> None:
    assert said(judge(check_id, run(**changes)))[subject] == text


def test_another_order_that_changes_the_weights_is_measured() -> None:
    reason = said(judge("job.equals-one-device", run(training=own(rounded_share=0.9, noise=0.25))))
    assert "by 0.25 as well" in reason["your model with Adam"]
    unknown = said(judge("job.equals-one-device", run(training=own(rounded_share=0.51, noise=None))))
    assert "by 0 as well" in unknown["your model with Adam"]


def test_job_without_a_case_says_why() -> None:
    died = smoke_run("smoke.own-model", 4, failure="it died", cases=())
    assert said(judge("job.model-and-data", died)) == {"job": "it died"}
    ended = smoke_run("smoke.own-model", 4, cases=())
    assert said(judge("job.model-and-data", ended)) == {"job": "the run ended before it had a result"}
    early = run(job=None, outcome="died", phase=None)
    assert said(judge("job.data-readable", early)) == {"data": "the case ended in phase import (died)"}
    late = run(job=JobRun(model=MODEL), outcome="died", phase="data")
    assert said(judge("job.trains", late)) == {"training": "the case ended in phase data (died)"}


@pytest.mark.parametrize("part", ["model", "data"])
def test_case_without_a_model_or_without_data_is_unknown(part: str) -> None:
    alone = JobRun(model=MODEL) if part == "model" else JobRun(data=DATA)
    assert judge("job.model-and-data", run(job=alone)).status is Status.UNKNOWN


def test_fix_of_other_weights_depends_on_the_optimizer() -> None:
    """With SGD the loss function may be wrong, with Adam, which hides a factor, only the step itself."""
    sgd = judge("job.equals-one-device", run(training={**SGD, **own(deviation=0.3)})).findings[0].finding
    adam = judge("job.equals-one-device", run(training=own(deviation=0.3))).findings[0].finding
    assert "loss function" in sgd.remedy.summary
    assert "step that is not linear" in adam.remedy.summary


def test_defect_of_one_of_several_features_counts() -> None:
    """clipvalue is right on tf_keras, and clipnorm is wrong on Keras 3.15."""
    model = {"clipping": ("clipvalue=1", "clipnorm=1"), "keras": "keras 3.15.1"}
    result = judge("job.clipping", run(model=model, training={"own": None}))
    assert result.status is Status.FAIL
    right = judge("job.clipping", run(model={**model, "keras": "tf_keras 2.21.0"}, training={"own": None}))
    assert right.status is Status.PASS


@cases(
    ("job.batch-is-global", {}),
    ("job.evaluate", {}),
    ("job.metrics", {}),
    ("job.reported-loss", {}),
    ("job.equals-one-device", {}),
    ("job.options", AVERAGED),
    ("job.steps-per-execution", SEVERAL_STEPS),
    ("job.clipping", CLIPS),
    ("job.random-layers", {"random_layers": ("drop",)}),
)
def test_what_goes_wrong_on_several_replicas_only_is_skipped_with_one(check_id: str, model: dict[str, Any]) -> None:
    one = judge(check_id, run(model=model, replicas=1))
    assert (one.status, one.reason) == (Status.SKIP, "the job has only one replica")
    assert judge(check_id, run(model=model, replicas=2)).status is not Status.SKIP


def test_memory_that_was_not_reported_is_skipped_only_on_the_cpu() -> None:
    silent = run(training={"memory": ()})
    assert judge("job.memory-headroom", silent).status is Status.UNKNOWN
    assert judge("job.memory-headroom", replace(silent, devices_kind="cpu")).status is Status.SKIP


def test_short_form_counts_the_examples_of_a_replica() -> None:
    assert briefs(judge("job.batch-is-global", run(data={"batch": 31}))) == ["only 7 examples for each of 4 replicas"]
    found = judge("job.batch-is-global", run(data={"batch": 31})).findings[0].finding
    assert found.remedy.summary.endswith("31 * strategy.num_replicas_in_sync = 124.")


@cases(
    (("right", "right"), Evidence), (("right", "wrong"), Finding), (("wrong", "right"), Finding),
    (("right", None), Unjudged), ((None, "wrong"), Finding), ((None, "right"), Unjudged),
)  # fmt: skip
def test_worst_of_several_features_counts(known: tuple[Any, ...], expected: type[Outcome]) -> None:
    class Matrix:
        def keras_feature(self, name: str, package: str, version: str) -> KnownFeature:
            return KnownFeature(feature=name, result=known[int(name)], observed="seen", basis=f"{package} {version}")

    found = judge_feature(
        run(), MODEL, Matrix(), ["0", "1"],  # type: ignore[arg-type]
        option="", subject="it", used="both", expected="none", remedy="Change it.", brief="wrong",
    )  # fmt: skip
    assert isinstance(found, expected)


def test_numbers_may_differ_by_a_share_of_the_larger_one_and_a_tenth_of_it_near_zero() -> None:
    def equal(one: float | None, other: float | None) -> bool:
        return not differences({"a": one}, {"a": other}, {}, 0.5)

    assert equal(1.0, 0.5)
    assert equal(0.5, 1.0)
    assert not equal(1.0, 0.49)
    assert not equal(0.2, 0.09)
    assert equal(0.0, 0.05)
    assert not equal(0.0, 0.051)
    assert equal(None, None)
    assert not equal(None, 0.0)


@cases(
    ("job.equals-one-device", {},
     ["", "your model on 4 replicas equals one device (within 1e-06)"]),
    ("job.equals-one-device", {"training": SGD}, ["your model on 4 replicas equals one device (within 1e-06)"]),
    ("job.trains", {"replicas": 1}, ["your model trains on 1 replica", ""]),
    ("job.trains", {}, ["", ""]),
    ("job.metrics", {"training": {"evaluations": (JobEvaluation(final_batch=64, problem="no", reference=LOGS),)}},
     ["raises", ""]),
    ("job.metrics", {"training": evaluated((64, 0.6))}, ["reports other numbers than on one device", ""]),
)  # fmt: skip
def test_short_form_of_an_outcome(check_id: str, changes: dict[str, Any], expected: list[str]) -> None:
    assert briefs(judge(check_id, run(**changes))) == expected


def test_data_of_a_job_without_a_model_is_not_judged_by_its_layers() -> None:
    result = judge("job.final-batch", run(job=JobRun(data=DATA)))
    assert [item.subject for item in result.unjudged] == ["model"]


def test_random_layers_of_a_job_that_was_not_trained_are_judged_by_their_keras() -> None:
    model = replace(MODEL, random_layers=("dropout",))
    result = judge("job.random-layers", run(job=JobRun(model=model, data=DATA)))
    assert [item.finding.observed.partition(":")[0] for item in result.findings] == ["dropout on 4 replicas"]


def test_rate_for_the_global_batch_is_proposed() -> None:
    (found,) = judge("job.learning-rate", run(model={"learning_rate": 0.001})).findings
    assert found.finding.remedy.summary == "If 0.001 suits one device, try 0.004 with a warm-up."


def test_short_line_gives_the_measured_difference() -> None:
    training = JobTraining(steps=8, own_losses=(1.0,), losses=(1.0,), reference_losses=(1.0,), deviation=2e-6)
    case = smoke_case(name="own-model", replicas=8, job=JobRun(training=training))
    result = compute_check(CHECKS["job.equals-one-device"], smoke_run("smoke.own-model", 8, case))
    assert [item.brief for item in result.evidence if item.brief] == [
        "your model on 8 replicas equals one device (within 2e-06)"
    ]
