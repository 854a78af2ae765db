from typing import Any

from helpers.facts import DRIVER, environment, gpu, gpus, h100_node, host, kernel, log, logged, lost_gpu, node
from helpers.facts.libraries import libraries, library, missing, no_libraries
from helpers.rows import fails, passes, skips, table, unknown, unrecorded
from kdoctor.facts import FactGroup, Gpus, KernelDriver, KernelLog, LibraryCopy
from kdoctor.model import Action, Severity

GPU0, GPU1 = gpu(0).subject, gpu(1).subject
CONTROL = node("/dev/nvidiactl")


def closed(path: str, *devices: Any) -> Gpus:
    return gpus(2, *devices, node_errors={path: "EIO"})


test_device_nodes = table(
    "driver.device-nodes",
    Severity.ERROR,
    passes(of=["/dev/nvidiactl", GPU0, GPU1]),
    fails(
        gpus(2, node_errors={"/dev/nvidia1": "EPERM", "/dev/nvidia-caps-imex-channels": "EPERM"}),
        "cannot be opened: EPERM",
        f"pass {GPU0}",
        of=["/dev/nvidia1"],
        evidence=2,
        commands=(),
        explained_by=[""],
    ),
    fails(  # recorded: two L4 whose GPU 0 has the minor number 1
        gpus(2, gpu(0, minor_number=1), gpu(1, minor_number=0)),
        kernel(2, nodes=(node("/dev/nvidia0"), CONTROL)),
        f"fail {GPU0}: /dev/nvidia1",
        of=[GPU0],
    ),
    fails(kernel(2, nodes=(node("/dev/nvidia0"), node("/dev/nvidia1"))), of=["/dev/nvidiactl"]),
    fails(kernel(nodes=(CONTROL, node("/dev/nvidia0"))), of=[GPU1], commands=("sudo nvidia-modprobe -c 1 -u",)),
    fails(closed("/dev/nvidia1", gpu(0), gpu(1, errors={"uuid": "GPU is lost"})), explained_by=["gpu.responding"] * 2),
    fails(gpus(2, gpu(0, minor_number=5), gpu(1), node_errors={"/dev/nvidia0": "EIO"}), explained_by=[""] * 2),
    fails(closed("/dev/nvidia0", gpu(0), lost_gpu(1)), explained_by=["", "gpu.responding"], of=["/dev/nvidia0"]),
    fails(gpus(2, node_errors={"/dev/nvidiactl": "EPERM"}), of=["/dev/nvidiactl"], evidence=2),
    fails(kernel(2, nodes=()), of=["/dev/nvidiactl", GPU0, GPU1]),
    passes(kernel(2, loaded=False)),  # a container without the folder of the module
    skips(kernel(0, loaded=False, nodes=())),  # WSL
    unknown(gpus(2, gpu(0), lost_gpu(1))),
    unknown(gpus(2, node_errors=None)),
    unknown(kernel(2, nodes=None)),
    unknown(gpus(2, gpu(0), gpu(1, minor_number=None))),
    given=(kernel(2), gpus(2)),
)

test_unified_memory_node = table(
    "driver.unified-memory-node",
    Severity.WARNING,
    passes(kernel(2)),
    fails(kernel(1, nodes=(node("/dev/nvidia0"), CONTROL)), of=["/dev/nvidia-uvm"]),
    skips(kernel(0, loaded=False, nodes=())),  # WSL
    unknown(kernel(2, nodes=None)),
)


def libcuda(version: str, **changes: Any) -> FactGroup:
    return libraries(library("cuda", version=version, **changes))


OTHER = libcuda("570.86.15", path="/opt/old/libcuda.so.1", found_by="LD_LIBRARY_PATH")
STUB = LibraryCopy(path="/usr/local/cuda/compat/libcuda.so.1", found_by="not searched")
FOUND = str(library("cuda").path)

