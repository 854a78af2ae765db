from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import Gpus
from kdoctor.model import Outcome, Remedy, Rollback, Severity
from kdoctor_checks._gpus import DRIVER, judge, readings, smi


@check("gpu.persistence-mode", severity=Severity.INFO, needs_gpus=True, requires=DRIVER)
def persistence_mode(gpus: Gpus, *, expected: bool = True) -> Iterator[Outcome]:
    """Persistence mode is on for every GPU.

    Why: without it, the driver releases a GPU when its last user ends. The next job waits for seconds per GPU, and
    settings such as power limits and clocks are lost. Training works, so this is only a note.
    Remedy: set the mode, which lasts until the next restart. For good, enable the persistence daemon.
    Sources:
        https://docs.nvidia.com/deploy/driver-persistence/persistence-mode-legacy.html
        https://docs.nvidia.com/deploy/nvidia-smi/index.html
    """
    judged, others = readings(gpus, "persistence_mode")
    yield from others
    odd = [gpu for gpu in judged if gpu.persistence_mode is not expected]
    for gpu in judged:
        yield judge(
            gpu.subject,
            f"persistence mode is {'on' if gpu.persistence_mode else 'off'}",
            ok=gpu.persistence_mode is expected,
            expected=f"persistence mode {'on' if expected else 'off'}",
            remedy=Remedy.configure(
                "Set the mode, which lasts until the next restart. For good, enable the service nvidia-persistenced.",
                f"sudo {smi(odd, f'-pm {int(expected)}', among=gpus)}",
            ),
            rollback=Rollback.to(
                "restore the recorded mode", f"sudo {smi(odd, f'-pm {int(not expected)}', among=gpus)}"
            ),
        )
