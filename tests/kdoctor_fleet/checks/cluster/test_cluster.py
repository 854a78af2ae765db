"""The checks of a fleet that read facts of all nodes: a row for each state of the fleet."""

from dataclasses import replace
from typing import Any

from helpers.kdoctor_fleet.fleets import fleet, names_of
from helpers.rows import fails, passes, skips, table, unknown
from kdoctor.facts import Node
from kdoctor.model import Severity
from kdoctor_fleet.facts import BadLink, BadNode, Fleet, JobConfig, PairTests, Together, UnreadReport

ONE, TWO, THREE, FOUR = NAMES = tuple(names_of(4))


# --- ranks ---------------------------------------------------------------------------------------------------------

SLURM: dict[str, Any] = {"named_by": "slurm", "launcher": "slurm", "job": "7"}


def with_second(**changes: Any) -> Fleet:
    return fleet(3, node0002={"node": replace(Node(name=TWO, **SLURM, rank=1, ranks=3), **changes)})


def ranked(*places: tuple[int | None, int], **changes: Any) -> Fleet:
    names = names_of(len(places))
    nodes = (
        Node(name=name, **SLURM | changes, rank=rank, ranks=size)
        for name, (rank, size) in zip(names, places, strict=True)
    )
    return fleet(len(places), **{node.name: {"node": node} for node in nodes})


UNIQUE = "2 nodes, each with another rank"
test_ranks = table(
    "cluster.ranks",
    Severity.ERROR,
    passes(with_second()),
    passes(with_second(job="8", rank=0)),
    passes(with_second(launcher=None, rank=None)),
    passes(with_second(ranks=None)),
    passes(ranked((0, 2), (1, 2)), said={"slurm job 7": UNIQUE}),
    passes(ranked((0, 2), (1, 2), launcher="mpich", job=None), said={"ranks of mpich": UNIQUE}),
    skips(ranked((0, 1))),
    skips(ranked((0, 2), (None, 2))),
    fails(ranked((0, 3), (1, 3), (1, 3)), said={"node[0002-0003]": "all of them have rank 1 (slurm job 7)"}),
    fails(
        ranked((0, 3), (1, 3), (2, 4)),
        said={THREE: "the job has 4 processes by its variables, and 3 by those of most nodes (slurm job 7)"},
    ),
    fails(
        ranked((0, 2), (1, 3)),
        said={"node[0001-0002]": "the job has 3 processes by its variables, and 2 by those of node0001 (slurm job 7)"},
        expected="one size of the job on all nodes",
        briefs=["two sizes of the job, of which none has a majority"],
    ),
)


# --- reports, checklists -------------------------------------------------------------------------------------------

SILENT = {FOUR: "node0004 refused", THREE: "node0003 refused"}
test_reports = table(
    "cluster.reports",
    Severity.ERROR,
    passes(fleet(1), briefs=["1 node reported"]),
    unknown(
        replace(fleet(3), unread=(UnreadReport(source="a.json", reason="truncated"),)), "unknown a.json: truncated."
    ),
    unknown(
        replace(fleet(2), expected=tuple(names_of(5)), reasons=SILENT),
        said={
            "node[0001-0002]": "2 of 5 expected nodes reported",
            "node[0003-0004]": "NODE refused",
            "node0005": "expected, but sent no report",
        },
    ),
)

test_same_checklist = table(
    "cluster.same-checklist",
    Severity.WARNING,
    passes(fleet(2)),
    skips(fleet(1)),
    fails(fleet(3, node0002={"checklist": "cpu-smoke, version 1"}), "cpu-smoke, version 1", of=[TWO]),
    fails(fleet(3, node0002={"kdoctor": "0.0.9"}), "0.0.9", of=[TWO]),
    fails(
        fleet(4, node0001={"checklist": "zeta, version 1"}, node0004={"checklist": "alpha, version 1"}),
        f"{ONE}: checklist zeta, version 1; 2 of 4 nodes have {fleet(4).nodes[1].checklist}.",
    ),
    fails(
        fleet(2, node0001={"checklist": "b"}, node0002={"checklist": "a"}), f"{ONE}: checklist b; 1 of 2 nodes have a."
    ),
)


# --- speed of trainings --------------------------------------------------------------------------------------------


def timed(*milliseconds: float, training: str = "baseline") -> Fleet:
    names = names_of(len(milliseconds))
    steps = {name: {"steps": {training: value / 1000}} for name, value in zip(names, milliseconds, strict=True)}
    return fleet(len(milliseconds), **steps)


