import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from kdoctor.check import check
from kdoctor.commands.shell import quoted
from kdoctor.commands.system import NVIDIA_DEVICES, branch_of
from kdoctor.facts import DeviceNode, Gpus, Host, Kernel, KernelDriver, KernelLog, NotCollected, PciDevices, Unavailable
from kdoctor.matrix.model import VersionMatrix
from kdoctor.matrix.values import older_driver
from kdoctor.model import READ_ONLY, Action, Evidence, Finding, Outcome, Remedy, Rollback, Severity, Unjudged
from kdoctor.text.lists import counted, some
from kdoctor_checks._driver import NODE, blacklisted, create_nodes, with_runtime
from kdoctor_checks._gpus import DRIVER_MESSAGES, NEW_CONTAINER, RESTART, silent
from kdoctor_checks._versions import first_short, numbers
from kdoctor_checks.driver._messages import NO_GPU, NOT_LOADED, NOT_STARTED, SIGNATURE, STATED

_SUBJECT = "NVIDIA driver"


@check("driver.loaded", severity=Severity.ERROR, needs_gpus=True)
def loaded(
    kernel: KernelDriver | Unavailable,
    gpus: Gpus | Unavailable,
    pci: PciDevices | Unavailable,
    host: Host | Unavailable,
    settings: Kernel | Unavailable,
    log: KernelLog | Unavailable,
    matrix: VersionMatrix | Unavailable,
) -> Iterator[Outcome]:
    """The NVIDIA driver is loaded, and this process can use it.

    Why: without a working driver TensorFlow finds no GPU and trains on the CPU without an error. Several parts can
    fail: the device, the kernel module, the user-space libraries, the device nodes and their permissions, and the
    container runtime. The finding names the missing part, and what blocks it: nouveau, or Secure Boot, which rejects
    unsigned modules.
    A host of vGPUs and a Jetson have drivers with which the wheels of TensorFlow and JAX do not run.
    Remedy: load or install the part that the finding names: the kernel module, the user-space library, the device
    nodes, or the container's NVIDIA runtime.
    Sources:
        https://docs.nvidia.com/datacenter/tesla/driver-installation-guide/
        https://docs.nvidia.com/datacenter/cloud-native/container-toolkit/latest/docker-specialized.html
        https://github.com/tensorflow/tensorflow/issues/37689
    Failure modes: libcuda_missing
    """
    if isinstance(gpus, Unavailable):
        yield _by_bus(gpus, pci, kernel, _rejected(settings, log))
        return
    if gpus.state == "failed" and gpus.driver_version and silent(gpus):  # what failed, in a container, follows from it
        observed = f"nvidia-smi lists GPUs, driver {gpus.driver_version}, and one does not respond; {gpus.error}"
        yield Evidence(subject=_SUBJECT, observed=observed, brief=gpus.driver_version)
        return
    if unsuited := _unsuited(gpus):
        yield _finding(unsuited)
        return
    if isinstance(kernel, Unavailable):
        yield _by_nvml(gpus, kernel, matrix, settings, log)
        return
    nodes = kernel.nodes or ()
    closed = [node for node in nodes if NODE.fullmatch(node.path) and not (node.readable and node.writable)]
    for node in closed:
        yield _closed_node(node, closed)
    # With a mismatch, library and module were both found. driver.library-matches-module judges it.
    if gpus.state in ("ready", "library-mismatch"):
        module = _module(kernel) if kernel.loaded else "module not visible here"
        library = f"NVML {gpus.state}, driver {gpus.driver_version or '(version unknown)'}"
        version = gpus.driver_version if gpus.state == "ready" else None
        yield Evidence(
            subject=_SUBJECT, observed=f"{library}, {module}, {_nodes(kernel)}", brief=first_short(version or "", "")
        )
    elif gpus.state != "no-permission" or not closed:
        brief, observed, remedy, rollback = (None if kernel.loaded else _rejected(settings, log)) or _cause(
            kernel, gpus, pci, host
        )
        nvml = f"NVML: {gpus.state}" + (f" ({gpus.error})" if gpus.error else "")
        yield _finding((brief, f"{observed}; {nvml}", remedy, rollback))


