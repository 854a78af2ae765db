"""Manifests of Kubernetes that run kdoctor on nodes. They are printed, never applied. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import yaml

from kdoctor.commands.shell import quoted
from kdoctor.records import record
from kdoctor_fleet.exclusion import TAINT

Kind = Literal["job", "cronjob", "daemonset", "init-container"]
KINDS: tuple[Kind, ...] = ("job", "cronjob", "daemonset", "init-container")

ENDED = "kdoctor ended with exit code"
"""Begins the last line in the log of a pod whose check did not pass. The container itself ends with 0."""
NAME = "app.kubernetes.io/name"
_HOST = "kubernetes.io/hostname"
_OR_SAY = f"|| echo {ENDED} $? >&2"
_KEPT_S = 86_400
"""How long a finished job and its logs are kept."""
_PENDING_S = 600
"""How long the pods may wait for their nodes."""
_SHELL = ("/bin/sh", "-c")

Object = dict[str, Any]

WHERE: Mapping[str, str] = {
    "Job, also with Kueue": "spec.template.spec",
    "JobSet": "spec.replicatedJobs[].template.spec.template.spec",
    "Volcano Job": "spec.tasks[].template.spec",
    "MPIJob": "spec.mpiReplicaSpecs.Worker.template.spec",
    "TrainJob, in its TrainingRuntime": "spec.template.spec.replicatedJobs[].template.spec.template.spec",
}
"""Where the init container belongs, by kind of job."""


@record
class Wanted:
    """What to run where."""

    kind: Kind
    image: str
    """With kdoctor and the job's environment."""
    options: tuple[str, ...]
    """Of ``kdoctor check``."""
    program: tuple[str, ...] = ("kdoctor",)
    name: str = "kdoctor"
    namespace: str | None = None
    nodes: int = 1
    gpus: int = 0
    """For each node."""
    resource: str = "nvidia.com/gpu"
    selector: Mapping[str, str]
    """Labels of the nodes."""
    schedule: str = "0 6 * * *"
    every_s: int = 3600
    """How often a DaemonSet checks."""
    limit_s: int = 1800
    """For each node."""
    runtime_class: str | None = None
    """For a DaemonSet, which sees GPUs without requesting them."""


def render_manifest(wanted: Wanted) -> str:
    """The manifest as YAML, with comments that say how to use it."""
    body = {"job": _job, "cronjob": _cronjob, "daemonset": _daemonset, "init-container": _init}[wanted.kind](wanted)
    text = yaml.safe_dump(body, sort_keys=False, default_flow_style=False, width=1000)
    return "".join(f"# {line}\n" for line in _usage(wanted)) + text


def _usage(wanted: Wanted) -> list[str]:
    place = ("--namespace", wanted.namespace) if wanted.namespace else ()
    if wanted.kind == "init-container":
        return [
            "Put both lists into the pods of your job. A check that fails or is inconclusive stops the training.",
            *(f"{kind}: {path}" for kind, path in WHERE.items()),
        ]
    options = [f"--namespace={wanted.namespace}"] if wanted.namespace else []
    options += [f"--selector={NAME}={wanted.name}"] if wanted.name != "kdoctor" else []
    words = [f"--engine-option={option}" for option in options]
    return [
        f"kdoctor fleet manifest printed this. To apply it: {quoted('kubectl', 'apply', *place, '--filename', 'FILE')}",
        f"To judge the nodes by their reports: {quoted('kdoctor', 'fleet', 'run', '--engine', 'kubernetes', *words)}",
    ]


def _job(wanted: Wanted) -> Object:
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": _metadata(wanted), "spec": _job_spec(wanted)}


def _cronjob(wanted: Wanted) -> Object:
    return {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": _metadata(wanted),
        "spec": {
            "schedule": wanted.schedule,
            "concurrencyPolicy": "Forbid",
            "successfulJobsHistoryLimit": 1,
            "failedJobsHistoryLimit": 1,
            "jobTemplate": {"metadata": {"labels": _labels(wanted)}, "spec": _job_spec(wanted)},
        },
    }