def several(*slow: str) -> Fleet:
    """Three trainings on four nodes, of which some are slow on the last one."""
    usual = dict.fromkeys("abc", 0.01)
    steps = {name: {"steps": usual} for name in NAMES}
    return fleet(4, **{**steps, FOUR: {"steps": {**usual, **dict.fromkeys(slow, 0.05)}}})


# Median 10.0 ms, median absolute deviation 0.1 ms, so that 3.5 robust deviations are 0.52 ms.
NEAR = (9.9, 9.9, 10.0, 10.0, 10.1, 10.1)
# Median 10 and deviation 2: 10 + 3.5 * 1.4826 * 2 = 20.4.
SPREAD = (6, 8, 10, 12)
# Seconds that are sums of powers of two, whose products are exact.
EXACT = (250.0, 250.0, 250.0, 500.0)
test_training_speed = table(
    "cluster.training-speed",
    Severity.WARNING,
    passes(timed(*NEAR, 12.9)),
    fails(timed(*NEAR, 13.1), of=["node0007"]),
    passes(timed(10, 10, 40, 40)),  # half of the nodes
    passes(timed(10, 10, 10, 1)),
    passes(timed(10, 10, 10, 10), said={"all nodes": "1 training, each on 4 nodes or more"}),
    passes(fleet(5, **{name: {"steps": {"8 x gpu": 0.01}} for name in NAMES}, node0005={"steps": {"4 x gpu": 0.09}})),
    skips(timed(10, 10, 20)),  # fewer than 4 nodes
    passes(timed(*EXACT), {"most_factor": 2.0}),
    fails(timed(*EXACT), {"most_factor": 1.9}),
    passes(timed(*SPREAD, 20.3)),
    fails(timed(*SPREAD, 20.5)),
    fails(timed(10, 10, 10, 20), said={FOUR: "baseline: a step takes 20.0 ms, 2.0 times the median (10.0 ms)"}),
    fails(several("a", "b"), "(10.0 ms) and 1 more training."),
    fails(several("a", "b", "c"), "(10.0 ms) and 2 more trainings.", briefs=["trains much slower than its peers"]),
    passes(
        fleet(5, **{f"node000{n}": {"steps": {"a": 0.01, **({"b": 0.01} if n > 1 else {})}} for n in range(1, 6)}),
        said={"all nodes": "2 trainings, each on 4 nodes or more"},
    ),
)


# --- clocks --------------------------------------------------------------------------------------------------------


def service(**facts: str) -> dict[str, Any]:
    return {"sections": {"clock": {name.replace("_", "-"): value for name, value in facts.items()}}}


def offset(seconds: str) -> Fleet:
    return fleet(1, node0001=service(synchronized="yes", offset_seconds=seconds))


def started(at: str, **changes: str) -> Fleet:
    """The fleet was merged at 00:10:00."""
    return fleet(1, node0001={"started_at": at, **changes})


EARLY = "2026-01-01T00:00:00Z"
test_clock = table(
    "cluster.clock",
    Severity.WARNING,
    passes(offset("1.0")),
    passes(offset("-1.0")),
    *(fails(offset(text), briefs=["its clock is off"]) for text in ("1.1", "-1.1", "inf", "nan")),
    passes(offset("soon")),
    passes(offset("0.5")),
    fails(offset("0.5"), {"most_seconds": 0.1}),
    passes(
        fleet(1, node0001=service(synchronized="yes")), {"most_seconds": 0.5}, said={ONE: "synchronized within 0.5 s"}
    ),
    fails(fleet(1, node0001=service(synchronized="no")), briefs=["its clock is not synchronized"]),
    unknown(fleet(2, node0001=service(synchronized="yes", offset_seconds="0.0002")), of=[TWO]),
    # The other node is not said to be well.
    fails(fleet(2, node0001=service(synchronized="no")), "its report has no facts about the clock", of=[ONE]),
    # A report may start a minute after it was read, and a minute before it was asked for.
    passes(started("2026-01-01T00:11:00+00:00")),
    fails(started("2026-01-01T00:11:01+00:00"), briefs=["its clock is ahead"]),
    passes(started(EARLY, asked_at="2026-01-01T00:01:00Z")),
    fails(started(EARLY, asked_at="2026-01-01T00:01:01Z"), briefs=["its clock is behind"]),
    # A time that cannot be compared is not a wrong clock.
    passes(started("")),
    passes(started("yesterday")),
    passes(started("2026-01-01T00:09:00")),
)


