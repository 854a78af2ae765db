from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.commands.shell import quoted
from kdoctor.facts import Host
from kdoctor.model import Outcome, Remedy, Rollback, Severity, Unjudged
from kdoctor_checks._gpus import judge

_SUBJECT = "transparent huge pages"
_FILE = "/sys/kernel/mm/transparent_hugepage/enabled"


@check("host.huge-pages", severity=Severity.INFO)
def huge_pages(host: Host, *, accepted: tuple[str, ...] = ("always", "madvise")) -> Iterator[Outcome]:
    """Transparent huge pages are enabled.

    Why: without them, large input buffers need more page-table lookups, which costs a few percent at most. Databases
    recommend "never", so a former database server may still have that mode.
    Remedy: set the mode to madvise.
    Source: https://docs.kernel.org/admin-guide/mm/transhuge.html
    """
    mode = host.transparent_hugepages
    if mode is None:
        yield Unjudged(subject=_SUBJECT, reason="the mode was not read")
    else:
        yield judge(
            _SUBJECT,
            mode,
            ok=mode in accepted,
            expected=" or ".join(accepted),
            remedy=Remedy.configure(
                f"Set the mode to {accepted[-1]}, which lasts until the next restart.",
                f"echo {quoted(accepted[-1])} | sudo tee {_FILE}",
            ),
            rollback=Rollback.to("restore the recorded mode", f"echo {quoted(mode)} | sudo tee {_FILE}"),
        )
