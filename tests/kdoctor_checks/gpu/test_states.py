"""The checks of the state of each GPU that compare it with others, with limits or with what the log says."""

from typing import Any

import pytest

from helpers.facts import GIB, MIB, NOT_SUPPORTED, bus_id, gpu, gpus, h100_node, logged, lost_gpu, pci, pci_gpu
from helpers.rows import Row, fails, passes, skips, table, unknown
from kdoctor.facts import Gpu, GpuProcess, Gpus
from kdoctor.model import Finding, Severity, Unjudged
from kdoctor.testing import compute_check
from kdoctor_checks import checks

H100 = "NVIDIA H100 80GB HBM3"
GPU0, GPU1, GPU2, GPU3 = (gpu(index).subject for index in range(4))
DESKTOP = (GpuProcess(pid=9, name="Xorg", used_memory_bytes=None),)


def several(*states: dict[str, Any]) -> Gpus:
    return gpus(len(states), *(gpu(index, **state) for index, state in enumerate(states)))


def one(**state: Any) -> Gpus:
    return several(state)


def held_by(*pids: int, **changes: Any) -> dict[str, Any]:
    processes = tuple(GpuProcess(pid=pid, used_memory_bytes=None) for pid in pids)
    return {"memory_used_bytes": 2 * GIB, "processes": processes, **changes}


def user(observed: str, brief: str, **changes: Any) -> Row:
    return fails(several(held_by(**{"processes": (), **changes})), said={GPU0: observed}, briefs=[brief])


ONE = (GpuProcess(pid=1, used_memory_bytes=None),)
USED = "2048 MiB of 79.6 GiB used"
FULL = {"memory_used_bytes": 40 * GIB}
QUARTER = {"memory_total_bytes": 80 * GIB, "memory_used_bytes": 20 * GIB, "graphics_processes": DESKTOP}
BIG = {"memory_used_bytes": 31 * GIB, "processes": (GpuProcess(pid=4711, used_memory_bytes=30 * GIB), *ONE)}

test_free = table(
    "gpu.free",
    Severity.ERROR,
    passes(gpus(2), "4 MiB of 79.6 GiB", briefs=["all free"] * 2),
    passes(gpus(1), briefs=["free"]),
    fails(
        one(**BIG),
        "31.0 GiB of 79.6 GiB used, in use by processes 4711 (30.0 GiB), 1.",
        "Rollback: not possible",
        "; ps -o pid,user,lstart,args -p 1,4711.",
        commands=(),
    ),
    passes(one(processes=ONE), {"allow_processes": True}),
    fails(one(memory_used_bytes=1024 * MIB + 1), expected="no compute process, and at most 1024 MiB used"),
    unknown(gpus(2, gpu(0), lost_gpu(1)), of=["GPU 1"], evidence=1),
    unknown(several({"memory_used_bytes": None}, {}), of=[GPU0], evidence=1),
    *(unknown(one(processes=None, memory_total_bytes=size)) for size in (80 * GIB, None)),
    skips(gpus(0)),
    user(f"{USED}, in use by process 1", "in use by process 1 (2048 MiB used)", processes=ONE),
    user(
        f"{USED}, in use by processes 1, 2",
        "in use by 2 processes (2048 MiB used)",
        processes=(*ONE, GpuProcess(pid=2, used_memory_bytes=None)),
    ),
    user(f"{USED}, no compute process listed", "memory in use, no compute process listed (2048 MiB used)"),
    user(
        "30.0 GiB of 79.6 GiB used, processes not read",
        "memory in use (30.0 GiB used)",
        processes=None,
        memory_used_bytes=30 * GIB,
    ),
    user("used memory not read, in use by process 1", "in use by process 1", processes=ONE, memory_used_bytes=None),
    user(
        f"{USED}, in use by process 1", "in use by process 1 (2048 MiB used)", processes=ONE, graphics_processes=DESKTOP
    ),
    user(
        "30.0 GiB of 79.6 GiB used, in use by a desktop: Xorg",
        "in use by a desktop (30.0 GiB used)",
        memory_used_bytes=30 * GIB,
        graphics_processes=DESKTOP,
    ),
    user(
        "2048 MiB used, no compute process listed",
        "memory in use, no compute process listed (2048 MiB used)",
        memory_total_bytes=None,
    ),
    # Whose memory it is differs from GPU to GPU.
    fails(
        several({"processes": ONE, "memory_used_bytes": 2 * GIB}, {"memory_used_bytes": 30 * GIB}),
        briefs=["in use by process 1 (2048 MiB used)", "memory in use, no compute process listed (30.0 GiB used)"],
    ),
    # A desktop may use a quarter of the memory.
    passes(one(**QUARTER), "Xorg"),
    fails(one(**{**QUARTER, "memory_used_bytes": 20 * GIB + 1})),
    # Whose memory it is, is not known, or it is not only the desktop's.
    unknown(one(**QUARTER, processes=None), "processes not read"),
    fails(one(**QUARTER, processes=ONE), {"allow_processes": True}),
    fails(one(**{**QUARTER, "graphics_processes": ()})),
    # All have the same short form and the same commands.
    fails(
        several(held_by(11, memory_used_bytes=30 * GIB), held_by(11, memory_used_bytes=20 * GIB)),
        briefs=["in use by process 11 (20.0 GiB to 30.0 GiB used)"] * 2,
    ),
    fails(several({**FULL, "graphics_processes": DESKTOP}, FULL), briefs=["in use by a desktop (40.0 GiB used)"] * 2),
    fails(several({**FULL, "processes": None}, FULL), briefs=["memory in use (40.0 GiB used)"] * 2),
    fails(
        several(*({"memory_used_bytes": size * MIB} for size in (4096, 2048, 3072))),
        briefs=["memory in use, no compute process listed (2048 MiB to 4096 MiB used)"] * 3,
    ),
)

