from __future__ import annotations

from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import Gpus
from kdoctor.model import Outcome, Rollback, Severity
from kdoctor_checks._gpus import configure, judge, readings, smi


@check("gpu.persistence-mode", severity=Severity.WARNING, needs_gpus=True, requires=["driver.library-matches-module"])
def persistence_mode(gpus: Gpus, *, expected: bool = True) -> Iterator[Outcome]:
    """Persistence mode is on for every GPU.

    Why: without it, the driver releases a GPU when its last user ends. The next job waits for seconds per GPU, and
    settings such as power limits and clocks are lost. NVSwitch machines also set up the fabric again.
    Remedy: run the persistence daemon, which NVIDIA recommends over setting the mode.
    Sources:
        https://docs.nvidia.com/deploy/driver-persistence/persistence-mode-legacy.html
        https://docs.nvidia.com/deploy/nvidia-smi/index.html
    """
    judged, others = readings(gpus, "persistence_mode")
    yield from others
    for gpu in judged:
        yield judge(
            gpu.subject,
            f"persistence mode is {'on' if gpu.persistence_mode else 'off'}",
            ok=gpu.persistence_mode is expected,
            expected=f"persistence mode {'on' if expected else 'off'}",
            remedy=configure(
                "Run the persistence daemon. Without the daemon, set the mode, which lasts until the next restart.",
                "sudo systemctl enable --now nvidia-persistenced",
                f"sudo {smi(gpu, f'-pm {int(expected)}')}",
            ),
            rollback=Rollback.to("restore the recorded mode", f"sudo {smi(gpu, f'-pm {int(not expected)}')}"),
        )
