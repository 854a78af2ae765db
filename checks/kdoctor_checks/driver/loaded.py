from __future__ import annotations

from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.commands.shell import quoted
from kdoctor.commands.system import branch_of
from kdoctor.facts import DeviceNode, Gpus, Host, Kernel, KernelDriver, KernelLog, PciDevices, Unavailable
from kdoctor.model import Action, Evidence, Finding, Outcome, Remedy, Rollback, Severity
from kdoctor.text.lists import counted
from kdoctor_checks._gpus import NEW_CONTAINER, READ_ONLY, RESTART
from kdoctor_checks.driver._nodes import NODE

_SUBJECT = "NVIDIA driver"


@check("driver.loaded", severity=Severity.ERROR, needs_gpus=True)
def loaded(
    kernel: KernelDriver,
    gpus: Gpus,
    pci: PciDevices | Unavailable,
    host: Host | Unavailable,
    settings: Kernel | Unavailable,
    log: KernelLog | Unavailable,
) -> Iterator[Outcome]:
    """The NVIDIA driver is loaded, and this process can use it.

    Why: without a working driver TensorFlow finds no GPU and trains on the CPU without an error. Several parts can
    fail: the device, the kernel module, the user-space libraries, the device nodes and their permissions, and the
    container runtime. The finding names the missing part, and what blocks it: nouveau, or Secure Boot, which rejects
    unsigned modules.
    Remedy: load or install the part that the finding names: the kernel module, the user-space library, the device
    nodes, or the container's NVIDIA runtime.
    Sources:
        https://docs.nvidia.com/datacenter/tesla/driver-installation-guide/
        https://docs.nvidia.com/datacenter/cloud-native/container-toolkit/latest/docker-specialized.html
        https://github.com/tensorflow/tensorflow/issues/37689
    Failure modes: libcuda_missing
    """
    nodes = kernel.nodes or ()
    closed = [node for node in nodes if NODE.fullmatch(node.path) and not (node.readable and node.writable)]
    for node in closed:
        yield _closed_node(node)
    # With a mismatch, library and module were both found. driver.library-matches-module judges it.
    if gpus.state in ("ready", "library-mismatch"):
        module = f"module {kernel.version or '(version unknown)'}" if kernel.loaded else "module not visible here"
        library = f"NVML {gpus.state}, driver {gpus.driver_version or '(version unknown)'}"
        yield Evidence(subject=_SUBJECT, observed=f"{library}, {module}, {_nodes(kernel)}")
    elif gpus.state != "no-permission" or not closed:
        observed, remedy, rollback = _blocked(kernel, settings, log) or _cause(kernel, gpus, pci, host)
        nvml = f"NVML: {gpus.state}" + (f" ({gpus.error})" if gpus.error else "")
        yield Finding(
            subject=_SUBJECT,
            observed=f"{observed}; {nvml}",
            expected="the nvidia kernel module is loaded, and NVML starts",
            remedy=remedy,
            rollback=rollback,
        )


_Failure = tuple[str, Remedy, Rollback]


def _blocked(kernel: KernelDriver, settings: Kernel | Unavailable, log: KernelLog | Unavailable) -> _Failure | None:
    """What prevents the kernel module from being loaded, if the kernel reports it."""
    if kernel.loaded:
        return None
    if isinstance(settings, Kernel) and settings.nouveau_loaded:
        return _nouveau()
    events = log.events if isinstance(log, KernelLog) else ()
    rejected = [event.text for event in events if event.kind == "module-rejected"]
    return _unsigned(rejected[-1], settings) if rejected else None


def _nouveau() -> _Failure:
    file = "/etc/modprobe.d/blacklist-nouveau.conf"
    remedy = Remedy(
        summary="Prevent nouveau from loading, install NVIDIA's driver, and restart.",
        action=Action.REBOOT,
        commands=(
            f"printf 'blacklist nouveau\\noptions nouveau modeset=0\\n' | sudo tee {file}",
            "sudo update-initramfs -u",
            "sudo reboot",
        ),
    )
    rollback = Rollback.to("load nouveau again", f"sudo rm {file}", "sudo update-initramfs -u", "sudo reboot")
    return "the open-source driver nouveau is loaded instead of nvidia", remedy, rollback


def _unsigned(line: str, settings: Kernel | Unavailable) -> _Failure:
    secure_boot = isinstance(settings, Kernel) and settings.secure_boot
    key = "/var/lib/shim-signed/mok/MOK.der"
    remedy = Remedy(
        summary="Install the driver from the distribution's signed packages. Or enroll the key that signed the module "
        "(the machine asks for it at the next start), or disable Secure Boot in the firmware.",
        action=Action.CONFIGURE,
        commands=("mokutil --sb-state", "modinfo nvidia | grep -i sign", f"sudo mokutil --import {key}", "sudo reboot"),
    )
    observed = f"the kernel rejected a module{' (Secure Boot is on)' if secure_boot else ''}: {line!r}"
    return observed, remedy, Rollback.to("remove the key", f"sudo mokutil --delete {key}", "sudo reboot")


