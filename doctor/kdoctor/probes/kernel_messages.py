"""What the messages of the kernel mean that are about GPUs, their links, and errors of the hardware.

Each row has its source. The first row that matches counts. A message of NVIDIA's drivers or of nouveau that is in no
row is unclassified: nothing may be concluded from it.
"""

import re

from kdoctor.facts.kernel import KernelLogKind
from kdoctor.probes.kernel_lines import MODULE_FAILS
from kdoctor.records import record

_LSMOD = "https://man7.org/linux/man-pages/man8/lsmod.8.html"
_MODULE = "https://github.com/NVIDIA/open-gpu-kernel-modules/tree/main/kernel-open/nvidia"
_UVM = "https://github.com/NVIDIA/open-gpu-kernel-modules/tree/main/kernel-open/nvidia-uvm"
_RM = "https://github.com/NVIDIA/open-gpu-kernel-modules/tree/main/src/nvidia/src/kernel"
_XIDS = "https://docs.nvidia.com/deploy/xid-errors/working-with-xid-errors.html"
_AER = "https://docs.kernel.org/PCI/pcieaer-howto.html"
_APEI = "https://github.com/torvalds/linux/blob/master/drivers/firmware/efi/cper.c"
_MCE = "https://docs.kernel.org/arch/x86/x86_64/machinecheck.html"
_EDAC = "https://docs.kernel.org/driver-api/edac.html"
_NOUVEAU = "https://nouveau.freedesktop.org/TroubleShooting.html"
_JOURNAL = "https://systemd.io/JOURNAL_EXPORT_FORMATS/"
_OOM = "https://github.com/torvalds/linux/blob/master/mm/oom_kill.c"
_INSTALLER = "https://docs.nvidia.com/datacenter/tesla/driver-installation-guide/"
_PCI = "https://github.com/torvalds/linux/tree/master/drivers/pci"

DRIVER_THREAD = r"(?:nv_|nvidia|irq/\d+-(?:s-)?nv|UVM )"
"""How the names of the driver's own tasks begin."""


@record
class Message:
    """A message, or several of one meaning."""

    kind: KernelLogKind | None
    """None if the message reports no problem."""
    pattern: re.Pattern[str]
    source: str


def _message(kind: KernelLogKind | None, pattern: str, source: str) -> Message:
    return Message(kind=kind, pattern=re.compile(pattern), source=source)


