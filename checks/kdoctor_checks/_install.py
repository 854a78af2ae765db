"""The old place of :mod:`kdoctor.commands.packages`."""

from __future__ import annotations

from kdoctor.commands.packages import install, restore, uninstall

__all__ = ["install", "restore", "uninstall"]
