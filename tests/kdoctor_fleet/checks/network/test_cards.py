"""The checks of RDMA cards: their firmware, their PCIe links, and their ways to the GPUs."""

from typing import Any

from helpers.facts import environment, gpu, gpus, lost_gpu
from helpers.facts.pci import pci_gpu
from helpers.kdoctor_fleet.rdma import device, network, port
from helpers.rows import Given, fails, passes, skips, table, unknown
from kdoctor.facts import Host, Kernel, KernelDriver, PciDevices
from kdoctor.model import Severity
from kdoctor_fleet.facts import Network

NEW, OLD = device(0).firmware, "28.36.1010"
FOUR = network(device(0), device(1, firmware=OLD), device(2), device(3, board="x"))

test_firmware_match = table(
    "network.firmware-match",
    Severity.WARNING,
    passes(network(device(0), device(1))),
    fails(network(device(0), device(1), device(2, firmware=OLD)), of=["mlx5_2"]),
    fails(
        network(device(0), device(1, firmware=OLD)), of=["mlx5_0", "mlx5_1"], expected="one version on all equal cards"
    ),
    fails(  # the usual one is that of most cards
        FOUR,
        said={
            "mlx5_1": f"firmware {OLD}; equal cards have {NEW} on 2, {OLD} on 1",
            "mlx5_0": f"firmware {NEW}, as on 2 cards",
            "mlx5_2": f"firmware {NEW}, as on 2 cards",
        },
        expected=f"firmware {NEW}",
    ),
    skips(network(device(0), device(1, firmware=OLD, board="another card"))),
    unknown(network(device(0), device(1, firmware=None))),
    unknown(network(device(0), device(1), device(2, board=None), device(3, board=None, firmware=None)), of=["mlx5_2"]),
    skips(network(device(0))),
    skips(network()),
)


GEN3, GEN4 = "8.0 GT/s PCIe", "16.0 GT/s PCIe"
BUS = device(0).bus_id
MLX5_0 = f"mlx5_0 ({BUS})"


def link(**changes: Any) -> Network:
    return network(device(0, **changes))


SLOWED: tuple[tuple[dict[str, Any], str], ...] = (
    ({"link_width": 8}, "narrower than possible. Expected: x16, generation 5, "),
    ({"link_width": 4, "slot_width_max": 8}, "narrower than possible. Expected: x8, generation 5, "),
    ({"link_width": 8, "slot_width_max": None}, "narrower than possible. Expected: x16, generation 5, "),
    ({"link_speed": GEN4}, "slower than possible. Expected: x16, generation 5, "),
    ({"link_speed": GEN3, "slot_speed_max": GEN4}, "slower than possible. Expected: x16, generation 4, "),
    ({"link_width": 8, "link_speed_max": None, "slot_speed_max": None}, "narrower than possible. Expected: x16, as "),
)

test_pcie_link = table(
    "network.pcie-link",
    Severity.WARNING,
    passes(link(), said={MLX5_0: "x16, generation 5"}),
    passes(link(bus_id=None), said={"mlx5_0": "x16, generation 5"}),
    passes(link(link_speed=None), said={MLX5_0: "x16, generation unknown"}),
    passes(link(link_width=8, slot_width_max=8), said={MLX5_0: "x8, generation 5"}),
    passes(link(link_speed=GEN4, slot_speed_max=GEN4), said={MLX5_0: "x16, generation 4"}),
    *(fails(link(**changes), stated, look=(f"sudo lspci -vvv -s {BUS}",), of=1) for changes, stated in SLOWED),
    # Width 0: a virtual function.
    unknown(network(device(0), device(1, link_width=None), device(2, link_width=0)), of=["mlx5_1"], evidence=1),
    skips(link(link_width=None)),
    skips(network()),
)


def way(modules: Any, flavour: Any, release: str | None, version: str | None = "570.158.01") -> tuple[Given, ...]:
    driver = KernelDriver(loaded=True, version=version, flavour=flavour)
    return network(device(0)), Kernel(modules=modules), driver, Host(os="Linux", kernel=release), environment()