_Failure = tuple[str, str, Remedy, Rollback]
"""The short and the long form of the problem, the fix, and how to undo it."""


def _finding(failure: _Failure) -> Finding:
    brief, observed, remedy, rollback = failure
    return Finding(
        subject=_SUBJECT,
        observed=observed,
        brief=brief,
        expected="the nvidia kernel module is loaded, and NVML starts",
        remedy=remedy,
        rollback=rollback,
    )


def _unsuited(gpus: Gpus) -> _Failure | None:
    """Why the driver works, but not for training with the wheels of TensorFlow or JAX."""
    modes = sorted({gpu.virtualization_mode or "none" for gpu in gpus.devices} & {"host-vgpu", "host-vsga"})
    if modes:
        remedy = Remedy.configure(
            "Train in a virtual machine with a vGPU of this host, or install the data center driver instead.",
            look=("nvidia-smi -q | grep -i 'virtualization mode'", "nvidia-smi vgpu"),
        )
        brief = "a host of vGPUs, whose driver has no CUDA"
        return brief, f"{brief} (virtualization mode {', '.join(modes)})", remedy, READ_ONLY
    for words, brief, remedy, rollback in STATED:
        if gpus.state != "no-permission" and re.search(words, gpus.error or ""):
            return brief, f"{brief}: {gpus.error}", remedy, rollback
    integrated = next((gpu.name for gpu in gpus.devices if _INTEGRATED in (gpu.name or "")), None)
    if integrated is None:
        return None
    remedy = Remedy.reinstall(
        "Use the wheels or containers that NVIDIA builds for Jetson and its JetPack release.",
        look=("cat /etc/nv_tegra_release", "nvidia-smi"),
    )
    brief = "a Jetson, on which TensorFlow's and JAX's wheels do not run"
    return brief, f"{integrated} is the integrated GPU of {brief}", remedy, READ_ONLY


_INTEGRATED = "(nvgpu)"
"""In the name of the integrated GPU of a Jetson with Tegra's kernel driver."""
_WITHOUT_CUDA = ("ERR!", "Not Found")
"""What nvidia-smi prints as CUDA version where libcuda fails or does not exist."""


_NO_USER_SPACE = Remedy.reinstall(
    "Install NVIDIA's driver, which brings nvidia-smi and its library. In a container, use the NVIDIA runtime.",
    look=("cat /proc/driver/nvidia/version", "ldconfig -p | grep libnvidia-ml"),
)


def _no_cuda(gpus: Gpus) -> _Failure:
    printed = gpus.errors["cuda_driver_version"]
    remedy = Remedy.reinstall(
        "Install libcuda.so.1 of the driver's version. Under WSL, remove Linux drivers: Windows brings it.",
        look=("ldconfig -p | grep libcuda", "nvidia-smi"),
    )
    brief = f"nvidia-smi works, but CUDA does not (CUDA Version: {printed})"
    return brief, f"{brief}, driver {gpus.driver_version}", remedy, READ_ONLY


def _by_bus(
    gpus: Unavailable, pci: PciDevices | Unavailable, kernel: KernelDriver | Unavailable, rejected: _Failure | None
) -> Outcome:
    """What a recording without nvidia-smi shows: the module, and whether it was rejected or others own all GPUs."""
    if isinstance(gpus, NotCollected) and isinstance(kernel, KernelDriver) and kernel.loaded:
        return Unjudged(subject=_SUBJECT, reason=f"{_module(kernel)}, and {gpus.unavailable}")
    if isinstance(gpus, NotCollected) and rejected:
        return _finding(rejected)
    listed = pci.gpus if isinstance(pci, PciDevices) and isinstance(gpus, NotCollected) else ()
    drivers = {device.driver for device in listed}
    owners = sorted(driver for driver in drivers if driver)
    if not owners or drivers & {None, "nvidia"}:
        return Unjudged(subject=_SUBJECT, reason=gpus.unavailable)
    if owners == ["nouveau"]:
        return _finding(_nouveau())
    _, _, remedy, rollback = _no_module(pci)
    brief = f"GPUs are bound to {some(owners)}, none to nvidia"
    return _finding((brief, brief, remedy, rollback))


