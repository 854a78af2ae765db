from collections.abc import Iterator, Sequence

from kdoctor.check import check
from kdoctor.facts import Node
from kdoctor.model import Evidence, Finding, NotApplicable, Outcome, Remedy, Rollback, Severity
from kdoctor.text.lists import counted, grouped
from kdoctor_fleet.facts import Fleet, FleetNode


@check("cluster.ranks", severity=Severity.ERROR)
def ranks(fleet: Fleet) -> Iterator[Outcome]:
    """The ranks that the launcher gave to the nodes of a job are unique, and agree on the size of the job.

    Why: with a rank that two nodes have, or with two sizes of the job, the first collective operation waits for
    processes that do not exist. Slurm, Kubernetes, Open MPI, MPICH and torchrun give ranks by variables.
    Remedy: start all nodes by one command of the launcher, and do not set its variables by hand.
    Sources:
        https://slurm.schedmd.com/srun.html#SECTION_OUTPUT-ENVIRONMENT-VARIABLES
        https://docs.open-mpi.org/en/main/tuning-apps/environment-var.html
        https://kubernetes.io/docs/tasks/job/indexed-parallel-processing-static/
    """
    placed = [(node, node.node) for node in fleet.nodes if node.node and node.node.rank is not None]
    started = grouped(((place.launcher, place.job or ""), (node, place)) for node, place in placed if place.launcher)
    jobs = {job: members for job, members in started.items() if len(members) > 1}
    if not jobs:
        yield NotApplicable(reason="no launcher gave ranks to several nodes")
    for (launcher, job), members in jobs.items():
        named = f"{launcher} job {job}" if job else f"ranks of {launcher}"
        findings = [*_twice(fleet, named, members), *_sizes(fleet, named, members)]
        yield from findings
        if not findings:
            yield Evidence(subject=named, observed=f"{counted(len(members), 'node')}, each with another rank")


def _twice(fleet: Fleet, named: str, members: Sequence[tuple[FleetNode, Node]]) -> Iterator[Finding]:
    for rank, names in grouped((place.rank, node.name) for node, place in members).items():
        if len(names) > 1:
            yield _finding(fleet, names, f"all of them have rank {rank} ({named})", "another rank on each node")


def _sizes(fleet: Fleet, named: str, members: Sequence[tuple[FleetNode, Node]]) -> Iterator[Finding]:
    by_size = grouped((place.ranks, node.name) for node, place in members if place.ranks is not None)
    (size, usual), *others = sorted(by_size.items(), key=lambda item: -len(item[1])) or [(0, [])]
    for other, names in others:
        tie = len(names) == len(usual)
        whose = fleet.fold(usual) if tie else "most nodes"
        observed = f"the job has {other} processes by its variables, and {size} by those of {whose} ({named})"
        expected = "one size of the job on all nodes" if tie else f"{size} processes on all nodes"
        brief = "two sizes of the job, of which none has a majority" if tie else "another size of the job than most"
        yield _finding(fleet, [*usual, *names] if tie else names, observed, expected, brief)


def _finding(fleet: Fleet, names: Sequence[str], observed: str, expected: str, brief: str = "") -> Finding:
    return Finding(
        subject=fleet.fold(names),
        observed=observed,
        brief=brief or observed.partition(" (")[0],
        expected=expected,
        remedy=Remedy.configure(
            "Start all nodes by one command of the launcher, and do not set its variables by hand.",
            look=("env | grep -E '^(SLURM|OMPI|PMI|JOB_COMPLETION|RANK|WORLD)'",),
        ),
        rollback=Rollback.irreversible("depends on how the nodes were started"),
    )
