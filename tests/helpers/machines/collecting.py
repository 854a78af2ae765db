"""The machines by name, with their facts from the real probes or their folders for a real command line."""

import atexit
import functools
import os
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from helpers import nvml_library as nvml
from helpers.machines import healthy, peculiar, silent
from helpers.machines.description import Description
from kdoctor.facts import FactGroup, Facts, Gpus, Unavailable
from kdoctor.probes import environment as environment_probe
from kdoctor.probes import host, kernel, kernel_log, pci
from kdoctor.probes.collector import collect_facts
from kdoctor.probes.nvml import probe as nvml_probe
from kdoctor.probes.probe import ROOT_VARIABLE, Context
from kdoctor.probes.process.child import Children

PROBES = (nvml_probe.PROBE, kernel.PROBE, kernel_log.PROBE, pci.PROBE, host.PROBE, environment_probe.PROBE)
"""The probes of the machine, without those of the Python environment."""
MACHINES: dict[str, Callable[[], Description]] = {
    "h100-nvswitch": healthy.h100_nvswitch,
    "a100-sixteen": healthy.a100_sixteen,
    "a100-pcie": healthy.a100_pcie_two_sockets,
    "a100-nvlink": healthy.a100_nvlink,
    "rtx4090": healthy.rtx4090_eight,
    "rtx5090": healthy.rtx5090_two,
    "l4-one-x1": peculiar.l4_two_one_x1,
    "mig-on": peculiar.mig_on,
    "vgpu": peculiar.vgpu,
    "one-gpu-lost": peculiar.one_gpu_lost,
    "driver-not-loaded": silent.driver_not_loaded,
    "nouveau": silent.nouveau,
    "unsigned-module": silent.unsigned_module,
    "library-mismatch": silent.library_mismatch,
    "permission-denied": silent.permission_denied,
    "nothing-supported": silent.nothing_supported,
    "one-call-hangs": silent.one_call_hangs,
}
HEALTHY = ("h100-nvswitch", "a100-sixteen", "a100-pcie", "a100-nvlink", "rtx4090", "rtx5090")
"""Machines on which no check reports an error."""


@functools.cache
def library() -> Path:
    """The folder of the fake NVML, built once per process. Skips the test without a C compiler."""
    return nvml.build(_folder())


def _folder() -> Path:
    """A folder that is deleted when the process ends."""
    folder = Path(tempfile.mkdtemp(prefix="kdoctor-machine-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def environment(name: str, folder: Path) -> dict[str, str]:
    """Write a machine to the folder, and return the variables with which kdoctor reads it in a subprocess."""
    return write(MACHINES[name](), folder)


def write(machine: Description, folder: Path) -> dict[str, str]:
    """The same for any description."""
    root = machine.tree.write(folder / "root")
    return {"LD_LIBRARY_PATH": str(library()), **machine.nvml.write(folder / "machine"), ROOT_VARIABLE: str(root)}


def collected(machine: Description) -> Facts:
    """The facts that the real probes and the real NVML binding collect from a description."""
    folder = _folder()
    variables = write(machine, folder)
    context = Context(
        python=sys.executable,
        chosen_by="kdoctor's own",
        environ={**os.environ, **variables},
        children=Children(),
        root=folder / "root",
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(nvml_probe, "DEADLINE_S", machine.deadline_s)
        table = collect_facts(PROBES, context)
    shutil.rmtree(folder)
    return table


@functools.cache
def facts(name: str) -> Facts:
    """The facts of a machine by its name in ``MACHINES``, collected once per process. Do not modify them."""
    return collected(MACHINES[name]())


def groups(name: str) -> tuple[FactGroup, ...]:
    """The collected groups of a machine, for ``compute_check(check, *groups("rtx4090"))``."""
    return tuple(group for group in facts(name).values() if not isinstance(group, Unavailable))


def gpus(name: str) -> Gpus:
    """The GPUs of a machine."""
    found = facts(name)[Gpus]
    assert isinstance(found, Gpus), found
    return found
