from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.commands.shell import quoted
from kdoctor.facts import Environment, Packages, SmokeCase, SmokeRun, Target, Unavailable, Weights
from kdoctor.model import Evidence, Finding, Outcome, Remedy, Severity, Unjudged
from kdoctor.text.lists import counted, some
from kdoctor_checks._causes import NO_GPU, of_replicas, of_weights
from kdoctor_checks.smoke._cases import format_losses
from kdoctor_checks.smoke._frameworks import framework_and_version, keras_of, this_keras
from kdoctor_checks.smoke._imports import judge_import
from kdoctor_checks.smoke._judging import (
    LOSS_TOLERANCE,
    TENSORFLOW,
    TOLERANCE,
    Comparison,
    Problem,
    did_not_finish,
    finding,
    loss_falls,
    requested_replicas,
    starves,
    subject,
    training,
    unknown,
)

_LOSS_REMEDY = Remedy.inspect(
    "Train the same model on one device. If its loss falls there, the exchange between the devices is at fault."
)


@check("smoke.baseline", severity=Severity.ERROR, requires=TENSORFLOW, explained_by=NO_GPU, scenario="smoke.baseline")
def baseline(
    run: SmokeRun,
    target: Target | Unavailable,
    packages: Packages | Unavailable,
    environment: Environment | Unavailable,
    *,
    tolerance: float = TOLERANCE,
    loss_tolerance: float = LOSS_TOLERANCE,
) -> Iterator[Outcome]:
    """A small model trained on all replicas matches one device.

    Why: some Keras versions sum gradients over the replicas or do not reduce them, and a machine without working GPUs
    trains on the CPU, all without an error. Only a comparison with one device shows it. One replica is that device, so
    it is compared with gradient descent in NumPy. Weights must be equal within ``tolerance`` (float32 rounding gives
    2e-7, the known defects 0.03 and more), and the losses that fit reports within the relative ``loss_tolerance``.
    Remedy: find out which GPUs TensorFlow sees and what it raised, or install a Keras that combines gradients and
    losses correctly across replicas (3.10 or later).
    Sources:
        https://www.tensorflow.org/guide/distributed_training
        https://keras.io/guides/distributed_training_with_tensorflow/
    Failure modes: silent_one_cpu_replica, iommu_acs, geforce_p2p_nan, keras3_grads_not_reduced,
        keras3_lr_times_replicas, keras3_metrics_wrong_or_nan
    """
    case = run.case("mirrored")
    if case is None and run.failure:
        yield judge_import(run, target, packages, environment)
    elif case is None:
        yield unknown(training("mirrored"), "the run ended before it had a result")
    elif case.outcome != "trained":
        yield did_not_finish(run, case)
    elif run.failure:  # which says why a case is missing, and its only one is not
        yield unknown(case, f"its record contradicts itself: it trained, and {run.failure}")
    else:
        compare = Comparison(
            run=run,
            target=target,
            packages=packages,
            tolerance=tolerance,
            loss_tolerance=loss_tolerance,
            reference=_reference(case),
        )
        problems = [*_replica_problems(run, case, target), *_weight_problems(run, case, compare)]
        yield from problems or [_evidence(run, case)]


def _reference(case: SmokeCase) -> str:
    return "NumPy" if case.measures.get("numpy") else "one device"


def _replica_problems(run: SmokeRun, case: SmokeCase, target: Target | Unavailable) -> Iterator[Outcome]:
    requested = requested_replicas(run)
    if case.replicas is None or requested is None:
        yield unknown(case, "the number of replicas is not known")
        return
    on_gpus = run.devices_kind == "gpu"
    silent_cpu = on_gpus and any("device:GPU" not in device for device in case.devices)
    if case.replicas == requested and not silent_cpu:
        if any(
            size is None or starves(size, case.replicas)
            for size in (case.examples, case.global_batch, case.final_batch)
        ):
            sizes = f"batches of {case.global_batch}, the last of {case.final_batch}"
            yield unknown(case, f"{sizes}: it is not known that every replica trained on examples")
        return
    observed = f"{counted(case.replicas, 'replica')} on {', '.join(case.devices) or 'unknown devices'}"
    if run.gpus_seen is not None:
        observed += f"; TensorFlow lists {counted(run.gpus_seen, 'GPU')}"
    if silent_cpu:
        observed += " and raised no error"
    expected = counted(requested, "replica") if requested else "at least 1 replica"
    count = counted(case.replicas, "replica")
    yield finding(
        case,
        observed,
        expected + (", each on its GPU" if on_gpus else ""),
        _see_gpus(target),
        brief=f"trains on the CPU with {count}, without an error" if silent_cpu else f"{count} instead of {requested}",
        explained_by=of_replicas(run),
    )


