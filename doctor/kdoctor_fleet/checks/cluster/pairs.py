from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.model import Evidence, Finding, Outcome, Severity, Unjudged
from kdoctor.text.lists import counted
from kdoctor_fleet.checks.cluster._across import look_at, tested
from kdoctor_fleet.facts import Fleet, PairTests


@check("cluster.pairs", severity=Severity.ERROR)
def pairs(fleet: Fleet) -> Iterator[Outcome]:
    """Every node trains with another node.

    Why: a node whose own checks pass can still have a network interface, a route or a firewall that stops a job. It is
    bad if it trains with no other node, and fails with one that trains with others.
    Remedy: leave the node out, and look at its network.
    Source: https://www.tensorflow.org/guide/distributed_training#multiworkermirroredstrategy
    """
    found = tested(fleet)
    if not isinstance(found, PairTests):
        yield found
        return
    for node in found.bad:
        yield Finding(
            subject=node.name,
            observed=f"does not train with {node.partner}, which trains with others ({node.problem})",
            brief=f"trains with no other node ({node.problem})",
            expected="it trains with another node as on one device",
            remedy=look_at("Leave the node out, and look at its network.", node.name),
        )
    why = () if found.proven else ("cluster.together",)
    for name, reason in found.undecided.items():
        yield Unjudged(subject=name, reason=f"trained with no other node: {reason}", explained_by=why)
    if found.proven:
        speed = f", all-reduce at {found.gbs:.2g} GB/s (median)" if found.gbs else ""
        yield Evidence(
            subject=fleet.fold(found.proven),
            observed=f"train with another node; {counted(found.pairs, 'pair')} tested{speed}",
        )
