"""Whether a libcuda for forward compatibility is one that these GPUs and this module support."""

from __future__ import annotations

from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.commands.search_path import restore_path, search_without
from kdoctor.facts import Environment, Gpu, Gpus, KernelDriver, Libraries, Library
from kdoctor.model import Action, Evidence, Finding, NotApplicable, Outcome, Remedy, Rollback, Severity, Unjudged
from kdoctor_checks._gpus import unread
from kdoctor_checks._versions import numbers

_CONSUMER = ("GEFORCE", "TITAN")
_SOME_SUPPORT_IT = ("RTX", "QUADRO")
"""Select RTX boards of certified servers support it, and no name says which."""


@check("driver.forward-compatibility", severity=Severity.ERROR, needs_gpus=True, requires=["driver.libcuda-found"])
def forward_compatibility(
    libraries: Libraries, gpus: Gpus, kernel: KernelDriver, environment: Environment
) -> Iterator[Outcome]:
    """A libcuda for forward compatibility (cuda-compat) is used only where GPUs and kernel module support it.

    Why: cuda-compat brings a newer libcuda than the kernel module. NVIDIA supports that on data-centre GPUs only:
    on a GeForce every program stops with CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE (804), and with a libcuda that is
    older than the module with CUDA_ERROR_SYSTEM_DRIVER_MISMATCH (803).
    Remedy: take the compat folder off LD_LIBRARY_PATH or use an image without cuda-compat, and upgrade the driver
    where CUDA asks for a newer one.
    Source: https://docs.nvidia.com/deploy/cuda-compatibility/forward-compatibility.html
    Failure modes: compat_804
    """
    library = libraries.find("cuda")
    if not libraries.cuda_build or library is None:
        yield NotApplicable(reason=libraries.note or "this TensorFlow opens no libcuda")
        return
    path = library.path or "libcuda.so.1"
    if libraries.driver_is_compat is None:
        yield Unjudged(subject=path, reason="which libcuda would be taken is not known")
        return
    if not libraries.driver_is_compat:
        yield Evidence(subject=path, observed="the driver's own; no forward compatibility is used")
        return
    found, module = numbers(libraries.driver_version), numbers(kernel.version)
    if found is not None and module is not None and found < module:
        why = f"it is of driver {libraries.driver_version}, older than the kernel module {kernel.version}"
        yield _finding(path, why, library, environment)
        return
    for gpu in gpus.devices:
        yield _judge(gpu, library, environment)


def _judge(gpu: Gpu, library: Library, environment: Environment) -> Outcome:
    if missing := unread(gpu, "name"):
        return missing
    name = (gpu.name or "").upper()
    if any(word in name for word in _CONSUMER):
        return _finding(gpu.subject, f"{gpu.name} with {library.path}", library, environment)
    if any(word in name for word in _SOME_SUPPORT_IT):
        reason = f"{library.path} is for forward compatibility, which only some {gpu.name} support"
        return Unjudged(subject=gpu.subject, reason=reason)
    return Evidence(subject=gpu.subject, observed=f"{gpu.name} supports forward compatibility ({library.path})")


def _finding(subject: str, observed: str, library: Library, environment: Environment) -> Finding:
    if library.found_by == "LD_LIBRARY_PATH":
        folder = (library.path or "").rpartition("/")[0]
        command, rollback = search_without([folder], environment), restore_path(environment)
    else:
        command = "sudo apt-get remove 'cuda-compat-*'"
        rollback = Rollback.to("cuda-compat as before", "sudo apt-get install 'cuda-compat-<major>-<minor>'")
    return Finding(
        subject=subject,
        observed=f"{observed} (found by {library.found_by})",
        expected="the driver's own libcuda, or a data-centre GPU",
        remedy=Remedy(
            summary="Use the driver's own libcuda; where CUDA asks for a newer driver, upgrade it.",
            action=Action.CONFIGURE,
            commands=(command,),
        ),
        rollback=rollback,
    )
