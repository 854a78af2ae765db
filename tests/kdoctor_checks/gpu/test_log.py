"""The checks of what the kernel logged about GPUs."""

from collections.abc import Sequence
from typing import Any

from helpers.facts import bus_id, gpu, gpus, log, logged, lost_gpu, no_driver, pci
from helpers.rows import Row, fails, passes, skips, table, unknown, unrecorded
from kdoctor.facts import Gpus, KernelLog, KernelLogEvent, NvLink, PciDevices
from kdoctor.model import Action, Severity
from kdoctor_checks import _xids
from kdoctor_checks.gpu._recovery import is_reset, recovery

ADDRESS = bus_id(1)
GPU0, GPU1, GPU2 = (gpu(index).subject for index in range(3))
RESET = f"sudo nvidia-smi --gpu-reset -i {ADDRESS}"
ALONE = {Gpus: "not in the log", PciDevices: "not in the log"}
LOST = gpus(4, gpu(0), lost_gpu(1), gpu(2), gpu(3))
FATAL = "NVRM: nvGpuOpsReportFatalError: uvm encountered global fatal error 0x60, requiring os reboot"
NO_ADDRESS = "NVRM: nvAssertOkFailedNoLog: Reset required [NV_ERR_RESET_REQUIRED] (0x62) @ kernel_channel.c:2874"
OWNED = "NVRM: The NVIDIA probe routine was not called for 3 device(s)."
SEGFAULT = "python[7]: segfault at 7f3c00 ip 00007f3c8a sp 00007ffd1b error 4 in libnccl.so.2[7f3c8a0+5d2000]"
ENDED = f"nvidia {ADDRESS}: AER: can't recover (no error_detected callback)"
HEARTBEAT = "NVRM: GPU6 _kgspIsHeartbeatTimedOut: Heartbeat timed out, diff 6070 timeout 5200"
UNKNOWN = "NVRM: an assertion failed somewhere"


def xid(code: int, rest: str = "pid=1, name=python", index: int = 1) -> str:
    return f"[ 12.5] NVRM: Xid (PCI:{bus_id(index)[:-2]}): {code}, {rest}"


def xids(*codes: int) -> KernelLog:
    return logged(*map(xid, codes))


def asked(action: str) -> str:
    return xid(154, f"pid=1, GPU recovery action changed from 0x0 (None) to 0x1 ({action})")


def event(kind: Any, address: str | None = None, code: int | None = None) -> KernelLogEvent:
    return KernelLogEvent(kind=kind, bus_id=address, code=code, text=f"{kind} {code}")


FELL, XID_79, HUNG = event("fallen-off-the-bus", ADDRESS), event("xid", ADDRESS, 79), event("uvm-fatal")


def explained(codes: Sequence[int], explained_by: str, **state: Any) -> Row:
    """A failure of a GPU in this state."""
    lines = [asked("GPU Reset Required") if code == 154 else xid(code) for code in codes]
    found = gpus(4, gpu(0), gpu(1, **state), gpu(2), gpu(3))
    return fails(logged(*lines), found, of=[GPU1], explained_by=[explained_by])


