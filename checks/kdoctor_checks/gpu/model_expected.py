"""Whether the GPUs are of the model that the job was planned for."""

from __future__ import annotations

from collections.abc import Iterator
from fnmatch import fnmatchcase

from kdoctor.check import check
from kdoctor.facts import Gpus
from kdoctor.model import (
    Action,
    Assumptions,
    Evidence,
    Finding,
    NotApplicable,
    Outcome,
    Remedy,
    Rollback,
    Severity,
)
from kdoctor_checks._gpus import answering, unread


@check(
    "gpu.model-expected",
    severity=Severity.ERROR,
    needs_gpus=True,
    requires=["driver.library-matches-module"],
    judges=("gpus.model",),
)
def model_expected(gpus: Gpus, assumptions: Assumptions) -> Iterator[Outcome]:
    """Every GPU is of the model that the checklist names.

    Why: memory, speed and the kernels that are compiled in differ by model. A batch that fits one model does not
    fit another, and a time that was measured on one says nothing about another.
    Remedy: ask the scheduler for the agreed model, hide the odd GPU, or agree on the new model in the checklist.
    Source: https://developer.nvidia.com/cuda-gpus
    """
    pattern = assumptions.gpus.model if assumptions.gpus else None
    if pattern is None:
        yield NotApplicable(reason="the checklist names no model")
        return
    for gpu in answering(gpus):
        if problem := unread(gpu, "name"):
            yield problem
        elif fnmatchcase(gpu.name or "", pattern):
            yield Evidence(subject=gpu.subject, observed=gpu.name or "")
        else:
            yield Finding(
                subject=gpu.subject,
                observed=gpu.name or "",
                expected=pattern,
                remedy=Remedy(
                    summary="Ask the scheduler for the agreed model, hide the GPU from the job, or agree on the new "
                    "model in the checklist.",
                    action=Action.CONFIGURE,
                    commands=("nvidia-smi --query-gpu=index,name,uuid --format=csv",),
                ),
                rollback=Rollback.nothing("choosing a machine changes none"),
            )