ABSENT = way(("nvidia",), "open", "6.8.0-60")[1:]
PEERMEM = "GPUDirect RDMA: nvidia-peermem is "

test_gpudirect = table(
    "network.gpudirect",
    Severity.WARNING,
    passes(*way(("nvidia", "nvidia_peermem"), "proprietary", "5.4.0-150"), f"{PEERMEM}loaded."),
    passes(*way(("nvidia",), "open", "6.8.0-60"), ": DMA-BUF: open kernel modules 570.158.01 on Linux 6.8."),
    passes(*way(("nvidia",), "open", "5.12.1"), ": DMA-BUF: open kernel modules 570.158.01 on Linux 5.12."),
    passes(*way(("nvidia",), "open", "6.8.0", None), ": DMA-BUF: open kernel modules on Linux 6.8."),
    fails(
        *way(("nvidia",), "open", "5.4.0-150"),
        f"{PEERMEM}not loaded; open kernel modules on Linux 5.4.",
        "sudo modprobe nvidia-peermem",
    ),
    fails(
        *way(("nvidia",), "proprietary", "6.8.0-60"),
        f"{PEERMEM}not loaded; proprietary kernel modules on Linux 6.8.",
        "sudo modprobe nvidia-peermem",
    ),
    unknown(*way(("nvidia",), None, "6.8.0-60")),
    unknown(*way(None, "open", "6.8.0-60")),
    unknown(*way(("nvidia",), "open", None)),
    skips(network(), *ABSENT),
    skips(network(device(0, driver="efa")), *ABSENT),
)


def near(found: Network, *indices: int, hca: str | None = None) -> tuple[Given, ...]:
    """GPUs in these places of a machine with these devices."""
    places = tuple(pci_gpu(index) for index in indices)
    devices = [gpu(number, bus_id=one.bus_id) for number, one in enumerate(places)]
    variables = environment() if hca is None else environment(NCCL_IB_HCA=hca)
    return found, gpus(len(devices), *devices), PciDevices(devices=places), variables


INACTIVE = port(state="DOWN")
LOST = network(device(0)), gpus(2, gpu(0), lost_gpu(1)), environment()

test_gpu_affinity = table(
    "network.gpu-affinity",
    Severity.WARNING,
    passes(*near(network(device(0), device(4)), 0, 4), "is mlx5_0: same PCIe switch.", "is mlx5_4: same PCIe switch."),
    passes(
        *near(network(device(0)), 0, 1, 4),
        "pass GPU 0 (0000:10:00.0): nearest is mlx5_0: same PCIe switch.",
        "pass GPU 1 (0000:20:00.0): nearest is mlx5_0: same NUMA node.",
        "pass GPU 2 (0000:50:00.0): nearest is mlx5_0: on another NUMA node.",
    ),
    passes(*near(network(device(0, path=("0000:0c:01.0",))), 0), "is mlx5_0: same host bridge."),
    passes(*near(network(device(0, path=("0000:77:00.0",), numa_node=1)), 0), "is mlx5_0: on another NUMA node."),
    passes(*near(network(device(4), device(5, INACTIVE, numa_node=1)), 0), "is mlx5_4: on another NUMA node."),
    passes(*near(network(device(1), device(0, INACTIVE)), 0), "is mlx5_1: same NUMA node."),
    fails(*near(network(device(0), device(4, INACTIVE)), 0, 4), "; mlx5_4 is nearer", of=["GPU 1"]),
    fails(*near(network(device(0), device(4)), 0, 4, hca="mlx5_0"), "; mlx5_4 is nearer", of=["GPU 1"]),
    unknown(*near(network(device(0, path=None, numa_node=None)), 0)),
    unknown(*LOST, PciDevices(devices=(pci_gpu(0),)), of=["GPU 1"]),
    unknown(*LOST, PciDevices(devices=())),
    skips(*near(network(), 0)),
    skips(*near(network(device(0, INACTIVE)), 0)),
)
