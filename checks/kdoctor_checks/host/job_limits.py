from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import Host
from kdoctor.model import Evidence, Finding, NotApplicable, Outcome, Remedy, Rollback, Severity, Unjudged


@check("host.job-limits", severity=Severity.WARNING)
def job_limits(host: Host, *, least_hours: float = 24.0, least_gib: float = 16.0) -> Iterator[Outcome]:
    """No limit of this shell ends a long job.

    Why: login nodes and shared servers limit the CPU time of a process and the size of a file. Short trainings stay
    below. Hours later the kernel ends the job with SIGXCPU (all threads count), or with SIGXFSZ at a checkpoint.
    Remedy: start the job where the limit does not apply, such as in the scheduler's job, or raise it.
    Source: https://man7.org/linux/man-pages/man2/getrlimit.2.html
    """
    if host.os == "Windows":
        yield NotApplicable(reason="Windows has no such limits")
        return
    for name, option, least, unit, size in (
        ("cpu", "-t", least_hours, "h of CPU time", 3600),
        ("fsize", "-f", least_gib, "GiB in a file", 2**30),
    ):
        subject, limit = f"ulimit {option}", host.limit(name)
        if limit is None:
            yield Unjudged(subject=subject, reason="the limit was not read")
        elif limit.soft is None or limit.soft >= least * size:
            observed = "unlimited" if limit.soft is None else f"{limit.soft / size:.3g} {unit}"
            yield Evidence(subject=subject, observed=observed)
        else:
            raised = "unlimited" if limit.hard is None else "hard"
            yield Finding(
                subject=subject,
                observed=f"{limit.soft / size:.2g} {unit}",
                expected=f"unlimited, or at least {least:g} {unit}",
                remedy=Remedy.configure(
                    "Start the job by the scheduler, not on a login node, or raise the limit in the job's shell.",
                    f"ulimit -S {option} {raised}",
                ),
                rollback=Rollback.nothing("not needed (the limit is that of one shell)"),
            )