def _by_nvml(
    gpus: Gpus,
    kernel: Unavailable,
    matrix: VersionMatrix | Unavailable,
    settings: Kernel | Unavailable,
    log: KernelLog | Unavailable,
) -> Outcome:
    """What nvidia-smi and the kernel log show, where the kernel module was not read."""
    explained_by: tuple[str, ...] = ()
    if gpus.state == "library-mismatch":
        return Evidence(subject=_SUBJECT, observed="module and library are present (driver.library-matches-module)")
    if gpus.state == "ready":
        if not (gpus.driver_version and isinstance(kernel, NotCollected)):
            return Unjudged(subject=_SUBJECT, reason=kernel.unavailable)
        if gpus.errors.get("cuda_driver_version") in _WITHOUT_CUDA:
            return _finding(_no_cuda(gpus))
        observed = f"NVML ready, driver {gpus.driver_version}; kernel module not read"
        ready = Evidence(subject=_SUBJECT, observed=observed, brief=gpus.driver_version)
        return _too_old_for_all(gpus, matrix) or ready
    if gpus.state == "driver-not-loaded":
        if rejected := _rejected(settings, log):
            return _finding(rejected)
        logged = {event.kind for event in log.events} if isinstance(log, KernelLog) else set()
        explained_by = ("gpu.kernel-log",) if logged & (NOT_STARTED - {"not-probed"}) else ()
        _, _, remedy, rollback = _no_module(kernel)
        of_container = "nvidia-container-cli" in (gpus.error or "")
        brief = "the host's driver is not loaded" if of_container else "nvidia-smi cannot communicate with the driver"
    elif gpus.state == "library-absent":
        remedy, rollback = _NO_USER_SPACE, READ_ONLY
        found = "nvidia-smi" in (gpus.error or "") and "libnvidia-ml" not in (gpus.error or "")
        brief = "nvidia-smi is not installed" if found else "the NVML library is not found"
    else:
        brief, _, remedy, rollback = _nvml_fails(gpus)
        if gpus.devices and gpus.state == "failed":
            remedy, rollback = _NEW_CONTAINER, NEW_CONTAINER  # nvidia-smi lists them elsewhere
        brief = brief.removeprefix("module loaded, but ")
    return replace(_finding((brief, gpus.error or brief, remedy, rollback)), explained_by=explained_by)


def _too_old_for_all(gpus: Gpus, matrix: VersionMatrix | Unavailable) -> Unjudged | None:
    """The driver is older than any CUDA release of the matrix needs, and no cuda-compat is in use."""
    if isinstance(matrix, Unavailable):
        return None
    row = min(matrix.cuda_majors, key=lambda row: row.major, default=None)
    version, offered = gpus.driver_version, numbers(gpus.cuda_driver_version)
    if not (row and row.oldest_driver and version and numbers(version)) or not older_driver(version, row.oldest_driver):
        return None
    needed = f"{row.oldest_driver}, which TensorFlow {matrix.releases[0].version} needs"
    if offered is not None and offered[0] >= row.major:
        return None
    return Unjudged(subject=_SUBJECT, reason=f"{version} is older than {needed}")


def _rejected(settings: Kernel | Unavailable, log: KernelLog | Unavailable) -> _Failure | None:
    """What prevents the kernel module from being loaded, if the kernel reports it."""
    events = log.events if isinstance(log, KernelLog) else ()
    logged = any(event.kind == "not-probed" and event.text.startswith("nouveau ") for event in events)
    modules = settings.modules if isinstance(settings, Kernel) else None
    if logged if modules is None else "nouveau" in modules and "nvidia" not in modules:
        return _nouveau()
    rejected = [event.text for event in events if event.kind == "module-rejected"]
    found = [line for line in rejected if re.search(SIGNATURE, line)]
    stated = {event.kind for event in events} & NOT_STARTED
    for words, brief, remedy, rollback in () if found else NOT_LOADED:
        if stated and words in (NO_GPU, ""):
            continue  # the log says why, in gpu.kernel-log
        if line := next((line for line in rejected if re.search(words, line)), None):
            return brief, f"{brief}: {line!r}", remedy, rollback
    return _unsigned(found[-1], settings) if found else None


