"""The checks of the way between two GPUs, and between a GPU and its processors."""

from itertools import combinations
from typing import Any

from helpers.facts import (
    NOT_SUPPORTED,
    geforce,
    geforces,
    gpu,
    gpus,
    host,
    kernel_settings,
    log,
    logged,
    lost_gpu,
    near,
    pair,
    pci,
    pci_gpu,
    way,
)
from helpers.rows import Row, fails, passes, skips, table, unknown
from kdoctor.facts import Gpus, KernelLogEvent, NumaNode, NvLink, PciBridge, PciDevices
from kdoctor.model import Severity
from kdoctor_checks.topology.acs import turn_off

GPU0, GPU1 = gpu(0).subject, gpu(1).subject
PAIR = "GPU 0 - GPU 1"
ORDER = "export CUDA_DEVICE_ORDER=PCI_BUS_ID"
DOWN = (NvLink(index=0, active=False),)
ALL_LINKS = "topology.nvlink, topology.nvlink-direct"


def two(**changes: Any) -> Gpus:
    """Two GPUs without NVLink."""
    return gpus(2, pairs=(pair(**{"nvlinks": 0, **changes}),))


def on_levels(number: int, near_pairs: Any) -> Gpus:
    """GPUs of which these pairs are near each other."""
    ends = combinations(range(number), 2)
    return gpus(number, pairs=tuple(pair(*one, level="PIX" if one in near_pairs else "SYS", nvlinks=0) for one in ends))


def three(*links: int, level: Any = "PIX") -> Gpus:
    ends = combinations(range(3), 2)
    return gpus(3, pairs=tuple(pair(*one, level=level, nvlinks=count) for one, count in zip(ends, links, strict=True)))


UNLINKED: dict[str, Any] = {"nvlinks": None, "errors": {"nvlinks": "NVML_ERROR_UNKNOWN"}}

test_pairs = table(
    "topology.pairs",
    Severity.WARNING,
    *(passes(two(level=level), said={PAIR: level}) for level in ("internal", "PIX", "PXB", "PHB", "NODE")),
    fails(two(level="SYS"), of=[PAIR], commands=(), explained_by=[""]),
    passes(two(level="SYS", nvlinks=18), said={PAIR: "NV18"}, briefs=["NVLink (NV18) between both GPUs"]),
    unknown(two(level="SYS", **UNLINKED), said={PAIR: "SYS, but its NVLinks were not read (NVML_ERROR_UNKNOWN)"}),
    passes(three(18, 0, 18), briefs=["NVLink (NV18) or PIX between every pair"] * 3),
    fails(three(18, 0, 18, level="SYS"), "NVLink (NV18) between 2 of 3 pairs."),
    # The fix is the largest set of GPUs that are all near each other.
    *(
        fails(on_levels(number, near_pairs), commands=(ORDER, f"export CUDA_VISIBLE_DEVICES={chosen}"))
        for number, near_pairs, chosen in (
            (3, {(0, 1)}, "0,1"),
            (4, {(0, 1), (1, 2), (0, 2)}, "0,1,2"),
            (4, {(0, 1), (1, 2), (2, 3)}, "0,1"),  # 0 and 2 are far
            (4, {(0, 3), (1, 2), (1, 3), (2, 3)}, "1,2,3"),
            (5, {(0, 1), (2, 3), (2, 4), (3, 4)}, "2,3,4"),
        )
    ),
    unknown(gpus(4, gpu(0), lost_gpu(1), gpu(2), gpu(3)), evidence=3),
    skips(gpus(2, gpu(0), lost_gpu(1)), "only one GPU responds"),
    unknown(two(level=None, error="NotSupported"), said={PAIR: "distance not read (NotSupported)"}),
    unknown(gpus(2, pairs=()), said={PAIR: "distance not read (not requested)"}),
    skips(gpus(1), reason="only one GPU"),
    skips(gpus(0)),
    unknown(gpus(1, count=4)),
    # Recorded: the message of nvidia-smi about one lost GPU.
    unknown(gpus(1, count=None, errors={"count": "not in nvidia-smi's failure"}), "not in nvidia-smi's failure"),
)


