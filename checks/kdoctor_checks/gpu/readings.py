from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import Gpu, Gpus
from kdoctor.model import Evidence, Finding, Outcome, Remedy, Severity, Unjudged
from kdoctor.text.lists import some
from kdoctor_checks._gpus import DRIVER, answering, field_label, not_answering, smi, too_new, unsupported

_SHOWN = 4
_NOT_NVML = ("fabric_status",)
"""Fields that another check reports if they are missing."""
_RECENT = ("fabric_problems", "channel_repair_pending", "tpc_repair_pending", "unrepairable_memory")
"""Fields that only the newest drivers report. An older driver is not a fault."""


@check("gpu.readings", severity=Severity.WARNING, needs_gpus=True, requires=DRIVER)
def readings(gpus: Gpus) -> Iterator[Outcome]:
    """All readings of every GPU succeed.

    Why: "Unknown Error", a missing permission or an old driver leaves a reading unknown, and the checks that need it
    cannot be evaluated. Readings that a GPU does not support are ignored. Checks of newer readings (SRAM errors,
    recovery action) are skipped on an old driver, which is reported here. So is every line of imported output that
    kdoctor does not know.
    nvidia-smi shows "ERR!" for a sensor that failed; if all of them do, the GPU does not respond.
    A corrupted infoROM holds settings and error records of the GPU that can no longer be trusted.
    Remedy: power the machine off and on if the infoROM is corrupted, and have the GPU serviced if that does not help;
    read the kernel log if a call fails with an unknown error, and install a newer driver if a call is missing.
    Source: https://docs.nvidia.com/deploy/nvml-api/
    """
    yield from not_answering(gpus)
    for gpu in answering(gpus):
        errors = {name: error for name, error in gpu.errors.items() if not _is_excused(name, error)}
        if damaged := next(filter(_is_inforom, errors.values()), None):
            yield _corrupted(gpu, damaged)
            continue
        if sensors := [field_label(name) for name, error in errors.items() if error == "ERR!"]:
            yield _without_sensor(gpu, some(sensors, _SHOWN))
            continue
        if not gpu.errors and gpu.name is None:
            yield Unjudged(subject=gpu.subject, reason="nothing about it was read")
            continue
        if not errors:
            yield Evidence(subject=gpu.subject, observed="all readings succeeded")
            continue
        old = [field_label(name) for name, error in errors.items() if too_new(error)]
        failed = [f"{field_label(name)} ({error})" for name, error in errors.items() if not too_new(error)]
        parts = [f"the driver is too old to report {some(old, _SHOWN)}"] if old else []
        parts += [f"not read: {some(failed, _SHOWN)}"] if failed else []
        yield Unjudged(subject=gpu.subject, reason="; ".join(parts))
    for line in gpus.not_understood:
        yield Unjudged(subject="a line that was imported", reason=f"not understood: {line!r}")


def _is_excused(name: str, error: str) -> bool:
    """Whether a missing reading says nothing about the GPU or the driver."""
    return name in _NOT_NVML or unsupported(error) or (name in _RECENT and too_new(error))


def _is_inforom(error: str) -> bool:
    """Whether NVML or nvidia-smi reports NVML_ERROR_CORRUPTED_INFOROM."""
    return "".join(filter(str.isalpha, error.lower())).endswith(("corruptedinforom", "inforomiscorrupted"))


def _without_sensor(gpu: Gpu, sensors: str) -> Finding:
    return Finding(
        subject=gpu.subject,
        observed=f"nvidia-smi shows ERR! for its {sensors}",
        brief=f"ERR! for its {sensors}",
        expected="a value",
        remedy=Remedy.inspect(
            "Read it again: such an error may pass. If it stays, reset the GPU or restart; then have it serviced.",
            smi(gpu, "-q"),
        ),
    )


def _corrupted(gpu: Gpu, error: str) -> Finding:
    return Finding(
        subject=gpu.subject,
        observed=f"its infoROM is corrupted ({error})",
        brief="infoROM is corrupted",
        expected="a valid infoROM",
        remedy=Remedy.inspect(
            "Power the machine off and on. If the infoROM stays corrupted, have the GPU serviced.",
            smi(gpu, "-q"),
            "sudo nvidia-bug-report.sh",
        ),
    )
