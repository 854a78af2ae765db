"""Every check of the job family: on a good job, on each bad fact, and on missing facts."""

from dataclasses import replace
from typing import Any

import pytest

from helpers.cases import cases
from helpers.checks import ALL
from helpers.facts import smoke_case, smoke_run
from helpers.kdoctor_job.restored import GOOD
from helpers.rows import fails, passes, skips, table, unknown
from kdoctor.engine.report import Result
from kdoctor.facts import SmokeRun, SmokeRuns
from kdoctor.matrix.keras import KnownFeature
from kdoctor.model import Evidence, Finding, Outcome, Severity, Status, Unjudged
from kdoctor.testing import compute_check
from kdoctor_job.checks.job._keras_features import judge_feature
from kdoctor_job.checks.job._options import Judged
from kdoctor_job.checks.job._reported import differences
from kdoctor_job.checks.job._user_model import job_of
from kdoctor_job.facts import (
    JobComparison,
    JobData,
    JobEvaluation,
    JobFit,
    JobGpus,
    JobMemory,
    JobModel,
    JobOption,
    JobProblem,
    JobRun,
    JobSave,
    JobStep,
    JobTraining,
)
from kdoctor_job.own_model import OWN_MODEL
from kdoctor_job.restore_facts import JobRestore

CHECKS = {name: check for name, check in ALL.items() if check.scenario == OWN_MODEL}

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
    schedule="CosineDecay",
    scheduled_steps=100,
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
    unmoved=(),
    read_probabilities=("BinaryCrossentropy",),
    steps=3,
    examples=192,
    examples_trained=192,
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


def evaluated(*found: tuple[int, float], bit: float = 0.0) -> dict[str, Any]:
    """Evaluations that end in a batch of some examples, with the accuracy on all replicas; it is 0.5 on one device."""
    evaluations = (
        JobEvaluation(final_batch=size, last_bit=bit, logs={**LOGS, "accuracy": value}, reference=LOGS)
        for size, value in found
    )
    return {"evaluations": tuple(evaluations)}


def scaled(size: int) -> dict[str, Any]:
    """An evaluation whose loss is twice that of one device."""
    return {
        "evaluations": (JobEvaluation(final_batch=size, logs={**LOGS, "loss": 2.0}, reference={**LOGS, "loss": 1.0}),)
    }


LOSSES = "versions.known-bad, smoke.baseline"
AVERAGED = {"options": {"use_ema": "use_ema=True"}}
MASKED = {"options": {"masks": "embedding"}}
DIFFERS = {"effect": 0.4, "deviation": 0.5}
SEVERAL_STEPS = {"steps_per_execution": 2, "keras": "keras 3.99"}
CLIPS = {"clipping": ("clipnorm=1",)}
WRONG = {"effect": 0.4, "deviation": 0.3, "without": 1e-6}

OWN_RANDOM = {"random_layers": ("mine",), "own_random_layers": ("mine",)}
UNDRAWN = {"undrawn": {"drop": "its results are equal", "mine": "calling it alone raised ValueError"}}


GPUS = JobGpus(on_bus=4, listed=4, mask=None, is_distributed=True)
FIT = JobFit(number=1, place="train.py:9", save=JobSave(place="train.py:17"))
STEP = JobStep(
    name="step", rows=(8, 8), updated=4, stretch=1.0, stretch_noise=0.0, deviation=1e-7, of_shares=1e-7, noise=0.0
)


def run(
    *, gpus: JobGpus | None = GPUS, fit: JobFit | None = FIT, model: dict[str, Any] | None = None,
    data: dict[str, Any] | None = None, training: dict[str, Any] | None = None,
    step: JobStep | None = STEP, workers: int | None = 1, **case: Any,
) -> SmokeRun:  # fmt: skip
    job = JobRun(
        strategy=case.get("strategy", "MultiWorkerMirroredStrategy"),
        workers=workers,
        gpus=gpus,
        fit=fit,
        model=replace(MODEL, **(model or {})),
        data=replace(DATA, **(data or {})),
        training=replace(TRAINING, **(training or {})),
        step=step,
        monitored={"loss": "EarlyStopping"},
    )
    own = replace(smoke_case("own-model", 4), **{"job": job, **case})
    restored = smoke_case("restore", 4, job=own.job and JobRestore(**GOOD))
    return smoke_run("smoke.own-model", 4, own, restored)


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


