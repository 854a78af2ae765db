"""The checks of PCIe links and their errors."""

from dataclasses import replace
from typing import Any

import pytest

from helpers.facts import (
    bridge,
    bus_id,
    geforce,
    geforces,
    gpu,
    gpus,
    log,
    logged,
    lost_gpu,
    no_driver,
    pair,
    pci,
    pci_gpu,
    way,
)
from helpers.rows import Row, fails, judged, passes, skips, table, unknown, unrecorded
from kdoctor.facts import Gpus, KernelLogEvent, PciDevices
from kdoctor.model import Severity

GPU0, GPU1, GPU2, GPU3 = (gpu(index).subject for index in range(4))
NO_LISTED = "the driver lists no GPU"
NOT_LOADED = gpus(0, state="driver-not-loaded")
SLOW = {"link_speed": "16.0 GT/s PCIe"}
UNSUPPORTED = gpus(2, gpu(0), lost_gpu(1))


def several(*states: dict[str, Any], **others: Any) -> Gpus:
    return gpus(len(states), *(gpu(index, **state) for index, state in enumerate(states)), **others)


def on_bus(*states: dict[str, Any]) -> PciDevices:
    return pci(len(states), *(pci_gpu(index, **state) for index, state in enumerate(states)))


def above(**change: Any) -> PciDevices:
    """Two GPUs, and changes of the switch above the second one."""
    return on_bus({}, {"path": way(1, **change)})


def errors(status: Any, change: dict[str, Any], *texts: str, **stated: Any) -> list[Row]:
    """Errors of a GPU, and of the switch above it."""
    found = [] if status is passes else [f"PCI {bus_id(1)}"], [] if status is passes else ["PCI 0000:1d:00.0"]
    places = (on_bus({}, change), above(**change))
    return [
        status(devices, *texts, **({"of": subject} if subject else {}), **stated)
        for devices, subject in zip(places, found, strict=True)
    ]


def recorded(*kinds: str) -> PciDevices:
    """What lspci shows of errors, which is not how many."""
    return on_bus({"path": (), "aer_status": kinds, **NO_COUNTERS})


NO_COUNTERS = dict.fromkeys(("aer_correctable", "aer_nonfatal", "aer_fatal"))
AT_MOST = "at most 0 fatal, 10 non-fatal, 1000 corrected"

test_pcie_errors = table(
    "topology.pcie-errors",
    Severity.WARNING,
    *errors(passes, {}),
    *errors(passes, {"aer_correctable": 1000, "aer_nonfatal": 10}),
    *errors(fails, {"aer_correctable": 1001}),
    *errors(
        fails,
        {"aer_nonfatal": 11, "aer_correctable": 1001},
        ": 0 fatal, 11 non-fatal, 1001 corrected",
        "  too many non-fatal and corrected PCIe errors.",
    ),
    *errors(fails, {"aer_fatal": 1}, ": 1 fatal, 0 non-fatal", "  too many fatal PCIe errors.", expected=AT_MOST),
    *errors(fails, {"aer_fatal": None, "aer_nonfatal": 50}, ": ? fatal, 50 non-fatal, 0 corrected"),
    *errors(unknown, {"aer_fatal": None}),
    skips(on_bus({"path": (), **NO_COUNTERS, "aer_counted": False}), gpus(1)),  # as on a virtual machine with an H100
    unknown(on_bus({"path": None})),
    fails(on_bus({"aer_fatal": 1}, {"aer_fatal": 1}), UNSUPPORTED, explained_by=["", "gpu.responding"]),
    fails(on_bus(*[{"path": way(0, aer_fatal=1)}] * 2), UNSUPPORTED, explained_by=[""]),  # above both
    skips(pci(2), NOT_LOADED),
    skips(pci(0, *pci().switches), NOT_LOADED),
    fails(on_bus({"aer_fatal": 1}, {"path": None}), NOT_LOADED, of=[f"PCI {bus_id(0)}"], evidence=0, unjudged=[]),
    passes(recorded(), gpus(1)),
    passes(recorded("UnsupReq"), gpus(1), "uncorrected PCIe errors recorded: none."),
    fails(recorded("MalfTLP", "UnsupReq", "CmpltTO"), gpus(1), "PCIe errors recorded: MalfTLP, CmpltTO."),
    unknown(on_bus({"path": (), "aer_status": None, "aer_fatal": None, "aer_nonfatal": None}), gpus(1)),
)