def status(read: str | None, write: str | None = None, **changes: Any) -> Gpus:
    """The peer access of two H100."""
    return gpus(2, pairs=(pair(p2p_read=read, p2p_write=write or read, **changes),))


FAR: dict[str, Any] = {"level": "SYS", "nvlinks": 0}


def explained(explained_by: str, **state: Any) -> Row:
    found = gpus(2, gpu(0), gpu(1, **state), pairs=status("GNS").pairs)
    return fails(found, briefs=["no peer access (GNS)"], explained_by=[explained_by])


test_p2p = table(
    "topology.p2p",
    Severity.WARNING,
    passes(gpus(2)),
    fails(status("TNS", "OK"), f"fail {PAIR}: ", "read TNS (topology not supported), write OK"),
    skips(status("CNS", **FAR)),  # topology.pairs
    skips(status("CNS", "TNS", **FAR)),
    skips(status("NS", **FAR)),
    fails(status("CNS", level="SYS", nvlinks=18)),
    unknown(status(None, "OK", errors={"p2p_read": "Unknown"})),
    unknown(status(None, errors={"p2p_read": NOT_SUPPORTED})),
    skips(geforces(2)),
    # Recorded: only the matrix of ``topo -p2p`` of two RTX 5090, with GNS.
    unknown(gpus(2, gpu(0, name=None), gpu(1, name=None), pairs=status("GNS").pairs)),
    unknown(gpus(3, gpu(0), gpu(1), lost_gpu(2))),
    unknown(gpus(2, pairs=())),
    skips(gpus(1), reason="only one GPU"),
    skips(gpus(1, count=2, pairs=()), "no pair of responding GPUs"),
    explained(""),
    explained("gpu.mig-mode", mig_mode=True),
    explained("topology.fabric", fabric_state="not-started"),
    explained(ALL_LINKS, nvlinks=DOWN),
    fails(
        gpus(2, pairs=status("NS").pairs, conf_compute=True, conf_compute_multi_gpu="none"),
        explained_by=["driver.confidential-computing"],
    ),
    fails(
        gpus(2, pairs=status("NS").pairs, conf_compute=True, conf_compute_multi_gpu="protected-pcie"), explained_by=[""]
    ),
)

UNREAD = pair(p2p_read=None, p2p_write=None, errors={"p2p_read": "Unknown"})
WITH_LOST = gpus(3, geforce(0), geforce(1), lost_gpu(2), pairs=(pair(nvlinks=0, p2p_read="GNS", p2p_write="GNS"),))
PAIRS_OF_LOST = ["GPU 0 - GPU 2", "GPU 1 - GPU 2"]


def cards(first: str, second: str, links: int = 0) -> Gpus:
    return gpus(2, geforce(0, first), geforce(1, second), pairs=(pair(nvlinks=links),))


test_p2p_geforce = table(
    "topology.p2p-geforce",
    Severity.INFO,
    fails(WITH_LOST, of=1, unjudged=PAIRS_OF_LOST),
    passes(geforces(2, pairs=(pair(),))),
    unknown(geforces(2, pairs=(UNREAD,))),
    skips(gpus(2)),
)

test_p2p_trusted = table(
    "topology.p2p-trusted",
    Severity.WARNING,
    *(fails(cards(model, model), "; export NCCL_P2P_DISABLE=1") for model in ("4090", "4080 SUPER", "5090")),
    *(fails(geforces(2, pairs=(pair(p2p_read=one, p2p_write=two),))) for one, two in (("OK", "GNS"), ("GNS", "OK"))),
    passes(geforces(2), said={PAIR: "P2P GNS"}),
    unknown(WITH_LOST, of=PAIRS_OF_LOST, evidence=1),
    unknown(geforces(2, pairs=(UNREAD,))),
    skips(cards("3090", "3090", 4)),
    skips(cards("4090", "3090")),
    skips(cards("3090", "4090")),
)

