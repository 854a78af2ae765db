from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.commands.shell import set_variable
from kdoctor.facts import Environment, Unavailable
from kdoctor.model import Evidence, Finding, NotApplicable, Outcome, Remedy, Rollback, Severity, Unjudged
from kdoctor.text.lists import counted, some
from kdoctor_fleet.checks.network._rdma import HCA, LOOK_AT_PORTS, Listed, parse_list, ports
from kdoctor_fleet.facts import Network


@check("network.nccl-devices", severity=Severity.WARNING, needs_gpus=True)
def nccl_devices(environment: Environment, network: Network | Unavailable) -> Iterator[Outcome]:
    """NCCL_IB_HCA names RDMA ports that exist.

    Why: NCCL ignores names that do not exist. If none is left, it uses TCP, many times slower, and says so only in its
    log. Names change with a driver, a kernel or another machine.
    Remedy: correct the names, or unset the variable.
    Source: https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html
    """
    value = environment.get(HCA)
    listed = parse_list(value)
    if value is None or listed is None:
        yield NotApplicable(reason=f"{HCA} is not set")
        return
    if isinstance(network, Unavailable):
        yield Unjudged(subject=HCA, reason=network.unavailable)
        return
    every = ports(network)
    left = ports(network, listed)
    missing = [
        entry
        for entry in listed.entries
        if not any(listed.names(entry, one.device.name, one.port.number) for one in every)
    ]
    if (missing and not listed.exclude) or not left:
        yield _finding(value, listed, missing, [device.name for device in network.rdma], len(left))
    else:
        yield Evidence(subject=HCA, observed=f"{value!r} selects {counted(len(left), 'port')} of {len(every)}")


def _finding(value: str, listed: Listed, missing: list[str], names: list[str], left: int) -> Finding:
    existing = f"existing: {some(names)}" if names else "this machine has no RDMA device"
    what = f"{', '.join(missing)} does not exist" if missing and not listed.exclude else "it leaves no port"
    return Finding(
        subject=HCA,
        observed=f"{value!r}: {what} ({existing}); {counted(left, 'port')} left",
        brief="names RDMA devices that do not exist" if missing else "leaves no RDMA port",
        expected="names of existing ports",
        remedy=Remedy.configure(
            "Unset it to use all active ports, or correct the names.", set_variable(HCA, None), look=LOOK_AT_PORTS
        ),
        rollback=Rollback.to("restore the recorded value", set_variable(HCA, value)),
    )
