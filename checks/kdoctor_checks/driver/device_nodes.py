from collections.abc import Iterator, Mapping, Sequence

from kdoctor.check import check
from kdoctor.facts import Gpus, KernelDriver
from kdoctor.model import Evidence, Finding, Outcome, Remedy, Rollback, Severity, Unjudged
from kdoctor_checks._driver import MODULE_HIDDEN, NODE, create_nodes
from kdoctor_checks._gpus import DRIVER, NEW_CONTAINER, RESPONDING, answering, not_answering, silent, unread

_CONTROL = "/dev/nvidiactl"


@check("driver.device-nodes", severity=Severity.ERROR, needs_gpus=True, requires=DRIVER)
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
            yield _closed(path, error, gpus)
    if _CONTROL not in paths:
        remedy = _remedy(_minors(gpus))
        yield _finding(_CONTROL, "does not exist", "can be opened for reading and writing", remedy, NEW_CONTAINER)
    elif _CONTROL not in errors:
        yield Evidence(subject=_CONTROL, observed="can be opened")
    yield from _judge_gpus(gpus, errors, paths)


def _minors(gpus: Gpus) -> list[int]:
    return [gpu.minor_number for gpu in answering(gpus) if gpu.minor_number is not None]


def _closed(path: str, error: str, gpus: Gpus) -> Finding:
    """The finding for a node that cannot be opened. The node of a lost GPU is not a separate problem."""
    unclaimed = path not in {f"/dev/nvidia{minor}" for minor in _minors(gpus)} and path[-1].isdigit()
    return Finding(
        subject=path,
        observed=f"cannot be opened: {error}",
        expected="can be opened for reading and writing",
        remedy=_remedy(()),
        rollback=NEW_CONTAINER,
        explained_by=(RESPONDING,) if unclaimed and silent(gpus) else (),
    )


def _judge_gpus(gpus: Gpus, errors: Mapping[str, str], paths: set[str]) -> Iterator[Outcome]:
    yield from not_answering(gpus)
    remedy = _remedy([minor for minor in _minors(gpus) if f"/dev/nvidia{minor}" not in paths])
    for gpu in answering(gpus):
        path = f"/dev/nvidia{gpu.minor_number}"
        if problem := unread(gpu, "minor_number"):
            yield problem
        elif path not in paths:
            unchanged = Rollback.nothing("not needed (creating a node changes no configuration)")
            expected = f"{path}, for the GPU's minor number"
            yield _finding(gpu.subject, f"{path} does not exist", expected, remedy, unchanged, "has no device node")
        elif path not in errors:
            yield Evidence(subject=gpu.subject, observed=f"{path} can be opened")


def _remedy(missing: Sequence[int]) -> Remedy:
    """Create these nodes, or recreate the container that lost them."""
    summary = "Recreate the container, or allow it the device."
    if missing:
        summary = "Create the nodes with nvidia-modprobe. In a container, recreate the container instead."
    return Remedy.configure(summary, *([create_nodes(missing)] if missing else ()), look=("ls -l /dev/nvidia*",))


def _finding(
    subject: str, observed: str, expected: str, remedy: Remedy, rollback: Rollback, brief: str = ""
) -> Finding:
    return Finding(subject=subject, observed=observed, expected=expected, remedy=remedy, rollback=rollback, brief=brief)
