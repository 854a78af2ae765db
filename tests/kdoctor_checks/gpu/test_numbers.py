"""The checks of which GPUs there are: their number and models, and those that the driver and TensorFlow use."""

from dataclasses import replace
from typing import Any

from helpers.facts import (
    MIB,
    PYTHON,
    bus_id,
    environment,
    gpu,
    gpus,
    h100_node,
    host,
    kernel,
    lost_gpu,
    package,
    packages,
    pci,
    pci_gpu,
    smoke_case,
    smoke_run,
    target,
)
from helpers.rows import Row, fails, passes, skips, table, unknown, unrecorded
from kdoctor.facts import Environment, Gpu, Gpus, Host, KernelDriver, PciDevices, SmokeRun, SmokeRuns
from kdoctor.model import Action, Assumptions, GpuAssumption, Severity
from kdoctor_checks._causes import NO_GPU
from kdoctor_checks._gpus import RESTART

H100 = "NVIDIA H100 80GB HBM3"
GPU0, GPU1, GPU2 = (gpu(index).subject for index in range(3))
GPUS = [gpu(index).subject for index in range(4)]
RECORDED = unrecorded(Environment)
FAILED = Gpus(state="failed", error="Unknown Error")


def wanted(**expected: Any) -> Assumptions:
    return Assumptions(gpus=GpuAssumption(**expected))


def named(*names: str | None) -> Gpus:
    return gpus(len(names), *(gpu(index, name=name) for index, name in enumerate(names)))


def masked(value: str) -> Environment:
    return environment(CUDA_VISIBLE_DEVICES=value)


LOST_OF_THREE = gpus(3, gpu(0), lost_gpu(1), gpu(2))
LOST_OF_FOUR = gpus(4, gpu(0), gpu(1), gpu(2), lost_gpu(3))
INCOMPLETE = "GPUs: not all listed by NVML ({})"
FITS = "x" * (60 - len("1 x , 1 x b"))

test_count_expected = table(
    "gpu.count-expected",
    Severity.ERROR,
    fails(
        gpus(9),
        wanted(count=8),
        expected="exactly 8",
        commands=("export CUDA_DEVICE_ORDER=PCI_BUS_ID", "export CUDA_VISIBLE_DEVICES=0,1,2,3,4,5,6,7"),
        look=("kdoctor topology --replicas 8",),
    ),
    fails(gpus(2), pci(2), wanted(count=4), briefs=["2 usable, exactly 4 expected"], said={"GPUs": "2 usable GPUs"}),
    fails(
        gpus(2),
        wanted(at_least=4),
        "changes a variable of your shell",
        briefs=["2 usable, at least 4 expected"],
        expected="at least 4",
    ),
    fails(gpus(1), wanted(at_least=2), commands=("kdoctor check --gpus 1",), after=[""]),
    skips(gpus(0), wanted(count=0)),
    fails(
        LOST_OF_THREE,
        wanted(count=3),
        "fail GPUs: 2 usable GPUs; lost: GPU 1.",
        f"Rollback: {RESTART.why}",
        commands=("sudo reboot",),
        action=Action.REBOOT,
        explained_by=["gpu.responding"],
    ),
    # Four listed, one of them lost, and a fifth on the PCI bus only.
    fails(LOST_OF_FOUR, pci(5), wanted(count=4), "Rollback: not needed (", explained_by=["gpu.responding"]),
    fails(LOST_OF_FOUR, pci(5), wanted(count=5), explained_by=["gpu.responding, gpu.visible-to-driver"]),
    fails(gpus(3), pci(4), wanted(count=4), explained_by=["gpu.responding, gpu.visible-to-driver"]),
    fails(gpus(3), pci(2), wanted(count=4), explained_by=[""]),
    unknown(gpus(8, count=None, errors={"count": "Unknown"}), wanted(count=8), reason=INCOMPLETE.format("Unknown")),
    unknown(gpus(1, count=None), wanted(count=1), reason=INCOMPLETE.format("it counts None and lists 1")),
    unknown(gpus(1, count=4, errors={"count": "Unknown"}), reason=INCOMPLETE.format("it counts 4 and lists 1")),
    unknown(FAILED, wanted(count=1), reason=INCOMPLETE.format("Unknown Error")),
    skips(FAILED, wanted(count=0)),
    unknown(),
    unknown(gpus(8), masked("MIG-1"), wanted(count=8)),
    # A recorded machine has no shell that could hide GPUs, but more than an exact number may be hidden on purpose.
    passes(named(H100, H100), RECORDED, briefs=[f"2 x {H100}"]),
    unknown(gpus(3), RECORDED, wanted(count=2)),
    unknown(gpus(1), Environment),
    fails(gpus(1), Environment, wanted(at_least=2)),  # whatever the variable hides
    unknown(gpus(2), Environment, wanted(at_least=2)),
    passes(named("NVIDIA A10", None), briefs=["2 GPUs"]),
    passes(named(FITS, "b"), briefs=[f"1 x {FITS}, 1 x b"]),  # 60 characters fit
    passes(named(f"{FITS}x", "b"), briefs=["2 GPUs of 2 models"]),
    passes(gpus(2, gpu(0, name="NVIDIA A10"), lost_gpu(1)), briefs=["1 x NVIDIA A10"]),
    given=(environment(),),
)