def _job_spec(wanted: Wanted) -> Object:
    """One pod for each node. A failed check does not fail the job, which would end the other pods."""
    pod = _pod(wanted, _reporting(wanted), wanted.gpus)
    pod["restartPolicy"] = "Never"
    pod["activeDeadlineSeconds"] = wanted.limit_s
    pod["affinity"] = {
        "podAntiAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [
                {"labelSelector": {"matchLabels": _labels(wanted)}, "topologyKey": _HOST}
            ]
        }
    }
    return {
        "completionMode": "Indexed",
        "completions": wanted.nodes,
        "parallelism": wanted.nodes,
        "backoffLimit": wanted.nodes,
        "activeDeadlineSeconds": wanted.limit_s + _PENDING_S,
        "ttlSecondsAfterFinished": _KEPT_S,
        "template": {"metadata": {"labels": _labels(wanted)}, "spec": pod},
    }


def _daemonset(wanted: Wanted) -> Object:
    """It requests no GPU, because it would keep it from the jobs; so it trains nothing."""
    check = _reporting(wanted, "--no-smoke")
    forever = [*_SHELL, f"while :; do {check[2]}; sleep {wanted.every_s}; done"]
    pod = _pod(wanted, forever, 0)
    if wanted.runtime_class:
        pod["runtimeClassName"] = wanted.runtime_class
    pod["containers"][0]["env"].append({"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"})
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": _metadata(wanted),
        "spec": {
            "selector": {"matchLabels": _labels(wanted)},
            "template": {"metadata": {"labels": _labels(wanted)}, "spec": pod},
        },
    }


def _init(wanted: Wanted) -> Object:
    """The container and its volumes, for the pods of a job."""
    command = [*wanted.program, "check", "--no-history", *_limit(wanted), *wanted.options]
    return {"initContainers": [_container(wanted, command, wanted.gpus)], "volumes": _volumes()}


def _reporting(wanted: Wanted, *more: str) -> list[str]:
    """The check, which writes its report to the log."""
    fixed = ("check", "--format", "json", "--quiet", "--no-history")
    return [*_SHELL, f"{quoted(*wanted.program, *fixed, *_limit(wanted), *more, *wanted.options)} {_OR_SAY}"]


def _limit(wanted: Wanted) -> tuple[str, ...]:
    own = any(option.partition("=")[0] == "--timeout" for option in wanted.options)
    return () if own else ("--timeout", str(max(wanted.limit_s - 60, wanted.limit_s // 2)))


def _pod(wanted: Wanted, command: Sequence[str], gpus: int) -> Object:
    taints = [{"key": TAINT, "operator": "Exists"}]
    if wanted.resource:
        taints.append({"key": wanted.resource, "operator": "Exists"})
    pod: Object = {
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": 65532,
            "runAsGroup": 65532,
            "fsGroup": 65532,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "tolerations": taints,
    }
    if wanted.selector:
        pod["nodeSelector"] = dict(wanted.selector)
    return pod | {"containers": [_container(wanted, command, gpus)], "volumes": _volumes()}


def _container(wanted: Wanted, command: Sequence[str], gpus: int) -> Object:
    limits: Object = {"memory": "32Gi"} | ({wanted.resource: gpus} if gpus else {})
    return {
        "name": "kdoctor",
        "image": wanted.image,
        "command": list(command),
        "env": [
            {"name": "NODE_NAME", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
            {"name": "HOME", "value": "/tmp"},  # noqa: S108 - of the container
        ],
        "resources": {"requests": {"cpu": "1", "memory": "4Gi"}, "limits": limits},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        "volumeMounts": [
            {"name": "kdoctor-shared-memory", "mountPath": "/dev/shm"},  # noqa: S108
            {"name": "kdoctor-temporary", "mountPath": "/tmp"},  # noqa: S108
        ],
    }


def _volumes() -> list[Object]:
    """The default shared memory of a container is 64 MiB, too little for NCCL."""
    return [
        {"name": "kdoctor-shared-memory", "emptyDir": {"medium": "Memory", "sizeLimit": "16Gi"}},
        {"name": "kdoctor-temporary", "emptyDir": {}},
    ]


def _labels(wanted: Wanted) -> dict[str, str]:
    return {NAME: wanted.name}


def _metadata(wanted: Wanted) -> Object:
    place = {"namespace": wanted.namespace} if wanted.namespace else {}
    return {"name": wanted.name, **place, "labels": _labels(wanted)}
