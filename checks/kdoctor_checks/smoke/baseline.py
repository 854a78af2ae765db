"""Whether a small model trains over all replicas as it does on one device."""

from __future__ import annotations

import math
from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import Packages, SmokeCase, SmokeRun, Target, Unavailable, Weights
from kdoctor.model import Action, Evidence, Finding, Outcome, Remedy, Severity, Unjudged
from kdoctor.text.lists import some
from kdoctor_checks.smoke._cases import (
    MEASURE_ONLY,
    TOLERANCE,
    did_not_finish,
    missing,
    name_of,
    replicas_asked,
    show,
    wrong_arithmetic,
)

_CASE = "mirrored"


@check(
    "smoke.baseline",
    severity=Severity.ERROR,
    requires=["versions.tensorflow-installed"],
    scenario="smoke.baseline",
)
def baseline(
    run: SmokeRun,
    target: Target | Unavailable,
    packages: Packages | Unavailable,
    *,
    tolerance: float = TOLERANCE,
    loss_tolerance: float = 1e-3,
) -> Iterator[Outcome]:
    """A small model trains over all replicas, and ends with the weights that one device gives.

    Why: some versions of Keras sum gradients over the replicas or do not exchange them, and a machine that lost its
    GPUs trains on the CPU, all without a word. Only a training that is compared with one device shows it. Equal
    means within ``tolerance`` for weights (float32 rounding gives 2e-7, the known defects 0.03 and more) and within
    ``loss_tolerance`` of the loss, relatively, for the losses that fit reports.
    Remedy: find out what TensorFlow sees (GPUs), what it raised, or install a Keras that reduces gradients and
    losses over the replicas rightly (3.10 or later).
    Sources:
        https://www.tensorflow.org/guide/distributed_training
        https://keras.io/guides/distributed_training_with_tensorflow/
    Failure modes: silent_one_cpu_replica, iommu_acs, geforce_p2p_nan, keras3_grads_not_reduced,
        keras3_lr_times_replicas, keras3_metrics_wrong_or_nan
    """
    case = run.case(_CASE)
    if case is None and run.failure:
        yield _cannot_train(run)
    elif case is None:
        yield missing(run, _CASE)
    elif case.outcome != "trained":
        yield did_not_finish(run, case)
    else:
        found = list(_judge(run, case, target, packages, tolerance, loss_tolerance))
        yield from found or [_evidence(run, case)]


def _cannot_train(run: SmokeRun) -> Finding:
    failure = run.failure or ""
    return Finding(
        subject="import tensorflow",
        observed=failure,
        expected="TensorFlow is imported, and the trainings run",
        remedy=_other_backend() if failure.startswith("WrongBackendError") else _by_hand(),
        rollback=MEASURE_ONLY,
    )


def _other_backend() -> Remedy:
    return Remedy(
        summary="For a job under a strategy of tf.distribute let Keras compute with TensorFlow. A job on JAX is spread "
        "by keras.distribution: try that instead (kdoctor smoke --strategy data-parallel).",
        action=Action.CONFIGURE,
        commands=("export KERAS_BACKEND=tensorflow",),
    )


def _by_hand() -> Remedy:
    return Remedy(
        summary="Import TensorFlow and its Keras by hand and follow what they say; a crash or a hang before any "
        "training is most often a broken installation, or a file system that does not answer.",
        action=Action.REINSTALL,
        commands=('python -X faulthandler -c "import tensorflow; tensorflow.keras"', "python -m pip check"),
    )


def _judge(
    run: SmokeRun,
    case: SmokeCase,
    target: Target | Unavailable,
    packages: Packages | Unavailable,
    tolerance: float,
    loss_tolerance: float,
) -> Iterator[Outcome]:
    """Findings and what could not be judged; nothing if all is well."""
    yield from _judge_replicas(run, case)
    if case.weights is None:
        yield Unjudged(subject=name_of(case), reason="its weights were not read")
        return
    yield from _judge_weights(run, case, case.weights)
    yield from _judge_losses(case)
    if case.weights.replicas_agree is False:
        yield wrong_arithmetic(run, case, "the replicas hold different weights after the same steps", target, packages)
    if case.weights.nonfinite:
        return
    if case.weight_deviation is None:
        yield Unjudged(subject=name_of(case), reason="its weights were not compared with one device")
    elif case.weight_deviation > tolerance:
        observed = f"weights differ by up to {case.weight_deviation:.2g} (tolerance {tolerance:g})"
        yield wrong_arithmetic(run, case, observed, target, packages)
    elif not case.reference_losses or len(case.reference_losses) != len(case.losses):
        yield Unjudged(subject=name_of(case), reason="its losses were not compared with one device")
    elif not _same(case.losses, case.reference_losses, loss_tolerance):
        observed = f"fit reports losses of {show(case.losses)}, on one device {show(case.reference_losses)}"
        yield wrong_arithmetic(run, case, observed, target, packages)