H100S = wanted(model="NVIDIA H100*")

test_model_expected = table(
    "gpu.model-expected",
    Severity.ERROR,
    passes(gpus(2), H100S, said={GPU0: f"model is {H100}", GPU1: f"model is {H100}"}),
    *(fails(gpus(2), wanted(model=model)) for model in ("NVIDIA H200*", "H100", "nvidia h100*")),
    fails(named(None, H100, "Tesla T4"), H100S, of=[GPU2], unjudged=[GPU0], evidence=1),
    unknown(
        gpus(2, gpu(0), gpu(1, name=None, errors={"name": "NotSupported"})),
        H100S,
        reason=f"{GPU1}: name not read (NotSupported)",
    ),
    unknown(gpus(0), H100S),
    skips(gpus(2), wanted()),
)


def odd(index: int = 2, total: int = 3, **change: Any) -> Gpus:
    return gpus(total, *(gpu(place, **(change if place == index else {})) for place in range(total)))


def without_capability(**change: Any) -> Gpus:
    unread: dict[str, Any] = {"compute_capability": None, "errors": {"compute_capability": "not in nvidia-smi -q"}}
    return gpus(3, *(gpu(index, **unread, **(change if index == 1 else {})) for index in range(3)))


def unnumbered(*equal: Gpu) -> Gpus:
    """These GPUs and one of another model, from a recording without indices."""
    devices = (replace(one, numbered=False) for one in (*equal, gpu(2, name="NVIDIA A100")))
    return gpus(3, *devices)


def listed(*names: str) -> Gpus:
    errors = dict.fromkeys(("memory_total_bytes", "compute_capability"), "not in nvidia-smi -L")
    unread: dict[str, Any] = {**dict.fromkeys(errors), "errors": errors}
    return gpus(len(names), *(gpu(index, name=name, **unread) for index, name in enumerate(names)))


test_same_model = table(
    "gpu.same-model",
    Severity.WARNING,
    passes(gpus(8), f"pass {GPU0}: {H100}, compute capability 9.0, 79.6 GiB."),
    fails(odd(1, name="NVIDIA A100"), f"NVIDIA A100, not {H100}.", of=[GPU1], evidence=2),
    fails(odd(1, compute_capability="8.0"), "  unlike most GPUs.", of=[GPU1]),
    fails(odd(memory_total_bytes=40960 * MIB), "40.0 GiB of memory, most have 79.6 GiB.", of=[GPU2]),
    passes(odd(memory_total_bytes=(81559 - 1631) * MIB)),  # 2 % of 81559 MiB is 1631.18 MiB
    fails(odd(name="NVIDIA A100"), commands=("export CUDA_DEVICE_ORDER=PCI_BUS_ID", "export CUDA_VISIBLE_DEVICES=0,1")),
    fails(unnumbered(gpu(0), gpu(1)), commands=(f"export CUDA_VISIBLE_DEVICES={gpu(0).uuid},{gpu(1).uuid}",)),
    fails(unnumbered(gpu(0, uuid=None), gpu(1)), commands=(), of=["GPU at 0000:30:00.0"]),
    skips(gpus(1)),
    skips(gpus(0)),
    *(
        unknown(odd(1, 3, **{field: None}), of=[GPU1], evidence=2)
        for field in ("name", "compute_capability", "memory_total_bytes")
    ),
    unknown(LOST_OF_THREE, "79.6 GiB", of=["GPU 1"], evidence=2),
    # Without any compute capability, the name counts.
    passes(without_capability(), f"pass {GPU0}: {H100}, 79.6 GiB."),
    unknown(without_capability(name=None), of=[GPU1]),
    unknown(odd(1, compute_capability=None, errors={"compute_capability": "not in nvidia-smi -q"}), of=[GPU1]),
    # nvidia-smi -L prints names only, which differ or leave the memory open.
    fails(listed("NVIDIA A100", H100, H100), f"NVIDIA A100, not {H100}.", of=[GPU0]),
    unknown(listed(H100, H100), of=[GPU0, GPU1]),
)

