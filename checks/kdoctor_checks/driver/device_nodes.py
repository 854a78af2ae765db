from __future__ import annotations

from collections.abc import Iterator, Mapping

from kdoctor.check import check
from kdoctor.facts import Gpus, KernelDriver
from kdoctor.model import Action, Evidence, Finding, Outcome, Remedy, Rollback, Severity, Unjudged
from kdoctor_checks._gpus import NEW_CONTAINER, answering, unread
from kdoctor_checks.driver._nodes import MODULE_HIDDEN, NODE

_CONTROL = "/dev/nvidiactl"
_REMEDY = Remedy(
    summary="Recreate the container, or, on a host, create the nodes with nvidia-modprobe.",
    action=Action.CONFIGURE,
    commands=("ls -l /dev/nvidia*", "sudo nvidia-modprobe -c 0 -u"),
)


@check("driver.device-nodes", severity=Severity.ERROR, needs_gpus=True, requires=["driver.library-matches-module"])
def device_nodes(kernel: KernelDriver, gpus: Gpus) -> Iterator[Outcome]:
    """The device nodes of all GPUs can be opened.

    Why: programs reach a GPU through /dev/nvidiaN, where N is its minor number, not its index. In a container, a
    control group may forbid what the mode of the node allows, so only opening the node shows it. Containers can lose
    their GPUs after "systemctl daemon-reload" on the host; NVML then reports "Unknown Error". driver.loaded judges the
    modes of the nodes.
    Remedy: recreate the container; on a host, create the nodes with nvidia-modprobe.
    Sources:
        https://forums.developer.nvidia.com/t/containers-losing-access-to-gpus-failed-to-initialize-nvml/242308
        https://docs.nvidia.com/deploy/nvml-api/
    """
    if not kernel.loaded and kernel.nodes == ():
        yield MODULE_HIDDEN
        return
    errors = gpus.node_errors
    if errors is None or kernel.nodes is None:
        yield Unjudged(subject="/dev/nvidia*", reason="kdoctor did not try to open them")
        return
    paths = {node.path for node in kernel.nodes}
    for path, error in errors.items():
        if NODE.fullmatch(path):
            yield _finding(path, f"cannot be opened: {error}", "can be opened for reading and writing", NEW_CONTAINER)
    if _CONTROL not in paths:
        yield _finding(_CONTROL, "does not exist", "can be opened for reading and writing", NEW_CONTAINER)
    elif _CONTROL not in errors:
        yield Evidence(subject=_CONTROL, observed="can be opened")
    yield from _judge_gpus(gpus, errors, paths)


def _judge_gpus(gpus: Gpus, errors: Mapping[str, str], paths: set[str]) -> Iterator[Outcome]:
    for gpu in answering(gpus):
        path = f"/dev/nvidia{gpu.minor_number}"
        if problem := unread(gpu, "minor_number"):
            yield problem
        elif path not in paths:
            unchanged = Rollback.nothing("not needed (creating a node changes no configuration)")
            yield _finding(gpu.subject, f"{path} does not exist", f"{path}, for the GPU's minor number", unchanged)
        elif path not in errors:
            yield Evidence(subject=gpu.subject, observed=f"{path} can be opened")


def _finding(subject: str, observed: str, expected: str, rollback: Rollback) -> Finding:
    return Finding(subject=subject, observed=observed, expected=expected, remedy=_REMEDY, rollback=rollback)
