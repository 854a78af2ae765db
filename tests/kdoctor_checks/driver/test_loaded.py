from helpers.facts import DRIVER, gpu, gpus, host, kernel, kernel_settings, logged, node, pci, pci_gpu
from helpers.rows import Row, fails, passes, table, unknown, unrecorded
from kdoctor.facts import Gpus, Host, Kernel, KernelDriver, PciDevices
from kdoctor.model import Action, Severity

ABSENT = Gpus(state="library-absent", error="libnvidia-ml.so.1: cannot open shared object file")
NO_MODULE = Gpus(state="driver-not-loaded", error="NVMLError_DriverNotLoaded: Driver Not Loaded")
NOT_LOADED = KernelDriver(loaded=False)
CONTAINER = host(container="docker")
WITHOUT_NODES = kernel(0, nodes=())
RECORDING = unrecorded(KernelDriver)
REJECTED = (
    "Loading of unsigned module is rejected",
    "Loading of module with unavailable key is rejected",
    "Lockdown: modprobe: unsigned module loading is restricted; see man kernel_lockdown.7",
)
UNBUILT = "Consult /var/lib/dkms/nvidia/470.256.02/build/make.log for more information."
SYMBOL = "nvidia: disagrees about version of symbol module_layout"
MOKUTIL = "sudo mokutil --import /var/lib/shim-signed/mok/MOK.der"
CLOSED = tuple(node(f"/dev/nvidia{index}", writable=False) for index in range(3))


def bound(*drivers: str | None) -> PciDevices:
    return PciDevices(devices=tuple(pci_gpu(index, driver=driver) for index, driver in enumerate(drivers)))


def without_training(words: str, **change: object) -> list[Row]:
    """A driver that runs no training, on the machine and on a recording."""
    found = gpus(1, gpu(0, **change))
    recordings = (RECORDING, {KernelDriver: "/proc is not readable"})
    return [fails(found, recorded, words, commands=()) for recorded in recordings]