P0 = "x16 of x16, generation 5 of 5 in P0"
IDLE: dict[str, Any] = {"pcie_generation": 1, "performance_state": 8, "utilization_gpu_percent": 0}
BUSY: dict[str, Any] = {"pcie_generation": 4, "performance_state": 2, "utilization_gpu_percent": 98}
SLOT = {"pcie_generation": 3, "pcie_generation_max": 3}


def at_port(gpu_speed: str | None, port_speed: str | None) -> PciDevices:
    """A link of generation 3, and what both ends support."""
    port = bridge("0000:0e:00.0", link_speed_max=port_speed)
    return on_bus({"link_speed": "8.0 GT/s PCIe", "link_speed_max": gpu_speed, "path": (port,)})


test_pcie_generation = table(
    "topology.pcie-generation",
    Severity.WARNING,
    fails(several({}, {}, {"pcie_generation": 3}), f"{GPU2}: PCIe generation 3 of 5 in P0, 0 % busy", of=[GPU2]),
    fails(several({}, {}, {"pcie_generation": 3}), "  PCIe generation 3 of 5.", expected="generation 5"),
    fails(several({}, {"pcie_generation": 4, "performance_state": 2, "utilization_gpu_percent": 20})),
    unknown(several({}, {"pcie_generation": 1, "performance_state": None})),
    unknown(several({}, {"pcie_generation": None})),
    unknown(several({}, {"pcie_generation_max": None})),
    skips(geforces(2)),
    skips(several(IDLE, IDLE)),
    skips(several({**IDLE, "utilization_gpu_percent": None}), {"busy_from_percent": 1}),
    # Recorded: five of eight RTX 4090 busy in P2 at generation 4, three idle at generation 1.
    passes(gpus(8, *(geforce(index, **(BUSY if index < 5 else {})) for index in range(8))), of=5),
    fails(several({}, SLOT, {}), "  PCIe generation 3 of 3, most have 5.", of=[GPU1]),
    fails(several({}, {"pcie_generation": 1}), explained_by=[""]),
    fails(several({}, {"pcie_generation": 1, "pcie_width": 1}), "0000:20:00.0", explained_by=["topology.pcie-width"]),
    fails(
        several({}, {"pcie_generation": 3}, {"pcie_generation": 3}),
        "; sudo lspci -vv -d 10de: | grep -E 'NVIDIA|LnkCap:|LnkSta:'",
        of=2,
    ),
    skips(gpus(0), reason=NO_LISTED),
    given=(pci(3),),
)

test_pcie_generation_on_the_bus = table(
    "topology.pcie-generation",
    Severity.WARNING,
    unknown(on_bus({"link_speed": "2.5 GT/s PCIe"})),  # it may be idle
    unknown(on_bus({"link_speed": None})),
    passes(at_port("32.0 GT/s PCIe", "8.0 GT/s PCIe"), "PCIe x16 of x16, generation 3 of 3."),
    *(unknown(at_port(*speeds), evidence=0) for speeds in (("16.0 GT/s PCIe", "32.0 GT/s PCIe"), (None, None))),
    unknown(at_port("16.0 GT/s PCIe", None)),
    unknown(on_bus({"path": (), "link_speed": None}), of=["GPUs"]),
    unknown(on_bus({"path": (), "link_speed_max": None}), of=["GPUs"]),
)


def linked(*links: int) -> Gpus:
    ends = ((0, 1), (0, 2), (1, 2))
    return gpus(3, pairs=tuple(pair(*two, nvlinks=count) for two, count in zip(ends, links, strict=True)))


def idle(*widths: int, **others: Any) -> Gpus:
    return several(*({"pcie_width": width, "performance_state": 8, **others} for width in widths))


NARROW_SLOT = {"pcie_width": 8, "pcie_width_max": 8}
ALONE: dict[str, Any] = {"pairs": ()}

