from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.commands.shell import quoted
from kdoctor.commands.system import branch_of, previous_driver
from kdoctor.facts import Gpus, KernelDriver, Unavailable
from kdoctor.model import Evidence, Finding, Outcome, Rollback, Severity, Unjudged
from kdoctor_checks._gpus import RELOAD_MODULE

_SUBJECT = "NVIDIA driver"


@check("driver.library-matches-module", severity=Severity.ERROR, needs_gpus=True, requires=["driver.loaded"])
def library_matches_module(kernel: KernelDriver | Unavailable, gpus: Gpus) -> Iterator[Outcome]:
    """The driver's user-space library and kernel module have the same version.

    Why: a package upgrade replaces the library immediately, but the module only at the next restart. Until then new
    CUDA processes find no GPU ("kernel version does not match DSO version", "Driver/library version mismatch"), while
    running processes continue.
    Remedy: restart to load the module of the installed version; hold the driver's packages to prevent unattended
    upgrades.
    Sources:
        https://docs.nvidia.com/deploy/nvml-api/
        https://github.com/tensorflow/tensorflow/issues/52530
    Failure modes: kernel_dso_mismatch
    """
    module, library = kernel.version if isinstance(kernel, KernelDriver) else None, gpus.driver_version
    if gpus.state == "library-mismatch" or (module and library and module != library):
        versions = [version or "(version unknown)" for version in (module, library)]
        observed = f"kernel module {versions[0]} does not match library {versions[1]}"
        unknown = Rollback.irreversible("not possible (the version of the kernel module was not read)")
        yield Finding(
            subject=_SUBJECT,
            observed=f"{observed} ({gpus.error})" if gpus.error else observed,
            brief=" ".join(filter(None, ("library", library, "does not match kernel module", module)))
            if library or module
            else "library and kernel module have different versions",
            expected=f"version {module} of both" if module else "the same version of both",
            remedy=RELOAD_MODULE,
            rollback=_previous(module) if module else unknown,
        )
    elif isinstance(kernel, Unavailable):
        yield Unjudged(subject=_SUBJECT, reason=kernel.unavailable)
    elif gpus.state != "ready":
        yield Unjudged(subject=_SUBJECT, reason=f"NVML is not ready: {gpus.error or gpus.state}")
    elif not library:
        reason = f"the version of the library was not read ({gpus.errors.get('driver_version')})"
        yield Unjudged(subject=_SUBJECT, reason=reason)
    elif not module:
        yield Unjudged(subject=_SUBJECT, reason="the version of the kernel module was not read")
    else:
        observed = f"module and library {module} ({kernel.flavour or 'flavor unknown'})"
        yield Evidence(subject=_SUBJECT, observed=observed)


def _previous(module: str) -> Rollback:
    return previous_driver(module, f"sudo apt-mark hold {quoted(f'nvidia-driver-{branch_of(module)}')}")
