import os
from pathlib import Path

import pytest

from helpers.cases import cases
from helpers.machine import context, write
from kdoctor.facts import KernelLog, KernelLogEvent, KernelLogKind, Unavailable
from kdoctor.probes.kernel_log import collect, parse_log


def events(*lines: str) -> tuple[KernelLogEvent, ...]:
    return parse_log(lines, source="a test").events


def event(line: str) -> KernelLogEvent:
    (found,) = events(line)
    return found


XID = "NVRM: Xid (PCI:0000:9b:00): 119, pid=2024380, name=nvidia-smi, Timeout after 6s of waiting for RPC response"


@cases(
    ("", None, None),
    ("4,812,75000250,-;", 75.00025, None),
    ("[ 1843.308145] ", 1843.308145, None),
    ("kern  :err   : [ 1843.308145] ", 1843.308145, None),
    ("[Sun Feb 23 16:24:18 2025] ", None, "Sun Feb 23 16:24:18 2025"),
    ("2024-11-15T05:39:15,491363+00:00 ", None, "2024-11-15T05:39:15,491363+00:00"),
    ("2025-06-02T13:13:04+0200 node17 kernel: ", None, "2025-06-02T13:13:04+0200"),
    ("Feb 23 16:24:18 node17 kernel: ", None, "Feb 23 16:24:18"),
    ("Feb  3 16:24:18 node17 kernel: [   12.500000] ", 12.5, "Feb  3 16:24:18"),
    ("kern  :err   : [Sun Feb 23 16:24:18 2025] ", None, "Sun Feb 23 16:24:18 2025"),
    ("<4>Feb 23 16:24:18 node17 kernel: [   12.500000] ", 12.5, "Feb 23 16:24:18"),
    ("Sun 2025-02-23 16:24:18 UTC node17 kernel: ", None, "Sun 2025-02-23 16:24:18 UTC"),
)
def test_line_formats_are_parsed(prefix: str, boot_s: float | None, time: str | None) -> None:
    assert event(prefix + XID) == KernelLogEvent(
        kind="xid", text=XID, bus_id="0000:9b:00.0", code=119, boot_s=boot_s, time=time
    )