test_pcie_width = table(
    "topology.pcie-width",
    Severity.WARNING,
    fails(several({}, {"pcie_width": 8}), f"{GPU0}: PCIe {P0}", "  PCIe x8 of x16.", of=[GPU1], expected="x16"),
    fails(several({}, {"pcie_width": 1}), of=[GPU1]),  # recorded: an L4 at x1 of x16 in P0
    # Hosts give half of the lanes to a GPU that they pass through: the T4s of clouds.
    passes(several({"pcie_width": 8, "virtualization_mode": "passthrough"})),
    fails(several({"pcie_width": 4, "virtualization_mode": "passthrough"}), "then tell the owner of the host"),
    fails(several({"pcie_width": 8, "name": "NVIDIA A100-PCIE-40GB"}), "then reseat the GPU or replace the riser"),
    fails(several({"pcie_width": 8, "name": None}), "then reseat the GPU or replace the riser"),
    fails(several({"pcie_width": 8}), "then have the board serviced"),  # an SXM module
    unknown(several({}, {"pcie_width": 8, "performance_state": 8})),
    unknown(several({}, {"pcie_width": 8, "performance_state": None})),
    # A part of a recording without it. The bus alone is judged like this, too.
    fails(
        several({}, {"pcie_width": 4, "performance_state": None, "errors": {"performance_state": "not in -q"}}), of=1
    ),
    unknown(several({"pcie_width": 8, "performance_state": None, "errors": {"performance_state": "not in -q"}})),
    # Recorded: idle RTX 4090 and 3090 at generation 1.
    passes(several({"pcie_generation": 1, "performance_state": 8}, **ALONE), briefs=["PCIe x16"]),
    passes(several({}, {"pcie_generation": 1}, **ALONE), briefs=["PCIe x16"] * 2),
    passes(
        several({"pcie_generation": None, "pcie_generation_max": None}, **ALONE),
        said={GPU0: "PCIe x16 of x16, generation ? of ? in P0"},
    ),
    unknown(several({"pcie_width": 0}), "NVML reports width x0 of x16."),
    unknown(several({"pcie_width_max": 0}), "NVML reports width x16 of x0."),
    unknown(several({}, {"pcie_width": None})),
    unknown(several({}, {"pcie_width_max": None})),
    fails(several({"pcie_width": 0}, {"pcie_width": 8}, {}), f"-s {bus_id(1)} ", of=[GPU1], unjudged=[GPU0]),
    unknown(several({}, {"pcie_width": 0}, {"pcie_width": 0}), of=[GPU1, GPU2]),
    # A narrow idle GPU is compared with the idle ones of its model. More than half of them must have the full width.
    unknown(several({}, {"pcie_width": 8, "performance_state": 8}, {}, {})),
    fails(idle(8, 16, 16), of=[GPU0]),
    fails(idle(8, 16, 16, performance_state=None), of=[GPU0]),  # recorded: a table of widths alone
    *(unknown(idle(*widths)) for widths in ((8, 8, 8, 8), (8, 16), (8, 8, 16, 16))),
    unknown(several(*[{"performance_state": 8, "name": "L4"}] * 2, {"performance_state": 8, "pcie_width": 8})),
    unknown(several(*[{"performance_state": None}] * 2, {"pcie_width": 8, "performance_state": 1}), {"idle_from": 1}),
    fails(
        several({}, NARROW_SLOT, {}),
        "  PCIe x8, most have x16.",
        of=[GPU1],
        expected="x16, as for most GPUs of this model",
    ),
    passes(several({}, {}, NARROW_SLOT, NARROW_SLOT)),  # no majority
    # The width is shown unless all pairs have NVLink.
    passes(linked(18, 18, 18), briefs=[""] * 3),
    passes(linked(18, 18, 0), briefs=["PCIe x16 gen 5"] * 3),
    skips(gpus(0)),
    unknown(Gpus, pci(2), evidence=2),
    given=(pci(4),),
)

BUS = unrecorded(Gpus)

