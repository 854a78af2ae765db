import re
from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import KernelLog
from kdoctor.model import Evidence, Finding, Outcome, Remedy, Severity, Unjudged
from kdoctor.text.lists import counted, some
from kdoctor_checks._kernel_log import summary
from kdoctor_checks._versions import first_short

_MEMORY = re.compile(r"^EDAC .*\b\d+ UE .* on (\S*[A-Za-z]\S*)")
"""The memory module of an error."""
_LOOK = ("sudo dmesg | grep -iE 'hardware error|edac|panic|BUG:'", "sudo ras-mc-ctl --summary")

_SERVICE = "Read the record in the kernel log, and have the memory or the machine serviced."
_TRACE = "Read the trace below the message for the part of the kernel that crashed. Update that driver or the kernel."


@check("host.kernel-errors", severity=Severity.WARNING)
def kernel_errors(log: KernelLog, *, most_corrected: int = 10) -> Iterator[Outcome]:
    """The kernel log has no crash and no hardware error.

    Why: an uncorrected error of the memory or a processor (EDAC, machine check) ends a job or changes its numbers, and
    many corrected ones announce it. After a crash of the kernel, the cause may still be there.
    Remedy: read the record in the kernel log, and have the memory or the machine serviced.
    Sources:
        https://docs.kernel.org/driver-api/edac.html
        https://docs.kernel.org/arch/x86/x86_64/machinecheck.html
        https://docs.kernel.org/admin-guide/bug-hunting.html
    """
    if not log.lines:
        yield Unjudged(subject="kernel log", reason=f"{log.source} is empty")
        return
    severe = [event for event in log.events if event.kind in ("crash", "hardware-error")]
    corrected = [event for event in log.events if event.kind == "hardware-corrected"]
    times = sum(event.times for event in corrected)
    if not severe and times <= most_corrected:
        seen = f"{counted(times, 'corrected hardware error')}" if times else "no hardware error and no crash"
        observed = f"{seen} in {counted(log.lines, 'line')} of {log.source}"
        yield Evidence(subject="kernel log", observed=observed, brief="corrected hardware errors" if times else "")
        return
    crashed = any(event.kind == "crash" for event in severe)
    failed = any(event.kind == "hardware-error" for event in severe)
    places = list(dict.fromkeys(found[1] for event in severe if (found := _MEMORY.search(event.text))))
    brief = " and ".join(
        words
        for words, applies in (
            ("kernel panic, oops or lockup", crashed),
            (f"uncorrected hardware error{f' of {some(places, 2)}' if places else ''}", failed),
            ("many corrected hardware errors", times > most_corrected),
        )
        if applies
    )
    yield Finding(
        subject="kernel log",
        observed=summary(severe + (corrected if times > most_corrected else [])),
        brief=first_short(brief, "a crash and hardware errors"),
        expected=f"no crash, no uncorrected and at most {most_corrected} corrected hardware errors",
        remedy=Remedy.inspect(_SERVICE if failed or not crashed else _TRACE, *_LOOK),
    )
