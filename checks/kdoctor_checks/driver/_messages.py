"""What messages about the driver say, the cause, and the fix."""

from kdoctor.model import READ_ONLY, Remedy, Rollback
from kdoctor_checks._driver import LOAD_UVM, WITHOUT_GPU
from kdoctor_checks._gpus import RESTART

_UNTIL_RESTART = Rollback.nothing("not needed (a restart unloads the module)")
_BESIDE_OTHERS = Rollback.nothing("not needed (the modules of other kernels stay)")

_OF_DRIVER = "driver not loaded|version mismatch|not permitted|ermissions"
"""Words of the container runtime about what the checks of the driver report better."""

STATED = (
    (
        "unresolvable CDI",
        "the container runtime finds no CDI specification of the GPUs",
        Remedy.configure(
            "Generate it on the host, readable for the user of rootless Podman, and again after each update of the "
            "driver.",
            "sudo nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml",
            look=("nvidia-ctk cdi list", "ls -l /etc/cdi /var/run/cdi", "nvidia-smi -L"),
        ),
        Rollback.to("remove the specification", "sudo rm /etc/cdi/nvidia.yaml"),
    ),
    (
        "could not select device driver|runtime name: nvidia|no runtime for",
        "the container runtime does not know NVIDIA's",
        Remedy.configure(
            "Install the NVIDIA Container Toolkit on the host, and register its runtime (Docker command shown).",
            "sudo nvidia-ctk runtime configure --runtime=docker",
            "sudo systemctl restart docker",
            look=("nvidia-smi", "nvidia-ctk --version", "docker info | grep -i runtimes"),
        ),
        Rollback.to("remove the runtime", "sudoedit /etc/docker/daemon.json", "sudo systemctl restart docker"),
    ),
    (
        "blocked by the operating system",
        "Windows gives WSL no access to the GPU",
        Remedy.reinstall(
            "Update NVIDIA's driver on Windows, and WSL (in PowerShell). Install no Linux driver in WSL. A GPU in TCC "
            "mode is not available there.",
            "wsl --update",
            "wsl --shutdown",
            look=("nvidia-smi.exe",),
        ),
        Rollback.irreversible("WSL does not keep its previous release"),
    ),
    (
        "/dev/+nvidia(?!-)",
        "the driver's device nodes are missing",
        Remedy.configure(
            "Load the module and create the nodes with nvidia-modprobe. Start containers with the NVIDIA runtime.",
            "sudo modprobe nvidia",
            "sudo nvidia-modprobe -u",
            look=("ls -l /dev/nvidia*", "sudo dmesg | grep -i nvrm"),
        ),
        _UNTIL_RESTART,
    ),
    (
        r"cudaGetDeviceCount\(?\)? returned",
        "CUDA does not start",
        Remedy.configure(
            "Reload the module of unified memory, or restart the machine. Error 802 needs the fabric manager, and 35, "
            "803 and 804 a newer driver or the removal of cuda-compat.",
            "sudo modprobe -r nvidia_uvm",
            "sudo modprobe nvidia_uvm",
            look=("nvidia-smi", "ls -l /dev/nvidia*", "ldconfig -p | grep libcuda"),
        ),
        _UNTIL_RESTART,
    ),
    (
        "nvidia-container-cli.*(?:library failed|libnvidia-ml|cannot open)",
        "the container runtime finds no libraries of the driver on the host",
        Remedy.reinstall(
            "Install NVIDIA's driver on the host. Docker Desktop and the snap of Docker do not see the host's: use the "
            "packages of Docker Engine.",
            look=("nvidia-smi", "docker context show", "snap list docker"),
        ),
        READ_ONLY,
    ),
    (
        "requirement error|unsatisfied condition",
        "the host's driver is older than the container's image asks for",
        Remedy.reinstall(
            "Install the driver that the message asks for on the host, or use an image with an older CUDA.",
            look=("nvidia-smi", "docker image inspect '<image>' | grep NVIDIA_REQUIRE"),
        ),
        READ_ONLY,
    ),
    (
        f"nvidia-container-cli(?!.*(?:{_OF_DRIVER}))",
        "the container runtime cannot reach the driver",
        Remedy.configure(
            "Restart the container runtime if nvidia-smi works on the host. If not, repair the driver there first.",
            "sudo systemctl restart docker",
            look=("nvidia-smi", "nvidia-ctk --version", "sudo dmesg | grep -iE 'nvrm|xid'"),
        ),
        RESTART,
    ),
    (
        "/dev/nvidia-uvm|UVM kernel module",
        "the kernel module nvidia-uvm or its device node is missing",
        LOAD_UVM,
        _UNTIL_RESTART,
    ),
)
"""Messages of NVML and container runtimes that are their own cause: their words, the cause, the fix and its undoing."""

SIGNATURE = r"(?i)sign(?:ed|ature)|[rR]equired key|key was rejected|unavailable key|crypto|lockdown|not permitted"
NO_GPU = "No such device"
NOT_LOADED = (
    (
        "version of symbol|Unknown symbol|version magic|Exec format|Invalid (?:argument|module format)",
        "the module was built for another kernel",
        Remedy.reinstall(
            "Build the module for the kernel that runs, or start the kernel that it was built for.",
            "sudo dkms autoinstall",
            look=("uname -r", "modinfo nvidia | grep vermagic", "dkms status"),
        ),
        _BESIDE_OTHERS,
    ),
    (
        r"/var/lib/dkms/|modpost: |bad exit|[bB]ad return|[fF]ailed to build|[bB]uilding|(?i:dkms.*(?:error|fail))",
        "the module could not be built for this kernel",
        Remedy.reinstall(
            "Install a driver release that supports this kernel, or its headers if they are missing, or start an older "
            "kernel. The log says why.",
            look=("tail -n 40 /var/lib/dkms/nvidia*/*/build/make.log", "uname -r", "dkms status"),
        ),
        READ_ONLY,
    ),
    (
        "not found|find module",
        "the module is not installed for this kernel",
        Remedy.reinstall(
            "Install the driver, or build its module for the kernel that runs.",
            "sudo dkms autoinstall",
            look=("uname -r", "dkms status", "modinfo nvidia"),
        ),
        _BESIDE_OTHERS,
    ),
    (
        "[dD]enied",
        "the kernel was not allowed to load the module",
        Remedy.configure(
            "Allow it: SELinux or the confinement of the container denied it. Its log names the rule.",
            look=("getenforce", "sudo ausearch -m avc -ts recent", "modinfo -n nvidia"),
        ),
        READ_ONLY,
    ),
    (NO_GPU, "the module finds no GPU that it supports", WITHOUT_GPU, READ_ONLY),
    (
        "",
        "the module could not be loaded",
        Remedy.reinstall(
            "Read the kernel's reason, and install a driver that fits this kernel.",
            look=("sudo dmesg | tail -n 30", "uname -r", "modinfo nvidia"),
        ),
        READ_ONLY,
    ),
)
"""Words about a module that was not loaded, and the same. The most telling ones come first."""
NOT_STARTED = frozenset(
    {"init-failed", "no-address-space", "not-supported", "no-firmware", "no-power", "not-probed", "fallen-off-the-bus"}
)
"""What the kernel log says of GPUs without which the module does not stay loaded."""