test_pcie_width_on_the_bus = table(
    "topology.pcie-width",
    Severity.WARNING,
    passes(on_bus({}), said={f"GPU at {bus_id(0)}": "PCIe x16 of x16, generation 5 of 5"}),
    fails(
        on_bus({"link_width": 8, "path": None}), "then reseat the GPU or replace the riser", briefs=["PCIe x8 of x16"]
    ),
    passes(on_bus({"link_width": 8, "path": (bridge("0000:0e:00.0", link_width_max=8),)})),
    passes(on_bus({"path": None}), "generation 5 of 5 (the port above was not read)."),
    passes(on_bus({"link_speed": None, "link_speed_max": None, "path": None}), "generation ? of ? (the port"),
    unknown(on_bus({"link_width": None})),
    given=(BUS,),
)

FIRST_LINK, SECOND_LINK = "PCI 0000:0c:00.0 - 0000:0d:00.0", "PCI 0000:0e:00.0 - 0000:0d:01.0"
TWO_SWITCHES = (*way(0), *(replace(port, bus_id=port.bus_id.replace(":00.0", ":01.0")) for port in way(0)[1:]))


def shared(number: int, **change: Any) -> PciDevices:
    return on_bus(*[{"path": way(0, **change)}] * number)


test_pcie_path = table(
    "topology.pcie-path",
    Severity.WARNING,
    passes(above(link_width=8, link_width_max=8)),  # the maximum of the switch
    unknown(above(link_width_max=None)),
    unknown(above(link_speed_max=None)),
    unknown(on_bus({"path": tuple(replace(port, link_speed=None) for port in way(0))})),
    fails(
        shared(2, link_width=4),
        said={FIRST_LINK: "x4 of x16, generation 5 of 5, above the GPUs at 0000:10:00.0, 0000:20:00.0"},
        briefs=["the link above 2 GPUs is narrow"],
        expected="x16, generation 5",
    ),
    fails(
        shared(1, **SLOW),
        said={FIRST_LINK: "x16 of x16, generation 4 of 5, above the GPU at 0000:10:00.0"},
        briefs=["the link above 1 GPU is slow"],
    ),
    # The ports of one switch have no link, and topology.pcie-width judges that of the GPU.
    passes(on_bus({"path": (*way(0)[:2], bridge("0000:0e:00.0", link_width=1, link_speed="2.5 GT/s PCIe"))})),
    passes(on_bus({"path": way(0)[:2]}), of=[FIRST_LINK]),
    passes(on_bus({"path": TWO_SWITCHES}), of=[FIRST_LINK, SECOND_LINK]),
    fails(above(link_width=8), UNSUPPORTED, explained_by=["gpu.responding"]),
    fails(shared(2, link_width=8), UNSUPPORTED, explained_by=[""]),
    *(
        unknown(on_bus(*({"path": None if index == unread else way(index)} for index in range(2))), gpus(2),
                of=[f"GPU at {bus_id(unread)}"], evidence=1)
        for unread in (0, 1)
    ),
    skips(on_bus({"path": ()})),
    skips(PciDevices(devices=()), gpus(2), reason="no visible PCIe switch above the GPUs"),
)  # fmt: skip

test_pcie_replays = table(
    "topology.pcie-replays",
    Severity.INFO,
    *(
        passes(several({}, {"pcie_replay_counter": count}), f"{GPU1}: {count} PCIe replays.")
        for count in (0, 120, 1000)  # 120 recorded on healthy 8 x H100 machines
    ),
    fails(several({}, {"pcie_replay_counter": 1001}), of=[GPU1]),
    passes(several({"pcie_replay_counter": 0}), {"most": 0}),
    fails(several({"pcie_replay_counter": 1}), {"most": 0}, said={GPU0: "1 PCIe replay"}),
    fails(
        several({}, {"pcie_replay_counter": 2000}, {"pcie_replay_counter": 5000}),
        "; nvidia-smi -i 0000:20:00.0,0000:30:00.0 -q | grep -i replay",
        briefs=["2000 to 5000 PCIe replays"] * 2 + [""],
    ),
    fails(several({"pcie_replay_counter": 2000, "pcie_width": 1}), explained_by=["topology.pcie-width"]),
)