def _see_gpus(target: Target | Unavailable) -> Remedy:
    python = target.executable if isinstance(target, Target) else "python"
    program = "import tensorflow as tf; print(tf.config.list_physical_devices('GPU'))"
    return Remedy.configure(
        "Find out why TensorFlow does not see the GPUs. Its messages name the missing library; then check "
        "CUDA_VISIBLE_DEVICES and the driver.",
        look=(quoted(python, "-c", program), "nvidia-smi -L"),
    )


def _weight_problems(run: SmokeRun, case: SmokeCase, compare: Comparison) -> Iterator[Outcome]:
    weights = case.weights
    if weights is None:
        yield unknown(case, "its weights were not read")
        return
    if weights.variables == 0:
        yield unknown(case, "the model has no trainable variables")
    elif weights.mirrored < weights.variables:
        variables = counted(weights.variables, "trainable variable")
        observed = f"only {weights.mirrored} of {variables} are mirrored on every replica"
        yield _not_mirrored(run, case, Problem(observed, "variables are not mirrored on every replica"))
    if weights.nonfinite:
        problem = Problem(f"NaN or infinity in {some(weights.nonfinite)}", "weights are NaN or infinite")
        yield _not_mirrored(run, case, problem)
    if len(case.losses) < 2:  # noqa: PLR2004 - a fall needs two
        yield unknown(case, "fewer than two epochs have a loss")
    elif not loss_falls(case):
        observed = f"losses of the epochs are {format_losses(case.losses)}"
        brief, explained_by = "the loss does not fall", of_weights(run)
        expected = "finite and falling losses"
        yield finding(case, observed, expected, _LOSS_REMEDY, brief=brief, explained_by=explained_by)
    if weights.replicas_agree is False:
        observed = "the replicas hold different weights after the same steps"
        yield compare.wrong(case, Problem(observed, "the replicas hold different weights", "weights"))
    difference = None if weights.nonfinite else compare.difference(case)
    if difference:
        yield difference
    yield from _not_compared(case, weights)


def _not_compared(case: SmokeCase, weights: Weights) -> Iterator[Unjudged]:
    if case.replicas == 1 and not case.measures.get("numpy"):
        yield unknown(case, "its one replica was compared with the same device, which shows nothing")
    elif case.replicas != 1 and weights.replicas_agree is None and weights.mirrored:
        yield unknown(case, "whether the replicas hold equal weights was not read")


def _not_mirrored(run: SmokeRun, case: SmokeCase, problem: Problem) -> Finding:
    remedy = Remedy.reinstall(
        f"Install compatible versions: {this_keras(run)} with {framework_and_version(run)} does not "
        "keep the replicas in sync."
    )
    expected, explained_by = "every trainable variable finite and mirrored on every replica", of_weights(run)
    return finding(case, problem.observed, expected, remedy, brief=problem.brief, explained_by=explained_by)


def _evidence(run: SmokeRun, case: SmokeCase) -> Evidence:
    times = {"import": run.import_s, "build": case.build_s, "first step": case.first_step_s, "step": case.step_s}
    details = [keras_of(run), *(f"{name} {s:.3g} s" for name, s in times.items() if s is not None)]
    if case.peak_memory_bytes is not None:
        details.append(f"peak memory {case.peak_memory_bytes / 2**20:.0f} MiB")
    variables = counted(case.weights.variables if case.weights else 0, "variable")
    observed = (
        f"{counted(case.replicas or 0, 'replica')} ({run.devices_kind}), {variables}"
        f"{'' if case.replicas == 1 else ' mirrored on each'}; losses {format_losses(case.losses)}; "
        f"weights within {case.weight_deviation:.2g} of {_reference(case)}; " + ", ".join(details)
    )
    return Evidence(subject=subject(case), observed=observed, brief=_brief(run, case))


def _brief(run: SmokeRun, case: SmokeCase) -> str:
    what = f"{'CPU ' if run.devices_kind == 'cpu' else ''}replica"
    within = f" (within {case.weight_deviation:.0e})" if case.weight_deviation else ""
    reference = "NumPy" if case.measures.get("numpy") else "1 device"
    return f"{counted(case.replicas or 0, what)}, same weights as {reference}{within}"