INVALID = "NVRM: This PCI I/O region assigned to your NVIDIA device is invalid:"
FAILED = (
    f"nvidia: probe of {ADDRESS} failed with error -1",
    "NVRM: The NVIDIA probe routine failed for 1 device(s).",
    "NVRM: None of the NVIDIA devices were initialized.",
)
UNSUPPORTED = (
    f"NVRM: The NVIDIA GPU {ADDRESS} (PCI ID: 10de:1f99)",
    "NVRM: installed in this system is not supported by open nvidia.ko because it does not include the required GSP.",
)
NOT_SUPPORTED = "this driver does not support the GPU"
PROPRIETARY = (NOT_SUPPORTED, "Install the proprietary kernel modules")
FIRMWARE = (  # of NVIDIA/open-gpu-kernel-modules#263; the second line is of later releases
    f"nvidia {ADDRESS}: Direct firmware load for nvidia/515.43.04/gsp.bin failed with error -2",
    "NVRM: RmFetchGspRmImages: No firmware image found",
)
CRASH = ("NVIDIA's driver crashed in the kernel", "Restart the machine, and install a driver release")
HANG = ("a program waits in NVIDIA's driver without end", "Restart the machine: such a program cannot be killed")
MESSAGES = (
    (
        (INVALID, f"NVRM: BAR1 is 0M @ 0x0 (PCI:{ADDRESS})", *FAILED),
        [GPU1],
        "the firmware gave the GPU no address space",
        "Give the GPU address space",
    ),
    ((INVALID,), ["kernel log"], "the firmware gave the GPU no address space", "Give the GPU address space"),
    ((*UNSUPPORTED, *FAILED), [GPU1], *PROPRIETARY),
    (
        (UNSUPPORTED[0], "NVRM: in this system is not supported by the 280.13 NVIDIA Linux", *FAILED),
        [GPU1],
        NOT_SUPPORTED,
        "Install a newer driver",
    ),
    (
        (UNSUPPORTED[0], "NVRM: supported through the NVIDIA 470.xx Legacy drivers."),
        [GPU1],
        NOT_SUPPORTED,
        "Install the",
    ),
    (
        (f"pci {ADDRESS}: [10de:2204] type 00 class 0x030000", f"pci {ADDRESS}: BAR 1: failed to assign [mem size 9]"),
        [GPU1],
        "the firmware gave the GPU no address space",
        "Give the GPU address space",
    ),
    # A failure of the firmware comes first, and a program's time-out follows from it.
    (
        (HEARTBEAT,),
        ["kernel log"],
        "GSP firmware failed (GPU6 in the log)",
        "Restart the machine. If it returns, install",
    ),
    ((HEARTBEAT, xid(109)), [GPU1], "GSP firmware failed (GPU6 in the log)", "Stop all processes on the GPU"),
    (("NVRM: No NVIDIA GPU found.",), ["kernel log"], "GPU initialization failed", "If lspci lists an NVIDIA GPU"),
    ((xid(120), xid(109)), [GPU1], "Xid 120 (GSP Error)", "Stop all processes on the GPU"),
    ((xid(38), xid(109)), [GPU1], "Xid 38 (Driver firmware error)", "Stop all processes on the GPU"),
    ((xid(109), xid(38)), [GPU1], "Xid 109 (Context Switch Timeout Error)", "Stop all processes on the GPU"),
    ((xid(109), xid(120)), [GPU1], "Xid 109 (Context Switch Timeout Error), Xid 120 (GSP Error)", "Stop all"),
    (
        (f"NVRM: GPU {ADDRESS}: RmInitAdapter failed! (0x24:0x72:1568)",),
        [GPU1],
        "GPU initialization failed",
        "Switch the",
    ),
    (
        (f"NVRM: GPU {ADDRESS}: GPU does not have the necessary power cables connected.", *FAILED),
        [GPU1],
        "a power cable is not connected",
        "Connect all power cables",
    ),
    ((*FIRMWARE, *FAILED), [GPU1], "the driver's GSP firmware is not installed", "Install the package with the GSP"),
    (("NVRM: Open nvidia.ko is only ready for use on Data Center GPUs.", *FAILED), [GPU1], *PROPRIETARY),
    (("BUG: unable to handle page fault for address: 9", "RIP: 0010:_nv0+0x2c/0x330 [nvidia]"), ["kernel log"], *CRASH),
    (("INFO: task a:9 blocked for more than 120 seconds.", "? uvm_b+0x3c/0x5a0 [nvidia_uvm]"), ["kernel log"], *HANG),
    (
        ("Oops: 0000 [#1] SMP", f"BUG: kernel NULL pointer {9:04}", "CPU: 5 PID: 9 Comm: nv_queue"),
        ["kernel log"],
        *CRASH,
    ),
    (("usercopy: Kernel memory exposure of SLUB object 'nvidia_stack_cache' (offset 9)!",), ["kernel log"], *CRASH),
)

