"""Commands that change the driver, and the way back."""

from __future__ import annotations

from kdoctor.model import Rollback


def upgrade_commands(least: str) -> tuple[str, ...]:
    """Ubuntu's commands for a driver of that branch."""
    return (f"sudo apt-get install nvidia-driver-{least.partition('.')[0]}", "sudo reboot")


def previous_driver(version: str) -> Rollback:
    """Back to the recorded driver."""
    branch = version.partition(".")[0]
    return Rollback.to(
        f"the driver {version} (Ubuntu's packages)",
        f"sudo apt-get install --allow-downgrades 'nvidia-driver-{branch}={version}-*'",
        "sudo reboot",
    )