ENDED = "the job ended {} (died)"
test_all_trained = table(
    "job.all-trained",
    Severity.WARNING,
    passes(run(), "3 steps changed every trainable variable"),
    unknown(run(training={"unmoved": None}), "may not have updated"),
    fails(run(training={"unmoved": ("a/kernel", "a/bias")}), "did not change 2 variables: a/kernel, a/bias"),
    unknown(run(training={"not_run": "used up"})),
)
test_loss_input = table(
    "job.loss-input",
    Severity.WARNING,
    passes(run(), "BinaryCrossentropy gets"),
    skips(run(training={"read_probabilities": ()})),
    unknown(run(training={"read_probabilities": None}), "was not seen"),
    fails(
        run(training={"not_probabilities": "mse reads probabilities, and gets -2 to 2"}), "gets -2 to 2", "from_logits"
    ),
    unknown(run(training={"not_run": "used up"})),
)
test_schedule = table(
    "job.schedule",
    Severity.WARNING,
    passes(run(), "CosineDecay gives no 0"),
    skips(run(model={"schedule": None})),
    unknown(run(job=JobRun())),
    unknown(run(model={"scheduled_steps": None}), "CosineDecay"),
    fails(run(model={"zero_from": 9}), "gives 0 from step 9", briefs=["0 from step 9 of 100"], of=["learning rate"]),
)
test_data_readable = table(
    "job.data-readable",
    Severity.ERROR,
    *(
        fails(run(data={"problem": problem}), problem, f"Fix: {fix}")
        for problem, fix in (
            ("it is empty", "Check its file pattern"),
            ("its elements are ragged", "Pad"),
            ("reading batch 7 raised NotFoundError: a.tfrecord; No such file or directory", "Check the path"),
            ("reading batch 7 raised InvalidArgumentError: Cannot batch tensors with different shapes in", "Pad"),
            ("reading batch 7 raised DataLossError: corrupted record at 0", "Find the file"),
            ("reading batch 7 raised KeyError: 'label'", "Read it without a model"),
        )
    ),
    unknown(run(data={"unread": "used up"}), "data: used up."),
    unknown(run(job=None, outcome="died", phase=None), said={"data": ENDED.format("before its first phase")}),
)
test_model_in_scope = table("job.model-in-scope", Severity.ERROR, fails(run(model={"made_in": "outside"}), "outside"))
test_optimizer_in_scope = table(
    "job.optimizer-in-scope",
    Severity.ERROR,
    fails(run(model={"compiled_in": "outside"}), "outside"),
    skips(run(model={"compiled_in": None})),
)
test_variables_mirrored = table(
    "job.variables-mirrored",
    Severity.ERROR,
    fails(run(model={"mirrored": 4, "not_mirrored": ("a/kernel", "a/bias")}), "a/kernel, a/bias"),
    unknown(run(model={"trainable": 0, "mirrored": 0})),
    skips(run(model={"built": False})),
)
test_batch_divides = table(
    "job.batch-divides",
    Severity.ERROR,
    passes(run(data={"batch": 64}), "batch: 64 examples, 16 per replica."),
    fails(run(data={"batch": 62}), "batch: 62 examples cannot be split evenly over 4 replicas."),
    unknown(run(replicas=None)),
)
test_batch_is_global = table(
    "job.batch-is-global",
    Severity.WARNING,
    passes(run(data={"batch": 35}), "batch: 8 examples for each of 4 replicas."),
    passes(run(data={"batch": 8}), {"least_per_replica": 2}),
    fails(
        run(data={"batch": 31}),
        "batch: 31 examples for 4 replicas, 7 for each; this looks like a per-replica batch size.",
        " to 31 * strategy.num_replicas_in_sync = 124.",
        briefs=["only 7 examples for each of 4 replicas"],
    ),
    unknown(run(replicas=None)),
    skips(run(replicas=1)),
)
test_final_batch = table(
    "job.final-batch",
    Severity.ERROR,
    # A batch of n over R replicas is split into chunks of ceil(n / R), see docs/smoke.md.
    passes(run(data={"final_batch": None, "full_batches_only": True})),
    passes(
        run(model={"normalisations": ()}, data={"final_batch": 3}),
        "final batch: 3 examples over 4 replicas; no layer is affected by an empty replica.",
    ),
    passes(
        run(model={"normalisations": ()}, data={"final_batch": None}),
        "final batch: unknown size over 4 replicas; no layer is affected by an empty replica.",
    ),
    passes(run(data={"final_batch": 61})),
    passes(run(data={"endless": True}), "final batch: every batch is full."),
    passes(run(data={"final_batch": 3}, training={"final_nonfinite": ()}), "stay finite (measured here)"),
    fails(run(model={"normalisations": ()}, data={"final_batch": 3}, training={"final_nonfinite": ("a",)}), "in a"),
    fails(run(training={"final_problem": "ValueError: no"}), "ValueError: no"),
    fails(run(training={"final_nonfinite": ("a",), "nonfinite": ("a",)}), explained_by=["job.trains"]),
    fails(run(data={"final_batch": 5}), "5 examples over 4"),
    fails(run(data={"final_batch": 3}), "3 examples over 4"),
    unknown(run(data={"final_batch": None})),
    unknown(run(job=JobRun(data=DATA)), unjudged=["model"]),
)
test_epoch_ends = table(
    "job.epoch-ends",
    Severity.WARNING,
    passes(run(), "data: 10 batches."),
    passes(run(data={"batches": None}), "data: many batches."),
    passes(run(data={"endless": True, "steps_per_epoch": 1}), "data: 1 step per epoch, of any number of batches."),
    fails(run(data={"endless": True}), "infinite"),
    passes(run(data={"endless": None, "steps_per_epoch": 20}), "data: 20 steps per epoch"),
    fails(run(data={"endless": None, "kind": "generator"}), "not at its end after 3 s"),
    passes(run(data={"steps_per_epoch": 10})),
    fails(run(data={"steps_per_epoch": 11}), "data: 10 batches, and steps_per_epoch=11", "Fix: Leave out steps_per"),
    unknown(run(data={"endless": None})),
)
LOST = {"examples": 128, "examples_trained": 80}
NO_MEAN = "InvalidArgumentError: Value for attr 'T' of string is not in the list of allowed values"
test_examples = table(
    "job.examples",
    Severity.ERROR,
    passes(run(), "your data: the first 192 examples of an epoch, each trained once."),
    fails(run(training=LOST), "of the first 128 examples, fit trained 80.", of=["your data"], unsaid="from_generator"),
    fails(run(training=LOST, data={"kind": "generator"}), "from_generator"),
    fails(run(training={"examples": 128, "examples_trained": 136})),
    fails(run(training={"examples_problem": NO_MEAN}), "vectorize strings"),
    fails(run(training={"examples_problem": "ValueError: of the job"}), "fix the error"),
    skips(run(training={"examples": None})),
    unknown(run(training={"examples_trained": None})),
    unknown(run(training={"examples_trained": None, "examples_unread": "no time"}), "your data: no time."),
    skips(run(training=LOST, replicas=1)),
)
test_state = table(
    "job.state",
    Severity.WARNING,
    passes(run()),
    fails(
        run(training={"of_one_replica": ("bn/moving_mean", "bn/moving_variance")}), "bn/moving_mean", of=["your model"]
    ),
    skips(run(training={"of_one_replica": ("bn/moving_mean",)}, replicas=1)),
    *(
        fails(
            run(training={"of_one_replica": ("kl/seen",), **option("state of layers", value, **WRONG)}),
            briefs=["kl/seen is saved from one replica only"],
            explained_by=explained_by,
        )
        for value, explained_by in (("kl/seen, kl/sum", ["job.options"]), ("kl/sum", [""]))
    ),
)
test_prefetch = table(
    "job.prefetch",
    Severity.INFO,
    fails(run(data={"prefetched": False}), "prefetch"),
    skips(run(data={"prefetched": None, "kind": "arrays"})),
)
test_other_fits = table(
    "job.other-fits",
    Severity.WARNING,
    passes(run(fit=FIT), "train.py:9"),
    fails(
        run(fit=replace(FIT, others=("train.py:14", "train.ipynb:cell 3:2"))),
        "train.py:14, train.ipynb:cell 3:2",
        briefs=["another fit was not examined (train.py:14)"],
        of=["script"],
    ),
    fails(run(fit=replace(FIT, number=2, others=("train.py:20",))), "kdoctor check --fit 3"),
    skips(run(fit=None)),
)