REDIRECTS = 0x1D
OVER_PCIE = two(level="PIX")
PORT = "PCI 0000:1d:00.0"
OFF, ON = (f"sudo setpci -s 0000:1d:00.0 ECAP_ACS+0x6.w={value}" for value in ("0000", "001d"))


def redirecting(control: int | None = REDIRECTS) -> PciDevices:
    return pci(2, pci_gpu(0), pci_gpu(1, path=way(1, acs_control=control)))


def virtual(mode: str) -> Gpus:
    return gpus(2, *(gpu(index, virtualization_mode=mode) for index in range(2)))


SWITCH = pci(2).switches[0]
ABOVE_SWITCH = PciDevices(
    devices=(*pci(2).gpus, type(SWITCH)(**{**vars(SWITCH), "path": way(9, acs_control=REDIRECTS)}))
)

test_acs = table(
    "topology.acs",
    Severity.ERROR,
    fails(
        redirecting(),
        f"fail {PORT}: ACS redirects peer traffic (control 0x001d).",
        of=[PORT],
        commands=(OFF,),
        rollback=(ON,),
    ),
    *(fails(redirecting(control)) for control in (0x04, 0x08, 0x10)),
    *(passes(redirecting(control)) for control in (0x00, 0x01)),  # source validation alone
    passes(redirecting(), gpus(2)),  # NVLink
    unknown(redirecting(), two(level="PIX", p2p_read=None)),
    unknown(redirecting(), two(level="PIX", nvlinks=None)),
    unknown(redirecting(), Gpus),
    passes(Gpus),
    passes(ABOVE_SWITCH),  # recorded: on above the NVSwitches of 8 x H100, and off on all paths to GPUs
    *(skips(redirecting(), virtual(mode)) for mode in ("passthrough", "vgpu", "host-vgpu")),
    skips(pci(1, pci_gpu(0, path=way(0, acs_control=REDIRECTS)))),
    skips(redirecting(None)),  # unknown in topology.acs-settings
    skips(pci(2, pci_gpu(0, path=()), pci_gpu(1, path=()))),
    skips(pci(2, pci_gpu(0, path=None), pci_gpu(1)), gpus(2), evidence=0),
    given=(pci(2), OVER_PCIE),
)

LINKED, PCIE, SILENT, REFUSED = (
    {"nvlinks": 18, "p2p_read": "OK"},
    {"nvlinks": 0, "p2p_read": "OK"},
    {"nvlinks": 0, "p2p_read": None},
    {"nvlinks": 0, "p2p_read": "GNS"},
)


FIRST_REDIRECTS = pci(3, pci_gpu(0, path=way(0, acs_control=REDIRECTS)), pci_gpu(1), pci_gpu(2))


def of_three(*states: dict[str, Any]) -> Gpus:
    """The three pairs of three GPUs."""
    ends = combinations(range(3), 2)
    return gpus(
        3, pairs=tuple(pair(*one, **{"level": "PIX", **state}) for one, state in zip(ends, states, strict=True))
    )


def below_one_port(row: Any, *states: dict[str, Any], **stated: Any) -> Row:
    """Three GPUs below one port, which redirects their traffic, and their three pairs."""
    devices = pci(3, *(pci_gpu(index, path=way(0, acs_control=REDIRECTS)) for index in range(3)))
    result: Row = row(devices, of_three(*states), **stated)
    return result


ONE = {"of": ["PCI 0000:0d:00.0"], "evidence": 0}