@cases(
    ("NVRM: Xid (PCI:0008:01:00): 48, pid=1, An uncorrectable double bit error", "xid", "0008:01:00.0", 48),
    ("NVRM: Xid (PCI:0000:01:00 GPU-I:05): 94, pid=7194, Contained: CE User Channel", "xid", "0000:01:00.0", 94),
    ("NVRM: Xid (0000:03:00): 62, 00000000 0000", "xid", "0000:03:00.0", 62),
    ("nvidia-nvswitch3: SXid (PCI:0000:86:00.0): 12028, Non-fatal, Link 32", "sxid", "0000:86:00.0", 12028),
    ("NVRM: nvCheckOk: GPU lost from the bus [NV_ERR_GPU_IS_LOST] (0xF)", "fallen-off-the-bus", None, None),
    ("NVRM: GPU 0000:09:00.0: GPU has fallen off the bus.", "fallen-off-the-bus", "0000:09:00.0", None),
    ("DMAR: [DMA Write] Request device [02:00.0] fault addr cd139000", "iommu-fault", "0000:02:00.0", None),
    ("DMAR: [DMA Read NO_PASID] Request device [17:00.0] fault addr 0x0", "iommu-fault", "0000:17:00.0", None),
    ("nvidia 0000:21:00.0: AMD-Vi: Event logged [IO_PAGE_FAULT domain=0x12]", "iommu-fault", "0000:21:00.0", None),
    ("NVRM: GPU 0000:01:00.0: RmInitAdapter failed! (0x26:0x56:1474)", "init-failed", "0000:01:00.0", None),
    ("NVRM: GPU1 kgspWaitForRmInitDone: GSP timed out", "gsp-failed", None, None),
    ("nvidia-uvm: request_free_mem_region() err -34", "hmm-failed", None, None),
    ("[<00000000c2d3e1b5>] nvidia_isr [nvidia] threaded [<00000000f4c1aa27>] x [nvidia]", "unclassified", None, None),
    ("NVRM: API mismatch: the client has the version 580.178, but", "version-mismatch", None, None),
    ("python3[7]: segfault at 10 ip 0a sp 0b error 4 in libnccl.so.2[7f+5d]", "program-crash", None, None),
    ("traps: python[7] trap divide error ip:7f1 sp:7ff error:0 in libcuda.so.1[7f+5d]", "program-crash", None, None),
    (
        "python3[7]: unhandled exception: DABT (lower EL), ESR 0x92000046, in libcudnn.so.9[ffff+5d]",
        "program-crash",
        None,
        None,
    ),
    ("Loading of unsigned module is rejected", "module-rejected", None, None),
    ("Lockdown: modprobe: unsigned module loading is restricted; see man", "module-rejected", None, None),
    ("could not insert 'nvidia': Operation not permitted", "module-rejected", None, None),
    ("modprobe: ERROR: could not insert 'nvidia': No such device", "module-rejected", None, None),
    ("Error inserting nvidia (/lib/modules/6.8/nvidia.ko): Invalid module format", "module-rejected", None, None),
    ("(EE) NVIDIA: Failed to load the NVIDIA kernel module. Please check", "module-rejected", None, None),
    ("modpost: GPL-incompatible module nvidia.ko uses GPL-only symbol a", "module-rejected", None, None),
    ("INFO: task nvidia-smi:6067 blocked for more than 120 seconds.", "driver-hang", None, None),
    ("Consult /var/lib/dkms/nvidia/470.256.02/build/make.log for more information.", "module-rejected", None, None),
    ("dkms autoinstall on 6.8.10-300.fc40.x86_64/x86_64 failed for nvidia(10)", "module-rejected", None, None),
    ("modprobe: FATAL: Module nvidia not found in directory /lib/modules/6.8", "module-rejected", None, None),
    ("ERROR: The kernel module failed to load, because it was not signed by a key", "module-rejected", None, None),
    ("vfio-pci 0000:01:00.0: Unable to change power state from D3cold", "pcie-error", "0000:01:00.0", None),
    ("NVRM: GPU6 RPC event history (CPU <- GSP):", "gsp-failed", None, None),
    ("NVRM: kfspPollForResponse_IMPL: FSP command timed out", "gsp-failed", None, None),
    ("NVRM: GPU0 RmInitAdapter: Cannot initialize GSP firmware RM", "gsp-failed", None, None),
    ("NVRM: kgspBootstrap_GH100: GSP-FMC reported an error while attempting to boot", "gsp-failed", None, None),
    ("NVRM: kgspInitNvlog: Failed to load gsp_log_1.bin, no logs (non-fatal)", "unclassified", None, None),
    ("IP: [<ffffffffc075549f>] _nv011745rm+0x1f/0x170", "driver-crash", None, None),
    ("ERROR: The Nouveau kernel driver is currently in use by your system.", "not-probed", None, None),
    ("could not insert module /lib/modules/6.8/nvidia.ko: Unknown symbol in module", "module-rejected", None, None),
    ("general protection fault, maybe for address 0x78d29c07: 0000 [#1] SMP NOPTI", "crash", None, None),
    ("Missing usercopy whitelist? Exposure of SLUB object 'nvidia_stack_cache'!", "unclassified", None, None),
    (
        "pcieport 0000:3a:00.0: DPC: containment event, status:0x1f01: unmasked uncorrectable error detected",
        "pcie-error",
        "0000:3a:00.0",
        None,
    ),
    ("pcieport 0000:00:03.0: AER: Corrected error received: 0000:04:00.0", "pcie-corrected", "0000:04:00.0", None),
    ("NVRM: Xid (PCI:...): 145, RLW_RXPIPE Nonfatal XC0 i0 Link 11 (...)", "xid", None, 145),
    # X writes addresses in decimal.
    ("NVIDIA(GPU-0): Failed to initialize the NVIDIA GPU at PCI:82:0:0.  Please", "init-failed", "0000:52:00.0", None),
)
def test_line_is_classified(line: str, kind: str, bus_id: str | None, code: int | None) -> None:
    found = event(line)
    assert (found.kind, found.bus_id, found.code, found.text) == (kind, bus_id, code, line)
    assert (found.library in line if found.library else kind != "program-crash") is True


