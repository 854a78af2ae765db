"""Whether the driver's two halves are of one version."""

from __future__ import annotations

from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import Gpus, KernelDriver
from kdoctor.model import Action, Evidence, Finding, Outcome, Remedy, Rollback, Severity, Unjudged

_SUBJECT = "NVIDIA driver"


@check("driver.library-matches-module", severity=Severity.ERROR, needs_gpus=True, requires=["driver.loaded"])
def library_matches_module(kernel: KernelDriver, gpus: Gpus) -> Iterator[Outcome]:
    """The driver's user-space library and its loaded kernel module have the same version.

    Why: a package upgrade replaces the library at once, the module only at the next restart. In between every new
    CUDA process fails to find a GPU ("kernel version does not match DSO version", "Driver/library version
    mismatch"), while processes that were started before run on.
    Remedy: restart, so that the module of the installed version is loaded; hold the driver's packages against
    unattended upgrades.
    Sources:
        https://docs.nvidia.com/deploy/nvml-api/
        https://github.com/tensorflow/tensorflow/issues/52530
    Failure modes: kernel_dso_mismatch
    """
    module, library = kernel.version, gpus.driver_version
    if gpus.state == "library-mismatch" or (module and library and module != library):
        said = f" ({gpus.error})" if gpus.error else ""
        yield Finding(
            subject=_SUBJECT,
            observed=f"kernel module {module or 'of unknown version'}, library {library or 'of another version'}{said}",
            expected=f"both of version {module}" if module else "both of one version",
            remedy=Remedy(
                summary="Restart, so that the module of the installed version is loaded (or stop all that uses the "
                "GPUs and reload the modules). In a container, restart the container.",
                action=Action.REBOOT,
                commands=("cat /proc/driver/nvidia/version", "sudo reboot"),
            ),
            rollback=_downgrade(module),
        )
    elif gpus.state != "ready":
        yield Unjudged(subject=_SUBJECT, reason=f"NVML is not ready: {gpus.error or gpus.state}")
    elif not library:
        yield Unjudged(
            subject=_SUBJECT, reason=f"the library's version was not read ({gpus.errors.get('driver_version')})"
        )
    elif not module:
        yield Unjudged(subject=_SUBJECT, reason="the kernel module's version was not read")
    else:
        yield Evidence(
            subject=_SUBJECT, observed=f"module and library {module} ({kernel.flavour or 'flavour unknown'})"
        )


def _downgrade(module: str | None) -> Rollback:
    if not module:
        return Rollback.irreversible(
            "the version of the loaded module was not read, so the packages that fit are unknown"
        )
    branch = module.partition(".")[0]
    return Rollback.to(
        f"the packages of the loaded module {module} (Ubuntu's names)",
        f"sudo apt-get install --allow-downgrades 'nvidia-driver-{branch}={module}-*'",
        f"sudo apt-mark hold nvidia-driver-{branch}",
    )
