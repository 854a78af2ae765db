from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.commands.shell import quoted
from kdoctor.facts import Host
from kdoctor.model import Evidence, Finding, NotApplicable, Outcome, Remedy, Rollback, Severity, Unjudged

_SUBJECT = "CPU frequency governor"


@check("host.cpu-governor", severity=Severity.INFO)
def cpu_governor(host: Host, *, slow: tuple[str, ...] = ("powersave", "conservative")) -> Iterator[Outcome]:
    """The CPUs of this process are not limited to a low frequency.

    Why: the governor "powersave" keeps a CPU at its lowest frequency, which slows down kernel launches and the input
    pipeline. Under the intel_pstate and amd_pstate drivers in active mode, it adapts despite its name.
    Remedy: set the governor to performance or schedutil.
    Sources:
        https://docs.kernel.org/admin-guide/pm/cpufreq.html
        https://docs.kernel.org/admin-guide/pm/intel_pstate.html
    """
    if host.cpu_governors is None:
        yield Unjudged(subject=_SUBJECT, reason="not read")
    elif not host.cpu_governors:
        yield NotApplicable(reason="the kernel does not scale CPU frequencies here (as in virtual machines)")
    elif found := [name for name in host.cpu_governors if name in slow]:
        yield Finding(
            subject=_SUBJECT,
            observed=", ".join(host.cpu_governors),
            expected=f"not {' or '.join(slow)}",
            remedy=Remedy.configure(
                "Set the governor to performance, which lasts until the next restart.",
                "sudo cpupower frequency-set -g performance",
                look=("cpupower frequency-info",),
            ),
            rollback=Rollback.to("restore the recorded governor", f"sudo cpupower frequency-set -g {quoted(found[0])}"),
        )
    else:
        yield Evidence(subject=_SUBJECT, observed=", ".join(host.cpu_governors))
