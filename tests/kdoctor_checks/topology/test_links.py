"""The checks of NVLinks, NVSwitches and their fabric."""

from dataclasses import replace
from typing import Any

from helpers.facts import (
    NOT_SUPPORTED,
    geforces,
    gpu,
    gpus,
    host,
    kernel_settings,
    log,
    logged,
    lost_gpu,
    nvlinks,
    pci,
    pci_gpu,
    v100,
    v100_workstation,
)
from helpers.rows import fails, passes, skips, table, unknown, unrecorded
from kdoctor.facts import Gpus, KernelLogEvent, NvLink, PciDevices
from kdoctor.model import Severity
from kdoctor_checks._catalog import sxids
from kdoctor_checks.topology._sxids import classify, codes, summary

GPU0, GPU1 = gpu(0).subject, gpu(1).subject
NOTHING = PciDevices(devices=())
DUMP = unrecorded(PciDevices)
OLD_DRIVER = "NVML_ERROR_FUNCTION_NOT_FOUND"


def several(*states: dict[str, Any]) -> Gpus:
    return gpus(len(states), *(gpu(index, **state) for index, state in enumerate(states)))


def down(count: int = 18, *links: int) -> dict[str, Any]:
    return {"nvlinks": nvlinks(count, down=links or range(count))}


def with_last(**change: Any) -> dict[str, Any]:
    """Eighteen NVLinks, and changes of the last one."""
    *others, last = nvlinks()
    return {"nvlinks": (*others, replace(last, **change))}


BROKEN = {"active": None, "errors": {"active": "NVML_ERROR_UNKNOWN"}}
CARD: dict[str, Any] = {"name": "NVIDIA A40", "fabric_state": None, "nvlinks": ()}
VOLTA: dict[str, Any] = {"name": "Tesla V100-SXM2-16GB", "fabric_state": None}
NOWHERE = "the only GPU, whose NVLinks may lead nowhere"


def alone(mode: str, state: str | None) -> Gpus:
    return several({"name": "NVIDIA H200", "virtualization_mode": mode, "fabric_state": state, **down()})


STATES = ("completed", "in-progress", "not-supported", None)

test_nvlink = table(
    "topology.nvlink",
    Severity.ERROR,
    passes(gpus(2), f"pass {GPU0}: 18 NVLinks active, each 26.562 GB/s.", briefs=["", ""]),
    passes(replace(gpus(2), pairs=()), briefs=["18 NVLinks active, each 26.562 GB/s"] * 2),
    fails(several({"name": "NVIDIA A100-SXM4-80GB", **down(12)}), DUMP, ": all 12 "),  # recorded
    skips(several({"name": "NVIDIA A100 80GB PCIe", **down(12)}), NOTHING),  # without a bridge
    fails(several({}, {"nvlinks": nvlinks(17)}), ": 17 NVLinks active, 18 expected"),
    fails(several({}, with_last(speed_gbs=20.0)), ": slow NVLinks: link 17 20 of 26.562 GB/s.", explained_by=[""]),
    unknown(several({}, with_last(**BROKEN)), f"{GPU1}: the state of 1 NVLink was not read (NVML_ERROR_UNKNOWN)."),
    unknown(several({}, with_last(speed_gbs=None)), f"{GPU1}: the speed of 1 NVLink was not read (no reason given)."),
    passes(several(*({"nvlinks": nvlinks(speed_gbs=None)},) * 2), f"{GPU0}: 18 NVLinks active."),
    unknown(several({}, {"nvlinks": None, "errors": {"nvlinks": "Unknown"}})),
    unknown(several(CARD, {**CARD, "nvlinks": None, "errors": {"nvlinks": "Unknown"}})),
    unknown(several(*({"nvlinks": None, "errors": {"nvlinks": NOT_SUPPORTED}},) * 2)),  # their pairs have some
    fails(
        several({"virtualization_mode": "passthrough", "nvlinks": (NvLink(index=0), NvLink(index=1, active=False))}),
        NOTHING,
        ": 0 of 2 NVLinks active (inactive: 1); the state of 1 NVLink was not read.",
    ),
    unknown(several({}, {"nvlinks": None, "errors": {"nvlinks": NOT_SUPPORTED}})),
    skips(geforces(2)),
    skips(*v100_workstation()),
    fails(
        several({**down(18, 0), "fabric_state": "not-started"}),
        explained_by=["topology.nvswitch-errors, topology.fabric"],
    ),
    fails(
        several({**down(18, 0), "fabric_state": None}),
        explained_by=["topology.nvswitch-errors, topology.fabric-manager"],
    ),
    *(skips(alone(mode, state), DUMP) for mode in ("passthrough", "vgpu") for state in STATES),
    *(fails(alone("none", state), DUMP) for state in STATES),
    skips(alone("passthrough", "completed"), NOTHING, reason=NOWHERE),
    fails(replace(alone("passthrough", "completed"), count=2), NOTHING),  # another one was not read
    fails(
        several({"virtualization_mode": "passthrough", **down(18, 3)}),
        NOTHING,
        said={GPU0: "17 of 18 NVLinks active (inactive: 3)"},
    ),
    unknown(several(VOLTA, {**VOLTA, "nvlinks": ()}), NOTHING, of=[GPU1], evidence=1),  # its equal is on switches
    skips(several(CARD), NOTHING, reason="no GPU is known to be connected to NVSwitches"),
    given=(pci(8),),
)

