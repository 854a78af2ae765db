"""Whether the processors may run fast."""

from __future__ import annotations

from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import Host
from kdoctor.model import Action, Evidence, Finding, NotApplicable, Outcome, Remedy, Rollback, Severity, Unjudged

_SUBJECT = "CPU frequency governor"


@check("host.cpu-governor", severity=Severity.INFO)
def cpu_governor(host: Host, *, slow: tuple[str, ...] = ("powersave", "conservative")) -> Iterator[Outcome]:
    """No processor of this process is held at a low frequency.

    Why: governor "powersave" holds a processor at its lowest frequency, and launching kernels and preparing input take
    longer. With Intel's and AMD's own drivers in active mode it adapts in spite of its name: a note, no more.
    Remedy: choose the governor performance or schedutil.
    Sources:
        https://docs.kernel.org/admin-guide/pm/cpufreq.html
        https://docs.kernel.org/admin-guide/pm/intel_pstate.html
    """
    if host.cpu_governors is None:
        yield Unjudged(subject=_SUBJECT, reason="it was not read")
    elif not host.cpu_governors:
        yield NotApplicable(reason="the kernel does not scale frequencies here (as in virtual machines)")
    elif found := [name for name in host.cpu_governors if name in slow]:
        yield Finding(
            subject=_SUBJECT,
            observed=", ".join(host.cpu_governors),
            expected=f"none of {', '.join(slow)}",
            remedy=Remedy(
                summary="Choose the governor performance, until the next restart.",
                action=Action.CONFIGURE,
                commands=("cpupower frequency-info", "sudo cpupower frequency-set -g performance"),
            ),
            rollback=Rollback.to("the recorded governor", f"sudo cpupower frequency-set -g {found[0]}"),
        )
    else:
        yield Evidence(subject=_SUBJECT, observed=", ".join(host.cpu_governors))