def _cause(kernel: KernelDriver, gpus: Gpus, pci: PciDevices | Unavailable, host: Host | Unavailable) -> _Failure:
    in_container = isinstance(host, Host) and host.container not in (None, "none")
    if not kernel.loaded:
        return _no_gpu() if isinstance(pci, PciDevices) and not pci.gpus else _no_module(pci)
    if in_container and (gpus.state == "library-absent" or kernel.nodes == ()):
        return _no_runtime(kernel)
    if gpus.state == "library-absent":
        return _no_library(kernel)
    return _no_nodes() if kernel.nodes == () else _nvml_fails()


def _nodes(kernel: KernelDriver) -> str:
    return "device nodes not read" if kernel.nodes is None else counted(len(kernel.nodes), "device node")


def _no_gpu() -> _Failure:
    remedy = Remedy(
        summary="Run on a machine with GPUs, or use a checklist that expects none (cpu-smoke). If the machine has a "
        "GPU, check its power and seating, the BIOS, and the passthrough of the virtual machine.",
        action=Action.INSPECT_HARDWARE,
        commands=("lspci -nn -d 10de:", "kdoctor check --checklist cpu-smoke"),
    )
    return "the PCI bus has no NVIDIA GPU, and the nvidia kernel module is not loaded", remedy, READ_ONLY


def _no_module(pci: PciDevices | Unavailable) -> _Failure:
    found = "the PCI devices were not read"
    if isinstance(pci, PciDevices):
        bound = sorted({device.driver or "no driver" for device in pci.gpus})
        found = f"the PCI bus has {counted(len(pci.gpus), 'NVIDIA GPU')}, bound to {', '.join(bound)}"
    remedy = Remedy(
        summary="Load the module. If modprobe does not find it, install the driver from the distribution's packages. "
        "After a kernel upgrade, rebuild the module. Unbind nouveau and vfio-pci first.",
        action=Action.CONFIGURE,
        commands=("lspci -nnk -d 10de:", "sudo modprobe nvidia", "sudo dmesg | grep -i nvrm"),
    )
    rollback = Rollback.to("unload the module", "sudo modprobe -r nvidia_uvm nvidia")
    return f"the nvidia kernel module is not loaded; {found}", remedy, rollback


def _no_runtime(kernel: KernelDriver) -> _Failure:
    remedy = Remedy(
        summary="Start the container with the NVIDIA runtime and the driver capabilities compute and utility (Docker "
        "command shown; in Kubernetes request nvidia.com/gpu).",
        action=Action.CONFIGURE,
        commands=("docker run --gpus all -e NVIDIA_DRIVER_CAPABILITIES=compute,utility '<image>' '<command>'",),
    )
    module = f"the host has loaded nvidia module {kernel.version or '(version unknown)'}"
    return f"{module}, but this container has {_nodes(kernel)}", remedy, NEW_CONTAINER


def _no_library(kernel: KernelDriver) -> _Failure:
    package = f"nvidia-utils-{branch_of(kernel.version) if kernel.version else quoted('<branch>')}"
    remedy = Remedy(
        summary="Install the user-space libraries in the version of the module (Ubuntu command shown), or remove a "
        "folder that hides them from LD_LIBRARY_PATH.",
        action=Action.REINSTALL,
        commands=("ldconfig -p | grep -E 'libnvidia-ml|libcuda'", f"sudo apt-get install {package}"),
    )
    rollback = Rollback.to("remove the libraries", f"sudo apt-get remove {package}")
    module = f"nvidia module {kernel.version or '(version unknown)'} is loaded"
    return f"{module}, but the NVML library is not found", remedy, rollback


def _no_nodes() -> _Failure:
    remedy = Remedy(
        summary="Create the device nodes with nvidia-modprobe. The persistence daemon creates them at every start.",
        action=Action.CONFIGURE,
        commands=("sudo nvidia-modprobe -c 0 -u", "sudo systemctl enable --now nvidia-persistenced"),
    )
    rollback = Rollback.to("stop the persistence daemon", "sudo systemctl disable --now nvidia-persistenced")
    return "the nvidia module is loaded, but the device nodes /dev/nvidia* do not exist", remedy, rollback


def _nvml_fails() -> _Failure:
    remedy = Remedy(
        summary="Read the kernel's messages, then restart. If a container worked before, restart the container: a "
        "daemon-reload on the host can remove its devices.",
        action=Action.REBOOT,
        commands=("nvidia-smi", "sudo dmesg | grep -iE 'NVRM|Xid'", "sudo reboot"),
    )
    return "the nvidia module is loaded, but NVML does not start", remedy, RESTART


def _closed_node(node: DeviceNode) -> Finding:
    denied = " or ".join(verb for verb, allowed in (("read", node.readable), ("write", node.writable)) if not allowed)
    group = f'"$(stat -c %G {node.path})"'
    return Finding(
        subject=node.path,
        observed=f"no {denied} access for this process (mode {node.mode})",
        expected="readable and writable by the user who runs the job",
        remedy=Remedy(
            summary="Add the user to the group that owns the node, and log in again. In a container, allow the device; "
            "there the control group decides, not the mode.",
            action=Action.CONFIGURE,
            commands=(f"ls -l {node.path}", f'sudo usermod -aG {group} "$USER"'),
        ),
        rollback=Rollback.to("remove the user from the group", f'sudo gpasswd -d "$USER" {group}'),
    )