SIX = nvlinks(6, version=2, speed_gbs=25.781, remote_kind="gpu")
HALF = {"nvlinks": (*SIX[:4], NvLink(index=4, active=False), NvLink(index=5, active=False))}
UNBRIDGED = replace(v100(2), name="NVIDIA A100 80GB PCIe", **down(6))
TO_SWITCHES = "all NVLinks lead to NVSwitches (topology.nvlink checks boards with NVSwitches)"

test_nvlink_direct = table(
    "topology.nvlink-direct",
    Severity.WARNING,
    fails(gpus(2, v100(0), v100(1, **HALF)), ": 4 of 6 NVLinks active (inactive: 4, 5).", evidence=1),
    unknown(
        gpus(3, v100(0, **HALF), v100(1), lost_gpu(2)),
        of=["GPU 2", f"NVLinks of {GPU0}"],
        explained_by=["gpu.responding"] * 2,
        evidence=1,
    ),
    skips(gpus(1, UNBRIDGED)),
    passes(gpus(1, v100(0)), {"least": 6}),
    unknown(gpus(2, v100(0), v100(1, nvlinks=(*SIX[:5], NvLink(index=5, errors={"active": "Unknown"}))))),
    unknown(gpus(2, v100(0), v100(1, nvlinks=None, errors={"nvlinks": "Unknown"}))),
    skips(gpus(2), pci(2), reason=TO_SWITCHES),
    skips(several({}, down(1)), pci(2), reason=TO_SWITCHES),
    given=(NOTHING,),
)

WAITING: dict[str, Any] = {"fabric_state": "not-started", "fabric_status": None}
OUTSIDE: dict[str, Any] = {"fabric_state": "not-supported", "fabric_status": None}
GUEST = {"virtualization_mode": "passthrough"}
OLD: dict[str, Any] = {"fabric_state": None, "errors": {"fabric_state": OLD_DRIVER}}


def health(*problems: str, **change: Any) -> Gpus:
    return several({}, {"fabric_problems": problems, **change})


def silent(error: str) -> dict[str, Any]:
    return {"fabric_problems": None, "errors": {"fabric_problems": error}}


FITS = "x" * (60 - len("fabric health: "))

test_fabric = table(
    "topology.fabric",
    Severity.ERROR,
    passes(gpus(1), said={GPU0: "fabric state completed, status success, healthy"}),
    unknown(several({}, {"fabric_status": None})),
    unknown(several({}, {"fabric_state": None, "errors": {"fabric_state": "NVML_ERROR_UNKNOWN"}})),
    fails(several({}, {**WAITING, **GUEST})),  # its peer is registered
    unknown(several({**WAITING, **GUEST}, {**WAITING, **GUEST})),
    skips(geforces(2)),
    skips(several(OUTSIDE, OUTSIDE)),
    fails(several({}, OUTSIDE, {}), f"{GPU1}: fabric state not-supported, unlike 2 other GPUs.", of=[GPU1]),
    passes(several({}, {**OUTSIDE, "name": "NVIDIA T400"}), of=[GPU0]),  # another model
    passes(several(silent(NOT_SUPPORTED), {"name": "NVIDIA B200"})),
    skips(several(OLD, OLD), "is too old to report fabric state"),
    fails(
        several({}, {"fabric_status": "NVML_ERROR_UNKNOWN", **down(1)}, {**WAITING, **down(1)}),
        explained_by=["topology.nvlink", ""],
    ),
    fails(health("route unhealthy: True"), "  fabric health: route unhealthy.", of=[GPU1], explained_by=[""]),
    fails(health("route unhealthy: True", **down(1)), explained_by=["topology.nvlink"]),
    fails(health("bandwidth: Degraded", bus_id=None), commands=("sudo nvidia-smi --gpu-reset -i 1",)),
    *(
        fails(health(*["route"] * number), f"  fabric health: route{more}.")
        for number, more in ((1, ""), (2, " and 1 more"), (3, " and 2 more"))
    ),
    fails(health(FITS), f"  fabric health: {FITS}."),
    fails(health(f"{FITS}x"), "  fabric health: 1 problem."),
    # Health that no GPU of the model reports is not needed.
    passes(several(silent(NOT_SUPPORTED)), said={GPU0: "fabric state completed, status success"}),
    unknown(several(silent("NVML_ERROR_UNKNOWN"))),
    unknown(several(silent(NOT_SUPPORTED), {}, silent(NOT_SUPPORTED))),
)