LOST = {"handle": "GpuIsLost"}
IS_LOST = {"name": "NVML_ERROR_GPU_IS_LOST"}
HANGS = {"power_draw_w": "no answer within 8 s"}


def xid(code: int) -> str:
    return f"[ 7.0] NVRM: Xid (PCI:{bus_id(1)[:-2]}): {code}, pid=1, text"


def with_errors(errors: dict[str, str], **changes: Any) -> Gpus:
    return several({}, {"errors": errors, **changes}, {}, {})


def lost_at(*addresses: str) -> Gpus:
    """The second and the fourth of four GPUs, and the addresses of the other two."""
    first, third = addresses
    return gpus(4, gpu(0, bus_id=first), Gpu(index=1, errors=LOST), gpu(2, bus_id=third), Gpu(index=3, errors=LOST))


test_responding = table(
    "gpu.responding",
    Severity.ERROR,
    passes(one(name=None), "responds (name not read)."),
    fails(gpus(4, gpu(0), lost_gpu(1), gpu(2), gpu(3)), "GpuIsLost", of=[GPU1], commands=("sudo reboot",), evidence=3),
    *(
        fails(with_errors({field: error}), of=[GPU1])
        for field, error in (
            ("performance_state", "ERR!"),
            ("performance_state", "Unknown Error"),
            ("memory_used_bytes", "GPU requires reset"),
            ("memory_used_bytes", "NVML_ERROR_GPU_IS_LOST"),
            ("memory_used_bytes", "NVML_ERROR_RESET_REQUIRED"),
            ("memory_used_bytes", "GPU is lost"),
        )
    ),
    fails(with_errors(dict.fromkeys(("temperature_c", "power_draw_w"), "ERR!")), of=[GPU1]),
    passes(with_errors({"temperature_c": "ERR!", "power_draw_w": "N/A"})),
    fails(
        with_errors({"memory_used_bytes": "NVML_ERROR_RESET_REQUIRED"}),
        "  does not respond until it is reset.",
        commands=(f"sudo nvidia-smi --gpu-reset -i {bus_id(1)}",),
    ),
    fails(
        with_errors(HANGS, power_draw_w=None),
        "power draw is read (no answer within 8 s)",
        "  hangs (power draw).",
        f"sudo nvidia-smi --gpu-reset -i {bus_id(1)}",
    ),
    fails(with_errors({"handle": "Unknown Error"}), logged(xid(119)), "  cannot be opened (Unknown Error) (Xid 119)."),
    fails(with_errors(IS_LOST), logged(xid(79)), "; kernel log: Xid 79", "  lost, fell off the bus (Xid 79)."),
    fails(
        with_errors(IS_LOST),
        logged(xid(79), f"NVRM: GPU {bus_id(1)}: GPU has fallen off the bus."),
        "  lost, fell off the bus (Xid 79).",
    ),
    fails(
        with_errors(IS_LOST), logged(f"NVRM: GPU {bus_id(1)}: GPU has fallen off the bus."), "  lost, fell off the bus."
    ),
    fails(with_errors({**IS_LOST, **HANGS}), "  lost."),
    fails(with_errors(IS_LOST), logged(f"NVRM: Xid (PCI:{bus_id(0)[:-2]}): 79, fell"), "  lost."),  # another GPU's Xid
    *(
        fails(with_errors({"handle": error}, name=None), error, of=[GPU1])
        for error in ("NVML_ERROR_UNKNOWN", "Unknown Error", "Not Found", "InsufficientPower")
    ),
    *(
        unknown(with_errors({"handle": error}, name=None), error, of=[GPU1])
        for error in ("NVML_ERROR_NO_PERMISSION", "NVML_ERROR_OPERATING_SYSTEM")
    ),
    # Recorded: a truncated file with ``attached_gpus`` 4 and one ``<gpu>`` element.
    unknown(gpus(1, count=4), "NVML counts 4, but 1 were read."),
    unknown(gpus(1, count=None)),
    *(
        unknown(one(name=None, uuid=None, bus_id=None, errors=errors), f"({why}).")
        for errors, why in (({"name": "A", "uuid": "B"}, "A"), ({"uuid": "B"}, "B"), ({}, "no reason given"))
    ),
    fails(
        {Gpus: "no driver"},
        pci(2, pci_gpu(0), pci_gpu(1, responds=False)),
        of=[f"GPU at {bus_id(1)}"],
        commands=("sudo reboot",),
    ),
    fails(
        {Gpus: "no driver"},
        pci(2, pci_gpu(0), pci_gpu(1, driver=None, regions_without_address=1)),
        "Above 4G decoding",
        of=[f"GPU at {bus_id(1)}"],
    ),
    unknown({Gpus: "no driver"}, pci(2, pci_gpu(0), pci_gpu(1, regions_without_address=1))),  # a driver has started it
    unknown({Gpus: "no driver"}, pci(2)),
    fails(gpus(2, gpu(0), gpu(1, errors=IS_LOST)), pci(2, pci_gpu(0), pci_gpu(1, responds=False)), of=[GPU1]),
    # Lost GPUs without an address have those that remain, in the order of the bus.
    fails(lost_at(bus_id(0), bus_id(2)), of=[GPU1, GPU3]),
    fails(lost_at(bus_id(2), bus_id(0)), "fail GPU 1: ", "fail GPU 3: "),
    given=(gpus(4), pci(4)),
)


