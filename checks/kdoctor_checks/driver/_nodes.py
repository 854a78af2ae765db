"""Helpers for checks of device nodes."""

import re
from collections.abc import Iterable

from kdoctor.model import NotApplicable

NODE = re.compile(r"/dev/nvidia(\d+|ctl|-uvm)")
"""The device nodes that CUDA opens. Others (caps, modeset) have different purposes."""


def create_nodes(minors: Iterable[int]) -> str:
    """The command that creates the nodes of GPUs with these minor numbers, and the one of unified memory."""
    return " ".join(("sudo nvidia-modprobe", *(f"-c {minor}" for minor in sorted(set(minors))), "-u"))


MODULE_HIDDEN = NotApplicable(reason="neither the nvidia module nor its nodes are visible here (as under WSL)")
