"""Helpers for checks of device nodes."""

from __future__ import annotations

import re

from kdoctor.model import NotApplicable

NODE = re.compile(r"/dev/nvidia(\d+|ctl|-uvm)")
"""The device nodes that CUDA opens. Others (caps, modeset) have different purposes."""

MODULE_HIDDEN = NotApplicable(reason="neither the nvidia module nor its nodes are visible here (as under WSL)")
