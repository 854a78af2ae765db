"""Collects the reports of pods that a manifest of ``kdoctor fleet manifest`` started, by kubectl."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from typing import Any

from kdoctor.errors import UsageError
from kdoctor.fleet.exclusion import Engine as Words
from kdoctor.fleet.launch.engine import Ended, ProgramEngine, first_problem
from kdoctor.fleet.manifest import NAME
from kdoctor.fleet.names import is_valid
from kdoctor.probes.process.child import Take

_ASK_S = 60.0
_MOST_BYTES = 2**30
_SELECTOR = "--selector="


class Kubernetes(ProgramEngine):
    """Follows the log of the newest pod on each node. It starts nothing and changes nothing in the cluster."""

    name = "kubernetes"
    words: Words = "kubernetes"
    program = "kubectl"
    package = "https://kubernetes.io/docs/tasks/tools/"

    def __init__(self, options: Sequence[str]) -> None:
        super().__init__([option for option in options if not option.startswith(_SELECTOR)])
        chosen = [option for option in options if option.startswith(_SELECTOR)]
        self._selector = chosen[-1] if chosen else f"{_SELECTOR}{NAME}=kdoctor"
        self._pods: dict[str, Mapping[str, Any]] | None = None

    def nodes(self, environ: Mapping[str, str]) -> str:  # noqa: ARG002 - the interface of engines
        """The nodes of the pods. A pod without a node has its own name."""
        return ",".join(self._by_node())

    def run(self, node: str, command: Sequence[str], take: Take, deadline_s: float) -> Ended:
        """Read the log of the pod on a node, which runs the command of its manifest."""
        pod = self._by_node().get(node)
        if pod is None:
            return Ended(exit_code=None, problem=f"no pod of {self._selector.removeprefix(_SELECTOR)} is on it")
        waiting = _why_it_waits(pod)
        if waiting:
            return Ended(exit_code=None, problem=waiting)
        ended = super().run(node, command, take, deadline_s)
        died = _why_it_died(pod)
        return Ended(exit_code=None, problem=died) if died else ended

    def argv(self, node: str, command: Sequence[str], deadline_s: float) -> list[str]:  # noqa: ARG002
        """``kubectl logs``. The pods of a DaemonSet never end, so their log is read up to now."""
        pod = self._by_node()[node]
        follow = () if "DaemonSet" in _owners(pod) else ("--follow",)
        return [self.program, "logs", *self.options, *follow, f"pod/{pod['metadata']['name']}"]

    def _by_node(self) -> dict[str, Mapping[str, Any]]:
        if self._pods is None:
            self._pods = self._ask()
        return self._pods

    def _ask(self) -> dict[str, Mapping[str, Any]]:
        written: list[bytes] = []

        def take(piece: bytes) -> bool:
            written.append(piece)
            return len(written) * len(piece) < _MOST_BYTES

        argv = [self.program, "get", "pods", *self.options, self._selector, "--output=json"]
        end = self._children.run(argv, env=os.environ, deadline_s=_ASK_S, take=take)
        if not end.ok:
            raise UsageError(f"kubectl get pods: {first_problem(end.stderr) or end.describe()}")
        try:
            items = json.loads(b"".join(written))["items"]
            pods = sorted(items, key=lambda pod: str(pod["metadata"]["creationTimestamp"]))
            found = {str(pod.get("spec", {}).get("nodeName") or pod["metadata"]["name"]): pod for pod in pods}
            for pod in pods:  # what is asked of each later
                _ = _owners(pod), _why_it_waits(pod), _why_it_died(pod), pod["metadata"]["name"]
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
            raise UsageError(f"kubectl get pods: no list of pods: {error}") from error
        return {node: pod for node, pod in found.items() if is_valid(node)}


def _owners(pod: Mapping[str, Any]) -> list[str]:
    """The kinds of what started a pod."""
    return [str(owner.get("kind")) for owner in pod["metadata"].get("ownerReferences", ())]


def _why_it_waits(pod: Mapping[str, Any]) -> str:
    """Why a pod has not started; empty if it has."""
    status = pod.get("status", {})
    if status.get("phase") != "Pending":
        return ""
    states = [item.get("state", {}).get("waiting", {}) for item in status.get("containerStatuses", ())]
    reasons = [*states, *(item for item in status.get("conditions", ()) if item.get("status") == "False")]
    said = next((f"{item['reason']} {item.get('message', '')}".strip() for item in reasons if item.get("reason")), "")
    return f"its pod is pending: {said}" if said else "its pod is pending"


def _why_it_died(pod: Mapping[str, Any]) -> str:
    """Why a pod ended before its command did (evicted, killed for memory, past its deadline); empty if it did not."""
    status = pod.get("status", {})
    if status.get("reason"):
        return f"its pod failed: {status['reason']} {status.get('message', '')}".strip()
    ends = [item.get("state", {}).get("terminated", {}) for item in status.get("containerStatuses", ())]
    return next((f"its container ended: {end['reason']}" for end in ends if end.get("reason") == "OOMKilled"), "")