def _nouveau() -> _Failure:
    remedy, rollback = blacklisted("nouveau", "Prevent nouveau from loading, install NVIDIA's driver, and restart.")
    found = "the open-source driver nouveau is loaded instead of nvidia"
    return found, found, remedy, rollback


def _unsigned(line: str, settings: Kernel | Unavailable) -> _Failure:
    secure_boot = isinstance(settings, Kernel) and settings.secure_boot
    key = "/var/lib/shim-signed/mok/MOK.der"
    remedy = Remedy.configure(
        "Install the driver from the distribution's signed packages. Or enroll the key that signed the module "
        "(the machine asks for it at the next start), or disable Secure Boot in the firmware.",
        f"sudo mokutil --import {key}",
        "sudo reboot",
        look=("mokutil --sb-state", "modinfo nvidia | grep -i sign"),
    )
    brief = f"the kernel rejected the module{' (Secure Boot is on)' if secure_boot else ''}"
    return (
        brief,
        f"{brief}: {line!r}",
        remedy,
        Rollback.to("remove the key", f"sudo mokutil --delete {key}", "sudo reboot"),
    )


def _cause(kernel: KernelDriver, gpus: Gpus, pci: PciDevices | Unavailable, host: Host | Unavailable) -> _Failure:
    in_container = isinstance(host, Host) and host.container not in (None, "none")
    if not kernel.loaded:
        return _NO_GPU if isinstance(pci, PciDevices) and not pci.gpus else _no_module(pci)
    if in_container and (gpus.state == "library-absent" or kernel.nodes == ()):
        return _no_runtime(kernel, host)
    if gpus.state == "library-absent":
        return _no_library(kernel)
    return _no_nodes(pci) if kernel.nodes == () else _nvml_fails(gpus)


def _module(kernel: KernelDriver) -> str:
    return f"module {kernel.version or '(version unknown)'} is loaded"


def _nodes(kernel: KernelDriver) -> str:
    return "device nodes not read" if kernel.nodes is None else counted(len(kernel.nodes), "device node")


_NO_GPU: _Failure = (
    "no NVIDIA GPU on the PCI bus, no driver loaded",
    "the PCI bus has no NVIDIA GPU, and the nvidia kernel module is not loaded",
    Remedy(
        summary="Run on a machine with GPUs, or test without any (--gpus 0). If the machine has a "
        "GPU, check its power and seating, the BIOS, and the passthrough of the virtual machine.",
        action=Action.INSPECT_HARDWARE,
        commands=("kdoctor check --gpus 0",),
        look=(NVIDIA_DEVICES,),
    ),
    READ_ONLY,
)


def _no_module(pci: PciDevices | Unavailable) -> _Failure:
    found, brief = "the PCI devices were not read", "no driver loaded"
    if isinstance(pci, PciDevices):
        bound = sorted({device.driver or "no driver" for device in pci.gpus})
        number = counted(len(pci.gpus), "NVIDIA GPU")
        found = f"the PCI bus has {number}, bound to {', '.join(bound)}"
        brief = f"no driver loaded for the {number} on the PCI bus"
    remedy = Remedy.configure(
        "Load the module. If modprobe does not find it, install the driver from the distribution's packages. "
        "After a kernel upgrade, rebuild the module. Unbind nouveau and vfio-pci first.",
        "sudo modprobe nvidia",
        look=(NVIDIA_DEVICES, "sudo dmesg | grep -i nvrm"),
    )
    rollback = Rollback.to("unload the module", "sudo modprobe -r nvidia_uvm nvidia")
    return brief, f"the nvidia kernel module is not loaded; {found}", remedy, rollback


