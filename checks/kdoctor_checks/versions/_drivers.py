"""Helpers for checks of the driver's version."""

from kdoctor.commands.shell import quoted
from kdoctor.commands.system import branch_of, previous_driver, upgrade_driver
from kdoctor.facts import Gpus
from kdoctor.matrix.model import VersionMatrix
from kdoctor.model import Finding, Remedy, Rollback


def unknown_driver(gpus: Gpus) -> str:
    """The reason for an outcome that needs the driver's version."""
    version = repr(gpus.driver_version) if gpus.driver_version else "not reported"
    return f"the driver version is unknown: {gpus.errors.get('driver_version') or version}"


def too_old(
    subject: str, observed: str, least: str, reason: str, gpus: Gpus, matrix: VersionMatrix, *, brief: str
) -> Finding:
    """The finding that the driver is older than ``least``, which is required for that reason."""
    where, commands = "(on the host; Ubuntu command shown)", upgrade_driver(least)
    look = f"kdoctor matrix --driver {quoted(gpus.driver_version or '')}"
    rollback = previous_driver(gpus.driver_version or "")
    if matrix.of_windows:
        where, commands, look = "in Windows, not in WSL2", (), f"{look} --platform wsl2"
        rollback = Rollback.irreversible(f"not from WSL2 (install driver {gpus.driver_version} in Windows)")
    return Finding(
        subject=subject,
        observed=observed,
        expected=f"driver {least} or later{reason}",
        remedy=Remedy.reboot(
            f"Install driver branch {branch_of(least)} or later {where}, or choose a TensorFlow for this driver.",
            *commands,
            look=(look,),
        ),
        brief=brief,
        rollback=rollback,
    )
