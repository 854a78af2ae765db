"""The oldest drivers that run each major release of CUDA, on Linux."""

from __future__ import annotations

MINIMUM_DRIVERS = {11: "450.80.02", 12: "525.60.13", 13: "580.65.06"}
"""CUDA major to the lowest driver of its minor-version compatibility; a newer driver runs it too.

Source: https://docs.nvidia.com/deploy/cuda-compatibility/minor-version-compatibility.html, table 1.
"""
