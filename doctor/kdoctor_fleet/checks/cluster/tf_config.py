from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from kdoctor.check import check
from kdoctor.model import Evidence, Finding, NotApplicable, Outcome, Remedy, Rollback, Severity, Unjudged
from kdoctor.records import record
from kdoctor.text.lists import counted, grouped, some
from kdoctor_fleet.facts import Fleet, FleetNode, JobConfig

_BACK = Rollback.irreversible("depends on how TF_CONFIG is written")


@check("cluster.tf-config", severity=Severity.ERROR)
def tf_config(fleet: Fleet) -> Iterator[Outcome]:
    """TF_CONFIG names the same cluster on all nodes, and each node is another task of it.

    Why: every worker waits for all tasks of its TF_CONFIG. With two lists of workers, with a task that two nodes
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
    clusters = _by_cluster([(node, job) for node, job in configured if not job.malformed])
    found = [*_other_clusters(fleet, clusters), *_addresses(fleet, clusters), *_tasks(fleet, clusters)]
    yield from found
    if clusters and not found:
        (cluster,) = clusters
        tasks, nodes = counted(len(cluster.tasks), "task"), counted(len(cluster.nodes), "node")
        observed = f"one cluster of {tasks} on {nodes}, each another task"
        yield Evidence(subject=fleet.fold(cluster.names), observed=observed)


@record
class _Cluster:
    tasks: Mapping[str, str]
    """Task to address."""
    nodes: list[tuple[FleetNode, JobConfig]]

    @property
    def names(self) -> list[str]:
        return [node.name for node, _ in self.nodes]


def _by_cluster(configured: Iterable[tuple[FleetNode, JobConfig]]) -> list[_Cluster]:
    """The different clusters, the most frequent one first. Equal ones are often one object, which is compared once."""
    by_tasks: dict[frozenset[tuple[str, str]], _Cluster] = {}
    for members in grouped((id(job.cluster), (node, job)) for node, job in configured).values():
        tasks = members[0][1].tasks
        by_tasks.setdefault(frozenset(tasks.items()), _Cluster(tasks=tasks, nodes=[])).nodes.extend(members)
    return sorted(by_tasks.values(), key=lambda cluster: (-len(cluster.nodes), cluster.names))


def _other_clusters(fleet: Fleet, clusters: Sequence[_Cluster]) -> Iterator[Finding]:
    """Nodes whose cluster is not that of the most nodes."""
    for other in clusters[1:]:
        most = clusters[0].names
        tie = len(other.nodes) == len(most)
        observed = f"TF_CONFIG names another cluster than on {fleet.fold(most)}" + (" (no majority)" if tie else "")
        named = [*most, *other.names] if tie else other.names
        yield _finding(fleet, named, observed, "one list of tasks on all nodes", "another cluster in TF_CONFIG")


def _addresses(fleet: Fleet, clusters: Iterable[_Cluster]) -> Iterator[Finding]:
    """Addresses that two tasks of one cluster have."""
    for cluster in clusters:
        twice = [address for address, number in Counter(cluster.tasks.values()).items() if number > 1]
        if twice:
            observed = f"TF_CONFIG gives {some(twice)} to several tasks"
            brief = "one address for several tasks in TF_CONFIG"
            yield _finding(fleet, cluster.names, observed, "one address for each task", brief)


def _tasks(fleet: Fleet, clusters: Iterable[_Cluster]) -> Iterator[Finding | Unjudged]:
    """Tasks that several nodes claim, nodes without a task of the cluster, and tasks that no node is."""
    by_task: dict[str, list[str]] = {}
    tasks: set[str] = set()
    for cluster in clusters:
        tasks.update(cluster.tasks)
        for node, job in cluster.nodes:
            if job.task is None or job.task not in cluster.tasks:
                observed = f"its task ({job.task or 'none'}) is not in the cluster of its TF_CONFIG"
                yield _finding(fleet, [node.name], observed, "a task of the cluster", "its task is not in the cluster")
            else:
                by_task.setdefault(job.task, []).append(node.name)
    for task, names in by_task.items():
        if len(names) > 1:
            yield _finding(fleet, names, f"all of them are {task} in TF_CONFIG", "another task on each node")
    missing = sorted(tasks - set(by_task))
    if missing:
        yield Unjudged(subject=some(missing), reason="in TF_CONFIG, but none of the nodes that reported is that task")


def _finding(fleet: Fleet, names: Sequence[str], observed: str, expected: str, brief: str = "") -> Finding:
    return Finding(
        subject=fleet.fold(names),
        observed=observed,
        brief=brief or observed[:60],
        expected=expected,
        remedy=Remedy.configure(
            "Write TF_CONFIG of all nodes from one list of hosts, with the launcher's rank as index.",
            look=("echo $TF_CONFIG",),
        ),
        rollback=_BACK,
    )
