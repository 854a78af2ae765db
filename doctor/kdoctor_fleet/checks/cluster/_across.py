"""What the checks of trainings over several nodes share."""

from kdoctor.model import NotApplicable, Remedy
from kdoctor_fleet.facts import Fleet, PairTests


def tested(fleet: Fleet) -> PairTests | NotApplicable:
    """The trainings; not applicable if none was requested."""
    return fleet.pairs or NotApplicable(
        reason="no training over several nodes was requested (kdoctor fleet run --pairs)"
    )


def look_at(summary: str, *nodes: str) -> Remedy:
    """A look at the network of these nodes."""
    look = (f"getent hosts {' '.join(nodes)}", "ip -s link", "ibstat", "cat fleet-pairs.json  # phases and stacks")
    return Remedy.inspect(summary, *look)