def looped(**facts: Any) -> SmokeRun:
    """A script with a training loop."""
    return run(job=JobRun(strategy="MirroredStrategy", step=replace(STEP, **facts)))


RAISING = JobSave(place="train.py:17", error="model.save('last') will raise")
test_saves = table(
    "job.saves",
    Severity.ERROR,
    passes(run(fit=FIT), "train.py:17"),
    passes(looped(save=FIT.save), "train.py:17"),
    skips(run(fit=replace(FIT, save=None))),
    *(
        fails(
            each,
            "model.save('last') will raise (train.py:17)",
            briefs=["model.save('last') will raise (train.py:17)"],
            of=["script"],
        )
        for each in (run(fit=replace(FIT, save=RAISING)), looped(save=RAISING))
    ),
    skips(run(fit=None, step=None)),
)


def test_loop_has_no_fit() -> None:
    judged = {name: compute_check(check, looped()).status for name, check in CHECKS.items()}
    assert {name for name, status in judged.items() if status is Status.PASS} >= {
        "job.first-step",
        "job.model-and-data",
    }
    assert {judged[name] for name in ("job.trains", "job.data-readable", "job.model-in-scope")} == {Status.SKIP}


def apart(distance: float) -> dict[str, Any]:
    """Gradients that differ from one device's, however the examples are put together."""
    return dict.fromkeys(("deviation", "of_shares", "of_whole"), distance)


SAME = {"rows": (), "alike": True, "stretch": None, "deviation": None}
test_first_step = table(
    "job.first-step",
    Severity.ERROR,
    passes(looped(), "8 + 8", "equals one device's (4 replicas, within 1e-07)", evidence=3),
    passes(looped(stretch=1.25, **apart(0.05)), "within 5e-02)"),
    passes(looped(deviation=0.4), "up to how examples are put together"),
    passes(looped(deviation=0.4, of_shares=0.4, of_whole=1e-6), "up to how examples are put together"),
    passes(looped(**apart(0.4), noise=0.3, stretch_noise=0.25), "is as long as one device's"),
    fails(looped(**apart(0.06), noise=0.005), "by 0.06", "sum(model.losses)"),
    fails(looped(**SAME), "same on every replica", "Fix: Give strategy.run", of=["examples of the loop"]),
    fails(looped(**SAME, of_keras=True), "Fix: Use fit"),
    fails(
        looped(stretch=2.0, deviation=1.0),
        "2 times",
        "Fix: Divide the loss by the global",
        of=["gradients of the loop"],
    ),
    fails(looped(stretch=2.0, stretch_noise=0.09, sums=1), "2 times", "Divide the loss"),
    fails(looped(stretch=2.0, sums=2), "2 times", "Leave out the all_reduce"),
    fails(looped(stretches=(1.0, 2.0)), "those of 1 of 4 variables are 2 times", "Divide the loss"),
    fails(looped(stretch=0.5), "0.5 times", "Fix: Divide the loss once"),
    fails(looped(stretch=0.7, deviation=0.6, of_shares=0.7), "by 0.6", "sum(model.losses)"),
    fails(looped(different=("kernel",)), "kernel differ between the replicas", of=["weights of the loop"], evidence=2),
    fails(looped(nonfinite=("kernel", "bias")), "kernel, bias hold NaN"),
    unknown(looped(stretch=0.7, stretch_noise=0.1, deviation=0.6, of_shares=0.6, noise=0.5), "random numbers"),
    unknown(looped(stretch=2.0, stretch_noise=0.5, deviation=0.9, of_shares=0.8, noise=0.4), "random numbers"),
    unknown(looped(rows=(), unseen="RaggedTensor"), "gets RaggedTensor"),
    unknown(looped(rows=()), "gets no batch"),
    unknown(looped(updated=0, not_compared="it updates nothing"), "it updates nothing", evidence=1),
    unknown(looped(stretch=None)),
    unknown(looped(deviation=None)),
    unknown(looped(**apart(0.4), noise=0.3, stretch_noise=0.26), "change those of one device by 0.3 as well"),
    skips(run(step=None)),
)


