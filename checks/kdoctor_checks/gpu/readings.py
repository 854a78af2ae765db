"""Whether the driver answers what it is asked about its GPUs."""

from __future__ import annotations

from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import Gpus
from kdoctor.model import Evidence, Outcome, Severity, Unjudged
from kdoctor.text.lists import some
from kdoctor_checks._gpus import answering, too_new, unsupported

_SHOWN = 4
_NOT_NVML = ("fabric_status",)
"""Fields that may be missing for a reason that another check judges."""


@check("gpu.readings", severity=Severity.WARNING, needs_gpus=True, requires=["driver.library-matches-module"])
def readings(gpus: Gpus) -> Iterator[Outcome]:
    """The driver answers everything that it is asked about each GPU.

    Why: "Unknown Error", a missing permission, or a call that an old driver lacks leaves a question open, and an open
    question is no good answer. What a GPU does not support is no question. The checks of each reading say what they
    could not judge; checks of newer readings (SRAM errors, recovery action) have no subject on an old driver, which
    is told here.
    Remedy: read the kernel's log where a call fails with an unknown error, and install a newer driver where a call is
    missing.
    Source: https://docs.nvidia.com/deploy/nvml-api/
    """
    for gpu in answering(gpus):
        errors = {name: error for name, error in gpu.errors.items() if name not in _NOT_NVML and not unsupported(error)}
        if not errors:
            yield Evidence(subject=gpu.subject, observed="every question was answered")
            continue
        old = [name.replace("_", " ") for name, error in errors.items() if too_new(error)]
        said = [f"{name.replace('_', ' ')} ({error})" for name, error in errors.items() if not too_new(error)]
        parts = [f"the driver is too old to tell {some(old, _SHOWN)}"] if old else []
        parts += [f"not read: {some(said, _SHOWN)}"] if said else []
        yield Unjudged(subject=gpu.subject, reason="; ".join(parts))