_FAILURES = (
    _message("fallen-off-the-bus", r"fallen off the bus|NVRM: .*NV_ERR_GPU_IS_LOST", _XIDS),
    _message(
        "fallen-off-the-bus",
        r"^nvidia \S+: (?:Unable to change power state from D3cold|.*device inaccessible)"
        r"|^(?:nvidia|vfio-pci) \S+: not ready \d+ms after .*giving up",
        _PCI,
    ),
    _message(
        "iommu-fault",
        r"DMAR: \[.*Request device|AMD-Vi: Event logged \[IO_PAGE_FAULT|arm-smmu\S* .*(?:[Ff]ault|event 0x10)",
        "https://github.com/torvalds/linux/tree/master/drivers/iommu",
    ),
    _message(
        "no-address-space",
        r"NVRM: +(?:This PCI I/O region assigned to|BAR\d is 0M|This is a 64-bit BAR mapped)",
        _MODULE,
    ),
    _message(
        "not-supported",
        r"NVRM: .*(?:supported through the NVIDIA \S+ Legacy drivers|ignoring the legacy GPU"
        r"|requires use of the NVIDIA open kernel modules"
        r"|installed in this .*is not supported by|is not supported by (?:the )?(?:open|NVIDIA|[\d.]+))"
        r"|NVRM: +Open nvidia\.ko is only ready",
        _MODULE,
    ),
    _message(
        "no-firmware",
        r"NVRM: .*No firmware image found|^nvidia \S+: Direct firmware load for nvidia/\S+/gsp\S* failed with error -2",
        _MODULE,
    ),
    _message("no-power", r"NVRM: .*does not have the necessary power cables connected", _MODULE),
    _message(
        "init-failed",
        r"NVRM: .*(?:RmInitAdapter(?: failed|: \w+ failed)|rm_init_adapter failed|probe routine failed"
        r"|failed to initialize module|failed to wait for GFW_BOOT|Failed to copy vbios|Can't find an IRQ for)"
        r"|NVRM: (?:No NVIDIA (?:[\w ]+ found|devices probed)|None of the NVIDIA devices were init)"
        r"|^nvidia(?:: probe of| \S+: probe with driver nvidia) .*failed with error"
        r"|NVIDIA\(\S+\): Failed to initialize the NVIDIA GPU at",  # the X server, about the same failure
        _MODULE,
    ),
    _message(
        "driver-hang",
        rf"^INFO: task (?:nvidia-|nvc:|nv-host)\S* blocked for more|soft lockup - .*\[{DRIVER_THREAD}",
        _MODULE,
    ),
    _message("hmm-failed", r"request_free_mem_region\S*.*err(?:or)? -?\d+", _UVM),
    _message(
        "version-mismatch",
        r"NVRM: (?:API mismatch|.*this kernel module has the version)|nvidia-(?:nvswitch|modeset): Version mismatch",
        _MODULE,
    ),
    _message(
        "module-rejected",
        r"Loading of (?:unsigned module|module with (?:unsupported crypto|unavailable key)) is rejected"
        r"|Lockdown: .*unsigned module loading is restricted"
        rf"|^nvidia\w*: (?:disagrees about version of symbol|Unknown symbol)|{MODULE_FAILS}",
        "https://github.com/torvalds/linux/blob/master/kernel/module/signing.c",
    ),
    _message("reset-required", r"NVRM: .*(?:(?i:NV_ERR_RESET_REQUIRED|reset required)|[sS]tatus=0x0*62\b)", _RM),
    _message("uvm-fatal", r"uvm encountered (?:global )?fatal error", _RM),
    _message(
        "not-probed",
        r"NVRM: (?:.*probe routine was not called for|No NVIDIA .*probed|request_mem_region fail)",
        _MODULE,
    ),
    _message("not-probed", r"^nouveau \S+: (?:timeout$|gr: .*(?:fail|timeout)|NVIDIA \w+ \()", _NOUVEAU),
    _message("not-probed", r"^nouveau \S+: DRM: (?:VRAM|GART|TMDS|DCB)\b(?!.*(?:fail|unknown))", _NOUVEAU),
    _message("not-probed", r"Nouveau kernel driver is currently in use", _INSTALLER),
    _message("not-probed", r"NVRM: GPU \S+ is already bound to (?!nvidia\b)", _MODULE),
)

_HARMLESS_NVRM = (
    r"loading NVIDIA",
    r"GPU at (?:PCI:|[\da-fA-F:.]+: GPU-)",
    r"GPU Board Serial Number",
    r"The NVIDIA GPU \S+ *(?:$|\(PCI ID)",
    r"GPU \S+: GPU is on Board",
    r"GPU \S+: GPU serial number",
    r"A GPU crash dump has been created",
    r"nvidia-bug-report\.sh as root to collect",
    r"Persistence mode is deprecated",
    r"(?:Starting|Stopping) device",
    r"removing GPU",
    r"probing 0x",
    r"Applied patches|Patch #",
    r"Changing debuglevel",
    r"BAR resize resource not supported",
    r"GPU\d* GSP RPC buffer contains",
    r"Rate limiting GSP RPC error prints",
    r"(?:GPU\d+ )?gpuClearFbhubPoisonIntr\w+: FBHUB Interrupt detected",  # set by the firmware, cleared at each start
    r"entry function",
    r"-?\d+\s+\d+\s+\w+",
    r"\(PCI ID: ",
    r"installed in this system (?:has|is)",
    r"make sure that this kernel",
    r"components have the same version",
    r"(?:This can )?occur when (?:a driver such as|another driver)",
    r"nouveau, rivafb",
    r"(?:was loaded and )?obtained ownership|ownership of the device's|BIOS or the \S+ kernel|proprietary nvidia\.ko",
    r"Failed to enable MSI|failed to register with the ACPI|Please check your BIOS",
    r"Try unloading the conflicting",
    r"reconfigure your kernel",
    r"driver\(s\)\), then try loading",
    r"again\.$",
    r"BAR\d is ",
    r"The system BIOS may have misconfigured",
    r"To force use of Open nvidia\.ko",
    r"(?:NVIDIA )?driver will ignore this GPU",
    r"visit http://www\.nvidia\.com/object/unix\.html",
    r"information\. +The [\d.]+ NVIDIA driver will ignore",
    r"this GPU\. +Continuing probe",
    r"nvidia\.ko because it does not|System Processor|Please see the|Firmware' sections",
    r"NVIDIA Linux driver release|A - Supported|README, available|at www\.nvidia",
)
_HARMLESS = (
    _message(None, "^NVRM: +(?:" + "|".join(_HARMLESS_NVRM) + ")", _MODULE),
    _message(None, r"NVRM: *$", _MODULE),
    _message(None, r"^nvidia[-_]uvm: (?:(?:L|Unl)oaded the UVM driver|module uses symbols)", _UVM),
    _message(
        None,
        r"^nvidia-nvlink: (?:Nvlink Core is being initialized|Unregistered (?:the )?Nvlink Core)"
        # It drives displays only.
        r"|^nvidia-modeset: (?:(?:Unl|L)oading|(?:Allocated|Freed) GPU|(?:WARNING|ERROR): GPU:\d+:)"
        r"|^nvidia-nvswitch\d*: (?:Probing device|using (?:MSI|PCI)|open \(|release \(|removing device|Major: "
        r"|a stale fd|no events registered)"
        r"|^nvidia\w*: (?:module |loading out-of-tree module|unloading )",
        _MODULE,
    ),
    _message(
        None,
        r"^nvidia-fs: (?:Initializing nvfs driver module|registered correctly with major number)",
        "https://github.com/NVIDIA/gds-nvidia-fs/blob/main/src/nvfs-core.c",
    ),
    _message(
        None, r"^nvidia-gpu \S+: ", "https://github.com/torvalds/linux/blob/master/drivers/i2c/busses/i2c-nvidia-gpu.c"
    ),
    _message(
        None,
        r"^nouveau(?: \S+)?: (?:bios: |vgaarb|enabling device|detected |fb\d?: (?!.*(?:fault|fail))"
        r"|DRM: (?!.*(?:fail|error|timeout|unknown))|\[drm\]|pmu: firmware|vram|mmu: |gr: using|Unknown handle"
        r"|Using |irq |runtime )",
        _NOUVEAU,
    ),
)

