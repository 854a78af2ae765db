"""What the checks of the driver state, and the commands of their fixes."""

from __future__ import annotations

from typing import Any

import pytest

from helpers.facts import DRIVER, gpu, gpus, h100_node, host, kernel, lost_gpu, node, pci, pci_gpu
from helpers.facts.libraries import libraries, library, missing, no_libraries
from helpers.saying import briefs, said
from kdoctor.engine.report import Result
from kdoctor.facts import FactGroup, Gpus, KernelDriver, PciDevices
from kdoctor.model import Finding
from kdoctor.testing import compute_check
from kdoctor_checks.driver.device_nodes import device_nodes
from kdoctor_checks.driver.forward_compatibility import forward_compatibility
from kdoctor_checks.driver.libcuda_found import libcuda_found
from kdoctor_checks.driver.loaded import loaded

ABSENT = Gpus(state="library-absent", error="libnvidia-ml.so.1: cannot open shared object file")
CONTAINER = host(container="docker")


def compat(*facts: FactGroup, path: str, version: str = "590.44.01", found_by: str = "ld.so.cache") -> Result:
    driver = library("cuda", version=version, path=path, found_by=found_by)
    found = libraries(driver, driver_is_compat=True)
    return compute_check(forward_compatibility, *h100_node(1), gpus(1, gpu(0, name="NVIDIA TITAN V")), found, *facts)


@pytest.mark.parametrize(
    ("path", "commands"),
    [
        ("/usr/local/cuda-12.5/compat/libcuda.so.1", ("sudo apt-get install cuda-compat-12-5",)),
        ("/usr/local/cuda-13.0/compat/libcuda.so.1", ("sudo apt-get install cuda-compat-13-0",)),
        ("/usr/local/cuda/compat/libcuda.so.1", ()),
    ],
)
def test_removed_compat_package_is_installed_again(path: str, commands: tuple[str, ...]) -> None:
    (found,) = compat(path=path).findings
    assert found.finding.rollback.commands == commands
    assert found.finding.rollback.kind == ("commands" if commands else "irreversible")
    assert "TITAN V does not support forward compatibility" in found.finding.observed
    assert found.finding.observed.endswith("(found by ld.so.cache)")


def test_libcuda_of_the_same_version_as_the_module_is_not_older() -> None:
    assert "older" not in compat(path="/x/libcuda.so.1", version=DRIVER).findings[0].finding.observed
    older = compat(path="/x/libcuda.so.1", version="580.105.07").findings[0].finding
    assert "older" in older.observed


def finding(*facts: FactGroup) -> Finding:
    (only,) = compute_check(loaded, *facts).findings
    return only.finding


@pytest.mark.parametrize(
    ("found", "state", "where", "observed"),
    [
        (kernel(1), ABSENT, CONTAINER, f"nvidia module {DRIVER}, but this container has 3 device nodes"),
        (kernel(0, nodes=()), ABSENT, CONTAINER, f"nvidia module {DRIVER}, but this container has 0 device nodes"),
        (kernel(nodes=None, version=None), ABSENT, CONTAINER, "(version unknown), but this container has device nodes"),
        (kernel(1), ABSENT, host(), f"nvidia module {DRIVER} is loaded, but the NVML library is not found"),
        (kernel(1, version=None), ABSENT, host(), "nvidia module (version unknown) is loaded, but the NVML library"),
        (kernel(1), Gpus(state="failed", error="Unknown"), CONTAINER, "failed (Unknown)"),
    ],
)
def test_cause_of_a_missing_driver_is_stated(found: KernelDriver, state: Gpus, where: Any, observed: str) -> None:
    assert observed in finding(found, state, pci(1), where).observed


def test_container_says_what_it_lacks() -> None:
    assert finding(kernel(0, nodes=()), ABSENT, pci(1), CONTAINER).headline.endswith("lacks the driver's device nodes")
    assert finding(kernel(1), ABSENT, pci(1), CONTAINER).headline.endswith("lacks the driver's libraries")


def test_library_of_an_unknown_module_has_a_placeholder() -> None:
    found = finding(kernel(1, version=None), ABSENT, pci(1), host())
    assert found.remedy.commands == ("sudo apt-get install 'nvidia-utils-<branch>'",)


@pytest.mark.parametrize(
    ("devices", "observed", "headline"),
    [
        (
            pci(2, pci_gpu(0, driver="nouveau"), pci_gpu(1, driver=None)),
            "the PCI bus has 2 NVIDIA GPUs, bound to no driver, nouveau",
            "no driver loaded for the 2 NVIDIA GPUs on the PCI bus",
        ),
        (
            pci(1, pci_gpu(0, driver="vfio-pci")),
            "the PCI bus has 1 NVIDIA GPU, bound to vfio-pci",
            "no driver loaded for the 1 NVIDIA GPU on the PCI bus",
        ),
        (None, "the PCI devices were not read", "no driver loaded"),
        (
            PciDevices(devices=()),
            "the PCI bus has no NVIDIA GPU",
            "no NVIDIA GPU on the PCI bus, no driver loaded",
        ),
    ],
)
def test_gpus_without_a_module_are_counted(devices: PciDevices | None, observed: str, headline: str) -> None:
    found = finding(KernelDriver(loaded=False), ABSENT, host(), *([devices] if devices else []))
    assert observed in found.observed
    assert found.headline == headline


