"""Helpers for checks of the driver's version."""

from __future__ import annotations

from kdoctor.commands.system import branch_of, upgrade_driver
from kdoctor.facts import Gpus
from kdoctor.model import Action, Remedy


def unknown_driver(gpus: Gpus) -> str:
    """The reason for an outcome that needs the driver's version."""
    return f"the driver version is unknown: {gpus.errors.get('driver_version') or repr(gpus.driver_version)}"


def upgrade(least: str, driver: str | None) -> Remedy:
    """Install a driver of that version's branch, or choose another TensorFlow."""
    return Remedy(
        summary=f"Install driver branch {branch_of(least)} or later (Ubuntu command shown) and restart; for a "
        "container, do this on the host. Or choose a TensorFlow that supports the current driver.",
        action=Action.REBOOT,
        commands=(*upgrade_driver(least), f"kdoctor matrix --driver {driver}"),
    )
