from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.model import Evidence, Finding, Outcome, Remedy, Severity, Unjudged
from kdoctor.text.lists import counted
from kdoctor_watch.facts import Watched

_REMEDY = Remedy.inspect(
    "Look at what the process waits for: a hanging collective, storage, or a GPU.",
    "nvidia-smi",
    "sudo dmesg | grep -iE 'NVRM|Xid' | tail",
    "py-spy dump --pid $(pgrep -n python)",
)


@check("watch.stall", severity=Severity.ERROR)
def stall(watched: Watched) -> Iterator[Outcome]:
    """No training step stalls.

    Why: a collective whose peer is gone, a GPU that stopped, or storage that does not respond lets a step wait forever,
    and the job keeps its GPUs. A step counts as a stall after two minutes (``stall_s``) and 20 times the usual time.
    Remedy: look at the line that the training is at, at the kernel log and at the GPUs. Then restart from a checkpoint.
    Source: https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting.html
    """
    steps = watched.steps
    for found in steps.stalls:
        end = "" if found.ended else " and has not ended"
        where = f"; it is at {found.where}" if found.where and not found.ended else ""
        yield Finding(
            subject=f"step {found.step}",
            observed=f"took {found.seconds:.1f} s{end}{where}",
            brief="stalled",
            expected=f"less than {steps.stall_after_s:.3g} s" if steps.stall_after_s else "steps of usual length",
            remedy=_REMEDY,
        )
    if not steps.stalls and steps.steps > 1:
        yield Evidence(subject="steps", observed=f"none of {counted(steps.steps, 'step')} stalled")
    elif not steps.stalls:
        yield Unjudged(subject="steps", reason="no training step ended while it was watched")
