from collections.abc import Iterator
from dataclasses import replace

from kdoctor.check import check
from kdoctor.facts import Gpus
from kdoctor.model import Finding, Outcome, Remedy, Rollback, Severity
from kdoctor_checks._gpus import DRIVER, judge, readings, smi


@check("gpu.ecc-mode", severity=Severity.INFO, needs_gpus=True, requires=DRIVER)
def ecc_mode(gpus: Gpus) -> Iterator[Outcome]:
    """ECC is on, and stays on, for every GPU that supports it.

    Why: without ECC (error-correcting code), a flipped bit in memory goes unnoticed, and a long training may end with
    wrong weights. ECC is off by default on gaming cards, so this is only a note.
    Remedy: turn ECC on. It takes effect after a restart, and uses some memory on cards without HBM.
    Sources:
        https://docs.nvidia.com/deploy/nvidia-smi/index.html
        https://docs.nvidia.com/deploy/a100-gpu-mem-error-mgmt/index.html
    """
    judged, others = readings(gpus, "ecc_mode", "ecc_mode_pending")
    yield from others
    off = [gpu for gpu in judged if not (gpu.ecc_mode and gpu.ecc_mode_pending)]
    for gpu in judged:
        now, then = ("on" if mode else "off" for mode in (gpu.ecc_mode, gpu.ecc_mode_pending))
        outcome = judge(
            gpu.subject,
            f"ECC is {now}" + (f", and {then} after the next restart" if now != then else ""),
            ok=gpu not in off,
            expected="ECC on",
            remedy=Remedy.reboot("Turn ECC on and restart.", f"sudo {smi(off, '-e 1', among=gpus)}", "sudo reboot"),
            rollback=Rollback.to(
                "restore the recorded mode", f"sudo {smi(gpu, f'-e {int(bool(gpu.ecc_mode_pending))}')}", "sudo reboot"
            ),
        )
        # A change that waits for a restart is news; a gaming card without ECC is not.
        yield replace(outcome, noted=now != then) if isinstance(outcome, Finding) else outcome