test_acs_above_three_gpus = table(
    "topology.acs",
    Severity.ERROR,
    below_one_port(passes, LINKED, LINKED, LINKED),
    below_one_port(unknown, SILENT, LINKED, LINKED, **ONE),
    below_one_port(unknown, LINKED, LINKED, SILENT, **ONE),
    below_one_port(fails, PCIE, LINKED, LINKED, unjudged=[], **ONE),
    below_one_port(fails, LINKED, LINKED, PCIE, unjudged=[], **ONE),
    below_one_port(fails, PCIE, SILENT, LINKED, unjudged=[], **ONE),
    below_one_port(fails, SILENT, PCIE, LINKED, unjudged=[], **ONE),
    below_one_port(fails, PCIE, REFUSED, REFUSED, unjudged=[], **ONE),
    below_one_port(fails, REFUSED, REFUSED, PCIE, unjudged=[], **ONE),
    below_one_port(unknown, REFUSED, REFUSED, SILENT, **ONE),
    below_one_port(unknown, SILENT, REFUSED, REFUSED, **ONE),
    below_one_port(passes, REFUSED, REFUSED, REFUSED),
    fails(FIRST_REDIRECTS, of_three(PCIE, SILENT, LINKED), **ONE),
)

test_acs_settings = table(
    "topology.acs-settings",
    Severity.INFO,
    fails(redirecting(), of=[PORT], commands=(OFF,), rollback=(ON,), evidence=5),
    passes(redirecting(), OVER_PCIE, evidence=5),  # topology.acs
    below_one_port(fails, LINKED, LINKED, LINKED, evidence=2),
    *(below_one_port(passes, *states, evidence=2) for states in ((PCIE, LINKED, LINKED), (LINKED, LINKED, SILENT))),
    unknown(redirecting(None), OVER_PCIE, of=[PORT]),
    unknown(pci(2, pci_gpu(0), pci_gpu(1, path=None)), of=["GPU at 0000:20:00.0"]),
    skips(pci(2), virtual("passthrough")),
    skips(pci(1), gpus(1)),
    skips(pci(2, *(pci_gpu(index, path=()) for index in range(2)))),
    given=(gpus(2),),
)


def test_one_command_turns_acs_off_for_all_ports() -> None:
    ports = [PciBridge(bus_id=f"0000:{number:02x}:00.0", device_id="c030") for number in (1, 2)]
    assert turn_off(ports, "Turn ACS off.").commands == (
        "for port in 0000:01:00.0 0000:02:00.0; do sudo setpci -s $port ECAP_ACS+0x6.w=0000; done",
    )


def in_groups(**change: Any) -> PciDevices:
    return pci(2, *(pci_gpu(index, **{"iommu_group": index, **change}) for index in range(2)))


TRANSLATED = in_groups(iommu_type="DMA")

test_iommu = table(
    "topology.iommu",
    Severity.WARNING,
    passes(in_groups(iommu_type="unmanaged")),
    fails(TRANSLATED, "group 0, type DMA", "intel_iommu=on", "iommu=pt", "Rollback: "),
    unknown(in_groups(iommu_type=None)),
    unknown(in_groups(iommu_type=None), kernel_settings(iommu_groups=0)),  # it is in a group
    passes(in_groups(iommu_group=None), kernel_settings(iommu_groups=0), of=[GPU0, GPU1]),
    unknown(in_groups(iommu_group=None), kernel_settings(iommu_groups=None)),
    passes(TRANSLATED, gpus(2)),  # NVLink
    unknown(TRANSLATED, two(p2p_read=None)),
    skips(TRANSLATED, virtual("passthrough")),
    skips(TRANSLATED, gpus(2, conf_compute=True)),
    skips(pci(1), gpus(1)),
    given=(kernel_settings(iommu_groups=40, iommu_parameters=("intel_iommu=on",)), OVER_PCIE),
)

INTEL = "[1.5] DMAR: [DMA Write] Request device [{}] fault addr {} [fault reason 05] PTE Write access is not set"
ALONE = {Gpus: "a log alone", PciDevices: "a log alone"}
NAMELESS = [KernelLogEvent(kind="iommu-fault", bus_id=address, text="no") for address in (None, "0000:99:00.0")]