def monitoring(*names: str, validation: bool = True) -> SmokeRun:
    """A job with a callback for each of these numbers."""
    own = run()
    job = job_of(own)
    given = ("validation_data",) if validation else ()
    return run(job=replace(job, monitored=dict.fromkeys(names, "EarlyStopping"), fit_arguments=given))


def plotting(*names: str) -> SmokeRun:
    job = job_of(monitoring())
    return run(job=replace(job, fit=JobFit(number=1, place="train.py:9", history=names)))


test_monitors = table(
    "job.monitors",
    Severity.WARNING,
    passes(monitoring("val_loss", "accuracy", "lr"), "val_loss, accuracy"),
    fails(
        monitoring("val_acc", "loss"),
        "fit reports loss, accuracy, val_loss, val_accuracy",
        briefs=["EarlyStopping reads val_acc, which fit does not report"],
    ),
    fails(monitoring("val_loss", validation=False), "fit reports loss, accuracy."),
    passes(plotting("loss", "val_accuracy"), "loss, val_accuracy"),
    fails(plotting("acc"), "fit reports loss", briefs=["history reads acc, which fit does not report"]),
    unknown(run(job=replace(job_of(monitoring("loss")), training=replace(TRAINING, own=None)))),
    skips(monitoring(), "no callback"),
    skips(run(job=replace(job_of(run()), monitored=None)), "may add numbers"),
)
test_learning_rate = table(
    "job.learning-rate",
    Severity.INFO,
    # float32 cannot tell smaller differences from the default, and kdoctor allows ten parts in a million.
    passes(run(model={"schedule": None, "learning_rate": 0.001 * (1 + 1.5e-05)})),
    passes(run(model={"schedule": None, "learning_rate": 0.001}, replicas=1)),
    passes(run(model={"schedule": None}), "learning rate: 0.004 on 4 replicas."),
    passes(run(), "learning rate: set by CosineDecay."),
    fails(
        run(model={"schedule": None, "learning_rate": 0.001}),
        "learning rate: 0.001, the default of Adam, on 4 replicas.",
        "Fix: If 0.001 suits one device, try 0.004 with a warm-up.",
    ),
    unknown(run(model={"schedule": None, "learning_rate": None}), "learning rate: Adam does not report it."),
    skips(run(model={"optimizer": None})),
)
test_clipping = table(
    "job.clipping",
    Severity.ERROR,
    passes(run(model={**CLIPS, "keras": "tf_keras 2.21.0"}, training={"own": None})),
    fails(run(model=CLIPS, training=option("clipping", "clipnorm=1", effect=1e-06)), "measured with keras"),
    fails(run(model=CLIPS, training=option("clipping", "clipnorm=1", **WRONG)), "0.3, without it by 1e-06"),
    fails(
        run(model={**CLIPS, "keras": "tf_keras 2.21.0"}, training=option("clipping", "clipnorm=1", **WRONG)),
        "measured here",
    ),
    fails(
        run(model={"clipping": ("clipvalue=1",), "keras": "keras 3.13.0"}, training={"own": None}),
        "was not measured, but",
    ),
    unknown(
        run(model=CLIPS, training={"own": None}, strategy=None),
        "optimizer Adam: measured under MirroredStrategy only, not under an unknown strategy.",
    ),
    unknown(
        run(model=CLIPS, training={"own": None}, strategy="TPUStrategy"),
        "optimizer Adam: measured under MirroredStrategy only, not under TPUStrategy.",
    ),
    skips(run(model={"optimizer": None})),
)
test_several_workers = table(
    "job.several-workers",
    Severity.ERROR,
    passes(run(workers=1), "fit: one worker."),
    passes(run(model={"keras": "tf_keras 2.21.0"}, workers=2), "on 2 workers"),
    fails(run(workers=2), "keras 3.15.1 on 2 workers: worker 0: ValueError", "Fix: Train with tf_keras"),
    unknown(run(workers=None), "fit: no TF_CONFIG names the workers"),
    unknown(run(model={"keras": "keras 3.99"}, workers=2)),
    skips(run(strategy="MirroredStrategy", workers=None)),
    skips(run(strategy=None, workers=2)),
)
test_steps_per_execution = table(
    "job.steps-per-execution",
    Severity.ERROR,
    passes(run(model=SEVERAL_STEPS, training={"steps": 2})),
    passes(run(), "steps_per_execution: 1."),
    fails(run(model={"steps_per_execution": 8}, training={"steps": 1}), "8 on 4 replicas: InvalidArgumentError"),
    fails(
        run(
            model={"steps_per_execution": 8, "keras": "tf_keras 2.21.0"},
            training=option("steps_per_execution", "steps_per_execution=8", problem="ValueError: no"),
        ),
        "8 on 4 replicas: ValueError: no. But for that, the job trains (measured here)",
    ),
    unknown(run(model={"steps_per_execution": None}), "steps_per_execution: the model does not report it."),
    unknown(run(model=SEVERAL_STEPS, training={"steps": 1})),
    skips(run(model={"compiled": False})),
)
test_options = table(
    "job.options",
    Severity.ERROR,
    passes(run(model=AVERAGED, training=own(deviation=0.01))),
    passes(run(model=AVERAGED, training=own(rounded_share=0.5))),
    unknown(run(model=AVERAGED, training=own(deviation=0.0011, precise=True)), of=["use_ema"]),
    # An option counts as right up to a tenth of what it changes, and of a tenth.
    passes(run(model=AVERAGED, training=option("use_ema", "on", effect=0.4, deviation=0.1 * 0.1))),
    passes(run(), "options: none that Keras implements separately"),
    passes(
        run(model=AVERAGED, replicas=None),
        "use_ema: use_ema=True on an unknown number of replicas: weights match one device's (measured here).",
    ),
    fails(
        run(model=AVERAGED, training=option("use_ema", "use_ema=True", **WRONG)),
        "use_ema=True on 4 replicas: weights differ from one device's by 0.3",
    ),
    fails(run(training=option("optimizer built late", "late", problem="ValueError: no")), "ValueError: no"),
    fails(
        run(training=option("optimizer built late", "late", **WRONG)),
        "by 0.3, without it by 1e-06",
        briefs=["replicas and one device train differently"],
    ),
    fails(run(training=option("model without call", "", problem="RuntimeError: no")), "a model without call()"),
    fails(run(training=option("changed gradients", "AGC.apply", **WRONG)), "AGC.apply on 4"),
    fails(run(training=option("state of layers", "kl/seen", **WRONG)), "kl/seen on 4"),
    # It is the cause if the replicas differ by at most a tenth of that without it.
    fails(run(model=AVERAGED, training=option("use_ema", "on", **DIFFERS, without=0.05))),
    unknown(run(model=AVERAGED, training=option("use_ema", "on", effect=0.4, deviation=0.0101))),
    unknown(run(model=AVERAGED, training=option("use_ema", "on", **DIFFERS, without=0.06))),
    skips(run(model={"compiled": False})),
)
test_masked_loss = table(
    "job.masked-loss",
    Severity.WARNING,
    passes(run(), "masks: no layer and no loss masks tokens."),
    passes(run(model=MASKED), "masks: embedding on 4 replicas: weights match one device's (measured here)."),
    fails(run(model=MASKED, training=option("masks", "embedding", **WRONG)), "0.3, without it by 1e-06"),
    unknown(run(training={"own": None, "options_when_built": MASKED["options"]})),
    unknown(run(model={"options": None}), "masks: the options of the model were not read."),
    unknown(run(model=MASKED, training={"own": None})),
    skips(run(model=MASKED, replicas=1)),
)
ZEROS = {"loss": 0.0, "accuracy": 0.0, "val_loss": 2.0}
test_metrics = table(
    "job.metrics",
    Severity.ERROR,
    passes(run(training=own(logs={"accuracy": 0.6}, reordered_logs={"accuracy": 0.58}))),
    passes(run(training=own(**validated(0.8, 0.8))), "validation: val_loss, as on one device."),
    passes(run(training=own(deviation=0.01))),
    passes(run(training=evaluated((61, 0.6), (64, 0.5)))),
    passes(run(), "fit: accuracy, as on one device.", "evaluate: loss, accuracy, as on one device."),
    passes(run(training=own(logs={"loss": 1.0}, reference_logs={"loss": 1.0})), "fit: no metrics besides the loss."),
    fails(run(training=own(logs={"loss": 0.9, "accuracy": 0.6})), "accuracy is 0.6 instead of 0.5", "assign_add"),
    # Half on two replicas is a part; a quarter on them, or with another number, is something else.
    *(
        fails(run(training=own(logs=logs, reference_logs={"d": 0.8, "g": 0.6}), replicas=2), fix)
        for logs, fix in (
            ({"d": 0.4, "g": 0.6}, "Keras 3 divides them"),
            ({"d": 0.2, "g": 0.6}, "assign_add"),
            ({"d": 0.4, "g": 0.5}, "assign_add"),
            ({"d": None, "g": 0.3}, "assign_add"),
        )
    ),
    *(
        fails(run(training=half, replicas=2), "Keras 3 divides them")
        for half in (own(**validated(0.4, 0.8)), evaluated((64, 0.25)))
    ),
    fails(run(training=own(logs={"loss": 0.9})), "accuracy is not reported instead of 0.5"),
    fails(run(training=own(logs=ZEROS, reference_logs=ZEROS)), "reports 0 in each step: loss, accuracy"),
    passes(run(training=own(logs=ZEROS | {"d_loss": 1.0}, reference_logs=ZEROS | {"d_loss": 1.0}))),
    fails(run(training=evaluated((61, 0.6), (64, 0.6))), briefs=["accuracy is 0.6 instead of 0.5", ""]),
    fails(
        run(training={"evaluations": (JobEvaluation(final_batch=64, problem="no", reference=LOGS),)}),
        briefs=["raises", ""],
    ),
    fails(run(training=scaled(64)), explained_by=[f"{LOSSES}, job.equals-one-device"]),
    fails(run(training=own(deviation=0.01, **validated(0.9, 0.8))), explained_by=[f"{LOSSES}, job.equals-one-device"]),
    fails(run(training={**own(rounded_share=0.5), **evaluated((64, 0.6))})),
    fails(run(training={"deviation": 0.01, "noise": 0.3, **evaluated((64, 0.6))})),
    unknown(run(job=replace(job_of(run()), validation_unread="used up")), "validation_data was not read: used up"),
    unknown(run(training={"own": None}), "fit: its metrics were not compared with one device: it was not run."),
    unknown(run(training=own(deviation=0.0101))),
    unknown(run(training={**own(rounded_share=0.51), **evaluated((64, 0.6))})),
    unknown(run(training=own(rounded_share=0.51, logs={"accuracy": 0.6}))),
    unknown(run(training=own(rounded_share=0.51, **validated(0.9, 0.8)))),
    skips(run(replicas=1)),
)
test_evaluate = table(
    "job.evaluate",
    Severity.WARNING,
    passes(run(), "evaluate: loss, accuracy, as on one device with a final batch of 61 examples over 4 replicas."),
    fails(run(training=evaluated((61, 0.51), (64, 0.5))), "0.51 instead of 0.5 (with a final batch of 61"),
    passes(run(training=evaluated((61, 0.503), bit=2.0**-8))),
    fails(run(training=evaluated((61, 0.6), (64, 0.6))), explained_by=[f"{LOSSES}, job.metrics"]),
    fails(  # another number is wrong in full batches
        run(training={"evaluations": scaled(61)["evaluations"] + evaluated((64, 0.6))["evaluations"]}),
        explained_by=[f"{LOSSES}, job.equals-one-device"],
    ),
    fails(run(training=scaled(61)), explained_by=[f"{LOSSES}, job.equals-one-device"]),
    unknown(run(training={"evaluations": ()}), "evaluate: not compared with one device: evaluate was not run."),
    skips(run(training={"evaluations": (), "evaluate_raises": "ValueError: No loss to compute."})),
    unknown(run(training={**NOISY, **evaluated((61, 0.6))})),
    unknown(run(replicas=None), "job: the number of replicas is not known."),
    skips(run(replicas=1)),
    skips(run(training=evaluated((64, 0.5)))),
)
WITHIN = "your model on 4 replicas equals one device (within 1e-06)"
test_equals_one_device = table(
    "job.equals-one-device",
    Severity.ERROR,
    passes(run(), briefs=["", WITHIN]),
    passes(run(training=SGD), briefs=[WITHIN]),
    passes(run(training={"deviation": 0.05, "noise": None})),
    passes(run(training=own(deviation=0.01))),
    passes(
        run(training=own(rounded=("a/bias",))),
        "weights match one device's (relative difference 1e-06 after 3 steps; rounding decides a/bias).",
    ),
    passes(
        run(training=own(rounded_share=0.5)),
        "your model with Adam: weights match one device's (relative difference 1e-06 after 3 steps).",
    ),
    # With SGD the loss function may be wrong, with Adam, which hides a factor, only the step itself.
    fails(run(training={**SGD, **own(deviation=0.3)}), "0.3 after 3 steps", "Fix: Return one number per example from"),
    fails(run(training={"deviation": 1.0}), "1 after 3 steps"),
    fails(run(training={"deviation": 1.0, "stretch": 2.0}), "2 times as far"),
    fails(run(training={"deviation": 1.0, "of_whole_batch": "outputs"}), "Compute the outputs of an example"),
    fails(run(training=own(deviation=0.0011, precise=True)), "at most 0.001"),
    fails(run(training={"deviation": 0.0011, "precise": True}), "at most 0.001"),
    fails(run(training=own(deviation=0.3)), "another optimizer than Adam", "any step that is not linear"),
    fails(
        run(training={**own(deviation=0.3), "deviation": None}, outcome="timed-out", phase="build", seconds=600.0),
        "Fix: Allow more time (--model-timeout)",
    ),
    fails(run(training={**own(deviation=0.3), "of_whole_batch": "layers"}), "add_loss"),
    fails(run(training={**own(deviation=0.3), "of_whole_batch": "loss"}), "pairs"),
    fails(run(training={**own(deviation=0.3), "of_whole_batch": "step"}), "all_gather"),
    # Both have one cause, so they have one fix.
    fails(run(training={**own(deviation=0.08), "deviation": 1.0, "stretch": 2.0}), "divide the loss by the number"),
    fails(run(training={**NOISY, "noise": 0.5, "stretch": 2.0, "stretch_noise": 1.01})),
    unknown(
        run(training={"deviation": None}),
        "your model with plain SGD: not compared with one device: the weights are not finite.",
    ),
    unknown(run(training=own(rounded_share=0.9, noise=0.25)), "Adam: another order ", "one device by 0.25 as well"),
    unknown(run(training=own(rounded_share=0.51, noise=None)), "Adam: another order ", "one device by 0 as well"),
    unknown(run(training={**NOISY, "stretch": 1.25, "stretch_noise": 1.0})),
    unknown(run(training={**NOISY, "stretch": 2.0, "stretch_noise": 0.85})),
    unknown(
        run(training=own(deviation=None)),
        "your model with Adam: not compared with one device: the weights are not finite.",
    ),
    unknown(
        run(training={"deviation": None}, outcome="died", phase="reference", signal="SIGKILL"),
        "your model with plain SGD: not compared with one device: terminated by SIGKILL in phase reference",
    ),
    unknown(run(training={"not_run": "not compiled"}), "training: not compiled."),
    skips(run(replicas=1)),
)
test_random_layers = table(
    "job.random-layers",
    Severity.WARNING,
    passes(run(model={"random_layers": None}, training={"own_losses": ()})),
    passes(
        run(training={"different_draws": ("mine",)}),
        "random layers: mine: different numbers on each replica (measured here).",
    ),
    passes(run(model={"random_layers": None}, training={"stilled": ()}), "random layers: none."),
    fails(run(model={"random_layers": None}, training={"stilled": ("noise",)}), "noise on 4"),
    fails(run(model={"random_layers": ("drop",)}, training=UNDRAWN), "drop on 4 replicas"),
    fails(
        run(training={"equal_draws": ("mine",)}, replicas=None),
        "random layers: mine on an unknown number of replicas: equal numbers on two of them (measured here).",
    ),
    fails(run(model={"random_layers": ()}, training={"stilled": (), "draws_alike": True}), "what a step draws on 4"),
    fails(run(training={"numpy_draws": True}), "equal numbers in every step"),
    unknown(
        run(model=OWN_RANDOM, training=UNDRAWN),
        "random layers: mine was not measured: calling it alone raised ValueError.",
    ),
    unknown(run(model=OWN_RANDOM, training={"not_run": "no copy"}), "random layers: mine was not measured: no copy."),
    unknown(run(model=OWN_RANDOM), "random layers: mine was not measured: no copy of the model was trained."),
    # Those of a job that was not trained are judged by their Keras.
    fails(
        run(job=JobRun(model=replace(MODEL, random_layers=("dropout",)), data=DATA)), "dropout on 4 replicas: ", of=1
    ),
)
test_input_bound = table(
    "job.input-bound",
    Severity.INFO,
    passes(run(data={"seconds_per_batch": 0.0099})),
    fails(run(data={"seconds_per_batch": 0.01})),
    unknown(run(training={"not_run": "not compiled"}), "training: not compiled."),
)
test_memory_headroom = table(
    "job.memory-headroom",
    Severity.WARNING,
    passes(run(training={"memory": (JobMemory(device="g", peak_bytes=9, limit_bytes=10),)})),
    passes(
        run(training={"memory": (JobMemory(device="g", peak_bytes=3 * 2**30, limit_bytes=4 * 2**30),)}),
        "g: peak 3.00 of 4.00 GiB (75%).",
    ),
    fails(run(training={"memory": (JobMemory(device="g", peak_bytes=75, limit_bytes=80),)}), "94%"),
    unknown(run(training={"memory": ()})),
    skips(replace(run(training={"memory": ()}), devices_kind="cpu")),
)


