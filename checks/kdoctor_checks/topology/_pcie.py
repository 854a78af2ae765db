"""Shared by the checks of PCIe links."""

from __future__ import annotations

from collections.abc import Sequence

from kdoctor.facts import Gpu


def read_links(found: Sequence[Gpu], fields: str = "LnkCap:|LnkSta:") -> tuple[str, ...]:
    """The commands that print the links of these GPUs, and whether they are idle."""
    only = found[0].bus_id if len(found) == 1 else None
    where = f"-s {only}" if only else "-d 10de:"
    return f"sudo lspci -vv {where} | grep -E '{'' if only else 'NVIDIA|'}{fields}'", "nvidia-smi -q -d PERFORMANCE"
