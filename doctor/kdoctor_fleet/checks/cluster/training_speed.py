import statistics
from collections.abc import Iterator, Mapping

from kdoctor.check import check
from kdoctor.model import Evidence, Finding, NotApplicable, Outcome, Remedy, Severity
from kdoctor.text.lists import counted, grouped
from kdoctor_fleet.facts import Fleet

_TO_SIGMA = 1.4826
"""The median absolute deviation of a normal distribution is its standard deviation divided by this."""
_FEWEST = 4
"""With three nodes, one slow node moves the median absolute deviation itself."""


@check("cluster.training-speed", severity=Severity.WARNING)
def training_speed(fleet: Fleet, *, most_deviations: float = 3.5, most_factor: float = 1.3) -> Iterator[Outcome]:
    """No node is much slower than its peers in the same training.

    Why: a synchronous job runs at the pace of its slowest node. A node is slow if its median step exceeds the median of
    all nodes by 3.5 robust standard deviations (1.4826 times the median absolute deviation) and by 30 percent. Both
    numbers are parameters, and at least four nodes must have run the training.
    Remedy: look at clocks, temperature, power and other processes of the slow nodes.
    Source: https://www.itl.nist.gov/div898/handbook/eda/section3/eda35h.htm
    """
    by_training: dict[str, dict[str, float]] = {}
    for node in fleet.nodes:
        for training, seconds in node.steps.items():
            by_training.setdefault(training, {})[node.name] = seconds
    compared = {name: steps for name, steps in by_training.items() if len(steps) >= _FEWEST}
    if not compared:
        yield NotApplicable(reason=f"no training ran on at least {_FEWEST} nodes")
        return
    slow = grouped(
        (name, f"{training}: {text}")
        for training, steps in compared.items()
        for name, text in _slow(steps, most_deviations, most_factor).items()
    )
    for name, texts in slow.items():
        more = f" and {counted(len(texts) - 1, 'more training')}" if len(texts) > 1 else ""
        yield Finding(
            subject=name,
            observed=f"{texts[0]}{more}",
            brief="trains much slower than its peers",
            expected=f"at most {most_factor:g} times the median of all nodes",
            remedy=Remedy.inspect(
                "Look at clocks, temperature, power and other processes, or leave the nodes out.",
                "nvidia-smi -q -d PERFORMANCE,TEMPERATURE,POWER,CLOCK",
                "nvidia-smi pmon -c 1",
            ),
        )
    if not slow:
        fewest = min(map(len, compared.values()))
        yield Evidence(
            subject="all nodes", observed=f"{counted(len(compared), 'training')}, each on {fewest} nodes or more"
        )


def _slow(steps: Mapping[str, float], most_deviations: float, most_factor: float) -> dict[str, str]:
    middle = statistics.median(steps.values())
    sigma = _TO_SIGMA * statistics.median(abs(seconds - middle) for seconds in steps.values())
    limit = max(middle + most_deviations * sigma, middle * most_factor)
    return {
        name: f"a step takes {1000 * seconds:.1f} ms, {seconds / middle:.1f} times the median ({1000 * middle:.1f} ms)"
        for name, seconds in steps.items()
        if seconds > limit
    }