SEEN = "on the PCI bus and in NVML ({})"
DOCKER = host(container="docker")


def bound(driver: str | None) -> PciDevices:
    return pci(3, pci_gpu(0), pci_gpu(1), pci_gpu(2, driver=driver))


ON_BUS = PciDevices(devices=tuple(device for device in pci(4).devices if device.bus_id != bus_id(1)))

test_visible_to_driver = table(
    "gpu.visible-to-driver",
    Severity.ERROR,
    passes(gpus(4, gpu(0), lost_gpu(1), gpu(2), gpu(3)), "gpu.responding", of=GPUS),
    *(
        unknown(gpus(4, gpu(0), lost, gpu(2), gpu(3)), ON_BUS, of=["GPU 1"], explained_by=["gpu.responding"])
        for lost in (lost_gpu(1), gpu(1, errors={"handle": "GpuIsLost"}))
    ),
    *(
        passes(odd(1, 4, memory_used_bytes=None, errors={"memory_used_bytes": error}), of=GPUS)
        for error in ("GpuIsLost", "NVML_ERROR_RESET_REQUIRED", "NVMLError_GpuIsLost")
    ),
    fails(bound(None), gpus(2), f"GPU at {bus_id(2)}: missing from NVML; the PCI device has no driver bound."),
    fails(
        bound("nouveau"),
        gpus(2),
        f"fail GPU at {bus_id(2)}: bound to the kernel driver nouveau.",
        "; sudo rm /etc/modprobe.d/blacklist-nouveau.conf;",
    ),
    passes(
        pci(2, pci_gpu(0), pci_gpu(1, driver="vfio-pci")),
        gpus(1),
        said={GPU0: SEEN.format(H100), bus_id(1): "assigned to a virtual machine (vfio-pci)"},
    ),
    passes(pci(1), named(None), said={GPU0: SEEN.format("name not read")}),
    # A container has device nodes of its GPUs only.
    passes(
        gpus(2),
        kernel(2),
        DOCKER,
        "not assigned to this container (no device node).",
        of=[*GPUS[:2], bus_id(2), bus_id(3)],
    ),
    fails(gpus(2), kernel(3), DOCKER, "missing from NVML; the PCI device is bound to the driver."),
    unknown(gpus(2), kernel(0), DOCKER, f"{bus_id(2)}: on the PCI bus, not in NVML; this may be a container."),
    unknown(gpus(2), kernel(0), host(container=None)),
    unknown(gpus(2), kernel(2), host(container=None)),
    unknown(gpus(0), kernel(0), DOCKER, of=4),
    unknown(odd(1, 4, bus_id=None, errors={"bus_id": "Unknown"}), "GPU 1: its bus id was not read (Unknown)."),
    unknown(PciDevices(devices=())),
    fails(unrecorded(KernelDriver, Host), bound("nvidia"), gpus(2), of=[f"GPU at {bus_id(2)}"]),
    unknown(unrecorded(KernelDriver, Host), bound(None), gpus(2)),
    passes(unrecorded(KernelDriver, Host), bound("vfio-pci"), gpus(2)),
    unknown(unrecorded(KernelDriver, Host), pci(1), gpus(2), evidence=1),
    *(
        unknown(unrecorded(group), bound(None), gpus(2), kernel(2), DOCKER, of=[bus_id(2)])
        for group in (KernelDriver, Host)
    ),
    given=(pci(4), gpus(4), kernel(4), host()),
)