def on_gpus(listed: int, on_bus: int | None = 4, mask: str | None = None, *, distributed: bool = True) -> SmokeRun:
    return run(gpus=JobGpus(on_bus=on_bus, listed=listed, mask=mask, is_distributed=distributed))


test_on_gpus = table(
    "job.on-gpus",
    Severity.ERROR,
    passes(on_gpus(4), "4 GPUs"),
    passes(on_gpus(1, distributed=False)),
    passes(on_gpus(0, mask="-1"), "CUDA_VISIBLE_DEVICES=-1"),
    passes(on_gpus(0, mask="")),
    fails(on_gpus(0), "0 GPUs of the 4 on the PCI bus"),
    fails(on_gpus(0, mask="0,1")),
    fails(on_gpus(4, distributed=False), "no strategy"),
    unknown(on_gpus(0, on_bus=None), "PCI bus"),
    skips(on_gpus(0, on_bus=0)),
    skips(run(gpus=None)),
    fails(run(job=JobRun(model=MODEL, data=DATA, devices=0)), "makes no GPU visible", "Fix: Leave out set_visible"),
)
WITH_ARGUMENTS = JobRun(model=MODEL, data=DATA, training=TRAINING, fit_arguments=("class_weight", "validation_data"))
AFTER_OPTION = JobRun(
    model=MODEL,
    data=DATA,
    training=replace(JobTraining(steps=8), **option("jit_compile", "jit_compile=True", problem="no")),
)
test_trains = table(
    "job.trains",
    Severity.ERROR,
    passes(
        run(training=option("use_ema", "use_ema=True", problem="it raised")),
        "training: 3 steps (without: use_ema=True), losses 1, 0.9, 0.8.",
    ),
    passes(run(), "pass arguments of fit: ", "unless --fit-arguments", briefs=["", ""]),
    passes(run(replicas=1), briefs=["your model trains on 1 replica", ""]),
    passes(run(job=WITH_ARGUMENTS), "arguments of fit: trained with class_weight, validation_data; "),
    fails(run(job=AFTER_OPTION, outcome="timed-out", phase="build", seconds=600.0), "your model: hung in phase build"),
    fails(
        run(training={"problem": "You must feed a value for placeholder", "trains_share": False}), "optimizer.build("
    ),
    fails(run(training={"odd_problem": "batch 18: ValueError: no"}), "batch 18: ValueError", "of that batch"),
    fails(run(training={"frozen": True}), "none of its variables is trainable", "Set trainable = True"),
    fails(
        run(training={"own_losses": (1.0, None)}, data={"nonfinite": "batch 16"}),
        "batch 16 of the data holds NaN",
        "Leave those examples out",
    ),
    fails(run(training={"problem": "ValueError: no", "trains_alone": True}), "first axis"),
    fails(run(training={"problem": "ValueError: no", "trains_share": False}), "shares of a replica"),
    fails(run(training={"problem": "RuntimeError: `merge_call` called"}), "larger batches"),
    fails(run(training={"problem": "ValueError: no", "trains_alone": False}), "One device raises an error, too"),
    fails(
        run(training={"own_losses": (1.0, None), "nonfinite": ("a/bias",)}),
        "your model: losses 1, not finite; NaN or infinity in a/bias.",
    ),
    fails(
        run(training={"ended_by": "CSVLogger raises in the first epochs: FileNotFoundError: no/log.csv"}),
        "callbacks: CSVLogger raises",
        "leave it out",
        of=["callbacks"],
    ),
    unknown(run(training={"not_run": "not compiled"})),
    unknown(run(job=None, outcome="timed-out", phase="script"), "ended in phase script (out of time: --model-timeout)"),
    unknown(
        run(job=JobRun(model=MODEL), outcome="died", phase="data"), said={"training": ENDED.format("in phase data")}
    ),
)
test_reported_loss = table(
    "job.reported-loss",
    Severity.INFO,
    passes(run(training=SGD), "loss: 0.9, as on one device."),
    fails(run(training={**SGD, **own(logs={"loss": 0.45})}), "0.45 instead of 0.9"),
    fails(run(training={"losses": (4.0, 3.8, 3.6)}), "loss: 4, 3.8, 3.6 instead of 1, 0.95, 0.9."),
    unknown(run(training={"losses": (0.25, 0.24, 0.22), "deviation": 0.3, "noise": 0.03})),
    unknown(run(training={**SGD, **own(logs={"accuracy": 0.5})}), "loss: it was not compared with one device."),
)
OF_A_CELL = (
    "train.ipynb raised FileNotFoundError: weights-of-the-day.h5: No such file or directory (train.ipynb:cell 2:3)"
)
test_model_and_data = table(
    "job.model-and-data",
    Severity.ERROR,
    passes(run(data={"kind": "PyDataset"}), "data: PyDataset."),
    passes(run(model={"name": "Ours"}), "model: Ours."),
    passes(
        run(job=JobRun(model=MODEL, data=DATA, strategy="Other")),
        "over 4 replicas in place of Other: one worker is examined.",
    ),
    passes(run(job=JobRun(model=MODEL, data=DATA, strategy="")), "the script makes no strategy"),
    passes(
        run(job=JobRun(model=MODEL, data=DATA, strategy="MirroredStrategy", devices=2)), "names 2 devices, examined"
    ),
    passes(run(job=JobRun(model=MODEL, data=DATA, strategy="MirroredStrategy", devices=4)), "MirroredStrategy over 4"),
    fails(
        run(job=JobRun(problem=JobProblem(part="model", message="build raised ValueError: no"))), "model: build rais"
    ),
    fails(run(job=JobRun(problem=JobProblem(part="data", message="no bild", raised=False))), "Make it a function"),
    fails(run(job=JobRun(problem=JobProblem(part="data", message="no bild", fix="Name one."))), "Name one."),
    fails(
        run(job=JobRun(problem=JobProblem(part="model", message="ModuleNotFoundError: No module named 'a.b'"))),
        "Install the package of a.b in the environment that is examined",
    ),
    fails(
        run(job=JobRun(problem=JobProblem(part="script", message="OSError: a: No such file or directory"))),
        "Check the path",
    ),
    fails(
        run(job=JobRun(problem=JobProblem(part="script", message=OF_A_CELL))),
        "Make the file first",
        briefs=["FileNotFoundError: weights-of-the-day.h5: No such file ... (train.ipynb:cell 2:3)"],
    ),
    fails(run(job=JobRun(problem=JobProblem(part="script", message="no fit", raised=False))), "Make it a script"),
    fails(run(job=None, outcome="timed-out", phase="model", seconds=600.0), "phase model", of=["model"]),
    fails(run(job=None, outcome="timed-out", phase="data", seconds=600.0), "phase data", of=["data"]),
    fails(run(job=None, outcome="timed-out", phase="strategy", seconds=600.0), "phase strategy", of=["job"]),
    unknown(run(job=None, outcome="timed-out", phase="script", seconds=600.0), "--model-timeout"),
    unknown(run(job=None, outcome="skipped", skip_reason="Keras computes with jax"), "Keras computes with jax"),
    unknown(run(job=JobRun(model=MODEL))),
    unknown(run(job=JobRun(data=DATA))),
    unknown(smoke_run("smoke.own-model", 4, failure="it died", cases=()), said={"job": "it died"}),
    unknown(smoke_run("smoke.own-model", 4, cases=()), said={"job": "the run ended before it had a result"}),
)


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
        option="", used="both", judged=Judged("it", "none", "Change it.", "wrong"),
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