def test_working_driver_is_stated_with_its_nodes() -> None:
    result = compute_check(loaded, kernel(2), gpus(2), pci(2), host())
    assert any("4 device nodes" in text for text in said(result).values())
    closed = compute_check(loaded, kernel(nodes=(node("/dev/nvidia0", readable=False),)), gpus(1), pci(1), host())
    assert "/dev/nvidia0" in said(closed)


def opened(*facts: FactGroup) -> Result:
    return compute_check(device_nodes, kernel(2), gpus(2), *facts)


def test_missing_nodes_of_gpus_are_created_by_one_command() -> None:
    result = opened(kernel(nodes=(node("/dev/nvidiactl"),)))
    assert {item.finding.remedy.commands for item in result.findings} == {("sudo nvidia-modprobe -c 0 -c 1 -u",)}
    one = opened(kernel(nodes=(node("/dev/nvidiactl"), node("/dev/nvidia0")))).findings
    assert [item.finding.subject for item in one] == [gpu(1).subject]
    assert "-c 1" in one[0].finding.remedy.commands[0]
    assert "-c 0" not in one[0].finding.remedy.commands[0]


@pytest.mark.parametrize(
    ("devices", "path", "explained"),
    [
        ((gpu(0), lost_gpu(1)), "/dev/nvidia1", ("gpu.responding",)),
        ((gpu(0), lost_gpu(1)), "/dev/nvidia0", ()),
        ((gpu(0), lost_gpu(1)), "/dev/nvidiactl", ()),
        ((gpu(0), gpu(1, minor_number=None)), "/dev/nvidia1", ()),
    ],
)
def test_closed_node_is_explained_only_if_it_may_be_of_a_lost_gpu(
    devices: tuple[Any, ...], path: str, explained: tuple[str, ...]
) -> None:
    (found,) = opened(gpus(2, *devices, node_errors={path: "EIO"})).findings
    assert (found.finding.subject, found.finding.explained_by) == (path, explained)
    assert found.finding.observed == "cannot be opened: EIO"
    assert found.finding.remedy.commands == ()


def cuda(*facts: FactGroup) -> Result:
    return compute_check(libcuda_found, *h100_node(1), *facts)


@pytest.mark.parametrize(
    ("facts", "subject", "stated"),
    [
        ((libraries(libraries=()),), "libcuda.so.1", "the libraries that TensorFlow needs were not read"),
        ((libraries(missing("cuda", soname=None)),), "libcuda.so.1", "not found"),
        ((libraries(missing("cuda", load_error="no file")),), "libcuda.so.1", "not found (no file)"),
        (
            (libraries(library("cuda", status="not loadable", load_error="truncated")),),
            "libcuda.so.1",
            "not loadable (truncated)",
        ),
        ((libraries(driver_version=None),), library("cuda").path, "its version was not read"),
        ((kernel(1, version=None),), library("cuda").path, "the version of the kernel module was not read"),
        ((), library("cuda").path, f"version {DRIVER}, like the kernel module"),
    ],
)
def test_state_of_libcuda_is_stated(facts: tuple[FactGroup, ...], subject: str, stated: str) -> None:
    assert said(cuda(*facts)) == {subject: stated}


def test_short_form_says_whether_libcuda_was_found() -> None:
    assert briefs(cuda(libraries(missing("cuda")))) == ["not found by the loader"]
    assert briefs(cuda(libraries(library("cuda", status="not loadable")))) == ["found, but not loadable"]


def test_build_without_cuda_needs_no_libcuda() -> None:
    assert cuda(no_libraries()).reason == no_libraries().note


def test_missing_libcuda_of_an_unknown_module_has_a_placeholder() -> None:
    (found,) = cuda(libraries(missing("cuda")), kernel(1, version=None), host()).findings
    assert found.finding.remedy.commands == ("sudo apt-get install 'libnvidia-compute-<branch>'",)


@pytest.mark.parametrize(
    ("where", "image"), [(host(container="docker", image="job:3"), "job:3"), (CONTAINER, "'<image>'")]
)
def test_container_is_started_again_from_its_image(where: Any, image: str) -> None:
    (command,) = finding(kernel(0, nodes=()), ABSENT, pci(1), where).remedy.commands
    assert command.endswith(f"compute,utility {image} '<command>'")


@pytest.mark.parametrize(
    ("error", "headline"),
    [
        ("nvidia-smi: command not found", "nvidia-smi is not installed"),
        ("nvidia-smi couldn't find libnvidia-ml.so", "the NVML library is not found"),
        (None, "the NVML library is not found"),
    ],
)
def test_recording_says_what_is_missing(error: str | None, headline: str) -> None:
    result = compute_check(loaded, Gpus(state="library-absent", error=error))
    assert [item.finding.headline for item in result.findings] == [headline]


def test_nodes_of_one_gpu_are_created_if_the_bus_was_not_read() -> None:
    found = finding(kernel(0, nodes=()), Gpus(state="failed"), host())
    assert found.remedy.commands[0] == "sudo nvidia-modprobe -c 0 -u"


def test_libcuda_of_an_unknown_path_is_named() -> None:
    driver = library("cuda", path=None, found_by="ld.so.cache")
    result = compute_check(forward_compatibility, *h100_node(1), libraries(driver, driver_is_compat=None))
    assert [item.subject for item in result.unjudged] == ["libcuda.so.1"]


def test_build_without_cuda_needs_no_forward_compatibility() -> None:
    result = compute_check(forward_compatibility, *h100_node(1), no_libraries())
    assert result.reason == no_libraries().note
