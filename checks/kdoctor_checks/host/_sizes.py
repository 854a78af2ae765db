"""Sizes in the short report."""

from kdoctor_checks._gpus import GIB, MIB

_TIB = 1024 * GIB


def short_size(value: int) -> str:
    """Bytes as ``512 MiB``, ``252 GiB`` or ``1.0 TiB``."""
    if value >= _TIB:
        return f"{value / _TIB:.1f} TiB"
    return f"{value / GIB:.0f} GiB" if value >= GIB else f"{value / MIB:.0f} MiB"