_HARDWARE = (
    _message(
        "driver-crash",
        r"^R?IP: .*(?:\[nvidia\w*\]|\b_nv\d+rm\+)|usercopy: .* '\w*nvidia\w*'",
        "https://docs.kernel.org/admin-guide/bug-hunting.html",
    ),
    # The kernel writes it as one line for each processor family: segfault, traps, unhandled exception.
    _message(
        "program-crash",
        r"\[\d+\](?:: (?:segfault at|unhandled exception)| .* ip:).* in (?P<library>lib"
        r"(?:nccl|cu(?:da|dnn|blas|fft|rand|solver|sparse|pti)|nvidia-|nvrtc|nvinfer|tensorflow)[^ \[]*)\[",
        "https://github.com/torvalds/linux/blob/master/arch/x86/mm/fault.c",
    ),
    _message(
        "program-killed",
        r"[Oo]ut of memory: Kill(?:ed)? process \d+ \((?P<program>\(?[^)]*\)?)\)| invoked oom-killer: ",
        _OOM,
    ),
    _message("program-killed", r"oom-kill:constraint=CONSTRAINT_MEMCG,.*,task=(?P<program>[^,]+)", _OOM),
    _message(
        "crash",
        r"Kernel panic - not syncing|^(?:Panic|Oops)#\d+ Part\d+|BUG: (?:unable to handle|kernel NULL|soft lockup|Bad)"
        # Every crash, whatever its cause, has its error code and its number: "general protection fault: 0000 [#1]".
        r"|^(?!Oops: ).*\b[\da-f]{4,16} \[#\d+\]",
        "https://docs.kernel.org/admin-guide/bug-hunting.html",
    ),
    _message(
        None, r"AER: (?:enabled with IRQ|aer_layer|broadcast |device recovery successful|  )|Hot-?plug.*AER", _AER
    ),
    _message(
        "pcie-corrected", r"AER: (?:Multiple )?[Cc]orrect(?:ed|able) error|PCIe Bus Error: severity=Correct", _AER
    ),
    _message("pcie-error", r"AER: .*(?:[Ee]rror|recovery failed|can't recover)|PCIe Bus Error: ", _AER),
    _message("pcie-error", r"^vfio-pci \S+: Unable to change power state", _PCI),
    # Downstream Port Containment: the port has switched off the link below it.
    _message("pcie-error", r"DPC: (?:containment event|.*uncorrectable error detected|ERR_(?:NON)?FATAL)", _PCI),
    _message("hardware-corrected", r"EDAC \S+:? .*\b\d+ CE\b", _EDAC),
    _message("hardware-error", r"EDAC \S+:? .*\b\d+ UE\b", _EDAC),
    _message(
        "hardware-corrected",
        r"\[Hardware Error\]: *(?:Machine check events logged|event severity: (?:corrected|info)|Corrected error)",
        _MCE,
    ),
    _message(
        "hardware-error",
        r"\[Hardware Error\]: *(?:event severity: (?:recoverable|fatal)|Uncorrected|Deferred error"
        r"|CPU \d+: Machine Check(?: Exception)?: [4-7]|Fatal)",
        _APEI,
    ),
    # The other lines of a record describe the error that its first line announces.
    _message(None, r"\[Hardware Error\]:", _APEI),
    _message(None, r"^nvidia \S+: +(?:device \[|\[ *\d+\] |TLP Header: )", _AER),
    # A line of lsmod next to the log: name, size, uses, and the modules that use it.
    _message(None, r"^\w+ +\d+ +\d+(?: +[\w,]+)?$", _LSMOD),
    # A message that is not text, over several lines (journalctl -o json-pretty).
    _message("unclassified", r'^"MESSAGE" : \[$', _JOURNAL),
    _message(None, r"^EDAC (?!.*(?:error|fail))", _EDAC),
    _message(None, r"^EDAC .*(?:will not load|ECC error reporting|not be loaded|ECC disabled)", _EDAC),
)

