"""The checks of RDMA ports: their state, rate and errors, and the MTU of their interfaces and of paths to hosts."""

from dataclasses import replace
from typing import Any

from helpers.facts import environment
from helpers.kdoctor_fleet.rdma import device, network, port, two_hosts
from helpers.rows import fails, passes, skips, table, unknown
from kdoctor.model import Severity
from kdoctor_fleet.facts import JobHosts, Network, NetworkInterface

FIRST = "mlx5_0 port 1"
DOWN = {"state": "DOWN", "physical_state": "Polling"}
SLOW = {"rate_gbits": 100.0, "speed": "EDR"}
UNCOUNTED = dict.fromkeys(("link_downed", "symbol_errors", "receive_errors"))


def ports(*ports_of: Any) -> Network:
    return network(*(device(index, *found) for index, found in enumerate(ports_of)))


ALONE = environment(), JobHosts()
EVERY = (
    unknown(
        network(device(0), replace(device(1), ports=()), device(2, port(state=None))),
        "unknown mlx5_1: its ports were not read.\nunknown mlx5_2 port 1: its state was not read.",
        f"pass {FIRST}: ",
        evidence=1,
    ),
    skips(ports(), reason="this machine has no RDMA device (InfiniBand, RoCE or EFA)"),
)
"""What each check of ports says."""
STATED: tuple[tuple[dict[str, Any], str, str], ...] = (
    ({}, "ACTIVE, 400 Gbit/s (4X NDR), InfiniBand", "400 Gbit/s (4X NDR) InfiniBand"),
    ({"lanes": None}, "ACTIVE, 400 Gbit/s (NDR), InfiniBand", "400 Gbit/s (NDR) InfiniBand"),
    ({"speed": None}, "ACTIVE, 400 Gbit/s (4X), InfiniBand", "400 Gbit/s (4X) InfiniBand"),
    ({"lanes": None, "speed": None, "rate_gbits": None}, "ACTIVE, rate unknown, InfiniBand", "rate unknown InfiniBand"),
    ({"link_layer": None}, "ACTIVE, 400 Gbit/s (4X NDR), link layer unknown", "400 Gbit/s (4X NDR) link layer unknown"),
    (DOWN, "DOWN (Polling); no port of such a card is active", ""),
    ({**DOWN, "physical_state": None}, "DOWN (physical state unknown); no port of such a card is active", ""),
)
INACTIVE: tuple[tuple[dict[str, Any], int, str, str], ...] = (
    (DOWN, 1, "DOWN (Polling); mlx5_1 port 1 is active", "DOWN (Polling)"),
    (DOWN, 2, "DOWN (Polling); 2 equal ports are active", "DOWN (Polling)"),
    ({**DOWN, "physical_state": None}, 1, "DOWN (physical state unknown); mlx5_1 port 1 is active", "DOWN"),
    ({"state": "INIT"}, 0, "INIT (LinkUp)", "INIT (LinkUp)"),
)
NO_SUBNET_MANAGER, CABLE = "Fix: Start a subnet manager (opensm", "Fix: Check the cable"
BOTH = network(device(0, port(**DOWN), board="a"), device(1, board="b"))
NOT_SELECTED = f"{FIRST}: DOWN (Polling); not selected by NCCL_IB_HCA."

test_port_state = table(
    "network.port-state",
    Severity.WARNING,
    *EVERY,
    *(passes(ports([port(**changes)]), said={FIRST: stated}, briefs=[brief]) for changes, stated, brief in STATED),
    *(
        fails(ports([port(**changes)], *[[port()]] * active), f"fail {FIRST}: {stated}.\n  {brief}. Expected: ", of=1)
        for changes, active, stated, brief in INACTIVE
    ),
    fails(ports([port(state="INIT")], [port()]), NO_SUBNET_MANAGER),
    fails(ports([port(state="ARMED")], [port()]), CABLE),
    fails(ports([port(state="INIT", physical_state="Polling")], [port()]), CABLE),
    # A port of another number or card is not equal.
    passes(ports([port(), port(number=2, **DOWN)], [port()])),
    passes(network(device(0), device(1, port(**DOWN), board="other")), two_hosts()),
    fails(BOTH, environment(NCCL_IB_HCA="mlx5_0"), f"fail {FIRST}: "),
    passes(BOTH, environment(NCCL_IB_HCA="^mlx5_0"), NOT_SELECTED),
    passes(BOTH, environment(NCCL_IB_HCA="mlx5_1"), NOT_SELECTED),
    passes(ports([port(**DOWN)]), replace(two_hosts(), hosts=two_hosts().hosts[:1])),
    fails(ports([port(**DOWN)]), two_hosts()),
    given=ALONE,
)

test_port_rate = table(
    "network.port-rate",
    Severity.WARNING,
    *EVERY,
    passes(ports([port()], [port()])),
    fails(ports([port()], [port(**SLOW)]), of=["mlx5_1 port 1"]),
    passes(network(device(0), device(1, port(**SLOW), board="another card"))),
    passes(network(device(0), device(1, port(**SLOW), board=None))),
    passes(ports([port()], [port(link_layer="Ethernet", **SLOW)])),
    passes(ports([port()], [port(state="DOWN", **SLOW)])),
    fails(network(device(0), device(1, port(lanes=1, rate_gbits=100.0), board="another card")), of=["mlx5_1 port 1"]),
    passes(network(device(0), device(1, port(lanes=2), board="splitter"))),
    unknown(ports([port()], [port(rate_gbits=None)])),
    fails(
        ports([port(**SLOW)], [port()], [port(**SLOW)]),
        said={
            FIRST: "100 Gbit/s (4X EDR)",
            "mlx5_2 port 1": "100 Gbit/s (4X EDR)",
            "mlx5_1 port 1": "400 Gbit/s (4X NDR); no equal port is faster (2 compared)",
        },
        expected="400 Gbit/s, as on the other ports of such a card",
    ),
    passes(ports([port()]), said={FIRST: "400 Gbit/s (4X NDR); no equal port to compare"}),
    fails(ports([port(lanes=1)]), briefs=["uses 1 lane"]),
    passes(ports([port(lanes=1, link_layer="Ethernet")])),
    skips(ports([port(state="DOWN")])),
    given=ALONE,
)