test_loaded = table(
    "driver.loaded",
    Severity.ERROR,
    passes(DRIVER, "10 device nodes", briefs=[DRIVER], evidence=1),
    passes(kernel(2), gpus(0, state="library-mismatch"), briefs=[""]),  # another check judges it
    fails(
        NOT_LOADED,
        ABSENT,
        PciDevices(devices=()),
        "the PCI bus has no NVIDIA GPU",
        look=("grep -B2 PCI_ID=10DE: /sys/bus/pci/devices/*/uevent",),
        action=Action.INSPECT_HARDWARE,
        briefs=["no NVIDIA GPU on the PCI bus, no driver loaded"],
    ),
    fails(
        NOT_LOADED,
        NO_MODULE,
        bound("nouveau", None),
        "the PCI bus has 2 NVIDIA GPUs, bound to no driver, nouveau",
        briefs=["no driver loaded for the 2 NVIDIA GPUs on the PCI bus"],
    ),
    fails(NOT_LOADED, NO_MODULE, PciDevices, "the PCI devices were not read", briefs=["no driver loaded"]),
    fails(
        NOT_LOADED,
        NO_MODULE,
        kernel_settings(modules=("nouveau",)),
        "nouveau",
        "sudo rm /etc/modprobe.d/blacklist-nouveau.conf",
        action=Action.REBOOT,
    ),
    *(
        fails(NOT_LOADED, NO_MODULE, kernel_settings(secure_boot=True), logged(line), "Secure Boot", repr(line))
        for line in REJECTED
    ),
    fails(NOT_LOADED, NO_MODULE, kernel_settings(), logged(REJECTED[0]), unsaid="Secure Boot"),
    fails(NOT_LOADED, NO_MODULE, Kernel, logged(REJECTED[0]), repr(REJECTED[0]), unsaid="Secure Boot"),
    # nvidia-smi alone fails alike, whatever the kernel reports.
    *(
        fails(NO_MODULE, RECORDING, logged(line), words)
        for line, words in (
            (REJECTED[0], "mokutil"),
            ("modprobe: ERROR: could not insert 'nvidia': No such device", "lspci -nnk"),
            ("FATAL: Error inserting nvidia (/lib/nvidia.ko): Invalid module format", "another kernel"),
            ("modpost: GPL-incompatible module nvidia.ko uses GPL-only symbol 'a'", "make.log"),
            ("modprobe: ERROR: could not insert 'nvidia': Permission denied", "SELinux"),
            ("modprobe: FATAL: Module nvidia not found in directory /lib/modules/6.8", "dkms autoinstall"),
            ("modprobe: ERROR: could not insert 'nvidia': Device or resource busy", "the module could not be loaded"),
            ("dkms autoinstall on 6.8/x86_64 failed for nvidia(10)", "make.log"),
        )
    ),
    fails(
        NO_MODULE,
        RECORDING,
        logged("NVRM: No NVIDIA GPU found.", "modprobe: ERROR: could not insert 'nvidia': No such device"),
        explained_by=["gpu.kernel-log"],
    ),
    fails(NO_MODULE, RECORDING, logged("NVRM: BAR1 is 0M @ 0x0 (PCI:0000:01:00.0)"), explained_by=["gpu.kernel-log"]),
    fails(Gpus(state="failed", error="ls: cannot access '/dev/nvidia*': No such file"), RECORDING, "nvidia-modprobe"),
    passes(kernel(2), logged(REJECTED[0]), kernel_settings()),  # since then, a module was loaded
    fails(
        ABSENT,
        f"nvidia module {DRIVER} is loaded, but the NVML library is not found",
        commands=("sudo apt-get install nvidia-utils-580",),
        rollback=("sudo apt-get remove nvidia-utils-580",),
    ),
    fails(
        ABSENT,
        kernel(1, version=None),
        "nvidia module (version unknown) is loaded, but the NVML library",
        commands=("sudo apt-get install 'nvidia-utils-<branch>'",),
    ),
    fails(ABSENT, kernel(1), CONTAINER, f"nvidia module {DRIVER}, but this container has 3 device nodes"),
    fails(ABSENT, kernel(1), CONTAINER, "lacks the driver's libraries."),
    fails(ABSENT, WITHOUT_NODES, CONTAINER, "this container has 0 device nodes", "lacks the driver's device nodes."),
    fails(
        ABSENT, kernel(nodes=None, version=None), CONTAINER, "(version unknown), but this container has device nodes"
    ),
    fails(NO_MODULE, WITHOUT_NODES, CONTAINER, "0 device nodes", "docker run --gpus all", "'<image>' '<command>'"),
    fails(ABSENT, WITHOUT_NODES, host(container="docker", image="job:3"), "compute,utility job:3 '<command>'"),
    fails(Gpus(state="failed"), WITHOUT_NODES, PciDevices, "sudo nvidia-modprobe -c 0 -u;"),  # at least one
    *(
        fails(
            gpus(2, state=state),
            kernel(nodes=(node("/dev/nvidia0"), CLOSED[1], node("/dev/nvidiactl"))),
            "0660",
            "write",
            of=["/dev/nvidia1"],
            unsaid="not read",
        )
        for state in ("ready", "no-permission")
    ),
    fails(
        gpus(3, state="no-permission"),
        kernel(nodes=CLOSED),
        of=3,
        commands=('sudo usermod -aG "$(stat -c %G /dev/nvidia0)" "$USER"',),
    ),
    fails(Gpus(state="no-permission", error="NVMLError_NoPermission"), "no-permission (NVMLError_NoPermission)."),
    unknown(unrecorded(Gpus), f"module {DRIVER} is loaded"),
    passes(PciDevices, Host),  # they describe the cause of a failure
    given=(kernel(), gpus(), pci(), host()),
)

