from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.commands.shell import quoted
from kdoctor.facts import Gpus
from kdoctor.model import Outcome, Remedy, Rollback, Severity
from kdoctor_checks._gpus import judge, readings, smi


@check("gpu.exclusive-mode", severity=Severity.WARNING, needs_gpus=True, requires=["gpu.compute-mode"])
def exclusive_mode(gpus: Gpus) -> Iterator[Outcome]:
    """No GPU is reserved for a single process.

    Why: in compute mode "Exclusive Process", a second process on the GPU fails. This affects an evaluation next to the
    training, or a restart before the old process has ended. A single training process is not affected.
    Remedy: set the compute mode to default, unless exclusive mode is intended.
    Sources:
        https://docs.nvidia.com/deploy/nvidia-smi/index.html
        https://docs.nvidia.com/deploy/nvml-api/
    """
    judged, others = readings(gpus, "compute_mode")
    yield from others
    reserved = [gpu for gpu in judged if (gpu.compute_mode or "").startswith("exclusive")]
    for gpu in judged:
        mode = gpu.compute_mode or ""
        recorded = mode.upper().replace("-", "_")
        yield judge(
            gpu.subject,
            f"compute mode is {mode}",
            ok=gpu not in reserved,
            expected="compute mode default",
            remedy=Remedy.configure(
                "Set the compute mode to default, unless exclusive mode is intended.",
                f"sudo {smi(reserved, '--compute-mode=DEFAULT', among=gpus)}",
            ),
            rollback=Rollback.to("restore the recorded mode", f"sudo {smi(gpu, quoted(f'--compute-mode={recorded}'))}"),
        )