def counted(**counts: int | None) -> Network:
    """Three ports: one without counters, a healthy one, and one with these counts."""
    return ports([port(**UNCOUNTED)], [port()], [port(**counts)])


ONE_EACH = ports([port(link_downed=1, symbol_errors=1, receive_errors=1)])
THIRD, LOOK = "mlx5_2 port 1: ", "/mlx5_2/ports/1/counters/*"

test_port_errors = table(
    "network.port-errors",
    Severity.WARNING,
    *EVERY,
    unknown(counted(), f"{THIRD}0 link downs, 0 symbol errors, 0 receive errors.", of=[FIRST]),
    unknown(counted(link_downed=None), f"{THIRD}0 symbol errors, 0 receive errors.", of=[FIRST]),
    unknown(counted(link_downed=10), f"{THIRD}10 link downs, 0 symbol errors, 0 receive errors.", of=[FIRST]),
    unknown(
        counted(symbol_errors=1000, receive_errors=1000),
        f"{THIRD}0 link downs, 1000 symbol errors, 1000 receive errors.",
        of=[FIRST],
    ),
    fails(
        counted(link_downed=11),
        *(f"{THIRD}11 link downs, 0 symbol errors, 0 receive errors.", LOOK),
        expected="at most 10 link downs",
        unjudged=[FIRST],
    ),
    fails(
        counted(symbol_errors=1001, receive_errors=2000),
        *(f"{THIRD}0 link downs, 1001 symbol errors, 2000 receive errors.", LOOK),
        expected="at most 1000 symbol errors, 1000 receive errors",
        unjudged=[FIRST],
    ),
    *(
        row
        for limit in ("most_link_downs", "most_symbol_errors", "most_receive_errors")
        for row in (fails(ONE_EACH, {limit: 0}, "Expected: at most 0 ", of=1), passes(ONE_EACH, {limit: 1}))
    ),
    skips(ports([port(state="DOWN", link_downed=99)])),
    given=ALONE,
)


def roce(*sizes: int | None, **second: Any) -> Network:
    """Ports whose interfaces have these MTUs, with changes to the second."""
    ethernet = [{"link_layer": "Ethernet", "interface": f"eth{index}"} for index in range(len(sizes))]
    devices = [device(index, port(**found | (second if index else {}))) for index, found in enumerate(ethernet)]
    found = tuple(NetworkInterface(name=f"eth{index}", mtu=size) for index, size in enumerate(sizes))
    return network(*devices, interfaces=found)


ONLY_FIRST = {"eth0": "MTU 4200"}
OTHER = "worker 1 (node2:2222)"
UNLISTED = replace(roce(4200, 4200), interfaces=(NetworkInterface(name="eth0", mtu=4200),))

test_mtu = table(
    "network.mtu",
    Severity.WARNING,
    passes(roce(4200, 4200), said={"eth0": "MTU 4200", "eth1": "MTU 4200"}),
    passes(roce(1500), said={"eth0": "MTU 1500"}),
    fails(roce(4200, 1500), "4200 bytes, ", said={"eth0": "MTU 4200", "eth1": "MTU 1500"}, of=["eth1"]),
    fails(roce(1499), "1500 bytes, ", said={"eth0": "MTU 1499"}),
    unknown(roce(4200, None), said={"eth0": "MTU 4200", "eth1": "its MTU was not read"}),
    unknown(UNLISTED, said={"eth0": "MTU 4200", "eth1": "its MTU was not read"}),
    # An interface that carries nothing of the job is not judged.
    passes(roce(4200, 1500, state="DOWN"), said=ONLY_FIRST),
    passes(roce(4200, 1500, link_layer="InfiniBand"), said=ONLY_FIRST),
    passes(roce(4200, 1500, interface=None), said=ONLY_FIRST),
    passes(roce(4200, 1500), environment(NCCL_IB_HCA="mlx5_0"), said=ONLY_FIRST),
    skips(network(device(0))),
    skips(network(device(0)), {JobHosts: None}),
    # The path to a host is compared with the interface.
    passes(network(), two_hosts(), said={OTHER: "MTU 9000"}),
    fails(
        network(),
        two_hosts(other={"path_mtu": 1450}),
        said={OTHER: "its path takes packets of 1450 bytes, the interface sends 9000"},
    ),
    passes(network(), two_hosts(other={"path_mtu": 1460, "interface_mtu": 1460}), said={OTHER: "MTU 1460"}),
    passes(network(), two_hosts(other={"path_mtu": 1450, "interface_mtu": None}), said={OTHER: "MTU 1450"}),
    skips(network(), two_hosts(other={"path_mtu": None})),
    skips(network(), two_hosts(other={"local": True, "path_mtu": 1400})),
    given=ALONE,
)
