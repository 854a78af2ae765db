"""Facts of whole machines."""

from itertools import combinations

from helpers.extensions import facts_of_extensions
from helpers.facts.base import SITE
from helpers.facts.gpus import gpus, pair, v100
from helpers.facts.host import host
from helpers.facts.kernel import kernel, kernel_settings, log
from helpers.facts.libraries import libraries, missing
from helpers.facts.packages import environment, keras, packages, target, tensorflow
from helpers.facts.pci import pci
from helpers.facts.sampling import sampling
from helpers.facts.smoke import smoke_case, smoke_run
from kdoctor.facts import FactGroup, Gpus, GpuSampling, KernelDriver, PciDevices


def no_driver() -> tuple[FactGroup, ...]:
    """The GPU groups of a machine without a GPU and a driver."""
    return (
        PciDevices(devices=()),
        KernelDriver(loaded=False),
        Gpus(state="library-absent", error="libnvidia-ml.so.1: cannot open shared object file"),
    )


def h100_node(n: int = 8) -> tuple[FactGroup, ...]:
    """Every group of a healthy machine with n H100, including its run of smoke.baseline."""
    return (
        target(),
        packages(),
        tensorflow(),
        keras(),
        gpus(n),
        pci(n),
        kernel(n),
        kernel_settings(),
        log(),
        environment(LD_LIBRARY_PATH=f"{SITE}/nvidia/cusolver/lib"),
        libraries(),
        host(),
        *facts_of_extensions("PLAIN"),
        smoke_run(replicas=n),
        sampling(n),
    )


def cpu_host() -> tuple[FactGroup, ...]:
    """Every group of a healthy machine without a GPU. Its smoke.baseline ran on two logical CPU devices."""
    return (
        target(),
        packages(),
        tensorflow(),
        keras(),
        *no_driver(),
        kernel_settings(modules=(), daemons=()),
        log(),
        environment(),
        libraries(missing("cuda")),
        host(),
        *facts_of_extensions("PLAIN"),
        smoke_run("smoke.baseline", 2, smoke_case(replicas=2, kind="CPU"), devices_kind="cpu", gpus_seen=0),
        GpuSampling(state="not-started", error="the trainings ran on logical CPU devices"),
    )


def v100_workstation(n: int = 4) -> tuple[FactGroup, ...]:
    """The groups that differ from ``h100_node``: four V100 with direct NVLinks, on one socket."""
    devices = tuple(v100(index) for index in range(n))
    pairs = tuple(pair(a.index, b.index, level="PIX", nvlinks=2) for a, b in combinations(devices, 2))
    return gpus(n, *devices, pairs=pairs), pci(n), kernel(n)
