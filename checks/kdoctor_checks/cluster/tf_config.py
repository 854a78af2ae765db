from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from kdoctor.check import check
from kdoctor.facts import Fleet, FleetNode, JobConfig
from kdoctor.model import Action, Evidence, Finding, NotApplicable, Outcome, Remedy, Rollback, Severity, Unjudged
from kdoctor.text.lists import some

_BACK = Rollback.irreversible("depends on how TF_CONFIG is written")


@check("cluster.tf-config", severity=Severity.ERROR)
def tf_config(fleet: Fleet) -> Iterator[Outcome]:
    """TF_CONFIG names the same cluster on all nodes, and each node is another task of it.

    Why: every worker waits for all tasks of its own TF_CONFIG. With two lists of workers, with a task that two nodes
    claim, or with one that no node is, the job waits without an error. Whether addresses resolve and ports are free is
    judged on each node (network.hosts-resolve, network.port-free).
    Remedy: write TF_CONFIG of all nodes from one list of hosts, and let the launcher's rank be the index.
    Source: https://www.tensorflow.org/guide/distributed_training#setting_up_the_tf_config_environment_variable
    """
    configured = [(node, node.job) for node in fleet.nodes if node.job is not None]
    if not configured:
        yield NotApplicable(reason="no node has TF_CONFIG")
        return
    without = [node.name for node in fleet.nodes if node.job is None and node.node is not None]
    if without:
        yield _finding(fleet, without, "TF_CONFIG is not set, but it is on other nodes", "TF_CONFIG on all nodes")
    for node, job in configured:
        if job.malformed:
            yield _finding(fleet, [node.name], f"TF_CONFIG cannot be read: {job.malformed}", "a cluster and a task")
    readable = [(node, job) for node, job in configured if not job.malformed]
    findings = [*_clusters(fleet, readable), *_addresses(fleet, readable), *_tasks(fleet, readable)]
    yield from findings
    if readable and not findings:
        tasks = len(readable[0][1].tasks)
        observed = f"one cluster of {tasks} tasks on {len(readable)} nodes, each another task"
        yield Evidence(subject=fleet.fold(node.name for node, _ in readable), observed=observed)


_Configured = Sequence[tuple[FleetNode, JobConfig]]


def _clusters(fleet: Fleet, configured: _Configured) -> Iterator[Finding]:
    """Nodes whose cluster is not that of the most nodes."""
    by_cluster: dict[tuple[tuple[str, tuple[str, ...]], ...], list[str]] = {}
    for node, job in configured:
        by_cluster.setdefault(tuple(sorted(job.cluster.items())), []).append(node.name)
    (_, most), *others = sorted(by_cluster.items(), key=lambda item: (-len(item[1]), item[1])) or [((), [])]
    for _, names in others:
        tie = len(names) == len(most)
        observed = f"TF_CONFIG names another cluster than on {fleet.fold(most)}" + (" (no majority)" if tie else "")
        named = [*most, *names] if tie else names
        yield _finding(fleet, named, observed, "one list of tasks on all nodes", "another cluster in TF_CONFIG")


def _addresses(fleet: Fleet, configured: _Configured) -> Iterator[Finding]:
    """Addresses that two tasks of one cluster have."""
    seen: set[int] = set()
    for node, job in configured:
        if id(job.cluster) in seen:
            continue
        seen.add(id(job.cluster))
        twice = [address for address, number in Counter(job.tasks.values()).items() if number > 1]
        if twice:
            observed = f"TF_CONFIG gives {some(twice)} to several tasks"
            yield _finding(fleet, [node.name], observed, "one address for each task", "one address for several tasks")


def _tasks(fleet: Fleet, configured: _Configured) -> Iterator[Finding | Unjudged]:
    """Tasks that several nodes claim, nodes without a task of the cluster, and tasks that no node is."""
    by_task: dict[str, list[str]] = {}
    for node, job in configured:
        if job.task is None or job.task not in job.tasks:
            observed = f"its task ({job.task or 'none'}) is not in the cluster of its TF_CONFIG"
            yield _finding(fleet, [node.name], observed, "a task of the cluster", "its task is not in the cluster")
        else:
            by_task.setdefault(job.task, []).append(node.name)
    for task, names in by_task.items():
        if len(names) > 1:
            yield _finding(fleet, names, f"all of them are {task} in TF_CONFIG", "another task on each node")
    nobody = sorted({task for _, job in configured for task in job.tasks} - set(by_task))
    if nobody:
        yield Unjudged(subject=some(nobody), reason="in TF_CONFIG, but none of the nodes that reported is that task")


def _finding(fleet: Fleet, names: Sequence[str], observed: str, expected: str, brief: str = "") -> Finding:
    return Finding(
        subject=fleet.fold(names),
        observed=observed,
        brief=brief or observed[:60],
        expected=expected,
        remedy=Remedy(
            summary="Write TF_CONFIG of all nodes from one list of hosts, with the launcher's rank as index.",
            action=Action.CONFIGURE,
            look=("echo $TF_CONFIG",),
        ),
        rollback=_BACK,
    )
