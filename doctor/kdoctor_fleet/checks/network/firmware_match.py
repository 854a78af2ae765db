from collections import Counter
from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.model import Evidence, Finding, NotApplicable, Outcome, Remedy, Rollback, Severity, Unjudged
from kdoctor.text.lists import counted
from kdoctor_fleet.checks.network._rdma import NO_RDMA
from kdoctor_fleet.facts import Network, RdmaDevice


@check("network.firmware-match", severity=Severity.WARNING, needs_gpus=True)
def firmware_match(network: Network) -> Iterator[Outcome]:
    """Equal RDMA cards have equal firmware.

    Why: cards with different firmware differ in congestion control, adaptive routing and fixed defects. One card that
    missed an update is slower or fails in ways that the others do not. Cards are equal if their board ids are.
    Remedy: update the firmware of the card that differs, with no job running.
    Sources:
        https://network.nvidia.com/support/firmware/firmware-downloads/
        https://www.kernel.org/doc/Documentation/ABI/stable/sysfs-class-infiniband
    """
    if not network.rdma:
        yield NO_RDMA
        return
    boards = Counter(device.board for device in network.rdma if device.board)
    equal = [device for device in network.rdma if device.board and boards[device.board] > 1]
    if not equal:
        yield NotApplicable(reason="there are no two equal RDMA cards")
    for device in network.rdma:
        if equal and not device.board and device.firmware:
            yield Unjudged(subject=device.name, reason="its board id was not read, so its equals are not known")
    for device in equal:
        versions = Counter(other.firmware for other in equal if other.board == device.board and other.firmware)
        if device.firmware is None:
            yield Unjudged(subject=device.name, reason="its firmware version was not read")
        elif len(versions) == 1:
            yield Evidence(subject=device.name, observed=f"firmware {device.firmware}")
        else:
            usual, count = versions.most_common(1)[0]
            tied = list(versions.values()).count(count) > 1
            if device.firmware == usual and not tied:
                yield Evidence(subject=device.name, observed=f"firmware {usual}, as on {counted(count, 'card')}")
            else:
                yield _finding(device, versions, None if tied else usual)


def _finding(device: RdmaDevice, versions: Counter[str], usual: str | None) -> Finding:
    listed = ", ".join(f"{version} on {count}" for version, count in versions.most_common())
    return Finding(
        subject=device.name,
        observed=f"firmware {device.firmware}; equal cards have {listed}",
        brief="its firmware differs from that of equal cards",
        expected=f"firmware {usual}" if usual else "one version on all equal cards",
        remedy=Remedy.configure(
            "Update the firmware of the card that differs, with no job running.",
            look=("sudo mlxfwmanager --query", "grep -H . /sys/class/infiniband/*/fw_ver"),
        ),
        rollback=Rollback.irreversible("not possible without the image of the old firmware"),
    )
