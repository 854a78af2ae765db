from __future__ import annotations

from typing import Any

import pytest

from helpers.facts import DRIVER, gpus, host, kernel, kernel_settings, logged, node, pci, pci_gpu
from helpers.judging import compute_check
from kdoctor.facts import FactGroup, Gpus, Host, Kernel, KernelDriver, KernelLog, PciDevices
from kdoctor.model import Action, Finding, Status
from kdoctor_checks.driver.loaded import loaded

ABSENT = Gpus(state="library-absent", error="libnvidia-ml.so.1: cannot open shared object file")
NO_MODULE = Gpus(state="driver-not-loaded", error="NVMLError_DriverNotLoaded: Driver Not Loaded")


def finding(*facts: FactGroup, **options: Any) -> Finding:
    result = compute_check(loaded, *facts, **options)
    assert result.status is Status.FAIL
    (only,) = result.findings
    return only.finding


def test_passes_where_nvml_answers() -> None:
    result = compute_check(loaded, kernel(8), gpus(8), pci(8), host())
    assert result.status is Status.PASS
    assert result.evidence[0].observed == f"NVML ready, driver {DRIVER}, module {DRIVER}, 10 device nodes"


def test_no_gpu_on_the_bus() -> None:
    told = finding(KernelDriver(loaded=False), ABSENT, PciDevices(devices=()), host())
    assert told.observed.startswith("no NVIDIA GPU among the PCI devices")
    assert told.remedy.action is Action.INSPECT_HARDWARE


@pytest.mark.parametrize("bound", [None, "nouveau", "vfio-pci"])
def test_the_module_is_not_loaded(bound: str | None) -> None:
    told = finding(
        KernelDriver(loaded=False), NO_MODULE, pci(2, pci_gpu(0, driver=bound), pci_gpu(1, driver=bound)), host()
    )
    assert "module is not loaded; 2 NVIDIA GPUs" in told.observed
    assert f"bound to {bound or 'no driver'}" in told.observed
    assert "sudo modprobe nvidia" in told.remedy.commands
    assert told.rollback.kind == "commands"


def test_the_module_is_not_loaded_and_the_bus_unread() -> None:
    told = finding(KernelDriver(loaded=False), NO_MODULE, host(), missing={PciDevices: "no sysfs"})
    assert "the PCI devices could not be read" in told.observed


def test_the_library_is_absent() -> None:
    told = finding(kernel(), ABSENT, pci(), host())
    assert "its library is not found" in told.observed
    assert told.remedy.commands[-1] == "sudo apt-get install nvidia-utils-580"
    assert told.rollback.commands == ("sudo apt-get remove nvidia-utils-580",)


@pytest.mark.parametrize("state", [ABSENT, NO_MODULE])
def test_a_container_without_the_nvidia_runtime(state: Gpus) -> None:
    told = finding(kernel(0, nodes=()), state, pci(), host(container="docker"))
    assert "this container has 0 device nodes" in told.observed
    assert told.remedy.commands[0].startswith("docker run --gpus all")


def test_a_host_without_device_nodes() -> None:
    told = finding(kernel(nodes=()), NO_MODULE, pci(), host())
    assert "no device node" in told.observed
    assert told.remedy.commands[0] == "sudo nvidia-modprobe -c 0 -u"


@pytest.mark.parametrize("state", ["ready", "no-permission"])
def test_a_closed_device_node_is_named(state: Any) -> None:
    nodes = (node("/dev/nvidia0"), node("/dev/nvidia1", writable=False), node("/dev/nvidiactl"))
    told = finding(kernel(nodes=nodes), gpus(2, state=state), pci(2), host())
    assert told.subject == "/dev/nvidia1"
    assert told.observed == "mode 0660; this process may read and may not write it"


def test_nodes_that_cuda_does_not_open_may_be_closed() -> None:
    nodes = (node("/dev/nvidia0"), node("/dev/nvidia-modeset", readable=False, writable=False))
    assert compute_check(loaded, kernel(nodes=nodes), gpus(1), pci(1), host()).status is Status.PASS


def test_no_permission_with_open_nodes_is_told_in_nvmls_words() -> None:
    told = finding(kernel(), Gpus(state="no-permission", error="NVMLError_NoPermission"), pci(), host())
    assert told.observed.endswith("NVML: no-permission (NVMLError_NoPermission)")


def test_nvml_that_fails_otherwise_is_told_in_its_own_words() -> None:
    told = finding(kernel(), Gpus(state="failed", error="NVMLError_Unknown: Unknown Error"), pci(), host())
    assert "NVML: failed (NVMLError_Unknown: Unknown Error)" in told.observed
    assert told.remedy.action is Action.REBOOT


def test_a_library_of_another_version_is_told_by_its_own_check() -> None:
    facts = (kernel(), Gpus(state="library-mismatch", error="Driver/library version mismatch"), pci(), host())
    assert compute_check(loaded, *facts).status is Status.PASS


@pytest.mark.parametrize("group", [KernelDriver, Gpus])
def test_unread_evidence_is_unknown(group: type[FactGroup]) -> None:
    assert compute_check(loaded, kernel(), gpus(), pci(), host(), missing={group: "hung"}).status is Status.UNKNOWN


def test_the_verdict_stands_without_the_groups_that_only_word_the_cause() -> None:
    missing = {PciDevices: "no sysfs", Host: "no /proc"}
    assert compute_check(loaded, kernel(), gpus(), missing=missing).status is Status.PASS
    assert compute_check(loaded, kernel(), ABSENT, missing=missing).status is Status.FAIL


def test_nouveau_bars_the_module() -> None:
    told = finding(KernelDriver(loaded=False), NO_MODULE, pci(2), host(), kernel_settings(modules=("nouveau",)))
    assert told.observed.startswith("nouveau, the free driver, is loaded instead of nvidia")
    assert told.remedy.action is Action.REBOOT
    assert told.rollback.commands[0] == "sudo rm /etc/modprobe.d/blacklist-nouveau.conf"


@pytest.mark.parametrize(
    "line",
    [
        "Loading of unsigned module is rejected",
        "Loading of module with unavailable key is rejected",
        "Lockdown: modprobe: unsigned module loading is restricted; see man kernel_lockdown.7",
    ],
)
def test_secure_boot_refuses_an_unsigned_module(line: str) -> None:
    told = finding(
        KernelDriver(loaded=False), NO_MODULE, pci(2), host(), kernel_settings(secure_boot=True), logged(line)
    )
    assert told.observed.startswith(f"the kernel refused a module, and Secure Boot is on: {line!r}")


def test_a_refusal_without_the_kernels_settings_is_told_too() -> None:
    missing: dict[type[FactGroup], str] = {Kernel: "no /proc"}
    told = finding(
        KernelDriver(loaded=False),
        NO_MODULE,
        pci(2),
        host(),
        logged("Loading of unsigned module is rejected"),
        missing=missing,
    )
    assert told.observed.startswith("the kernel refused a module: ")


def test_what_barred_an_earlier_module_is_past_once_one_is_loaded() -> None:
    result = compute_check(
        loaded, kernel(2), gpus(2), pci(2), host(), logged("Loading of unsigned module is rejected"), kernel_settings()
    )
    assert result.status is Status.PASS


def test_an_unread_log_leaves_the_cause_in_general() -> None:
    told = finding(KernelDriver(loaded=False), NO_MODULE, pci(2), host(), missing={KernelLog: "no"})
    assert told.observed.startswith("the nvidia kernel module is not loaded")