# --- TF_CONFIG -----------------------------------------------------------------------------------------------------

WORKERS = ("node0001:2222", "node0002:2222", "node0003:2222")


def second(task: str | None, *workers: str, nodes: int = 3) -> Fleet:
    """The second node has another TF_CONFIG."""
    return fleet(nodes, node0002={"job": JobConfig(cluster={"worker": workers or WORKERS}, task=task)})


TWICE = JobConfig(cluster={"worker": ("a:1", "a:1", "b:1")})
test_tf_config = table(
    "cluster.tf-config",
    Severity.ERROR,
    passes(fleet(3)),
    skips(fleet(2, node0001={"job": None}, node0002={"job": None})),
    unknown(replace(fleet(3), nodes=fleet(3).nodes[:2]), of=["worker 2"]),
    fails(second("worker 0"), of=["node[0001-0002]"]),
    fails(second("worker 3"), f"{TWO}: its task (worker 3) is not in the cluster of its TF_CONFIG.", of=[TWO]),
    fails(second(None), f"{TWO}: its task (none) is not in the cluster of its TF_CONFIG.", of=[TWO]),
    fails(second("worker 1", *WORKERS[:2]), of=[TWO]),
    fails(fleet(3, node0002={"job": None}), of=[TWO]),
    fails(fleet(3, node0002={"job": JobConfig(malformed="it is not JSON")}), of=[TWO]),
    fails(
        fleet(3, **{name: {"job": replace(TWICE, task=f"worker {n}")} for n, name in enumerate(NAMES[:3])}),
        of=["node[0001-0003]"],
    ),
    fails(second("worker 1", "x:1", WORKERS[1], nodes=2), " (no majority).", of=["node[0001-0002]"]),
    fails(second("worker 1", "x:1", WORKERS[1]), "TF_CONFIG names another cluster than on node[0001,0003]."),
    # An older kdoctor does not report it.
    unknown(fleet(3, node0003={"job": None, "node": None})),
)


# --- trainings over several nodes ----------------------------------------------------------------------------------


def trained(**changes: Any) -> Fleet:
    values: dict[str, Any] = {"nodes": NAMES, "proven": NAMES, "pairs": 2, **changes}
    return replace(fleet(4), pairs=PairTests(**values))


def group(**changes: Any) -> Together:
    return Together(**{"nodes": NAMES, "outcome": "trained", **changes})


NOT_REQUESTED = replace(fleet(4), pairs=None)
ALL = trained(together=group(), gbs=11.0)
BAD_LINK = trained(links=(BadLink(nodes=(ONE, TWO), leave_out=TWO, problem="hangs"),))
NO_PAIR = trained(proven=(), failed=2, undecided=dict.fromkeys(NAMES, "hangs"))
HANGS = "hangs in phase strategy"
test_pairs = table(
    "cluster.pairs",
    Severity.ERROR,
    skips(NOT_REQUESTED),
    passes(ALL),
    passes(BAD_LINK),
    fails(
        trained(proven=(ONE, TWO, FOUR), bad=(BadNode(name=THREE, partner=ONE, problem=HANGS),)), ONE, HANGS, of=[THREE]
    ),
    unknown(trained(proven=NAMES[:3], undecided={FOUR: "port 23000 cannot be used"}), of=[FOUR]),
    unknown(NO_PAIR),
)
test_links = table(
    "cluster.links", Severity.ERROR, skips(NOT_REQUESTED), passes(ALL), fails(BAD_LINK, ONE, of=[TWO]), unknown(NO_PAIR)
)
test_together = table(
    "cluster.together",
    Severity.ERROR,
    skips(NOT_REQUESTED),
    passes(ALL),
    fails(NO_PAIR, of=["node[0001-0004]"]),
    unknown(trained(proven=(), undecided=dict.fromkeys(NAMES, "TensorFlow is not installed"))),
    skips(trained(nodes=(ONE, TWO), proven=(ONE, TWO), pairs=1)),  # two good nodes need no larger group
    fails(
        trained(
            together=group(outcome="failed", problem="hangs", smallest=NAMES[:3], trained=((THREE, FOUR), (FOUR,)))
        ),
        "node[0003-0004] train alone",
        of=["node[0001-0003]"],
    ),
    unknown(trained(interrupted=True, together=group())),
    unknown(trained(together=group(outcome="untested", problem="port"))),
)