test_kernel_log = table(
    "gpu.kernel-log",
    Severity.ERROR,
    passes(log(), "2048 lines of /dev/kmsg, complete"),
    skips(logged("usb 1-1: new device"), *no_driver()),
    passes(logged(FIRMWARE[0])),  # the module went on without it
    *(
        skips(log(**changes), "driver.kernel-log")
        for changes in ({"complete": False}, {"complete": None}, {"lines": 0})
    ),
    skips(KernelLog, "driver.kernel-log"),
    *(fails(xids(code), f"Xid {code} (", of=[GPU1], evidence=0) for code in (48, 64, 74, 79, 95, 119, 120, 149)),
    *(passes(xids(code)) for code in (13, 31, 43, 45, 63, 94)),
    *(
        fails(logged(line))
        for line in (
            "NVRM: GPU 0000:20:00.0: GPU has fallen off the bus.",
            "NVRM: GPU 0000:20:00.0: RmInitAdapter failed! (0x62:0x40:2421)",
            "NVRM: GPU0 _kgspRpcRecvPoll: 0000:20:00.0 GSP RPC timeout",
        )
    ),
    # Recorded with an RTX 5090, an eGPU and a V100 that nouveau owned.
    fails(logged(NO_ADDRESS), commands=("sudo reboot",), of=["kernel log"], explained_by=[""]),
    fails(logged(OWNED), "Fix: ", "sudo modprobe -r nouveau", explained_by=["driver.loaded"]),
    fails(logged(OWNED, FATAL), commands=("sudo reboot",)),
    fails(  # a failure without an address may be of either
        logged(xid(79, index=1), xid(79, index=2), NO_ADDRESS), of=[GPU1, GPU2, "kernel log"]
    ),
    fails(  # the driver's own words besides the Xid
        logged(xid(48), f"NVRM: GPU {ADDRESS}: RmInitAdapter failed! (0x62:0x40:2421)"),
        gpus(2, gpu(0), gpu(1, ecc_uncorrected_volatile=1)),
        explained_by=[""],
    ),
    fails(
        logged(*map(xid, (48, 95, 95)), xid(119, index=2)),
        f"fail {GPU1}: Xid 48 (",
        "), Xid 95 (",
        ") x2;",
        of=[GPU1, GPU2],
    ),
    fails(xids(119), ALONE, of=[f"GPU at {ADDRESS}"], explained_by=[""]),
    # What frames the Xid is not another failure.
    fails(logged("NVRM: _kgspLogXid119: ***** GSP Timeout *****", xid(119), xid(119, index=2)), of=[GPU1, GPU2]),
    fails(
        logged(xid(48, index=1), xid(95, index=2)), commands=(f"sudo nvidia-smi --gpu-reset -i {ADDRESS},{bus_id(2)}",)
    ),
    # A message that is its own cause: lines, subjects, brief, and fix.
    *(fails(logged(*lines), f"Fix: {fix}", of=of, briefs=[brief] * len(of)) for lines, of, brief, fix in MESSAGES),
    # NVIDIA's catalog has the fix of each Xid, and Xid 154 sums up what those before it need.
    fails(logged(xid(79), asked("GPU Reset Required")), commands=(RESET,)),
    fails(logged(asked("Node Reboot Required"), asked("GPU Reset Required")), commands=(RESET,)),
    fails(xids(79, 95), commands=("sudo reboot",)),  # the stronger one
    fails(xids(78), "; nvidia-smi;", commands=()),  # UPDATE_SWFW
    fails(xids(54), "; sudo nvidia-bug-report.sh", commands=()),  # CHECK_MECHANICALS
    fails(xids(12), "; sudo nvidia-bug-report.sh;", commands=()),  # CONTACT_SUPPORT
    fails(xids(79), LOST, of=[GPU1], explained_by=["gpu.responding"]),
    fails(xids(79), gpus(3, gpu(0), gpu(2), gpu(3)), of=[f"GPU at {ADDRESS}"], explained_by=["gpu.visible-to-driver"]),
    explained((48, 95), "gpu.ecc-errors", ecc_uncorrected_volatile=1),
    explained((48, 95), ""),
    explained((48,), "gpu.ecc-errors", ecc_uncorrected_volatile=1, recovery_action="reset"),
    explained((64,), "gpu.row-remapping", remapped_rows_failure=True),
    explained((48, 74), "", ecc_uncorrected_volatile=1),
    explained((74,), "topology.nvlink, topology.nvlink-direct", nvlinks=(NvLink(index=0, active=False),)),
    explained((154,), "gpu.recovery-action", recovery_action="reset"),
    explained((119,), "", recovery_action="reset"),
    *(
        unknown(logged(f"[ 12.5] {line}"), line)
        for line in (
            "nvidia-peermem nv_get_p2p_free_callback:127 ERROR detected invalid context, skipping further processing",
            UNKNOWN,
            "NVRM: Xid (a form that is not known)",
            "nouveau 0000:01:00.0: fifo: fault 01 [VIRT_WRITE] failed",
        )
    ),
    unknown(logged(UNKNOWN, UNKNOWN), f"2 unknown messages of a driver, such as {UNKNOWN!r}."),
    unknown(xids(999), "Xid 999 not explained in NVIDIA's catalog (Xid 999", of=[GPU1]),
    *(
        passes(logged(f"[ 12.5] {line}"))
        for line in (
            "NVRM: loading NVIDIA UNIX Open Kernel Module for x86_64  580.105.08",
            "NVRM: gpuClearFbhubPoisonIntrForBug2924523_GA100: FBHUB Interrupt detected. Clearing it.",  # every H100
            "nvidia-nvlink: Nvlink Core is being initialized, major device number 239",
            "nvidia-uvm: Loaded the UVM driver, major device number 511.",
            "nouveau 0000:01:00.0: NVIDIA GP107 (137000a1)",
        )
    ),
    # Failures without an address belong to the only GPU that failed.
    fails(log(HUNG), of=["kernel log"]),
    fails(log(HUNG, event("xid", code=79)), of=["a GPU without address in the log"]),
    fails(log(FELL, XID_79, HUNG), of=[GPU1]),
    fails(logged(xid(79), NO_ADDRESS), "calls fail until the GPU is reset", of=[GPU1]),
    fails(logged(xid(79), OWNED, NO_ADDRESS), "fail kernel log: another driver owns the GPU", of=[GPU1, "kernel log"]),
    fails(logged("pcieport 0000:00:03.0: AER: Uncorrected (Fatal) error received: 0000:00:03.0", ENDED), of=[GPU1]),
    passes(logged("pcieport 0000:00:03.0: AER: Uncorrected (Non-Fatal) error received: 0000:00:03.0", ENDED)),
    fails(logged(ENDED, "pcieport 0000:00:03.0: AER: device recovery failed"), "riser", of=[GPU1]),
    passes(log(event("version-mismatch"))),  # the driver was read
    fails(
        log(event("not-probed"), event("init-failed")), commands=("sudo modprobe -r nouveau", "sudo modprobe nvidia")
    ),
    fails(log(event("not-probed"), event("version-mismatch")), unrecorded(Gpus), commands=("sudo reboot",)),
    fails(log(event("version-mismatch")), unrecorded(Gpus), look=("cat /proc/driver/nvidia/version", "nvidia-smi")),
    given=(gpus(4), pci(4)),
)

