from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.model import Evidence, Finding, NotApplicable, Outcome, Severity, Unjudged
from kdoctor.text.lists import counted
from kdoctor_fleet.checks.cluster._across import look_at, tested
from kdoctor_fleet.facts import Fleet, PairTests, Together


@check("cluster.together", severity=Severity.ERROR)
def together(fleet: Fleet) -> Iterator[Outcome]:
    """All nodes that are good in pairs train together.

    Why: some faults show only at size: limits of connections, addresses that only some nodes resolve, oversubscribed
    links. If all nodes hang together, halves of them are tried, to find the smallest group that hangs.
    Remedy: train on a group that works, and compare the limits and the network of the nodes.
    Source: https://www.tensorflow.org/tutorials/distribute/multi_worker_with_ctl
    """
    found = tested(fleet)
    if not isinstance(found, PairTests):
        yield found
        return
    if found.interrupted:
        yield Unjudged(subject="all nodes", reason="the trainings over several nodes were interrupted")
    elif found.together is None:
        yield from _without(fleet, found)
    else:
        yield from _judge(fleet, found.together)


def _without(fleet: Fleet, found: PairTests) -> Iterator[Outcome]:
    """Fewer than three nodes are good in pairs."""
    if found.proven:
        yield NotApplicable(reason="fewer than three nodes are good in pairs")
        return
    if not found.undecided:
        yield NotApplicable(reason="fewer than two nodes to pair")
        return
    why = next(iter(found.undecided.values()))
    if not found.failed:
        yield Unjudged(subject=fleet.fold(found.nodes), reason=f"no pair of nodes could be tested: {why}")
        return
    yield Finding(
        subject=fleet.fold(found.nodes),
        observed=f"no pair of nodes trains, of {counted(found.pairs, 'tested pair')}: {why}",
        brief="no pair of nodes trains",
        expected="the nodes train together as on one device",
        remedy=look_at("Look at name resolution, firewalls and the network between the nodes.", *found.nodes[:2]),
    )


def _judge(fleet: Fleet, group: Together) -> Iterator[Outcome]:
    nodes = counted(len(group.nodes), "node")
    if group.outcome == "trained":
        yield Evidence(subject=fleet.fold(group.nodes), observed=f"{nodes} train together")
    elif group.outcome == "untested":
        yield Unjudged(subject="all nodes", reason=group.problem)
    else:
        smallest = f"; the smallest group that fails has {counted(len(group.smallest), 'node')}"
        works = max(group.trained, key=len, default=())
        alone = f", and {fleet.fold(works)} train alone" if works else ""
        yield Finding(
            subject=fleet.fold(group.smallest),
            observed=f"{nodes} do not train together ({group.problem}){smallest}{alone}",
            brief=f"{nodes} that are good in pairs do not train together",
            expected="they train together as on one device",
            remedy=look_at("Train on a group that works, and compare limits and network.", *group.smallest[:2]),
        )
