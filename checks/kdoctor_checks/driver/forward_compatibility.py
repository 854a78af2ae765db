import re
from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.commands.search_path import restore_path, search_without
from kdoctor.facts import Environment, Gpu, Gpus, KernelDriver, Libraries, Library
from kdoctor.model import Evidence, Finding, NotApplicable, Outcome, Remedy, Rollback, Severity, Unjudged
from kdoctor_checks._gpus import unread
from kdoctor_checks._versions import numbers

_CONSUMER = ("GEFORCE", "TITAN")
_PARTLY = ("RTX", "QUADRO")
"""Some RTX boards in certified servers support it, but their names do not show which."""


@check("driver.forward-compatibility", severity=Severity.ERROR, needs_gpus=True, requires=["driver.libcuda-found"])
def forward_compatibility(
    libraries: Libraries, gpus: Gpus, kernel: KernelDriver, environment: Environment
) -> Iterator[Outcome]:
    """A forward-compatibility libcuda (cuda-compat) is used only where it is supported.

    Why: the package cuda-compat installs a newer libcuda than the kernel module. NVIDIA supports that on data-center
    GPUs only. On a GeForce every program stops with CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE (804). With a libcuda
    that is older than the module, programs stop with CUDA_ERROR_SYSTEM_DRIVER_MISMATCH (803).
    Remedy: remove the compat folder from LD_LIBRARY_PATH or use an image without cuda-compat; upgrade the driver if
    CUDA needs a newer one.
    Source: https://docs.nvidia.com/deploy/cuda-compatibility/forward-compatibility.html
    Failure modes: compat_804
    """
    library = libraries.find("cuda")
    if library is None:
        yield NotApplicable(reason=libraries.note or "this TensorFlow opens no libcuda")
        return
    path = library.path or "libcuda.so.1"
    found, module = numbers(libraries.driver_version), numbers(kernel.version)
    if libraries.driver_is_compat is None:
        yield Unjudged(subject=path, reason="which libcuda would be loaded is unknown")
    elif not libraries.driver_is_compat:
        yield Evidence(subject=path, observed="the driver's libcuda, not cuda-compat")
    elif found is not None and module is not None and found < module:
        observed = f"libcuda of driver {libraries.driver_version} is older than the kernel module {kernel.version}"
        yield _finding(path, observed, "libcuda of cuda-compat is older than the kernel module", library, environment)
    else:
        yield from (_judge(gpu, library, environment) for gpu in gpus.devices)


def _judge(gpu: Gpu, library: Library, environment: Environment) -> Outcome:
    if missing := unread(gpu, "name"):
        return missing
    name = (gpu.name or "").upper()
    if any(word in name for word in _CONSUMER):
        observed = f"{gpu.name} does not support forward compatibility, which {library.path} needs"
        return _finding(gpu.subject, observed, "does not support the libcuda of cuda-compat", library, environment)
    if any(word in name for word in _PARTLY):
        reason = f"only some {gpu.name} support forward compatibility ({library.path})"
        return Unjudged(subject=gpu.subject, reason=reason)
    return Evidence(subject=gpu.subject, observed=f"{gpu.name} supports forward compatibility ({library.path})")


def _finding(subject: str, observed: str, brief: str, library: Library, environment: Environment) -> Finding:
    if library.found_by == "LD_LIBRARY_PATH":
        folder = (library.path or "").rpartition("/")[0]
        command, rollback = search_without([folder], environment), restore_path(environment)
    else:
        command = "sudo apt-get remove 'cuda-compat-*'"
        rollback = _reinstall(library.path or "")
    return Finding(
        subject=subject,
        observed=f"{observed} (found by {library.found_by})",
        brief=brief,
        expected="libcuda of the driver, or a data-center GPU",
        remedy=Remedy.configure("Use the libcuda of the driver. If CUDA needs a newer driver, upgrade it.", command),
        rollback=rollback,
    )


def _reinstall(path: str) -> Rollback:
    """Reinstall the package of the CUDA release in the library's path: ``/usr/local/cuda-12.5/compat``."""
    release = re.search(r"/cuda-(\d+)\.(\d+)/", path)
    if not release:
        return Rollback.irreversible("not possible (the package of the library is not known; write it down first)")
    return Rollback.to("reinstall cuda-compat", f"sudo apt-get install cuda-compat-{release[1]}-{release[2]}")
