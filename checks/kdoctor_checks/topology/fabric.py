from collections.abc import Iterator, Sequence

from kdoctor.check import check
from kdoctor.facts import Gpu, Gpus
from kdoctor.model import Evidence, Finding, NotApplicable, Outcome, Remedy, Severity, Unjudged
from kdoctor.text.lists import counted
from kdoctor_checks._gpus import DRIVER, RESTART, inactive_links, only_lost, readings, reset, too_new, unsupported

_VIRTUAL = ("passthrough", "vgpu")
_LONGEST = 60
"""Characters of a short form."""


@check("topology.fabric", severity=Severity.ERROR, needs_gpus=True, requires=DRIVER)
def fabric(gpus: Gpus) -> Iterator[Outcome]:
    """Every GPU of an NVSwitch machine is registered with the NVLink fabric, and its fabric health is good.

    Why: until the fabric manager has registered a GPU, CUDA does not start (error 802, "system not yet initialized").
    A GPU whose registration failed has no peer-to-peer access over NVLink. A registered GPU may still have a degraded
    bandwidth, a route that is not healthy, an access timeout, or a configuration that does not fit its rack. Hopper and
    later GPUs report their state; for older ones see topology.fabric-manager. In a virtual machine, the fabric manager
    may run on the host.
    Remedy: start the fabric manager in the same version as the driver, and restart what was running. If the health is
    not good, reset the GPU, and have its NVLinks serviced if that does not help.
    Sources:
        https://docs.nvidia.com/datacenter/tesla/fabric-manager-user-guide/index.html
        https://docs.nvidia.com/deploy/nvml-api/
    """
    judged, others = readings(gpus, "fabric_state", newer=True)
    subjects = [gpu for gpu in judged if gpu.fabric_state != "not-supported"]
    if judged and not subjects and only_lost(others):
        yield NotApplicable(reason="no GPU reports an NVLink fabric")
        return
    yield from others
    for gpu in judged:
        peers = [other for other in subjects if other.name == gpu.name]
        if gpu not in subjects and peers:
            state = f"fabric state {gpu.fabric_state}, unlike {counted(len(peers), 'other GPU')}"
            yield _finding(gpu, state)
    for gpu in subjects:
        yield _judge(gpu, judged)


def _judge(gpu: Gpu, peers: Sequence[Gpu]) -> Outcome:
    state = f"fabric state {gpu.fabric_state}"
    is_used = any(peer.fabric_state == "completed" for peer in peers)
    if gpu.fabric_state != "completed" and gpu.virtualization_mode in _VIRTUAL and not is_used:
        reason = f"{state}, in a virtual machine ({gpu.virtualization_mode}) whose host may not use the fabric"
        return Unjudged(subject=gpu.subject, reason=reason)
    if gpu.fabric_state != "completed":
        return _finding(gpu, state)
    return _judge_registered(gpu, peers, state)


def _judge_registered(gpu: Gpu, peers: Sequence[Gpu], state: str) -> Outcome:
    """The status and the health of a GPU whose registration is complete."""
    if gpu.fabric_status is None:
        error = gpu.errors.get("fabric_status", "no reason given")
        return Unjudged(subject=gpu.subject, reason=f"{state}, but its status was not read ({error})")
    if gpu.fabric_status != "success":
        return _finding(gpu, f"{state}, status {gpu.fabric_status}")
    if gpu.fabric_problems:
        return _unhealthy(gpu, gpu.fabric_problems)
    if gpu.fabric_problems is None and not _without_health(gpu, peers):
        error = gpu.errors.get("fabric_problems", "no reason given")
        return Unjudged(subject=gpu.subject, reason=f"{state}, but its health was not read ({error})")
    health = "" if gpu.fabric_problems is None else ", healthy"
    return Evidence(subject=gpu.subject, observed=f"{state}, status {gpu.fabric_status}{health}", brief="fabric ready")


def _without_health(gpu: Gpu, peers: Sequence[Gpu]) -> bool:
    """Whether the driver reports the health of no GPU of this model, as older drivers do."""
    error = gpu.errors.get("fabric_problems")
    reported = any(peer.fabric_problems is not None for peer in peers if peer.name == gpu.name)
    return not reported and (error is None or unsupported(error) or too_new(error))


def _unhealthy(gpu: Gpu, problems: Sequence[str]) -> Finding:
    found = ", ".join(problems)
    return Finding(
        subject=gpu.subject,
        observed=f"fabric health is not good ({found})",
        brief=_short(problems),
        expected="full bandwidth, healthy routes, correct configuration",
        remedy=Remedy.reboot(
            "Stop all processes on the GPU, then reset it. If the health stays bad, have its NVLinks serviced.",
            *reset([gpu]).commands,
            look=("nvidia-smi -q | grep -A 12 Fabric", "sudo journalctl -u nvidia-fabricmanager"),
        ),
        rollback=RESTART,
        explained_by=("topology.nvlink",) if inactive_links(gpu) else (),
    )


def _short(problems: Sequence[str]) -> str:
    """The first problem, if it fits into a line."""
    more = f" and {len(problems) - 1} more" if len(problems) > 1 else ""
    brief = f"fabric health: {problems[0].removesuffix(': True')}{more}"
    return brief if len(brief) <= _LONGEST else f"fabric health: {counted(len(problems), 'problem')}"


def _finding(gpu: Gpu, observed: str) -> Finding:
    return Finding(
        subject=gpu.subject,
        observed=observed,
        expected="fabric state completed, status success",
        remedy=Remedy.configure(
            "Start the fabric manager in the same version as the driver. If it does not start, read its log.",
            "sudo systemctl enable --now nvidia-fabricmanager",
            look=("nv-fabricmanager -v", "sudo journalctl -u nvidia-fabricmanager"),
        ),
        rollback=RESTART,
        explained_by=_explained_by(gpu),
    )


def _explained_by(gpu: Gpu) -> tuple[str, ...]:
    """A registration that ended without success follows from inactive links. Before it starts, links are inactive."""
    return ("topology.nvlink",) if gpu.fabric_state == "completed" and inactive_links(gpu) else ()
