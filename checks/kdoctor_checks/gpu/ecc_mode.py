"""Whether errors of the GPUs' memory are corrected."""

from __future__ import annotations

from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import Gpus
from kdoctor.model import Action, Evidence, Finding, Outcome, Remedy, Rollback, Severity
from kdoctor_checks._gpus import readings, smi


@check("gpu.ecc-mode", severity=Severity.INFO, needs_gpus=True, requires=["driver.library-matches-module"])
def ecc_mode(gpus: Gpus) -> Iterator[Outcome]:
    """ECC is on for every GPU that has it, and stays on.

    Why: without ECC (error correcting code) a flipped bit in the memory goes unnoticed, and a long training may end
    with weights that nothing explains. Gaming cards come with it switched off, hence no more than a note.
    Remedy: switch ECC on; it takes effect with the next restart and costs some memory on cards without HBM.
    Sources:
        https://docs.nvidia.com/deploy/nvidia-smi/index.html
        https://docs.nvidia.com/deploy/a100-gpu-mem-error-mgmt/index.html
    """
    judged, others = readings(gpus, "ecc_mode", "ecc_mode_pending")
    yield from others
    for gpu in judged:
        now, then = ("on" if mode else "off" for mode in (gpu.ecc_mode, gpu.ecc_mode_pending))
        words = f"ECC {now}" + (f", {then} after the next restart" if now != then else "")
        if gpu.ecc_mode and gpu.ecc_mode_pending:
            yield Evidence(subject=gpu.subject, observed=words)
            continue
        yield Finding(
            subject=gpu.subject,
            observed=words,
            expected="ECC on",
            remedy=Remedy(
                summary="Switch ECC on, and restart.",
                action=Action.REBOOT,
                commands=(f"sudo {smi(gpu, '-e 1')}", "sudo reboot"),
            ),
            rollback=Rollback.to(
                "the recorded mode", f"sudo {smi(gpu, f'-e {int(bool(gpu.ecc_mode_pending))}')}", "sudo reboot"
            ),
        )