@cases(
    "NVRM: loading NVIDIA UNIX Open Kernel Module for x86_64  570.158.01  Release Build",
    "NVRM: GPU4 GSP RPC buffer contains function 103 (GSP_RM_ALLOC) and data 0x2081",
    "pcieport 0000:00:01.0: AER: enabled with IRQ 120",
    "pcieport 0000:00:01.0: DPC: enabled with IRQ 120",
    "NVRM: GPU at 0000:0b:00.0: GPU-aaaba90e-a327-1a65-9c8d-fd28b59b8057",
    "nvidia-fs: registered correctly with major number 508",
    "NVRM:  visit http://www.nvidia.com/object/unix.html for more",
    "NVRM: ownership of the device's registers.",
    "nvidia 0000:3b:00.0: not ready 1023ms after FLR; waiting",
    "iommu: Default domain type: Translated",
    "nvidia: module verification failed: signature and/or required key missing - tainting kernel",
    "nvidia_modeset       1306624  1 nvidia_drm",
    "Failed to start nvidia-persistenced after modprobe",
    "",
)
def test_unrelated_lines_are_ignored(line: str) -> None:
    assert events(line) == ()


@cases(
    ("NVRM: GPU reset required", "reset-required"),
    ("NVRM: nvGpuOpsReportFatalError: uvm encountered global fatal error 0x60", "uvm-fatal"),
    ("NVRM: The NVIDIA probe routine was not called for 3 device(s).", "not-probed"),
    ("NVRM: No NVIDIA graphics adapter probed!", "not-probed"),
    ("NVRM: No NVIDIA graphics adapter found!", "init-failed"),
    ("# NVRM: GPU 0000:13:00.0: RmInitAdapter failed! (0x26:0x56:1463)", "init-failed"),
    ("NVRM: Xid (a form that is not known)", "unclassified"),
    ("nvidia-peermem nv_get_p2p_free_callback:127 ERROR detected invalid context", "unclassified"),
    ("nouveau 0000:01:00.0: fifo: fault 01 [VIRT_WRITE] failed", "unclassified"),
    ("nouveau 0000:01:00.0: timeout", "not-probed"),
    ("NVRM: installed in this system is not supported by the 367.57", "not-supported"),
    ("NVRM: installed in this system is not supported by the", "not-supported"),
    ("NVRM: ignoring the legacy GPU 0000:01:00.0", "not-supported"),
    ("NVRM: request_mem_region failed for 16M @ 0xf6000000. This can", "not-probed"),
    ("NVRM: This is a 64-bit BAR mapped above 4GB by the system", "no-address-space"),
    ("NVRM: RmInitAdapter: osInitNvMapping failed, bailing out of RmInitAdapter", "init-failed"),
    ("vfio-pci 0000:01:00.0: not ready 65535ms after bus reset; giving up", "fallen-off-the-bus"),
    ("watchdog: BUG: soft lockup - CPU#3 stuck for 22s! [nv_queue:900]", "driver-hang"),
    ("NVRM: gpuWaitForGfwBootComplete_TU102: failed to wait for GFW_BOOT: (progress 0x0)", "init-failed"),
)
def test_problems_of_a_driver_are_events(line: str, kind: KernelLogKind) -> None:
    assert event(line).kind == kind


def test_xid_154_has_requested_recovery_action() -> None:
    line = "NVRM: Xid (PCI:0000:18:00): 154, GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)"
    assert event(line).recovery == "GPU Reset Required"
    back = "NVRM: Xid (PCI:0000:18:00): 154, GPU recovery action changed from 0x1 (GPU Reset Required) to 0x0 (None)"
    assert event(back).recovery == "None"
    assert event(f"{line.partition('from')[0]}to GPU Reset Required").recovery == "GPU Reset"


def test_consecutive_lines_keep_their_gpu() -> None:
    found = events(
        "[ 1843.308145] NVRM: The NVIDIA GPU 0000:b3:00.0",
        "               NVRM: (PCI ID: 10de:26b5) installed in this system has",
        "               NVRM: fallen off the bus and is not responding to commands.",
        "[ 1850.000000] usb 1-1: new device",
        "[ 1851.000000] NVRM: some GPU has fallen off the bus",
    )
    assert [(item.kind, item.bus_id) for item in found] == [
        ("fallen-off-the-bus", "0000:b3:00.0"),
        ("fallen-off-the-bus", None),
    ]


HUNG, OF_NVIDIA = "INFO: task a:9 blocked for more than 120 seconds.", "nvidia_close+0x5e/0x150 [nvidia]"


