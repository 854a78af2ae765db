"""Whether the NVIDIA driver works, and if not, which part of it is missing."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TypeGuard

from kdoctor.check import check
from kdoctor.facts import DeviceNode, Gpus, Host, Kernel, KernelDriver, KernelLog, PciDevices, Unavailable
from kdoctor.model import Action, Evidence, Finding, Outcome, Remedy, Rollback, Severity

_NODE = re.compile(r"/dev/nvidia(\d+|ctl|-uvm)")
"""The device nodes that CUDA opens; the others (caps, modeset) serve other purposes."""

_SUBJECT = "NVIDIA driver"
_HEALTHY = "the nvidia kernel module is loaded, and NVML reaches it"


@check("driver.loaded", severity=Severity.ERROR, needs_gpus=True)
def loaded(
    kernel: KernelDriver,
    gpus: Gpus,
    pci: PciDevices | Unavailable,
    host: Host | Unavailable,
    settings: Kernel | Unavailable,
    log: KernelLog | Unavailable,
) -> Iterator[Outcome]:
    """The NVIDIA driver is loaded, and this process may use it.

    Why: without a working driver TensorFlow finds no GPU and trains on the CPU without an error. The parts fail
    apart: the device, the kernel module, the user-space libraries, the device nodes and their permissions, and in a
    container what the runtime brings in. The finding names the part that is missing here, and what bars it: nouveau,
    or Secure Boot, which refuses a module that nobody signed.
    Remedy: load or install the part that the finding names: the kernel module, the user-space library, the device
    nodes, or the container's NVIDIA runtime.
    Sources:
        https://docs.nvidia.com/datacenter/tesla/driver-installation-guide/
        https://docs.nvidia.com/datacenter/cloud-native/container-toolkit/latest/docker-specialized.html
        https://github.com/tensorflow/tensorflow/issues/37689
    Failure modes: libcuda_missing
    """
    nodes = kernel.nodes or ()
    closed = [node for node in nodes if _NODE.fullmatch(node.path) and not (node.readable and node.writable)]
    for node in closed:
        yield _closed_node(node)
    # A library that does not fit the module was found, and so was the module: driver.library-matches-module tells it.
    if gpus.state in ("ready", "library-mismatch"):
        module = f"module {kernel.version or '(version not read)'}" if kernel.loaded else "module not seen from here"
        library = f"NVML {gpus.state}, driver {gpus.driver_version or '(version not read)'}"
        yield Evidence(subject=_SUBJECT, observed=f"{library}, {module}, {_counted(kernel)}")
    elif gpus.state != "no-permission" or not closed:
        yield _barred(kernel, gpus, settings, log) or _cause(kernel, gpus, pci, host)


def _barred(
    kernel: KernelDriver, gpus: Gpus, settings: Kernel | Unavailable, log: KernelLog | Unavailable
) -> Finding | None:
    """What keeps the kernel module from being loaded, if the kernel says so."""
    if kernel.loaded:
        return None
    if isinstance(settings, Kernel) and settings.nouveau_loaded:
        return _nouveau(gpus)
    rejected = [event.text for event in log.events if event.kind == "module-rejected"] if _read(log) else []
    return _unsigned(gpus, rejected[-1], settings) if rejected else None


def _read(log: KernelLog | Unavailable) -> TypeGuard[KernelLog]:
    return isinstance(log, KernelLog)


def _nouveau(gpus: Gpus) -> Finding:
    file = "/etc/modprobe.d/blacklist-nouveau.conf"
    return _finding(
        f"nouveau, the free driver, is loaded instead of nvidia; {_said(gpus)}",
        Remedy(
            summary="Keep nouveau from being loaded, install NVIDIA's driver, and restart.",
            action=Action.REBOOT,
            commands=(
                f"printf 'blacklist nouveau\\noptions nouveau modeset=0\\n' | sudo tee {file}",
                "sudo update-initramfs -u",
                "sudo reboot",
            ),
        ),
        Rollback.to("nouveau loaded, as recorded", f"sudo rm {file}", "sudo update-initramfs -u", "sudo reboot"),
    )


def _unsigned(gpus: Gpus, line: str, settings: Kernel | Unavailable) -> Finding:
    secure = isinstance(settings, Kernel) and settings.secure_boot
    return _finding(
        f"the kernel refused a module{', and Secure Boot is on' if secure else ''}: {line!r}; {_said(gpus)}",
        Remedy(
            summary="Install the driver from the distribution's signed packages, or enrol the key that signed the "
            "module (the machine asks for it at the next start), or switch Secure Boot off in the firmware's setup.",
            action=Action.CONFIGURE,
            commands=(
                "mokutil --sb-state",
                "modinfo nvidia | grep -i sign",
                "sudo mokutil --import /var/lib/shim-signed/mok/MOK.der",
                "sudo reboot",
            ),
        ),
        Rollback.to("the key not enrolled", "sudo mokutil --delete /var/lib/shim-signed/mok/MOK.der", "sudo reboot"),
    )


def _cause(kernel: KernelDriver, gpus: Gpus, pci: PciDevices | Unavailable, host: Host | Unavailable) -> Finding:
    contained = isinstance(host, Host) and host.container not in (None, "none")
    if not kernel.loaded:
        return _no_module(gpus, pci)
    if contained and (gpus.state == "library-absent" or kernel.nodes == ()):
        return _no_runtime(kernel, gpus)
    if gpus.state == "library-absent":
        return _no_library(kernel, gpus)
    if kernel.nodes == ():
        return _no_nodes(gpus)
    return _nvml_fails(gpus)


def _finding(observed: str, remedy: Remedy, rollback: Rollback) -> Finding:
    return Finding(subject=_SUBJECT, observed=observed, expected=_HEALTHY, remedy=remedy, rollback=rollback)


def _counted(kernel: KernelDriver) -> str:
    return "device nodes not read" if kernel.nodes is None else f"{len(kernel.nodes)} device nodes"


def _said(gpus: Gpus) -> str:
    return f"NVML: {gpus.state}" + (f" ({gpus.error})" if gpus.error else "")


def _no_module(gpus: Gpus, pci: PciDevices | Unavailable) -> Finding:
    if isinstance(pci, PciDevices) and not pci.gpus:
        return _finding(
            f"no NVIDIA GPU among the PCI devices, and the nvidia kernel module is not loaded; {_said(gpus)}",
            Remedy(
                summary="Run on a machine with GPUs, or use a checklist that expects none (cpu-smoke). If a GPU is "
                "built in: check its power and seat, the BIOS, or the virtual machine's passthrough.",
                action=Action.INSPECT_HARDWARE,
                commands=("lspci -nn -d 10de:", "kdoctor check --checklist cpu-smoke"),
            ),
            Rollback.nothing("looking changes nothing"),
        )
    seen = "the PCI devices could not be read"
    if isinstance(pci, PciDevices):
        bound = sorted({device.driver or "no driver" for device in pci.gpus})
        seen = f"{len(pci.gpus)} NVIDIA GPUs among the PCI devices, bound to {', '.join(bound)}"
    return _finding(
        f"the nvidia kernel module is not loaded; {seen}; {_said(gpus)}",
        Remedy(
            summary="Load the module; if modprobe does not find it, install the driver from the distribution's "
            "packages (after a kernel upgrade it may have to be built again). nouveau and vfio-pci must let go first.",
            action=Action.CONFIGURE,
            commands=("lspci -nnk -d 10de:", "sudo modprobe nvidia", "sudo dmesg | grep -i nvrm"),
        ),
        Rollback.to("the module not loaded, as recorded", "sudo modprobe -r nvidia_uvm nvidia"),
    )


def _no_runtime(kernel: KernelDriver, gpus: Gpus) -> Finding:
    return _finding(
        f"the host's nvidia module {kernel.version or ''} is loaded, but this container has "
        f"{_counted(kernel)}; {_said(gpus)}".replace("  ", " "),
        Remedy(
            summary="Start the container with the NVIDIA runtime (Docker's is shown; in Kubernetes request "
            "nvidia.com/gpu), with the driver capabilities compute and utility.",
            action=Action.CONFIGURE,
            commands=("docker run --gpus all -e NVIDIA_DRIVER_CAPABILITIES=compute,utility '<image>' '<command>'",),
        ),
        Rollback.nothing("a container is started anew; nothing on the host changes"),
    )


def _no_library(kernel: KernelDriver, gpus: Gpus) -> Finding:
    branch = (kernel.version or "").partition(".")[0]
    package = f"nvidia-utils-{branch}" if branch else "nvidia-utils-'<branch>'"
    return _finding(
        f"the nvidia module {kernel.version or '(version not read)'} is loaded, but its library is not found; "
        f"{_said(gpus)}",
        Remedy(
            summary="Install the user-space half of the driver, in the module's own version (the command is "
            "Ubuntu's), or take a folder that hides it off LD_LIBRARY_PATH.",
            action=Action.REINSTALL,
            commands=("ldconfig -p | grep -E 'libnvidia-ml|libcuda'", f"sudo apt-get install {package}"),
        ),
        Rollback.to("no user-space driver, as recorded", f"sudo apt-get remove {package}"),
    )


def _no_nodes(gpus: Gpus) -> Finding:
    return _finding(
        f"the nvidia module is loaded, but there is no device node /dev/nvidia*; {_said(gpus)}",
        Remedy(
            summary="Let NVIDIA's own tool make the device nodes; the persistence daemon makes them at every start.",
            action=Action.CONFIGURE,
            commands=("sudo nvidia-modprobe -c 0 -u", "sudo systemctl enable --now nvidia-persistenced"),
        ),
        Rollback.to("the persistence daemon off", "sudo systemctl disable --now nvidia-persistenced"),
    )


def _nvml_fails(gpus: Gpus) -> Finding:
    return _finding(
        f"the nvidia module is loaded, but NVML does not start; {_said(gpus)}",
        Remedy(
            summary="Read what the kernel logged, then restart; in a container that worked before, restart the "
            "container (a daemon-reload on the host can take its devices away).",
            action=Action.REBOOT,
            commands=("nvidia-smi", "sudo dmesg | grep -iE 'NVRM|Xid'", "sudo reboot"),
        ),
        Rollback.nothing("a restart changes no configuration"),
    )


def _closed_node(node: DeviceNode) -> Finding:
    return Finding(
        subject=node.path,
        observed=f"mode {node.mode}; this process may"
        f" {'' if node.readable else 'not '}read and may {'' if node.writable else 'not '}write it",
        expected="readable and writable by the user who runs the job",
        remedy=Remedy(
            summary="Add the user to the group that owns the node, and log in again; in a container, allow the "
            "device (its cgroup decides, not the mode).",
            action=Action.CONFIGURE,
            commands=(f"ls -l {node.path}", f'sudo usermod -aG "$(stat -c %G {node.path})" "$USER"'),
        ),
        rollback=Rollback.to("the user's groups as before", f'sudo gpasswd -d "$USER" "$(stat -c %G {node.path})"'),
    )
