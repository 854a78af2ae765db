import re
from collections.abc import Iterator

from kdoctor.commands.again import program
from kdoctor.commands.shell import quoted
from kdoctor.facts import SmokeCase, SmokeRun
from kdoctor.facts.visible import VARIABLE
from kdoctor.model import NotApplicable, Outcome, Severity
from kdoctor.text.lists import counted
from kdoctor_checks.smoke._judging import evidence, finding, unknown
from kdoctor_job.checks.job._user_model import job_check, job_of

_JOB = "your job"
_NAMES_ONE = re.compile(r"\s*(\d|GPU-|MIG-)")
_ON_CPU = "trains on the CPU, not on the GPUs"
_NO_GPUS = "Leave out set_visible_devices([], 'GPU'), or pass the GPUs to it."
_NO_STRATEGY = f"Build and compile the model in the scope of tf.distribute.MirroredStrategy(), or set {VARIABLE}=0."


@job_check("job.on-gpus", Severity.ERROR, "job.model-and-data")
def on_gpus(run: SmokeRun, case: SmokeCase) -> Iterator[Outcome]:
    """The job trains on this machine's GPUs, not silently on the CPU or on one of several.

    Why: if TensorFlow cannot use a GPU, MirroredStrategy has one replica on the CPU, and nothing fails. Without a
    strategy, a model trains on the first of several GPUs and takes the memory of all. A strategy that names its devices
    and CUDA_VISIBLE_DEVICES are choices of the job. kdoctor.preflight and kdoctor.guard see what their process has;
    for `kdoctor check --model`, gpu.replicas-match judges the GPUs.
    Remedy: find out why TensorFlow lists no GPU, or use a strategy.
    Source: https://www.tensorflow.org/guide/distributed_training
    """
    job = job_of(run)
    gpus = job.gpus
    listed = f"TensorFlow lists {counted(gpus.listed, 'GPU')}" if gpus else ""
    if case.job is None:
        yield unknown(_JOB, "it was not examined")
    elif job.devices == 0:
        hides = "it makes no GPU visible (tf.config.set_visible_devices)"
        yield finding(_JOB, hides, "TensorFlow lists the GPUs", _NO_GPUS, brief=_ON_CPU)
    elif gpus is None:
        yield NotApplicable(reason="kdoctor chose the replicas (see gpu.replicas-match)")
    elif gpus.listed > 1 and not gpus.is_distributed:
        observed = f"{listed}, and the job has no strategy: it uses one"
        brief = "trains on one of several GPUs"
        yield finding(_JOB, observed, "a strategy over all of them", _NO_STRATEGY, brief=brief)
    elif gpus.listed or (gpus.mask is not None and not _NAMES_ONE.match(gpus.mask)):
        mask = f" ({VARIABLE}={gpus.mask})" if gpus.mask is not None else ""
        yield evidence(_JOB, f"{listed}{mask}; replicas on {', '.join(case.devices) or 'the default device'}")
    elif gpus.on_bus is None:
        yield unknown(_JOB, f"{listed}, and the PCI bus cannot be read")
    elif not gpus.on_bus:
        yield NotApplicable(reason="this machine has no NVIDIA GPU")
    else:
        observed = f"{listed} of the {gpus.on_bus} on the PCI bus: it trains on the CPU"
        fix = f"Find out why: {quoted(*program(), 'check', '--no-smoke')}"
        yield finding(_JOB, observed, "TensorFlow lists the GPUs", fix, brief=_ON_CPU)