@pytest.mark.parametrize(
    ("lines", "number"),
    [
        ((HUNG, "schedule+0x1/0x2", OF_NVIDIA, OF_NVIDIA), 1),
        ((HUNG, *59 * ("schedule+0x1/0x2",), OF_NVIDIA), 0),  # not its stack
        ((HUNG, "nfs_wait+0x1/0x2 [nfs]"), 0),
        ((OF_NVIDIA,), 0),
        (("task:a state:D stack:0", OF_NVIDIA), 1),
        (("task:a state:S stack:0", OF_NVIDIA), 0),
    ],
)
def test_task_hangs_in_the_driver_if_its_stack_says_so(lines: tuple[str, ...], number: int) -> None:
    assert [(one.kind, one.text) for one in events(*lines)] == number * [("driver-hang", lines[0])]


@cases(
    (("BAR 1: no space for [mem size 9 64bit pref]", "BAR 1: failed to assign [mem size 9 64bit pref]"), True),
    (("BAR 1 [mem size 9 64bit pref]: can't assign; no space", "BAR 3 [mem 0x1-0x2]: assigned"), True),
    (("BAR 1 [mem size 9]: failed to assign", "BAR 1 [mem 0x1-0x2]: assigned"), False),
    (("BAR 5: failed to assign [io  size 0x80]", "VF BAR 0 [mem size 9]: failed to assign", "BAR 6: no space"), False),
)
def test_gpu_without_address_space_is_an_event(lines: tuple[str, ...], *, is_event: bool) -> None:
    found = "pci 0000:01:00.0: [10de:2204] type 00 class 0x030000"
    of_amd = found.replace("10de", "1002")
    for first, driver, expected in ((found, "pci", is_event), (of_amd, "pci", False), ("", "nvidia", is_event)):
        logged = events(first, *(f"{driver} 0000:01:00.0: {line}" for line in lines))
        places = [one.bus_id for one in logged if one.kind == "no-address-space"]
        assert places == ["0000:01:00.0"] * expected


NOUVEAU = "nouveau 0000:01:00.0: DRM: VRAM: 2048 MiB"


@cases(
    ((NOUVEAU, "nouveau 0000:02:00.0: NVIDIA GP107 (137000a1)"), 2),
    ((NOUVEAU, "NVRM: loading NVIDIA UNIX x86_64 Kernel Module  570.148.06"), 0),  # it has the other GPUs
)
def test_gpus_of_nouveau_are_events_without_the_driver(lines: tuple[str, ...], number: int) -> None:
    assert [one.kind for one in events(*lines)] == number * ["not-probed"]


def test_message_goes_on_in_an_indented_line_without_a_sign() -> None:
    first = "NVRM: The NVIDIA GPU 000a:00:00.0 (PCI ID: 10de:2330) installed in this system"
    (found,) = events(first, "      is not supported by the NVIDIA 580.126.09 driver release.", "      and so on")
    assert (found.kind, found.bus_id) == ("not-supported", "000a:00:00.0")
    assert events(first, "usb 1-1: it is not supported by the NVIDIA driver") == ()


def test_repeated_events_are_limited() -> None:
    flood = [f"DMAR: [DMA Write] Request device [02:00.0] fault addr {number:x}" for number in range(5000)]
    log = parse_log([*flood, XID], source="a test")
    assert (log.lines, len(log.events), sum(event.times for event in log.events)) == (5001, 51, 5001)
    assert log.events[-1].kind == "xid"


def test_missing_log_is_unavailable(tmp_path: Path) -> None:
    facts = collect(context(tmp_path))[KernelLog]
    assert isinstance(facts, Unavailable)
    assert "/dev/kmsg" in facts.unavailable


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may read everything")
def test_unreadable_log_is_unavailable(tmp_path: Path) -> None:
    write(tmp_path, dev__kmsg="6,0,0,-;Linux version\n")
    (tmp_path / "dev/kmsg").chmod(0)
    facts = collect(context(tmp_path))[KernelLog]
    assert isinstance(facts, Unavailable)
    assert "kernel.dmesg_restrict" in facts.unavailable


@cases(("6,0,0,-;Linux version", True), ("6,917,5,-;usb", False), ("x", None))
def test_log_is_complete_from_first_sequence_number(tmp_path: Path, *, first: str, complete: bool | None) -> None:
    write(tmp_path, dev__kmsg=f"{first}\n4,918,75000250,-;{XID}\n SUBSYSTEM=pci\n")
    facts = collect(context(tmp_path))[KernelLog]
    assert isinstance(facts, KernelLog)
    assert (facts.complete, facts.source, len(facts.events)) == (complete, "/dev/kmsg", 1)