WITHOUT_STATE: dict[str, Any] = {"fabric_state": None, "fabric_status": None, "errors": {"fabric_state": NOT_SUPPORTED}}
A100S = several(WITHOUT_STATE, WITHOUT_STATE)
NOT_RUNNING = kernel_settings(daemons=())
ENABLE = "sudo systemctl enable --now nvidia-fabricmanager"

test_fabric_manager = table(
    "topology.fabric-manager",
    Severity.ERROR,
    passes(said={"nv-fabricmanager": "running (1 NVSwitch)"}),
    fails(
        kernel_settings(daemons=("nvidia-persistenced",)),
        replace(A100S, driver_version="570.158.01"),
        said={"nv-fabricmanager": "not running, on a machine with 1 NVSwitch"},
        commands=("sudo apt-get install nvidia-fabricmanager-570", ENABLE),
    ),
    fails(NOT_RUNNING, several({}, WITHOUT_STATE)),  # one of the GPUs does not report its registration
    skips(NOT_RUNNING, gpus(2)),
    skips(NOT_RUNNING, host(container="docker")),
    skips(NOT_RUNNING, host(container=None)),
    skips(NOTHING),
    unknown(kernel_settings(daemons=None)),
    given=(A100S, pci(2), kernel_settings(), host()),
)


def switch(number: int, code: int, text: str) -> str:
    return f"nvidia-nvswitch{number}: SXid (PCI:0000:c{number}:00.0): {code}, {text}"


FATAL = [switch(number, 20034, "Fatal, Link 30 LTSSM Fault Up") for number in range(4)]
LESSER = [switch(number, 12028, "Non-fatal, Link 32 egress error") for number in range(4)]
UNKNOWN = switch(1, 99999, "Non-fatal, an error")
OF_SWITCH = "nvidia-nvswitch1: an assertion failed somewhere"


def sxid(code: int | None, text: str = "Minor error") -> KernelLogEvent:
    return KernelLogEvent(kind="sxid", code=code, bus_id="0000:f0:00.0", text=text)


test_nvswitch_errors = table(
    "topology.nvswitch-errors",
    Severity.ERROR,
    passes(logged(LESSER[1])),
    fails(logged(LESSER[1], FATAL[2], LESSER[3]), of=["NVSwitch at 0000:c2:00.0"]),
    fails(logged(switch(2, 22012, "Fatal, Link 30")), "check link mechanical connections. Restart the machine."),
    fails(log(sxid(None, "Fatal, Link 32")), gpus(2), pci(2), of=1, evidence=0),
    unknown(log(sxid(None)), gpus(2), pci(2), of=1, evidence=0),
    unknown(logged(UNKNOWN), of=["NVSwitch at 0000:c1:00.0"]),
    unknown(logged(OF_SWITCH), gpus(2), pci(2)),
    skips(log(), gpus(1), PciDevices(devices=(pci_gpu(0),))),
)

test_nvswitch_warnings = table(
    "topology.nvswitch-warnings",
    Severity.INFO,
    passes(logged(FATAL[1])),
    passes(logged("NVRM: an assertion failed somewhere")),
    fails(logged(LESSER[1], FATAL[2], LESSER[3]), of=["NVSwitch at 0000:c1:00.0", "NVSwitch at 0000:c3:00.0"]),
    fails(
        logged(*(switch(1, code, "Non-fatal, Link 32") for code in (12028, 12028, 11012))),
        "SXid 11012, 12028;",
        f"{switch(1, 11012, 'Non-fatal, Link 32')!r}.",
    ),
    fails(logged(switch(1, 10004, "Thermal event")), "Ensure that the system cooling is sufficient. "),
    unknown(logged(UNKNOWN), explained_by=["topology.nvswitch-errors"]),
    fails(logged(UNKNOWN, LESSER[2]), unjudged=[]),
    unknown(logged(OF_SWITCH), gpus(2), pci(2)),
    skips(log(), gpus(1), PciDevices(devices=(pci_gpu(0),))),
)


def test_sxid_without_a_code_is_unclassified_unless_the_line_says_fatal() -> None:
    assert classify(sxid(None)) == "unclassified"
    assert classify(sxid(None, "Non-fatal, Link 32")) == "unclassified"
    assert classify(sxid(None, "Fatal, Link 32")) == "fatal"
    assert classify(sxid(10003)) == "fatal"  # "always fatal" in the guide
    assert classify(sxid(12028)) == "lesser"


def test_meaning_and_recovery_of_an_sxid_are_stated() -> None:
    known = next(row for row in sxids().values() if row.recovery)
    stated = summary([sxid(known.code)])
    assert stated.startswith(f"SXid {known.code} ({known.meaning})")
    assert f"; recovery: {known.recovery}; last line: " in stated
    assert summary([sxid(None)]).startswith(codes([sxid(None)]) + "; last line: ")
