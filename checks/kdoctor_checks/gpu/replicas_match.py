import shlex
from collections.abc import Iterator, Sequence

from kdoctor.check import check
from kdoctor.commands.packages import install, restore
from kdoctor.commands.shell import set_variable
from kdoctor.facts import Environment, Gpu, Gpus, Packages, PciDevices, SmokeRun, Target
from kdoctor.facts.visible import VARIABLE, read_mask
from kdoctor.model import Evidence, Finding, Outcome, Remedy, Rollback, Severity, Unjudged
from kdoctor.text.lists import counted
from kdoctor_checks._builds import NO_DRIVER
from kdoctor_checks._causes import NO_GPU, of_import
from kdoctor_checks._gpus import OF_ONE_SHELL, RESPONDING, answering, silent

_LINK = "TensorFlow's GPUs"
_KEEP_ALL = Remedy.configure(
    "Find out which GPU TensorFlow leaves out. It ignores GPUs with fewer multiprocessors than "
    "TF_MIN_GPU_MULTIPROCESSOR_COUNT, and logs it.",
    set_variable("TF_MIN_GPU_MULTIPROCESSOR_COUNT", "1"),
    look=("nvidia-smi -L",),
)


@check(
    "gpu.replicas-match",
    severity=Severity.ERROR,
    needs_gpus=True,
    requires=["versions.cuda-build", "gpu.visible-to-driver", "environment.visible-devices"],
    scenario="smoke.baseline",
)
def replicas_match(
    run: SmokeRun, gpus: Gpus, pci: PciDevices, environment: Environment, packages: Packages, target: Target
) -> Iterator[Outcome]:
    """Every visible GPU is a replica of the strategy.

    Why: a GPU must be on the PCI bus, in the driver, visible to CUDA, in TensorFlow and in the strategy. If a link of
    this chain breaks, MirroredStrategy trains on fewer GPUs, or on one CPU replica, without an error.
    gpu.visible-to-driver and environment.visible-devices check the chain up to CUDA_VISIBLE_DEVICES. This check covers
    the rest in a real training.
    Remedy: fix the link that the finding names, most often TensorFlow's CUDA libraries.
    Sources:
        https://github.com/tensorflow/tensorflow/issues/37618
        https://github.com/tensorflow/tensorflow/issues/62328
        https://github.com/tensorflow/tensorflow/issues/32489
    Failure modes: silent_one_cpu_replica, slow_gpu_dropped, requested_devices_not_visible
    """
    mask = read_mask(environment, gpus.devices)
    if gpus.state != "ready" or mask.unknown_reason:
        reason = mask.unknown_reason or f"the driver does not respond: {gpus.error or gpus.state}"
        yield Unjudged(subject=_LINK, reason=reason, explained_by=NO_DRIVER)
        return
    if run.devices_kind != "gpu":
        yield Unjudged(subject=_LINK, reason="the training ran on logical CPU devices, as requested")
        return
    visible = len(mask.visible)
    if not visible:
        reason = f"no GPU is visible ({VARIABLE}={mask.value})" if gpus.devices else "the driver lists no GPUs"
        yield Unjudged(subject=_LINK, reason=reason, explained_by=("environment.visible-devices", *NO_DRIVER))
        return
    chain = f"{len(pci.gpus)} on the PCI bus, {len(answering(gpus))} in the driver, {visible} visible to CUDA"
    if run.gpus_seen is None:
        reason = run.failure or "TensorFlow's list of GPUs was not recorded"
        yield Unjudged(subject=_LINK, reason=reason, explained_by=of_import(run))
    elif run.gpus_seen != visible:
        masked = f" ({VARIABLE}={mask.value})" if mask.value is not None else ""
        yield Finding(
            subject=_LINK,
            observed=f"{run.gpus_seen} of {visible} registered ({chain})",
            brief=f"{run.gpus_seen} registered, {visible} visible to CUDA",
            explained_by=_explained_by(visible - run.gpus_seen, mask.visible, gpus),
            expected=f"{visible} registered{masked}",
            remedy=_KEEP_ALL if run.gpus_seen else _find_library(run, packages, target),
            rollback=OF_ONE_SHELL if run.gpus_seen else restore(target, packages, "tensorflow"),
        )
        return
    else:
        yield Evidence(subject=_LINK, observed=f"{chain}, {run.gpus_seen} in TensorFlow")
    yield from _judge_replicas(run, visible, chain)


def _judge_replicas(run: SmokeRun, visible: int, chain: str) -> Iterator[Outcome]:
    measured = [case for case in run.cases if case.strategy == "MirroredStrategy" and case.replicas is not None]
    if not measured:
        reason = run.failure or "no case reported the replicas of a MirroredStrategy"
        yield Unjudged(subject=f"replicas of {run.scenario}", reason=reason, explained_by=of_import(run))
    for case in measured:
        subject = f"replicas of {run.scenario}, {case.name}"
        on_gpu = case.on_gpus
        observed = f"{counted(case.replicas or 0, 'replica')}, {on_gpu} on a GPU"
        if not case.devices:
            yield Unjudged(subject=subject, reason="the devices of the replicas were not recorded")
        elif case.replicas == on_gpu == visible:
            yield Evidence(subject=subject, observed=observed)
        else:
            yield Finding(
                subject=subject,
                observed=f"{observed}; {chain}; devices: {', '.join(case.devices)}",
                brief=f"{on_gpu} on a GPU, although TensorFlow has {counted(visible, 'GPU')}",
                expected=f"{counted(visible, 'replica')}, each on a GPU",
                remedy=Remedy.change_code(
                    "Let MirroredStrategy choose its devices, or name every GPU before TensorFlow is used."
                ),
                rollback=Rollback.nothing("not needed (use the version control of your code)"),
            )


def _find_library(run: SmokeRun, packages: Packages, target: Target) -> Remedy:
    version = run.tensorflow or packages.version("tensorflow")
    wanted = f"tensorflow[and-cuda]=={version}" if version else "tensorflow[and-cuda]"
    listing = "import tensorflow as tf; tf.config.list_physical_devices()"
    return Remedy.reinstall(
        "Find out which library TensorFlow cannot load, install the CUDA libraries for its version, and remove "
        "other CUDA installations from LD_LIBRARY_PATH.",
        install(target, packages, wanted),
        look=(f"TF_CPP_MAX_VLOG_LEVEL=1 {shlex.join([target.executable, '-c', listing])}",),
    )


def _explained_by(missing: int, visible: Sequence[Gpu], gpus: Gpus) -> tuple[str, ...]:
    """The checks that explain as many missing GPUs."""
    gone = {gpu.index for gpu in silent(gpus)}
    counts = {
        RESPONDING: sum(gpu.index in gone for gpu in visible),
        "gpu.compute-mode": sum(gpu.compute_mode == "prohibited" for gpu in visible),
        "gpu.mig-mode": len(visible) - 1 if any(gpu.mig_mode for gpu in visible) else 0,
    }
    found = tuple(check for check, count in counts.items() if count == missing)
    return (*found, *(NO_GPU if missing == len(visible) else ()))