test_recording = table(
    "driver.loaded",
    Severity.ERROR,
    passes(gpus(), briefs=[DRIVER]),
    passes(Gpus(state="library-mismatch")),
    unknown(gpus(driver_version=None)),
    *(
        fails(Gpus(state=state, error="NVIDIA-SMI has failed"), "NVIDIA-SMI has failed", commands=(fix,))  # type: ignore[arg-type]
        for state, fix in (("driver-not-loaded", "sudo modprobe nvidia"), ("failed", "sudo reboot"))
    ),
    fails(
        Gpus(state="library-absent", error='could not select device driver "" with capabilities: [[gpu]]'),
        commands=("sudo nvidia-ctk runtime configure --runtime=docker", "sudo systemctl restart docker"),
    ),
    fails(Gpus(state="failed", error="GPU access blocked by the operating system"), "wsl --update"),
    fails(Gpus(state="library-absent", error="unresolvable CDI devices nvidia.com/gpu=all"), "nvidia-ctk cdi generate"),
    fails(Gpus(state="failed", error="nvidia-container-cli: requirement error: cuda>=13"), "older CUDA"),
    fails(Gpus(state="library-absent", error="nvidia-container-cli: load library failed: libnvidia-ml.so.1"), "Engine"),
    fails(
        Gpus(state="failed", error="nvidia-container-cli: detection error: nvml error: unknown error"),
        commands=("sudo systemctl restart docker",),
    ),
    fails(Gpus(state="failed", error="lstat /dev/nvidia-uvm: no such file or directory"), "sudo modprobe nvidia-uvm"),
    fails(Gpus(state="no-permission", error="Insufficient Permissions"), "--security-opt=label=disable", commands=()),
    *(
        fails(Gpus(state="library-absent", error=error), briefs=[brief], action=Action.REINSTALL)
        for error, brief in (
            ("bash: nvidia-smi: command not found", "nvidia-smi is not installed"),
            ("NVIDIA-SMI couldn't find libnvidia-ml.so library in your system.", "the NVML library is not found"),
            ("nvidia-smi couldn't find libnvidia-ml.so", "the NVML library is not found"),
            (None, "the NVML library is not found"),
        )
    ),
    *(fails(gpus(1, errors={"cuda_driver_version": text}), text, commands=()) for text in ("ERR!", "Not Found")),
    unknown(gpus(1, driver_version="440.118", cuda_driver_version="10.2"), "440.118 is older than 450.80.02"),
    passes(gpus(1, driver_version="418.226", cuda_driver_version="11.4"), briefs=["418.226"]),
    passes(gpus(1, driver_version="450.80.02", cuda_driver_version=None), briefs=["450.80.02"]),
    *without_training("vGPU", virtualization_mode="host-vgpu"),
    *without_training("Jetson", name="Orin (nvgpu)", bus_id=None),
    fails(bound("nouveau", "nouveau"), unrecorded(Gpus), "nouveau"),
    passes(  # a paste of a container that does not start, and of nvidia-smi on its host
        gpus(
            2, gpu(0), gpu(1, performance_state=None, errors={"uuid": "Unknown Error"}), state="failed", error="unknown"
        ),
        "one does not respond",
    ),
    fails(kernel_settings(modules=("nouveau",)), unrecorded(Gpus), "nouveau is loaded"),
    unknown(kernel_settings(modules=("nouveau", "nvidia")), unrecorded(Gpus)),
    fails(bound("vfio-pci", "nouveau"), unrecorded(Gpus), "vfio-pci"),
    fails(logged("nouveau 0000:01:00.0: NVIDIA GP107 (137000a1)"), unrecorded(Gpus), "nouveau is loaded"),
    fails(unrecorded(Gpus), logged(UNBUILT), "  the module could not be built for this kernel."),
    fails(unrecorded(Gpus), logged(REJECTED[0]), repr(REJECTED[0]), commands=(MOKUTIL, "sudo reboot")),
    fails(unrecorded(Gpus), logged(SYMBOL), repr(SYMBOL), commands=("sudo dkms autoinstall",)),
    *(unknown(bound(*drivers), unrecorded(Gpus), "gpus") for drivers in (("nouveau", "nvidia"), ("nouveau", None), ())),
    given=(RECORDING,),
)