def _judge_replicas(run: SmokeRun, case: SmokeCase) -> Iterator[Outcome]:
    asked = replicas_asked(run)
    if case.replicas is None or asked is None:
        yield Unjudged(subject=name_of(case), reason="the number of replicas is not known")
        return
    on_cpu = [device for device in case.devices if "device:GPU" not in device]
    silent_cpu = run.devices_kind == "gpu" and bool(on_cpu)
    if case.replicas == asked and not silent_cpu:
        return
    seen = "" if run.gpus_seen is None else f"; TensorFlow lists {run.gpus_seen} GPUs"
    yield Finding(
        subject="replicas",
        observed=f"{case.replicas} replicas, on {', '.join(case.devices) or 'unknown devices'}{seen}"
        + (": it trained on the CPU and said nothing" if silent_cpu else ""),
        expected=f"{asked or 'at least 1'} replicas"
        + (", each on a GPU of its own" if run.devices_kind == "gpu" else ""),
        remedy=Remedy(
            summary="Find out why TensorFlow does not see the GPUs: its messages name the library that is missing; "
            "then CUDA_VISIBLE_DEVICES and the driver.",
            action=Action.CONFIGURE,
            commands=(
                "python -c \"import tensorflow as tf; print(tf.config.list_physical_devices('GPU'))\"",
                "nvidia-smi -L",
            ),
        ),
        rollback=MEASURE_ONLY,
    )


def _judge_weights(run: SmokeRun, case: SmokeCase, weights: Weights) -> Iterator[Outcome]:
    problems = []
    if weights.variables == 0:
        yield Unjudged(subject=name_of(case), reason="the model has no trainable variables")
    elif weights.mirrored < weights.variables:
        problems.append(f"{weights.mirrored} of {weights.variables} trainable variables are mirrored on every replica")
    if weights.nonfinite:
        problems.append(f"NaN or infinity in {some(weights.nonfinite)}")
    for problem in problems:
        yield Finding(
            subject=name_of(case),
            observed=problem,
            expected="every trainable variable mirrored on every replica, and finite",
            remedy=Remedy(
                summary=f"{run.keras or 'This Keras'} with TensorFlow {run.tensorflow or ''} does not keep the "
                "replicas together: use a pair of versions that is known to work, and do not train on this one.",
                action=Action.REINSTALL,
            ),
            rollback=MEASURE_ONLY,
        )


def _judge_losses(case: SmokeCase) -> Iterator[Outcome]:
    if len(case.losses) < 2:  # noqa: PLR2004 - a fall needs two
        yield Unjudged(subject=name_of(case), reason="fewer than two epochs have a loss")
        return
    first, last = case.losses[0], case.losses[-1]
    if None in case.losses or first is None or last is None or last >= first:
        yield Finding(
            subject=name_of(case),
            observed=f"losses of the epochs: {show(case.losses)}",
            expected="finite, and falling",
            remedy=Remedy(
                summary="Train the same model on one device of this machine; if that is right, the exchange between "
                "the devices is at fault, and if not, the installation or the hardware is.",
                action=Action.INSPECT_HARDWARE,
            ),
            rollback=MEASURE_ONLY,
        )


def _same(losses: tuple[float | None, ...], others: tuple[float | None, ...], tolerance: float) -> bool:
    return all(
        one is not None and other is not None and math.isclose(one, other, rel_tol=tolerance, abs_tol=tolerance / 10)
        for one, other in zip(losses, others, strict=True)
    )


def _evidence(run: SmokeRun, case: SmokeCase) -> Evidence:
    times = [
        f"{label} {value:.3g} s"
        for label, value in (
            ("import", run.import_s),
            ("build", case.build_s),
            ("first step", case.first_step_s),
            ("step", case.step_s),
        )
        if value is not None
    ]
    memory = [] if case.peak_memory_bytes is None else [f"peak memory {case.peak_memory_bytes / 2**20:.0f} MiB"]
    weights = case.weights.variables if case.weights else 0
    return Evidence(
        subject=name_of(case),
        observed=f"{case.replicas} replicas ({run.devices_kind}), {weights} variables mirrored on each; losses "
        f"{show(case.losses)}; weights within {case.weight_deviation:.2g} of one device; "
        + ", ".join([run.keras or "Keras unknown", *times, *memory]),
    )
