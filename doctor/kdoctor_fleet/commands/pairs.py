"""The part of ``kdoctor fleet run`` that trains over several nodes."""

import datetime as dt
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from kdoctor.cli.options import check_time_limit, option
from kdoctor.errors import UsageError, one_of
from kdoctor.run.log import style, warn
from kdoctor.run.progress import progress
from kdoctor.text.lists import counted
from kdoctor_fleet.launch.collect import Limits
from kdoctor_fleet.launch.engine import Engine
from kdoctor_fleet.pairs.record import FleetPairs, pair_tests, run_pairs, shuffled, write_pairs
from kdoctor_fleet.pairs.run import SCENARIOS, Runner
from kdoctor_fleet.run_record import FleetRun

_PASSED_ON = ("--python", "--replicas", "--gpus", "--plugin")
"""Options of ``kdoctor check`` that ``kdoctor smoke`` gets, too."""
_PLACE = "{}"
BOTH = "both"
_MOST_PORTS = 2000

PairsOption = Annotated[
    bool, typer.Option("--pairs", help="Then train on pairs of the nodes that passed, and on all of them together.")
]
FullMatrixOption = Annotated[
    bool, typer.Option("--full-matrix", help="With --pairs: train on every pair, in n-1 rounds of n/2 pairs.")
]
PairFrameworkOption = Annotated[
    str, typer.Option(metavar="tensorflow|jax|both", help="With --pairs: what trains. JAX only where it is installed.")
]
PairTimeoutOption = Annotated[
    float,
    typer.Option(min=10, callback=check_time_limit, help="With --pairs: time limit for each training, in seconds."),
]
PairPortOption = Annotated[
    int, typer.Option(min=1024, max=65535 - _MOST_PORTS, help="With --pairs: the first of 2000 ports to use.")
]
PairAddressOption = Annotated[
    str | None,
    option(
        "With --pairs: the address of a node, with {} for its name: {}-ib0. \\[default: the engine's]",
        metavar="PATTERN",
    ),
]


@dataclass(frozen=True)
class Across:
    """What the options say about trainings over several nodes."""

    wanted: bool
    full_matrix: bool
    framework: str
    limit_s: float
    port: int
    address: str | None

    def __post_init__(self) -> None:
        """Validate.

        Raises:
            UsageError: an option contradicts the others.
        """
        if self.full_matrix and not self.wanted:
            raise UsageError("--full-matrix requires --pairs")
        one_of("--pair-framework", self.framework, (*SCENARIOS, BOTH))
        if self.address is not None and _PLACE not in self.address:
            raise UsageError(f"--pair-address {self.address}: expected {{}} for the name of the node")

    def refuse(self, engine: Engine, node: str) -> None:
        """Do nothing if the engine can train over several nodes, or need not.

        Raises:
            UsageError: it cannot.
        """
        if self.wanted:
            engine.address(node)

    def addresses(self, engine: Engine, nodes: Sequence[str]) -> Callable[[str], str]:
        """The address of each node, by the pattern or by the engine. It is asked once for each node.

        Raises:
            UsageError: the engine does not know a node.
        """
        pattern = self.address
        known = {name: pattern.replace(_PLACE, name) if pattern else engine.address(name) for name in nodes}
        return known.__getitem__


def train_across(
    folder: Path, plan: FleetRun, engine: Engine, across: Across, nodes: Sequence[str], limits: Limits
) -> bool:
    """Train on pairs of these nodes and on all of them, and keep the record; returns whether it was interrupted."""
    if len(nodes) < 2:  # noqa: PLR2004 - a pair
        warn(f"kdoctor: --pairs: {counted(len(nodes), 'node')} passed, and a pair needs two")
        return False
    known = FleetPairs(
        nodes=shuffled(nodes),
        started_at=dt.datetime.now(dt.timezone.utc).isoformat(timespec="seconds"),
        full_matrix=across.full_matrix,
    )

    def keep(record: FleetPairs) -> None:
        nonlocal known
        known = record
        write_pairs(folder, record)
        _say(record)

    with progress() as shown:
        runner = Runner(
            engine=engine,
            program=plan.program,
            options=passed_on(plan.options),
            address=across.addresses(engine, nodes),
            port=across.port,
            frameworks=(across.framework,) if across.framework in SCENARIOS else tuple(SCENARIOS),
            limit_s=across.limit_s,
            node_s=limits.node_s,
            fan_out=limits.fan_out,
            on_step=lambda: shown.note(f"training across nodes: {counted(len(known.pairs), 'pair')} so far"),
        )
        try:
            run_pairs(known, runner, keep)
        except KeyboardInterrupt:
            warn("kdoctor: interrupted; the trainings so far are kept")
            write_pairs(folder, known.model_copy(update={"interrupted": True}))
            return True
    return False


def passed_on(options: Sequence[str]) -> list[str]:
    """The options of ``kdoctor check`` that say on what to train."""
    found: list[str] = []
    for index, word in enumerate(options):
        name, equals, _ = word.partition("=")
        if name in _PASSED_ON:
            found += [word] if equals else [word, *options[index + 1 : index + 2]]
    return found


def _say(record: FleetPairs) -> None:
    if style.quiet:
        return
    found = pair_tests(record)
    text = f"{found.pairs - found.failed} of {counted(found.pairs, 'pair')} trained"
    if found.together:
        text = f"{counted(len(found.together.nodes), 'node')} together: {found.together.outcome}"
    warn(f"Across nodes: {text}", level="info", event="pairs")
