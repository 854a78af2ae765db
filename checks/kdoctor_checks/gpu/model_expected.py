from collections.abc import Iterator
from fnmatch import fnmatchcase

from kdoctor.check import check
from kdoctor.facts import Gpus
from kdoctor.model import Assumptions, NotApplicable, Outcome, Remedy, Rollback, Severity, Unjudged
from kdoctor_checks._gpus import DRIVER, answering, judge, not_answering, unread


@check("gpu.model-expected", severity=Severity.ERROR, needs_gpus=True, requires=DRIVER, judges=("gpus.model",))
def model_expected(gpus: Gpus, assumptions: Assumptions) -> Iterator[Outcome]:
    """Every GPU is the model that the checklist expects.

    Why: memory, speed and compiled kernels differ between models. A batch that fits one model may not fit another, and
    timings measured on one model do not apply to another.
    Remedy: request the expected model from the scheduler, hide the other GPU, or change the model in the checklist.
    Source: https://developer.nvidia.com/cuda-gpus
    """
    pattern = assumptions.gpus.model if assumptions.gpus else None
    if pattern is None:
        yield NotApplicable(reason="the checklist expects no specific model")
        return
    if not gpus.devices:
        yield Unjudged(subject="GPUs", reason="the driver lists no GPU", explained_by=("gpu.count-expected",))
    yield from not_answering(gpus)
    for gpu in answering(gpus):
        if problem := unread(gpu, "name"):
            yield problem
            continue
        yield judge(
            gpu.subject,
            f"model is {gpu.name}",
            ok=fnmatchcase(gpu.name or "", pattern),
            expected=pattern,
            remedy=Remedy.configure(
                "Request the expected model from the scheduler, hide the GPU from the job, or change the model in the "
                "checklist.",
                look=("nvidia-smi --query-gpu=index,name,uuid --format=csv",),
            ),
            rollback=Rollback.nothing("not needed (choosing another GPU changes nothing)"),
        )
