from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import Host
from kdoctor.model import Evidence, Finding, Outcome, Remedy, Rollback, Severity, Unjudged

_SUBJECT = "ulimit -n"


@check("host.open-files", severity=Severity.INFO)
def open_files(host: Host, *, least: int = 4096) -> Iterator[Outcome]:
    """Processes can open enough files.

    Why: input pipelines that interleave many files, and caches that write many shards, fail with "Too many open
    files", sometimes only after hours. The usual limit of 1024 is enough for small inputs.
    Remedy: raise the soft limit before the job starts, up to the hard limit.
    Sources:
        https://github.com/tensorflow/datasets/issues/1441
        https://github.com/tensorflow/io/issues/1682
    """
    limit = host.limit("nofile")
    if limit is None:
        yield Unjudged(subject=_SUBJECT, reason="the limit was not read")
    elif limit.soft is None or limit.soft >= least:
        yield Evidence(subject=_SUBJECT, observed="unlimited" if limit.soft is None else str(limit.soft))
    else:
        is_low = limit.hard is not None and limit.hard < least
        command = f"sudo prlimit --pid $$ --nofile={least}:{least}" if is_low else f"ulimit -n {least}"
        yield Finding(
            subject=_SUBJECT,
            observed=f"{limit.soft} (hard limit {'unlimited' if limit.hard is None else limit.hard})",
            expected=f"at least {least}",
            remedy=Remedy.configure(
                "Raise the soft limit in the job's shell, or the hard limit in /etc/security/limits.conf.", command
            ),
            rollback=Rollback.to("restore the recorded limit", f"ulimit -n {limit.soft}"),
        )
