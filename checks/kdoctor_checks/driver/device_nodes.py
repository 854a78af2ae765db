"""Whether the driver's device nodes can be opened."""

from __future__ import annotations

import re
from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import Gpu, Gpus, KernelDriver
from kdoctor.model import Action, Evidence, Finding, NotApplicable, Outcome, Remedy, Rollback, Severity, Unjudged
from kdoctor_checks._gpus import answering, unread

_NODE = re.compile(r"/dev/nvidia(\d+|ctl|-uvm)")
_CONTROL = "/dev/nvidiactl"


@check("driver.device-nodes", severity=Severity.ERROR, needs_gpus=True, requires=["driver.library-matches-module"])
def device_nodes(kernel: KernelDriver, gpus: Gpus) -> Iterator[Outcome]:
    """The device node of every GPU that the driver lists can be opened.

    Why: a program reaches a GPU through /dev/nvidiaN, whose number is the GPU's minor number and not its index. In a
    container a control group may forbid what the node's mode allows, and only opening it tells: after a
    "systemctl daemon-reload" on the host, containers were seen to lose their GPUs so, with NVML's "Unknown Error".
    Nodes that are closed by their mode are told by driver.loaded.
    Remedy: start the container anew; on a host, let nvidia-modprobe make the nodes.
    Sources:
        https://forums.developer.nvidia.com/t/containers-losing-access-to-gpus-failed-to-initialize-nvml/242308
        https://docs.nvidia.com/deploy/nvml-api/
    """
    if not kernel.loaded and kernel.nodes == ():
        yield NotApplicable(reason="the nvidia module is not seen from here, nor its nodes (as under WSL)")
        return
    if gpus.node_errors is None or kernel.nodes is None:
        yield Unjudged(subject="/dev/nvidia*", reason="it was not tried to open them")
        return
    for path, error in gpus.node_errors.items():
        if _NODE.fullmatch(path):
            yield _closed(path, f"cannot be opened: {error}")
    paths = {node.path for node in kernel.nodes or ()}
    if _CONTROL not in paths:
        yield _closed(_CONTROL, "is not there")
    elif _CONTROL not in gpus.node_errors:
        yield Evidence(subject=_CONTROL, observed="can be opened")
    yield from _judge_gpus(gpus, paths)


def _judge_gpus(gpus: Gpus, paths: set[str]) -> Iterator[Outcome]:
    for gpu in answering(gpus):
        if problem := unread(gpu, "minor_number"):
            yield problem
            continue
        path = f"/dev/nvidia{gpu.minor_number}"
        if path not in paths:
            yield _missing(gpu, path)
        elif path not in (gpus.node_errors or {}):
            yield Evidence(subject=gpu.subject, observed=f"{path} can be opened")


def _closed(path: str, observed: str) -> Finding:
    return Finding(
        subject=path,
        observed=f"{path} {observed}",
        expected="it can be opened for reading and writing",
        remedy=_remedy(),
        rollback=Rollback.nothing("a container is started anew; nothing on the host changes"),
    )


def _missing(gpu: Gpu, path: str) -> Finding:
    return Finding(
        subject=gpu.subject,
        observed=f"{path} is not there",
        expected=f"{path}, of the GPU's minor number",
        remedy=_remedy(),
        rollback=Rollback.nothing("making a node changes no configuration"),
    )


def _remedy() -> Remedy:
    return Remedy(
        summary="In a container: start it anew. On a host: let NVIDIA's own tool make the nodes.",
        action=Action.CONFIGURE,
        commands=("ls -l /dev/nvidia*", "sudo nvidia-modprobe -c 0 -u"),
    )
