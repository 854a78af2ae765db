"""What both ways to Kubernetes share: which pod is on which node, and why a pod has no report."""

from __future__ import annotations

import json
import re
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from kdoctor.errors import UsageError
from kdoctor.probes.process.readers import Take
from kdoctor_fleet.exclusion import Engine as Words
from kdoctor_fleet.launch.engine import Ended, first_problem
from kdoctor_fleet.manifest import ENDED, NAME
from kdoctor_fleet.names import is_valid

Pod = Mapping[str, Any]
_SELECTOR = "--selector="
_OWN = "kdoctor"
"""The container of the manifest. A pod may get others, such as the proxy of a service mesh."""
_STATE_S = 5.0
"""How long the state of a pod may stay behind the end of its log."""
_ASK_AGAIN_S = 0.5
_LAST_BYTES = 4096
_ENDED = re.compile(rf"{ENDED} (\d{{1,3}})")
_JSON = '{}[]"'
_UNUSUAL = ("OOMKilled", "StartError", "ContainerCannotRun", "ContainerStatusUnknown")
"""Reasons for which a container ends without its command."""
_NOT_A_POD = (ValueError, LookupError, TypeError, AttributeError, OverflowError, RecursionError)


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
    def read_pod(self, pod: str) -> bytes:
        """A pod as it is now, as the API's JSON.

        Raises:
            UsageError: the API does not answer, or the pod is gone.
        """

    @abstractmethod
    def read_log(self, pod: str, container: str, *, follow: bool, take: Take, deadline_s: float) -> Ended:
        """Read the log of a container, to its end or up to now. The exit code is 0 if it could be read."""

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
        follow, last = "DaemonSet" not in _owners(pod), _Last(take)
        ended = self.read_log(_name(pod), _container(pod), follow=follow, take=last.take, deadline_s=deadline_s)
        if ended.exit_code == 0 and not ended.timed_out:
            ended = self._end(pod, last) if follow else last.ended()
        elif _why_it_died(pod):
            ended = Ended(exit_code=None, problem=_why_it_died(pod))
        return replace(ended, asked_at=str(pod["metadata"]["creationTimestamp"]))

    def _end(self, pod: Pod, last: _Last) -> Ended:
        """How the command ended whose log was read to its end."""
        ends_at = time.monotonic() + _STATE_S
        try:
            while not _is_over(pod) and time.monotonic() < ends_at:
                pod = _checked(json.loads(self.read_pod(_name(pod))))
                if not _is_over(pod):
                    time.sleep(_ASK_AGAIN_S)
        except UsageError as error:
            return Ended(exit_code=None, problem=error.message)
        except _NOT_A_POD as error:
            return Ended(exit_code=None, problem=f"the API of Kubernetes sent no pod: {error}")
        if _why_it_died(pod) or not _is_over(pod):
            problem = _why_it_died(pod) or "its log ended before its container did"
            return Ended(exit_code=None, problem=problem)
        ended = last.ended()
        return replace(ended, exit_code=ended.exit_code or _exit_code(pod))

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
        found = {str(pod.get("spec", {}).get("nodeName") or _name(pod)): _checked(pod) for pod in pods}
    except _NOT_A_POD as error:
        raise UsageError(f"the API of Kubernetes sent no list of pods: {error}") from error
    return {node: pod for node, pod in found.items() if is_valid(node)}


def _checked(pod: Pod) -> Pod:
    """The pod, of which everything that is asked later can be read.

    Raises:
        ValueError, LookupError, TypeError, AttributeError, OverflowError: it cannot.
    """
    _ = _owners(pod), _why_it_waits(pod), _why_it_died(pod), _name(pod), _container(pod), _exit_code(pod)
    return pod


def _name(pod: Pod) -> str:
    return str(pod["metadata"]["name"])


def _container(pod: Pod) -> str:
    """The container whose log is read."""
    names = [str(container["name"]) for container in pod["spec"]["containers"]]
    return _OWN if _OWN in names else names[0]


def _exit_code(pod: Pod) -> int | None:
    ends = [item.get("state", {}).get("terminated") for item in _statuses(pod) if item.get("name") == _container(pod)]
    succeeded = 0 if pod.get("status", {}).get("phase") == "Succeeded" else None
    return next((int(end["exitCode"]) for end in ends if end), succeeded)


def _is_over(pod: Pod) -> bool:
    return _exit_code(pod) is not None or bool(_why_it_died(pod))


def _statuses(pod: Pod, kind: str = "containerStatuses") -> Sequence[Mapping[str, Any]]:
    return pod.get("status", {}).get(kind) or ()


def _owners(pod: Pod) -> list[str]:
    """The kinds of what started a pod."""
    return [str(owner.get("kind")) for owner in pod["metadata"].get("ownerReferences", ())]


def _why_it_waits(pod: Pod) -> str:
    status = pod.get("status", {})
    if status.get("phase") != "Pending":
        return ""
    containers = (*_statuses(pod, "initContainerStatuses"), *_statuses(pod))
    states = [item.get("state", {}).get("waiting") or {} for item in containers]
    reasons = [*states, *(item for item in status.get("conditions", ()) if item.get("status") == "False")]
    said = next((f"{item['reason']} {item.get('message', '')}".strip() for item in reasons if item.get("reason")), "")
    return f"its pod is pending: {said}" if said else "its pod is pending"


def _why_it_died(pod: Pod) -> str:
    """Why a pod ended before its command did (evicted, killed for memory, past its deadline); empty if it did not."""
    status = pod.get("status", {})
    if status.get("reason"):
        return f"its pod failed: {status['reason']} {status.get('message', '')}".strip()
    ends = [item.get("state", {}).get("terminated") or {} for item in _statuses(pod)]
    said = (
        f"its container ended: {end['reason']} {end.get('message', '')}"
        for end in ends
        if end.get("reason") in _UNUSUAL
    )
    failed = "its pod failed" if status.get("phase") == "Failed" and _exit_code(pod) is None else ""
    return next(said, failed).strip()


class _Last:
    """Passes a log on, and keeps its last lines."""

    def __init__(self, take: Take) -> None:
        self._take = take
        self._kept = b""

    def take(self, piece: bytes) -> bool:
        """Pass a piece on."""
        self._kept = (self._kept + piece)[-_LAST_BYTES:]
        return self._take(piece)

    def ended(self) -> Ended:
        """The exit code that the manifest's shell wrote, else 0, and the line that says why."""
        text = self._kept.decode(errors="replace")
        lines = [line for line in text.splitlines() if line.strip() and line.strip()[0] not in _JSON]
        ended = _ENDED.fullmatch(lines[-1].strip()) if lines else None
        problem = first_problem("\n".join(lines[:-1] if ended else lines))
        return Ended(exit_code=int(ended[1]) if ended else 0, problem=problem)
