from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.commands.shell import quoted
from kdoctor.facts import link_generation
from kdoctor.model import Evidence, Finding, NotApplicable, Outcome, Severity, Unjudged
from kdoctor_fleet.checks.network._rdma import NO_RDMA, inspect
from kdoctor_fleet.facts import Network, RdmaDevice


@check("network.pcie-link", severity=Severity.WARNING, needs_gpus=True)
def pcie_link(network: Network) -> Iterator[Outcome]:
    """The PCIe link of every RDMA device has the width and generation of its card and slot.

    Why: a card of 400 Gbit/s needs 16 lanes of generation 5. With half of them its port still reports 400 Gbit/s, and
    half of that arrives. Unlike a GPU, a network card does not slow down its link while it is idle.
    Remedy: reseat the card; check risers and bifurcation in the BIOS.
    Sources:
        https://www.kernel.org/doc/Documentation/ABI/testing/sysfs-bus-pci
        https://docs.nvidia.com/networking/display/connectx7vpi/specifications
    """
    if not network.rdma:
        yield NO_RDMA
        return
    known = [device for device in network.rdma if device.link_width and device.link_width_max]
    if not known:
        yield NotApplicable(reason="sysfs shows no PCIe link of an RDMA device, as in virtual machines")
        return
    for device in network.rdma:
        if device in known:
            yield _judge(device)
        elif None in (device.link_width, device.link_width_max):  # virtual functions have a link of width 0
            yield Unjudged(subject=device.name, reason="its PCIe link was not read")


def _judge(device: RdmaDevice) -> Outcome:
    width, most = device.link_width or 0, _least(device.link_width_max, device.slot_width_max) or 0
    speed = link_generation(device.link_speed)
    fastest = _least(link_generation(device.link_speed_max), link_generation(device.slot_speed_max))
    subject = f"{device.name} ({device.bus_id})" if device.bus_id else device.name
    observed = f"x{width}, generation {speed or 'unknown'}"
    slower = speed is not None and fastest is not None and speed < fastest
    if width >= most and not slower:
        return Evidence(subject=subject, observed=observed)
    expected = f"x{most}" + (f", generation {fastest}" if fastest else "") + ", as card and slot support"
    return Finding(
        subject=subject,
        observed=observed,
        brief="its PCIe link is narrower than possible" if width < most else "its PCIe link is slower than possible",
        expected=expected,
        remedy=inspect(
            "Reseat the card, and check risers and bifurcation in the BIOS.",
            f"sudo lspci -vvv -s {quoted(device.bus_id or '')}",
        ),
    )


def _least(one: int | None, other: int | None) -> int | None:
    known = [number for number in (one, other) if number is not None]
    return min(known) if known else None