test_application_xids = table(
    "gpu.application-xids",
    Severity.INFO,
    *(fails(xids(code), of=[GPU1], explained_by=[""]) for code in (13, 31, 43, 45)),
    *(passes(xids(code)) for code in (48, 63, 79, 154)),
    fails(xids(48, 31), of=[GPU1], explained_by=["gpu.kernel-log, gpu.responding"]),  # it came after the failure
    fails(xids(31, 48), of=[GPU1], explained_by=[""]),
    fails(xids(31, 13, 31), briefs=["a program failed (Xid 31, 13), usually not the hardware"]),
    fails(logged(SEGFAULT), ALONE, of=["kernel log"], briefs=["a program crashed, not a GPU (libnccl.so.2)"]),
    fails(logged(SEGFAULT, xid(79)), of=["kernel log"], explained_by=["gpu.kernel-log, gpu.responding"]),
    passes(logged(SEGFAULT.replace("libnccl.so.2", "libc.so.6"))),
    fails(xids(92), briefs=["Xid 92 (High single-bit ECC error rate), for which NVIDIA asks nothing now"]),
    fails(xids(92, 31), briefs=["a program failed (Xid 31), usually not the hardware"]),
    fails(xids(16), briefs=["the display failed (Xid 16), which no training uses"]),
    fails(xids(16, 31), briefs=["a program failed (Xid 31), usually not the hardware"]),
    fails(
        log(
            KernelLogEvent(kind="program-crash", text=SEGFAULT, library="libnccl.so.2"),
            KernelLogEvent(kind="xid", code=31, text="Xid 31"),
        ),
        of=["a GPU without address in the log"],
    ),
    fails(xids(43, 45, 79), explained_by=["gpu.kernel-log, gpu.responding"]),  # they follow when the GPU fell off
    fails(xids(13, 79), explained_by=[""]),  # 13 is an error of the program
    fails(log(event("xid", code=43), event("xid", code=79)), explained_by=[""]),  # perhaps of two GPUs
    fails(logged(xid(43), xid(79, index=0)), of=[GPU1], explained_by=[""]),
    unknown(xids(999), "unknown kernel log: Xid 999 "),
    unknown(logged("NVRM: Xid (a form that is not known)"), explained_by=["gpu.kernel-log"]),
    unknown(logged(*[UNKNOWN] * 51), explained_by=["gpu.kernel-log"]),  # the texts of some are not kept
    passes(logged(UNKNOWN)),
    given=(gpus(2),),
)