test_pcie_slot = table(
    "topology.pcie-slot",
    Severity.INFO,
    passes(gpus(2)),
    fails(  # recorded: an RTX 4090 in a host of generation 3
        several({}, {"pcie_generation_max": 3, "pcie_generation_gpu_max": 4}),
        "generation 3",
        look=("sudo lspci -vv -s 0000:20:00.0 | grep -E 'LnkCap:|LnkCap2:'",),
        of=[GPU1],
    ),
    *(
        unknown(several({}, {"pcie_generation_gpu_max": None, "errors": {"pcie_generation_gpu_max": error}}))
        for error in ("Unknown", "NVML_ERROR_FUNCTION_NOT_FOUND")
    ),
)


def aer(address: str, kind: str = "Corrected", port: str = "0000:00:01.0") -> str:
    return f"pcieport {port}: AER: {kind} error received: {address}"


FATAL, OTHERS = "Uncorrected (Fatal)", [aer("0000:99:00.0")]
FIRST, SECOND, THIRD = (aer(bus_id(index)) for index in (1, 2, 3))
STARTED = "usb 1-1: new device"

test_logged_pcie_errors = table(
    "topology.logged-pcie-errors",
    Severity.WARNING,
    passes(logged(STARTED, "NVRM: an assertion failed somewhere")),
    fails(log(KernelLogEvent(kind="pcie-corrected", bus_id=bus_id(1), text="repeated", times=2)), of=[GPU1]),
    fails(logged(*[FIRST] * 500), "x500", "Expected: no uncorrected and at most 1 corrected"),
    fails(
        logged(aer(bus_id(2), FATAL)), of=[GPU2], explained_by=["gpu.kernel-log"], briefs=["uncorrected PCIe errors"]
    ),
    fails(logged(aer(bus_id(1), FATAL), FIRST), briefs=["uncorrected PCIe errors"]),
    fails(logged(aer(bus_id(1), FATAL), FIRST, FIRST), briefs=["uncorrected PCIe errors and corrected PCIe errors"]),
    *(
        fails(logged(*(aer(bus_id(1), kind) for kind in kinds)), explained_by=["gpu.kernel-log"])
        for kinds in ((FATAL, "Uncorrected (Non-Fatal)"), ("Uncorrected (Non-Fatal)", FATAL))
    ),
    fails(logged(*OTHERS * 9, FIRST, FIRST, SECOND, THIRD, THIRD), of=[GPU1, GPU3]),
    fails(logged(*OTHERS * 2), on_bus({}, {"path": None})),  # it may be a port that was not read
    fails(logged(aer("0000:0d:00.0", "Uncorrected (Non-Fatal)")), pci(1), of=["PCI 0000:0d:00.0"]),
    passes(logged(aer("0000:0d:00.0"), "nvme 0000:0d:00.0: PCIe Bus Error: severity=Uncorrected"), PciDevices),
    skips(log(), *no_driver()),
    given=(gpus(4), pci(4)),
)


def test_fatal_error_of_a_gpu_stops_the_job_and_others_do_not() -> None:
    for text, stops in ((aer(bus_id(2), FATAL), True), (aer(bus_id(2)), False), (aer("0000:99:00.0", FATAL), False)):
        findings = judged("gpu.kernel-log", gpus(4), pci(4), logged(text)).findings
        assert [item.finding.remedy.commands for item in findings] == ([("sudo reboot",)] if stops else [])


def test_details_of_a_pcie_error_are_understood() -> None:
    details = ("  device [10de:2330] error status/mask=00040000/00400000", "   [18] MalfTLP                (First)")
    found = logged(*(f"nvidia {bus_id(2)}: {text}" for text in details))
    assert (found.unclassified, found.events) == (0, ())


@pytest.mark.parametrize("name", ["acs", "acs-settings", "pcie-errors", "pcie-path"])
def test_machine_without_a_gpu_is_skipped_with_the_reason(name: str) -> None:
    assert judged(f"topology.{name}", pci(2), gpus(0)).reason == NO_LISTED
    nowhere = judged(f"topology.{name}", PciDevices(devices=()), gpus(0))
    assert nowhere.reason == "no NVIDIA GPU on the PCI bus and none listed by the driver"