test_libcuda_found = table(
    "driver.libcuda-found",
    Severity.ERROR,
    passes(said={FOUND: f"version {DRIVER}, like the kernel module"}),
    passes(libraries(library("cuda", version="590.44.01"), driver_is_compat=True)),  # another check judges it
    fails(
        libraries(missing("cuda", other_copies=(STUB,))),
        STUB.path,
        of=["libcuda.so.1"],
        briefs=["not found by the loader"],
        commands=("sudo apt-get install libnvidia-compute-580",),
    ),
    fails(
        libraries(missing("cuda")),
        kernel(1, version=None),
        commands=("sudo apt-get install 'libnvidia-compute-<branch>'",),
    ),
    fails(libraries(missing("cuda", soname=None)), host(container=None), "apt-get", said={"libcuda.so.1": "not found"}),
    fails(
        libraries(library("cuda", status="not loadable", load_error="truncated")),
        said={"libcuda.so.1": "not loadable (truncated)"},
        briefs=["found, but not loadable"],
    ),
    fails(
        OTHER,
        environment(LD_LIBRARY_PATH="/opt/old:/keep"),
        "570.86.15",
        commands=("export LD_LIBRARY_PATH=/keep",),
        rollback=("export LD_LIBRARY_PATH=/opt/old:/keep",),
    ),
    fails(libcuda("590.44.01"), action=Action.REBOOT),
    unknown(libraries(libraries=()), said={"libcuda.so.1": "the libraries that TensorFlow needs were not read"}),
    unknown(libraries(driver_version=None), said={FOUND: "its version was not read"}),
    unknown(kernel(1, version=None), said={FOUND: "the version of the kernel module was not read"}),
    skips(no_libraries(), reason=no_libraries().note),
    given=h100_node(1),
)

MISMATCH = Gpus(state="library-mismatch", error="Driver/library version mismatch")

test_library_matches_module = table(
    "driver.library-matches-module",
    Severity.ERROR,
    passes(DRIVER, "open"),
    fails(  # recorded: the module of 580.173.02 under the library of 580.178
        kernel(version="580.173.02"),
        MISMATCH,
        "580.173.02",
        "Driver/library version mismatch",
        "nvidia-driver-580=580.173.02-*",
        action=Action.REBOOT,
        briefs=["library does not match kernel module 580.173.02"],
    ),
    fails(
        kernel(version="570.124.06"),
        gpus(driver_version="570.158.01"),
        ": kernel module 570.124.06 does not match library 570.158.01",
        expected="version 570.124.06 of both",
    ),
    fails(
        kernel(version=None),
        MISMATCH,
        "Rollback: not possible",
        expected="the same version of both",
        briefs=["library and kernel module have different versions"],
    ),
    fails(unrecorded(KernelDriver), MISMATCH),
    unknown(unrecorded(KernelDriver)),
    unknown(kernel(version=None)),
    unknown(gpus(driver_version=None)),
    unknown(Gpus(state="failed", error="it hung"), "NVML is not ready: it hung."),
    unknown(Gpus(state="failed"), "NVML is not ready: failed."),
    unknown(KernelDriver(loaded=False), Gpus(state="library-absent")),
    given=(kernel(), gpus()),
)

COMPAT = "/usr/local/cuda/compat"
TITAN = gpus(1, gpu(0, name="NVIDIA TITAN V"))


def compat(version: str = "590.44.01", folder: str = COMPAT, found_by: str = "ld.so.cache") -> FactGroup:
    driver = library("cuda", version=version, path=f"{folder}/libcuda.so.1", found_by=found_by)
    return libraries(driver, driver_is_compat=True)


def named(name: str | None) -> Gpus:
    return gpus(1, gpu(0, name=name))


