from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.model import Evidence, Finding, Outcome, Severity, Unjudged
from kdoctor.text.lists import counted
from kdoctor_fleet.checks.cluster._across import look_at, tested
from kdoctor_fleet.facts import Fleet, PairTests


@check("cluster.links", severity=Severity.ERROR)
def links(fleet: Fleet) -> Iterator[Outcome]:
    """Nodes that train with others also train with each other.

    Why: a cable, a switch port or a route between two nodes can fail while both nodes are well. Only the tested pairs
    are judged. Of each bad pair, the node with the most bad links is left out.
    Remedy: do not use both nodes in one job, and look at the path between them.
    Source: https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting.html
    """
    found = tested(fleet)
    if not isinstance(found, PairTests):
        yield found
        return
    for link in found.links:
        other = next(name for name in link.nodes if name != link.leave_out)
        yield Finding(
            subject=link.leave_out,
            observed=f"does not train with {other}, and both train with others ({link.problem})",
            brief=f"bad link to {other} ({link.problem})",
            expected="both train together as on one device",
            remedy=look_at("Do not use both nodes in one job, and look at the path between them.", *link.nodes),
        )
    if found.links:
        return
    if found.proven:
        yield Evidence(
            subject=fleet.fold(found.proven), observed=f"no bad link in {counted(found.pairs, 'tested pair')}"
        )
    else:
        yield Unjudged(subject="all pairs", reason="no pair of nodes trains", explained_by=("cluster.together",))