@pytest.mark.parametrize("broken", [lost_gpu(7), gpu(7, power_draw_w=None, processes=None, errors=HANGS)])
def test_lost_gpu_is_the_only_cause(broken: Gpu) -> None:
    found = gpus(8, *(gpu(index) for index in range(7)), broken)
    judging = {"gpu.responding", "gpu.count-expected", "gpu.replicas-match"}
    for check in checks():
        if check.family in {"driver", "gpu", "topology", "host"} and check.id not in judging:
            result = compute_check(check, *h100_node(8), found)
            others: list[Finding | Unjudged] = [*result.unjudged, *(item.finding for item in result.findings)]
            assert {item.explained_by for item in others} <= {("gpu.responding",)}, (check.id, result.reason)


def answers(*seconds: float | None) -> Gpus:
    return several(*({"answers_s": taken} for taken in seconds))


test_response_time = table(
    "gpu.response-time",
    Severity.WARNING,
    fails(answers(0.9, 0.04, 0.05, 0.9), of=[GPU0, GPU3]),
    # 3 s, and five times the median of the others, are the limits; half a second is not slow.
    passes(answers(3.0)),
    passes(answers(0.04, 0.5)),
    fails(answers(4.0, 0.04, 0.04), "the driver took 4 s to answer all calls; median of the others: 0.04 s."),
    fails(answers(4.0), "the driver took 4 s to answer all calls."),
    unknown(answers(0.04, None)),
    skips(answers(None, None)),
    unknown(gpus(2, gpu(0), lost_gpu(1)), explained_by=["gpu.responding"]),
)