test_iommu_faults = table(
    "topology.iommu-faults",
    Severity.ERROR,
    passes(logged("usb 1-1: new device", "NVRM: an assertion failed somewhere")),
    fails(
        logged(*(INTEL.format("10:00.0", address) for address in ("a000", "b000", "c000"))),
        "the IOMMU blocked 3 transfers; last line: ",
        "addr c000",
        of=[GPU0],
    ),
    passes(logged(INTEL.format("02:00.0", "a000"))),
    unknown(logged(INTEL.format("02:00.0", "a000")), ALONE),
    passes(logged(INTEL.format("00:02.0", "a000")), {PciDevices: "a log alone"}),
    fails(logged("nvidia 0000:07:00.0: AMD-Vi: Event logged [IO_PAGE_FAULT]"), of=["GPU at 0000:07:00.0"]),
    passes(logged("ath10k_pci 0000:01:00.0: AMD-Vi: Event logged [IO_PAGE_FAULT]"), {PciDevices: "a log alone"}),
    unknown(log(*NAMELESS)),
    unknown(log(*NAMELESS), {PciDevices: "not read"}, "of 0000:99:00.0, a device without address, which"),
    given=(gpus(2), pci(2)),
)

LAST_FOUR = [gpu(index).subject for index in range(4, 8)]
FIRST_CPUS, OTHER_CPUS = tuple(near(0)), tuple(near(4))


def affinities(**change: Any) -> Gpus:
    return gpus(8, *(gpu(index, **change) for index in range(8)))


def nodes(*found: NumaNode) -> Any:
    return host(numa_nodes=found)


test_numa = table(
    "topology.numa",
    Severity.WARNING,
    passes(
        host(cpu_affinity=FIRST_CPUS),
        gpus(1),
        pci(1),
        ": 112 of 112 CPUs near it available, and memory of NUMA node 0.",
    ),
    fails(
        host(cpu_affinity=OTHER_CPUS, cpus=64),
        ": none of its 112 nearby CPUs is available (this process may use 112 CPUs).",
        commands=("taskset -pc 0-63 $$",),
    ),
    # A cpuset of a batch system with CPUs of all nodes and memory of node 0.
    fails(host(memory_nodes=(0,)), ": near NUMA node 1, but this process may use memory of node 0 only", of=LAST_FOUR),
    fails(host(memory_nodes=()), ": near NUMA node 0, but this process may use memory of node none only"),
    unknown(host(memory_nodes=None)),
    fails(host(numa_nodes=None, memory_nodes=(0,)), of=LAST_FOUR),
    unknown(host(numa_nodes=None), affinities(numa_affinity=None)),
    passes(host(cpu_affinity=(0, 223))),  # one nearby CPU is enough
    passes(host(memory_nodes=(0,)), affinities(cpu_affinity=(*FIRST_CPUS, *OTHER_CPUS))),  # and one of two near nodes
    # Recorded: two RTX 3090, NUMA affinity N/A on one.
    unknown(
        gpus(2, gpu(0, cpu_affinity=None, numa_affinity=None, errors={"cpu_affinity": "N/A"}), gpu(1)),
        pci(2, pci_gpu(0, local_cpus=None), pci_gpu(1)),
        "(N/A).",
        of=[GPU0],
        evidence=1,
    ),
    passes(affinities(cpu_affinity=None)),
    passes(
        host(cpu_affinity=FIRST_CPUS), gpus(1), pci(1, pci_gpu(0, local_cpus=OTHER_CPUS))
    ),  # the driver knows better
    # POWER9 and Grace show GPU memory as NUMA nodes without CPUs.
    skips(nodes(NumaNode(index=0, cpus=FIRST_CPUS), NumaNode(index=250, cpus=())), reason="only one NUMA node"),
    passes(nodes(*(host().numa_nodes or ()), NumaNode(index=9, cpus=()))),
    unknown(host(cpu_affinity=None)),
    given=(gpus(8), host(), pci(8)),
)