SILENT = gpu(1, remapped_rows_pending=None, retired_pages_pending=None)

test_logged_remapping = table(
    "gpu.logged-remapping",
    Severity.WARNING,
    passes(xids(13), of=["kernel log"]),
    fails(xids(63), gpus(2, gpu(0), SILENT), commands=(RESET,), explained_by=[""]),
    fails(logged(xid(63, index=0), xid(94)), gpus(2, gpu(0), SILENT), pci(2), f"pass {GPU0}", of=[GPU1], evidence=1),
    skips(xids(63, 48), ALONE),
    given=(gpus(2),),
)


def test_reset_of_all_gpus_leaves_out_one_whose_message_has_another_fix() -> None:
    no_power = KernelLogEvent(kind="no-power", bus_id=ADDRESS, text="no power")
    assert is_reset(xids(95).events)
    assert not is_reset((*xids(95).events, no_power))


def test_reset_names_the_gpu_and_needs_its_address() -> None:
    """NVIDIA's catalog: Xid 95, an uncontained memory error, needs a reset."""
    remedy, _ = recovery(ADDRESS, xids(95).events, [ADDRESS])
    assert (remedy.commands, remedy.action) == ((RESET,), Action.REBOOT)
    without, _ = recovery(None, xids(95).events, [])
    assert not any("--gpu-reset" in command for command in without.commands)
    again, _ = recovery(ADDRESS, logged(xid(95), asked("None")).events, [ADDRESS])  # after a reset
    assert again.commands == (RESET,)


def test_xid_without_a_code_has_no_meaning() -> None:
    assert _xids.meaning(KernelLogEvent(kind="xid", text="NVRM: Xid (PCI:0000:10:00)")) == ""