def run(replicas: int = 4, seen: int | None = None, kind: str = "GPU", **changes: Any) -> SmokeRun:
    seen = replicas if seen is None else seen
    return smoke_run("smoke.baseline", 4, smoke_case(replicas=replicas, kind=kind), gpus_seen=seen, **changes)


def explained(seen: int, explained_by: str, *devices: Any) -> Row:
    return fails(run(seen), gpus(4, *devices), explained_by=[explained_by])


CLOSED, DIVIDED = gpu(3, compute_mode="prohibited"), [gpu(index, mig_mode=True) for index in range(4)]
FIRST_THREE = gpu(0), gpu(1), gpu(2)
MEASURED = smoke_run(replicas=4)

test_replicas_match = table(
    "gpu.replicas-match",
    Severity.ERROR,
    passes("4 on the PCI bus, 4 in the driver, 4 visible to CUDA", evidence=2),
    fails(
        run(1, 0, "CPU"),
        "0 of 4 ",
        "4 visible to CUDA",
        commands=(f"{PYTHON} -m pip install 'tensorflow[and-cuda]==2.21.0'",),
        rollback=(f"{PYTHON} -m pip install tensorflow==2.21.0",),
    ),
    fails(run(1, 0, "CPU"), explained_by=[", ".join(NO_GPU)]),
    # The libraries are those for the TensorFlow of the run.
    fails(
        run(1, 0, "CPU", tensorflow="2.20.0"),
        packages(package("tensorflow", "2.20.0")),
        "install 'tensorflow[and-cuda]==2.20.0'",
    ),
    fails(run(1, 0, "CPU", tensorflow=None), "install 'tensorflow[and-cuda]==2.21.0'"),
    fails(run(3), masked("0,1,2,3"), expected="4 registered (CUDA_VISIBLE_DEVICES=0,1,2,3)"),
    fails(run(2, 4), action=Action.CHANGE_CODE),
    fails(run(4, 4, "CPU"), "4 replicas, 0 on a GPU"),
    fails(
        smoke_run("smoke.baseline", 4, smoke_case(replicas=0, devices=("/device:CPU:0",))),
        ": 0 replicas, 0 on a GPU; 4 on the PCI bus, 4 in the driver, 4 visible to CUDA",
        "  0 on a GPU, although TensorFlow has 4 GPUs.",
    ),
    explained(3, "gpu.compute-mode", *FIRST_THREE, CLOSED),
    explained(2, "", *FIRST_THREE, CLOSED),
    explained(3, "gpu.responding", *FIRST_THREE, lost_gpu(3)),
    explained(1, "gpu.mig-mode", *DIVIDED),
    explained(1, "gpu.mig-mode", *FIRST_THREE, gpu(3, mig_mode=True)),
    explained(1, "", *FIRST_THREE, gpu(3)),
    unknown(smoke_run(replicas=4, gpus_seen=None)),
    unknown(smoke_run(replicas=4, gpus_seen=None, cases=(), failure="TensorFlow did not import")),
    unknown(smoke_run(replicas=4, cases=())),
    unknown(smoke_run("smoke.baseline", 4, smoke_case(replicas=4, devices=()))),
    unknown(smoke_run("smoke.baseline", 4, smoke_case(replicas=4, strategy="OneDeviceStrategy"))),
    unknown(smoke_run(replicas=4, devices_kind="cpu")),
    unknown(masked("MIG-1234")),
    unknown(gpus(1, gpu(0, uuid=None)), masked("GPU-abc")),
    unknown(FAILED, "the driver does not respond: Unknown Error."),
    unknown(Gpus(state="failed"), "the driver does not respond: failed."),
    unknown(*h100_node(4), SmokeRuns(), reason="scenario smoke.baseline was not run"),
    unknown(masked(""), run(1, 0), "no GPU is visible (CUDA_VISIBLE_DEVICES=)."),
    unknown(gpus(0, devices=(), count=0), run(1, 0), "the driver lists no GPUs."),
    given=(MEASURED, gpus(4), pci(4), environment(), packages(), target()),
)
