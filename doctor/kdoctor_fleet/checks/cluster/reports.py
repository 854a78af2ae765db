import re
from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.model import Evidence, Outcome, Severity, Unjudged
from kdoctor.text.lists import counted
from kdoctor_fleet.facts import Fleet


@check("cluster.reports", severity=Severity.ERROR)
def reports(fleet: Fleet) -> Iterator[Outcome]:
    """Every expected node reported, and every report can be read.

    Why: a node that does not report is down, hangs in a driver call, or has no kdoctor. It cannot be called healthy, so
    it is unknown.
    Remedy: log in to the silent nodes and run kdoctor check there, or leave them out of the job.
    Source: https://slurm.schedmd.com/scontrol.html
    """
    silent: dict[str, list[str]] = {}
    for name in fleet.silent:
        reason = fleet.reasons.get(name, "")
        silent.setdefault(re.sub(rf"(?<![\w.-]){re.escape(name)}(?![\w.-])", "NODE", reason), []).append(name)
    for reason, names in silent.items():
        yield Unjudged(subject=fleet.fold(names), reason=reason or "expected, but sent no report")
    for file in fleet.unread:
        yield Unjudged(subject=file.source, reason=file.reason)
    if fleet.nodes:
        of = f" of {len(fleet.expected)} expected" if fleet.expected else ""
        number = len(fleet.nodes) if not fleet.expected else len(fleet.expected) - len(fleet.silent)
        named = f"{number}{of} nodes" if of else counted(number, "node")
        reported = fleet.fold(node.name for node in fleet.nodes)
        yield Evidence(subject=reported, observed=f"{named} reported", brief=f"{named} reported")
