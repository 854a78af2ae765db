"""What both ways to Kubernetes share: which pod is on which node, and why a pod has no report."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

from kdoctor.errors import UsageError
from kdoctor.fleet.exclusion import Engine as Words
from kdoctor.fleet.launch.engine import Ended
from kdoctor.fleet.manifest import NAME
from kdoctor.fleet.names import is_valid
from kdoctor.probes.process.readers import Take

Pod = Mapping[str, Any]
_SELECTOR = "--selector="


class Pods(ABC):
    """Follows the log of the newest pod on each node. It starts nothing and changes nothing in the cluster."""

    name = "kubernetes"
    words: Words = "kubernetes"
    selector: str
    _pods: dict[str, Pod] | None = None

    @abstractmethod
    def list_pods(self) -> bytes:
        """The pods that the selector chooses, as the API's JSON.

        Raises:
            UsageError: the API does not answer.
        """

    @abstractmethod
    def read_log(self, pod: str, *, follow: bool, take: Take, deadline_s: float) -> Ended:
        """Read the log of a pod, to its end or up to now."""

    def nodes(self, environ: Mapping[str, str]) -> str:  # noqa: ARG002 - the interface of engines
        """The nodes of the pods. A pod without a node has its own name."""
        return ",".join(self._by_node())

    def address(self, node: str) -> str:
        """Unknown: pods of a Job have no name, and run the command of their manifest.

        Raises:
            UsageError: always.
        """
        raise UsageError(
            f"--pairs {node}: --engine kubernetes only collects, and cannot train over several nodes",
            hint="In the pods of a training job, TF_CONFIG is set: kdoctor smoke across-nodes",
        )

    def run(self, node: str, command: Sequence[str], take: Take, deadline_s: float) -> Ended:  # noqa: ARG002
        """Read the log of the pod on a node, which runs the command of its manifest."""
        pod = self._by_node().get(node)
        if pod is None:
            return Ended(exit_code=None, problem=f"no pod of {self.selector} is on it")
        waiting = _why_it_waits(pod)
        if waiting:
            return Ended(exit_code=None, problem=waiting)
        # The pods of a DaemonSet never end, so their log is read up to now.
        name = str(pod["metadata"]["name"])
        ended = self.read_log(name, follow="DaemonSet" not in _owners(pod), take=take, deadline_s=deadline_s)
        died = _why_it_died(pod)
        return Ended(exit_code=None, problem=died) if died else ended

    def _by_node(self) -> dict[str, Pod]:
        if self._pods is None:
            self._pods = _newest(self.list_pods())
        return self._pods


def selector_of(options: Sequence[str]) -> tuple[str, list[str]]:
    """The label selector that options choose, and the other options."""
    chosen = [option.removeprefix(_SELECTOR) for option in options if option.startswith(_SELECTOR)]
    others = [option for option in options if not option.startswith(_SELECTOR)]
    return (chosen[-1] if chosen else f"{NAME}=kdoctor"), others


def _newest(content: bytes) -> dict[str, Pod]:
    """The newest pod of each node.

    Raises:
        UsageError: it is not a list of pods.
    """
    try:
        items = json.loads(content)["items"]
        pods = sorted(items, key=lambda pod: str(pod["metadata"]["creationTimestamp"]))
        found = {str(pod.get("spec", {}).get("nodeName") or pod["metadata"]["name"]): pod for pod in pods}
        for pod in pods:  # what is asked of each later
            _ = _owners(pod), _why_it_waits(pod), _why_it_died(pod), pod["metadata"]["name"]
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise UsageError(f"the API of Kubernetes sent no list of pods: {error}") from error
    return {node: pod for node, pod in found.items() if is_valid(node)}


def _owners(pod: Pod) -> list[str]:
    """The kinds of what started a pod."""
    return [str(owner.get("kind")) for owner in pod["metadata"].get("ownerReferences", ())]


def _why_it_waits(pod: Pod) -> str:
    """Why a pod has not started; empty if it has."""
    status = pod.get("status", {})
    if status.get("phase") != "Pending":
        return ""
    states = [item.get("state", {}).get("waiting", {}) for item in status.get("containerStatuses", ())]
    reasons = [*states, *(item for item in status.get("conditions", ()) if item.get("status") == "False")]
    said = next((f"{item['reason']} {item.get('message', '')}".strip() for item in reasons if item.get("reason")), "")
    return f"its pod is pending: {said}" if said else "its pod is pending"


def _why_it_died(pod: Pod) -> str:
    """Why a pod ended before its command did (evicted, killed for memory, past its deadline); empty if it did not."""
    status = pod.get("status", {})
    if status.get("reason"):
        return f"its pod failed: {status['reason']} {status.get('message', '')}".strip()
    ends = [item.get("state", {}).get("terminated", {}) for item in status.get("containerStatuses", ())]
    return next((f"its container ended: {end['reason']}" for end in ends if end.get("reason") == "OOMKilled"), "")