_FIRMWARE = _message(
    "gsp-failed",
    r"NVRM: (?=.*(?i:_?k[gf]sp|\b[GF]SP\b))(?!.*(?i:non-fatal|regkey|vgpu|\bclock|gsp_log|hMemory))"
    r".*(?i:fail|\berror|time[ds]? ?-?out|not respond|hung|cannot|halted|exceeded|bad state|already up)"
    r"|NVRM: .*(?:CrashCat|GPU\d* RPC (?:event )?history)",  # the last calls, written when one failed
    _RM,
)

_OF_DRIVERS = _message(
    "unclassified",
    r"^(?:NVRM\b|nvidia-(?:uvm|peermem|nvlink|nvswitch\d*|modeset|fs)\b|nvidia_\w+\b|nouveau\b)"
    r"|\[nvidia.*(?i:error|fail)|^nvidia(?:: | \S+: .*(?i:error|fail|refused|unable|can't|timed? ?out))"
    r"|^EDAC .*(?:error|fail)|\bS?Xid \(|usercopy.* 'nvidia"
    r"|^\[<\w+>\] \w+ \[nvidia\w*\]",  # a handler of an interrupt that the kernel has disabled
    _MODULE,
)

MESSAGES: tuple[Message, ...] = (*_FAILURES, *_HARMLESS, _FIRMWARE, *_HARDWARE, _OF_DRIVERS)
"""All messages other than Xids and SXids, the most specific first."""

RELEVANT = re.compile(
    r"NVRM|nvidia|the NVIDIA GPU at|ouveau|[Kk]ernel module|NV_\w+=|Xid|AER: |DPC: |PCIe Bus Error|EDAC "
    r"|Hardware Error|DMAR: |AMD-Vi: |arm-smmu-v|arm-smmu .*iommu: U|Kernel panic - not|(?:Panic|Oops)#\d+ Part"
    r"|BUG: (?:unable|kernel|soft|Bad)|ut of memory: Kill|oom-kill|Loading of [um]|Lockdown: "
    r"|Linux version| in lib|\"MESSAGE\" : \[$| \[#\d"
    r"| blocked for more| state:D|vfio-pci .*(?:power state|giving up)|: BAR \d.*(?:to? assign| no space)|: \[10de:"
    r"| Comm: (?:nv|irq/\d+-|UVM )|_nv\d+rm\+"
)
"""A line without any of these words is about something else."""

SIGNS = tuple(
    b"#|vfio-pci|NVRM|nvidia|NVIDIA|ouveau|ernel module|NV_|Xid|AER: |DPC: | Error|EDAC |DMAR: |AMD-Vi: |arm-smmu"
    b"|panic - not|BUG: |ut of memory: Kill|oom-kill|Loading of |Lockdown: |Linux version| in lib|nvc:|MESSAGE"
    b"|t assign|to assign| no space|: [de:| Comm: |_nvrm+".split(b"|")
)
"""A block of lines without any of these has no line that ``RELEVANT`` finds. None has a digit."""
FOREIGN = re.compile(rb"NVIDIA-SMI|NVSMI LOG|<nvidia_smi_log")
"""What nvidia-smi prints and the kernel does not."""
