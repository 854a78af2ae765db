"""Parses CUDA_VISIBLE_DEVICES like CUDA does.

Sources: https://docs.nvidia.com/cuda/cuda-programming-guide/05-appendices/environment-variables.html for the forms
and for the stop at the first invalid entry. For what NVIDIA leaves open, PyTorch's parser
(https://github.com/pytorch/pytorch/blob/main/torch/cuda/__init__.py, ``_parse_visible_devices``): the first entry
decides the form, a number may be followed by other characters, a repeated entry hides all GPUs.
"""

import re
from collections.abc import Sequence

from kdoctor.facts.bounds import Reason
from kdoctor.facts.environment import Environment
from kdoctor.facts.gpus import Gpu
from kdoctor.records import record

VARIABLE = "CUDA_VISIBLE_DEVICES"
ORDER_VARIABLE = "CUDA_DEVICE_ORDER"

_NUMBER = re.compile(r"[+-]?\d+")
_MOST_DIGITS = 18
"""Of an index. Python refuses to read thousands of digits."""


@record
class Mask:
    """The GPUs that the variable leaves visible."""

    value: Reason
    """The variable's value; None if it is not set."""
    visible: tuple[Gpu, ...] = ()
    """The GPUs that CUDA enumerates, in its order."""
    invalid: Reason = None
    """The first invalid entry, and why; CUDA ignores it and all later entries."""
    by_index: bool = False
    """Whether the entries are indices, whose meaning depends on CUDA_DEVICE_ORDER."""
    unknown_reason: Reason = None
    """Why the visible GPUs are unknown, if so."""


def cuda_order(environment: Environment, gpus: Sequence[Gpu]) -> tuple[Gpu, ...] | str:
    """The GPUs in CUDA's order, or the reason why that is unknown.

    The driver lists GPUs by bus address. CUDA does so with CUDA_DEVICE_ORDER=PCI_BUS_ID. By default it puts the fastest
    GPU first, by a heuristic that keeps the order of equal GPUs.
    """
    mask = read_mask(environment, gpus)
    if mask.unknown_reason is not None:
        return f"{VARIABLE}={mask.value!r}: {mask.unknown_reason}"
    named_by_uuid = mask.value is not None and not mask.by_index
    if named_by_uuid or environment.variables.get(ORDER_VARIABLE) == "PCI_BUS_ID" or len(gpus) == 1:
        return mask.visible
    models = {gpu.name for gpu in gpus}
    if None in models or len(models) > 1:
        return f"CUDA's order of different GPUs is unknown without {ORDER_VARIABLE}=PCI_BUS_ID"
    return mask.visible


def hidden_gpus(environment: Environment, gpus: Sequence[Gpu]) -> tuple[Gpu, ...]:
    """The GPUs that the variable certainly hides from the job. Without a single visible GPU there is no job on GPUs."""
    mask = read_mask(environment, gpus)
    if mask.invalid or mask.unknown_reason or not mask.visible:
        return ()
    # A lost GPU may have no name. It keeps its place among equal GPUs.
    models = {gpu.name for gpu in gpus if gpu.name}
    if mask.by_index and len(models) > 1 and environment.variables.get(ORDER_VARIABLE) != "PCI_BUS_ID":
        return ()
    return tuple(gpu for gpu in gpus if gpu not in mask.visible)


def read_mask(environment: Environment, gpus: Sequence[Gpu]) -> Mask:
    """The variable's effect, given the GPUs that the driver lists."""
    value = environment.variables.get(VARIABLE)
    if value is None:
        unknown = None if environment.is_unset(VARIABLE) else "it was not recorded"
        return Mask(value=None, visible=tuple(gpus), unknown_reason=unknown)
    if not value.strip():
        return Mask(value=value)
    entries = [entry.strip() for entry in value.split(",")]
    if entries[0].startswith("MIG-"):
        return Mask(value=value, unknown_reason="MIG instances are not supported")
    by_index = not entries[0].startswith("GPU-")
    find = _by_index if by_index else _by_uuid
    visible: list[Gpu] = []
    for entry in entries:
        found = find(entry, gpus)
        if found is None:
            return Mask(
                value=value, by_index=by_index, unknown_reason=f"{entry!r}: possibly a GPU whose UUID was not read"
            )
        if found in visible:
            visible, found = [], "a repeated GPU hides all GPUs"
        if isinstance(found, str):
            return Mask(value=value, visible=tuple(visible), invalid=f"{entry!r}: {found}", by_index=by_index)
        visible.append(found)
    return Mask(value=value, visible=tuple(visible), by_index=by_index)


def _by_index(entry: str, gpus: Sequence[Gpu]) -> Gpu | str | None:
    number = _NUMBER.match(entry)
    if number is None:
        return "not an index"
    digits = number.group()
    index = int(digits) if len(digits) <= _MOST_DIGITS else -1
    return gpus[index] if 0 <= index < len(gpus) else f"GPU {digits.lstrip('+')} does not exist"


def _by_uuid(entry: str, gpus: Sequence[Gpu]) -> Gpu | str | None:
    """The GPU, or why the entry is invalid, or None if that is unknown."""
    if not entry.startswith("GPU-"):
        return "not a UUID, although the first entry is one"
    matches = [gpu for gpu in gpus if gpu.uuid and gpu.uuid.startswith(entry)]
    if len(matches) > 1:
        return "ambiguous: several UUIDs begin with it"
    if matches:
        return matches[0]
    return None if any(gpu.uuid is None for gpu in gpus) else "no GPU has that UUID"
