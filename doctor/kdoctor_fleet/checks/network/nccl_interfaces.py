from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.commands.shell import set_variable
from kdoctor.facts import Environment, Unavailable
from kdoctor.model import Evidence, Finding, NotApplicable, Outcome, Remedy, Rollback, Severity, Unjudged
from kdoctor.text.lists import some
from kdoctor_fleet.checks.network._rdma import parse_list
from kdoctor_fleet.facts import Network

_VARIABLE = "NCCL_SOCKET_IFNAME"


@check("network.nccl-interfaces", severity=Severity.ERROR, needs_gpus=True)
def nccl_interfaces(environment: Environment, network: Network | Unavailable) -> Iterator[Outcome]:
    """NCCL_SOCKET_IFNAME names network interfaces that exist and are up.

    Why: NCCL needs an IP interface to start, on one machine too. If the variable leaves none, its first collective
    fails with "Bootstrap : no socket interface found". Names of interfaces differ from machine to machine and inside
    containers. An error, because the job does not start.
    Remedy: correct the names, or unset the variable.
    Sources:
        https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html
        https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting.html
    """
    value = environment.get(_VARIABLE)
    listed = parse_list(value)
    if value is None or listed is None:
        yield NotApplicable(reason=f"{_VARIABLE} is not set")
        return
    if isinstance(network, Unavailable) or network.interfaces is None:
        reason = network.unavailable if isinstance(network, Unavailable) else "the interfaces cannot be read"
        yield Unjudged(subject=_VARIABLE, reason=reason)
        return
    names = [interface.name for interface in network.interfaces]
    left = [interface for interface in network.interfaces if listed.selects(interface.name)]
    if any(interface.up is not False for interface in left):
        yield Evidence(subject=_VARIABLE, observed=f"{value!r} selects {some([one.name for one in left])}")
        return
    state = f"{some([one.name for one in left])} is down" if left else "it names no existing interface"
    yield Finding(
        subject=_VARIABLE,
        observed=f"{value!r}: {state} (existing: {some(names)})",
        brief="names no interface that is up" if left else "names no existing interface",
        expected="an existing interface that is up",
        remedy=Remedy.configure(
            "Unset it to let NCCL choose, or name an interface that is up.",
            set_variable(_VARIABLE, None),
            look=("ip -brief link",),
        ),
        rollback=Rollback.to("restore the recorded value", set_variable(_VARIABLE, value)),
    )