test_forward_compatibility = table(
    "driver.forward-compatibility",
    Severity.ERROR,
    # NVIDIA: data-centre GPUs, and select RTX boards of certified servers; never GeForce
    passes(compat(), named("NVIDIA H100 80GB HBM3")),
    unknown(compat(), named("NVIDIA RTX A6000")),
    unknown(compat(), named(None)),
    passes(named("NVIDIA GeForce RTX 4090")),  # libcuda of the driver fits every GPU
    fails(
        compat(found_by="LD_LIBRARY_PATH"),
        TITAN,
        environment(LD_LIBRARY_PATH=COMPAT),
        commands=("unset LD_LIBRARY_PATH",),
        rollback=(f"export LD_LIBRARY_PATH={COMPAT}",),
    ),
    *(
        fails(
            compat(folder=f"/usr/local/cuda{number}/compat"),
            TITAN,
            "TITAN V does not support forward compatibility",
            "(found by ld.so.cache).",
            "Rollback: not possible" if not back else "Rollback: ",
            commands=("sudo apt-get remove 'cuda-compat-*'",),
            rollback=back,
        )
        for number, back in (
            ("-12.5", ("sudo apt-get install cuda-compat-12-5",)),
            ("-13.0", ("sudo apt-get install cuda-compat-13-0",)),
            ("", ()),
        )
    ),
    fails(compat("580.65.06"), f"580.65.06 is older than the kernel module {DRIVER}"),  # on every GPU
    fails(compat(DRIVER), TITAN, unsaid="older"),
    unknown(libraries(library("cuda", path=None), driver_is_compat=None), of=["libcuda.so.1"]),
    skips(no_libraries(), reason=no_libraries().note),
    given=h100_node(1),
)


def confidential(**changes: Any) -> Gpus:
    on = {"conf_compute": True, "conf_compute_multi_gpu": "protected-pcie", "conf_compute_ready": True}
    return gpus(2, **{**on, **changes})


def unread(**errors: str) -> Gpus:
    return gpus(2, conf_compute=None, errors=errors)


test_confidential_computing = table(
    "driver.confidential-computing",
    Severity.ERROR,
    passes(gpus(2)),
    passes(confidential(), "on, and the GPUs are ready.", "on, multi-GPU mode protected-pcie.", of=2),
    passes(confidential(devices=(gpu(),), conf_compute_multi_gpu="none")),  # a single GPU needs no mode
    fails(confidential(conf_compute_ready=False), commands=("sudo nvidia-smi conf-compute -srs 1",)),
    fails(confidential(conf_compute_multi_gpu="none")),
    unknown(confidential(conf_compute_ready=None)),
    unknown(confidential(conf_compute_multi_gpu=None)),
    unknown(unread(), "its state was not read (no reason given)."),
    unknown(unread(conf_compute="NVML_ERROR_UNKNOWN"), "its state was not read (NVML_ERROR_UNKNOWN)."),
    skips(unread(conf_compute="NVML_ERROR_NOT_SUPPORTED")),
    skips(unread(conf_compute="NVML_ERROR_FUNCTION_NOT_FOUND")),
)

test_memory_regions = table(
    "driver.memory-regions",
    Severity.ERROR,
    passes(log()),
    fails(
        logged("[ 9.1] nvidia-uvm: uvm_pmm_gpu.c:3434 uvm_pmm_devmem_init[pid:1] request_free_mem_region() err -34"),
        "; echo 'options nvidia_uvm uvm_disable_hmm=1' | sudo tee /etc/modprobe.d/nvidia-uvm-hmm.conf;",
        "; sudo rm /etc/modprobe.d/nvidia-uvm-hmm.conf",
    ),
)

test_kernel_log = table(
    "driver.kernel-log",
    Severity.WARNING,
    passes(logged("usb 1-1: new device"), briefs=["kernel log clean since boot"]),
    unknown(log(complete=None)),
    unknown(log(complete=False)),
    unknown(log(lines=0)),
    unknown({KernelLog: "Permission denied (kernel.dmesg_restrict)"}, "Permission denied (kernel.dmesg_restrict)"),
)