def _no_runtime(kernel: KernelDriver, host: Host | Unavailable) -> _Failure:
    remedy = Remedy.configure(
        "Start the container with the NVIDIA runtime and the driver capabilities compute and utility (Docker "
        "command shown; in Kubernetes request nvidia.com/gpu).",
        with_runtime(host),
    )
    module = f"the host has loaded nvidia module {kernel.version or '(version unknown)'}"
    lacking = "the driver's device nodes" if kernel.nodes == () else "the driver's libraries"
    return (
        f"this container lacks {lacking}",
        f"{module}, but this container has {_nodes(kernel)}",
        remedy,
        NEW_CONTAINER,
    )


def _no_library(kernel: KernelDriver) -> _Failure:
    package = quoted(f"nvidia-utils-{branch_of(kernel.version) if kernel.version else '<branch>'}")
    remedy = Remedy.reinstall(
        "Install the user-space libraries in the version of the module (Ubuntu command shown), or remove a "
        "folder that hides them from LD_LIBRARY_PATH.",
        f"sudo apt-get install {package}",
        look=("ldconfig -p | grep -E 'libnvidia-ml|libcuda'",),
    )
    rollback = Rollback.to("remove the libraries", f"sudo apt-get remove {package}")
    module = f"nvidia module {kernel.version or '(version unknown)'} is loaded"
    found = f"{module}, but the NVML library is not found"
    return "module loaded, but the NVML library is not found", found, remedy, rollback


def _no_nodes(pci: PciDevices | Unavailable) -> _Failure:
    minors = range(len(pci.gpus) if isinstance(pci, PciDevices) else 1)
    remedy = Remedy.configure(
        "Create the device nodes with nvidia-modprobe. The persistence daemon creates them at every start.",
        create_nodes(minors),
        "sudo systemctl enable --now nvidia-persistenced",
    )
    rollback = Rollback.to("stop the persistence daemon", "sudo systemctl disable --now nvidia-persistenced")
    observed = "the nvidia module is loaded, but the device nodes /dev/nvidia* do not exist"
    return "module loaded, but /dev/nvidia* do not exist", observed, remedy, rollback


def _nvml_fails(gpus: Gpus) -> _Failure:
    if gpus.state == "no-permission":
        brief = "no permission to use the GPUs' device nodes"
        return brief, f"the driver runs, but this process has {brief}", _NO_PERMISSION, NEW_CONTAINER
    remedy = Remedy.reboot(
        "In a container that worked before, restart the container: a daemon-reload on the host can remove its "
        "devices. On the host, restart the machine.",
        "sudo reboot",
        look=("nvidia-smi", DRIVER_MESSAGES),
    )
    brief = f"module loaded, but NVML does not start ({gpus.state})"
    return brief, "the nvidia module is loaded, but NVML does not start", remedy, RESTART


_NEW_CONTAINER = Remedy.configure(
    "Restart the container, which lost its devices. A daemon-reload on the host can remove them.",
    "docker restart '<container>'",
    look=("nvidia-smi -L", "ls -l /dev/nvidia*"),
)
_NO_PERMISSION = Remedy.configure(
    "Give this process access to /dev/nvidia*. In a container, the control group decides and SELinux's label: "
    "start it again with the NVIDIA runtime or --device nvidia.com/gpu=all, and with podman add "
    "--security-opt=label=disable. On the host, add the user to the group of the nodes.",
    look=("ls -lZ /dev/nvidia*", "id"),
)


def _closed_node(node: DeviceNode, closed: Sequence[DeviceNode]) -> Finding:
    # Nodes of the same mode were created together, and have the same group. One command opens all of them.
    first = next(other for other in closed if other.mode == node.mode)
    denied = " or ".join(verb for verb, allowed in (("read", node.readable), ("write", node.writable)) if not allowed)
    group = f'"$(stat -c %G {quoted(first.path)})"'
    return Finding(
        subject=node.path,
        observed=f"no {denied} access for this process (mode {node.mode})",
        expected="readable and writable by the user who runs the job",
        remedy=Remedy.configure(
            "Add the user to the group that owns the node, and log in again. In a container, allow the device; "
            "there the control group decides, not the mode.",
            f'sudo usermod -aG {group} "$USER"',
            look=("ls -l /dev/nvidia*",),
        ),
        rollback=Rollback.to("remove the user from the group", f'sudo gpasswd -d "$USER" {group}'),
    )
