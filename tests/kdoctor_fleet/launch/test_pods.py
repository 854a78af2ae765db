"""How a pod ended, from what Kubernetes' API says about it and from its log."""

import json
from collections.abc import Mapping
from typing import Any

import pytest

from helpers.cases import cases
from kdoctor.errors import UsageError
from kdoctor.probes.process.readers import Take
from kdoctor_fleet.launch import pods as module
from kdoctor_fleet.launch.engine import Ended
from kdoctor_fleet.launch.pods import Pods
from kdoctor_fleet.manifest import ENDED

CREATED = "2026-01-02T03:04:05Z"
READ = Ended(exit_code=0, problem="")


def pod(phase: str = "Running", state: Mapping[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    """A pod on node n1 whose container is in a state of Kubernetes' API."""
    statuses = [{"name": "kdoctor", "state": state}] if state else None
    return {
        "metadata": {"name": "pod-1", "creationTimestamp": CREATED},
        "spec": {"nodeName": "n1", "containers": [{"name": "kdoctor"}]},
        "status": {"phase": phase, "containerStatuses": statuses, **more},
    }


def terminated(code: int, reason: str = "Error", **more: str) -> dict[str, Any]:
    return {"terminated": {"exitCode": code, "reason": reason, **more}}


class Cluster(Pods):
    """One pod, which is in one state when it is listed and in another one after its log has ended."""

    selector = "a=b"

    def __init__(self, listed: Any, later: Any = None, log: bytes = b"", ended: Ended = READ) -> None:
        self.listed, self.later, self.log, self.ended = listed, later, log, ended
        self.asked = 0
        self.followed: bool | None = None
        self.container = ""

    def list_pods(self) -> bytes:
        return json.dumps({"items": [self.listed]}).encode()

    def read_pod(self, pod: str) -> bytes:
        self.asked += 1
        if self.later is None:
            raise UsageError(f"the pod cannot be read: 404 pods {pod!r} not found")
        return json.dumps(self.later).encode()

    def read_log(self, pod: str, container: str, *, follow: bool, take: Take, deadline_s: float) -> Ended:
        self.followed, self.container = follow, container
        take(self.log)
        return self.ended

    def run_it(self) -> Ended:
        """How the command ended on the node."""
        return self.run("n1", (), lambda _: True, 60)


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_STATE_S", 0.2)
    monkeypatch.setattr(module, "_ASK_AGAIN_S", 0.01)


@cases(
    (pod("Succeeded", terminated(0, "Completed")), 0, ""),
    (pod("Succeeded"), 0, ""),
    (pod("Failed", terminated(137)), 137, ""),
    (pod("Failed", terminated(137, "OOMKilled")), None, "its container ended: OOMKilled"),
    (pod("Failed", terminated(128, "StartError", message="no such file")), None, "StartError no such file"),
    (pod("Failed", reason="Evicted", message="low on memory"), None, "its pod failed: Evicted low on memory"),
    (pod("Failed"), None, "its pod failed"),
    (pod("Running", {"running": {}}), None, "its log ended before its container did"),
    (None, None, "404"),
    ([], None, "no pod"),
    ids=["completed", "succeeded", "killed", "memory", "start", "evicted", "failed", "running", "gone", "garbage"],
)
def test_end_of_a_followed_pod_is_asked_for(later: Any, code: int | None, problem: str) -> None:
    cluster = Cluster(pod(), later)
    ended = cluster.run_it()
    assert (ended.exit_code, cluster.followed) == (code, True)
    assert problem in ended.problem
    assert bool(problem) == bool(ended.problem)


def test_pod_that_has_ended_before_is_not_asked_for_again() -> None:
    cluster = Cluster(pod("Failed", terminated(3)))
    assert cluster.run_it().exit_code == 3
    assert cluster.asked == 0


def test_state_that_comes_late_is_awaited() -> None:
    class Late(Cluster):
        def read_pod(self, pod: str) -> bytes:
            read = super().read_pod(pod)
            return read if self.asked > 2 else json.dumps(self.listed).encode()

    cluster = Late(pod(), pod("Failed", terminated(9)))
    assert cluster.run_it().exit_code == 9
    assert cluster.asked == 3


@cases(
    (f"sh: kdoctor: not found\n{ENDED} 127\n", 127, "sh: kdoctor: not found"),
    (f"kdoctor: --x: no such option\nTry --help.\n{ENDED} 2\n", 2, "kdoctor: --x: no such option"),
    (f'{{\n  "schema": 1,\n}}\n{ENDED} 1\n', 1, ""),
    (f"{ENDED} 4\nmore\n", 0, "more"),
    ("", 0, ""),
)
def test_shell_of_the_manifest_says_the_exit_code_in_the_log(log: str, code: int, problem: str) -> None:
    ended = Cluster(pod("Succeeded", terminated(0, "Completed")), log=log.encode()).run_it()
    assert (ended.exit_code, ended.problem) == (code, problem)


def test_only_the_end_of_a_log_is_searched_for_the_exit_code() -> None:
    log = b"x" * 1_000_000 + f"\nKilled\n{ENDED} 137\n".encode()
    ended = Cluster(pod("Succeeded"), log=log).run_it()
    assert (ended.exit_code, ended.problem) == (137, "Killed")


def test_report_was_asked_for_when_its_pod_was_created() -> None:
    assert Cluster(pod("Succeeded")).run_it().asked_at == CREATED
    assert Cluster(pod(), pod(), ended=Ended(exit_code=None, problem="", timed_out=True)).run_it().asked_at == CREATED


def test_log_of_a_daemonset_is_read_up_to_now() -> None:
    listed = pod()
    listed["metadata"]["ownerReferences"] = [{"kind": "DaemonSet"}]
    cluster = Cluster(listed, log=f"sh: kdoctor: not found\n{ENDED} 127\n".encode())
    assert cluster.run_it().exit_code == 127
    assert (cluster.followed, cluster.asked) == (False, 0)


@cases((["main"], "main"), (["proxy", "kdoctor"], "kdoctor"), (["train", "proxy"], "train"))
def test_container_of_the_manifest_is_read(names: list[str], used: str) -> None:
    listed = pod("Succeeded")
    listed["spec"]["containers"] = [{"name": name} for name in names]
    cluster = Cluster(listed)
    cluster.run_it()
    assert cluster.container == used


def test_init_container_that_fails_is_why_a_pod_waits() -> None:
    waits = {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 5m0s"}}
    initializing = {"waiting": {"reason": "PodInitializing"}}
    cluster = Cluster(pod("Pending", initializing, initContainerStatuses=[{"name": "first", "state": waits}]))
    assert cluster.run_it().problem == "its pod is pending: CrashLoopBackOff back-off 5m0s"


def test_problem_of_the_log_itself_stays() -> None:
    refused = Ended(exit_code=None, problem="its log cannot be read: 403 Forbidden")
    cluster = Cluster(pod(), ended=refused)
    assert cluster.run_it().problem == refused.problem
    assert cluster.asked == 0