OLD = {"sram_threshold_exceeded": "NVML_ERROR_FUNCTION_NOT_FOUND", "recovery_action": "NVML_ERROR_INVALID_ARGUMENT"}
MANY = {f"field_{number}": "Unknown Error" for number in range(7)}

test_readings = table(
    "gpu.readings",
    Severity.WARNING,
    passes(one(errors={}), said={GPU0: "all readings succeeded"}),
    # Recorded: "Addressing Mode: Unknown Error" on eight RTX 4090.
    unknown(
        one(errors={"addressing_mode": "Unknown Error", "mig_mode": NOT_SUPPORTED}), "addressing mode (Unknown Error)."
    ),
    unknown(one(name=None, errors={"name": "Unknown Error"}), said={GPU0: "not read: name (Unknown Error)"}),
    unknown(one(name=None, errors={}), said={GPU0: "nothing about it was read"}),
    fails(
        several({"errors": {}}, {"errors": {"power_draw_w": "ERR!"}}), briefs=["ERR! for its power draw", ""], of=[GPU1]
    ),
    unknown(one(errors=OLD), "too old", "SRAM threshold exceeded, recovery action."),
    unknown(one(errors=MANY), "field 3 (Unknown Error) and 3 more."),
    unknown(gpus(1, not_understood=("q.txt: Frobnication: Failed",)), "Frobnication: Failed", of=1),
    *(
        fails(
            several({"name": None, "errors": {}}, {"errors": {"inforom": error}}, {}, {}),
            of=[GPU1],
            unjudged=[GPU0],
            evidence=2,
        )
        for error in ("infoROM is corrupted", "NVML_ERROR_CORRUPTED_INFOROM", "CorruptedInforom")
    ),
)

SMALL = {"bar1_total_bytes": 256 * MIB}
NO_BAR = {"bar1_total_bytes": None, "errors": {"bar1_total_bytes": NOT_SUPPORTED}}
TURING = {"architecture": "Turing", **SMALL}


def card(name: str | None, architecture: str | None = None, capability: str | None = None, **change: Any) -> Gpus:
    return one(name=name, architecture=architecture, compute_capability=capability, **{**SMALL, **change})


test_resizable_bar = table(
    "gpu.resizable-bar",
    Severity.INFO,
    fails(one(**SMALL), "BAR1 is 256 MiB", "79.6 GiB", look=("nvidia-smi -q -d MEMORY",)),
    unknown(several({}, {}, {"bar1_total_bytes": None}), of=[GPU2]),
    unknown(several({}, {}, {"memory_total_bytes": None}), of=[GPU2]),
    skips(several(NO_BAR, NO_BAR), H100, unsaid="no resizable BAR"),
    skips(gpus(0), reason="the driver lists no GPU"),
    skips(
        several({"name": "Tesla T4", **TURING}, {"name": None, **TURING}),
        reason="no resizable BAR is known for Tesla T4, this model",
    ),
    skips(card("NVIDIA GeForce GTX 1660 Ti")),
    skips(card("Quadro P400")),
    skips(card("NVIDIA GeForce RTX 2080 SUPER", "Turing")),
    skips(card("Tesla T4", None, "7.5")),
    skips(card(H100, None, "7.5")),
    skips(card(None)),
    fails(card(H100, None, "8.0")),  # Ampere's
    fails(card("NVIDIA RTX PRO 6000 Blackwell Workstation Edition")),
    passes(card("Tesla T4", "Turing", bar1_total_bytes=81559 * MIB)),
)
