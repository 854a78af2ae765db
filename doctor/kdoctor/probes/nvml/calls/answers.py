"""Converts NVML's return values to facts, and its errors to names."""

import ctypes
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import pynvml

Read = Callable[[Any], Any]
"""Takes a device handle; its exception is the field's error."""

ERROR_NAMES: dict[int, str] = {getattr(pynvml, name): name for name in dir(pynvml) if name.startswith("NVML_ERROR_")}


@dataclass(frozen=True)
class Failure:
    """The reason why a call gave no value for one of its fields, or an invalid one."""

    error: str


def code(error: Exception) -> int:
    """NVML's return code; the binding sets it dynamically."""
    return int(getattr(error, "value", pynvml.NVML_ERROR_UNKNOWN))


def code_name(number: int) -> str:
    """The name of NVML's constant, for example ``NVML_ERROR_GPU_IS_LOST``."""
    return ERROR_NAMES.get(number, f"NVML error {number}")


def error_name(error: Exception) -> str:
    """The name of an exception; functions that the library or an older binding lacks are "function not found"."""
    if isinstance(error, pynvml.NVMLError):
        return code_name(code(error))
    if isinstance(error, (pynvml.NVMLLibraryMismatchError, AttributeError)):
        return "NVML_ERROR_FUNCTION_NOT_FOUND"
    return f"{type(error).__name__}: {error}"


def bus_id(info: Any) -> str:
    """NVML's address ``00000000:3B:00.0`` in the form of sysfs: ``0000:3b:00.0``."""
    text = info.busId.decode() if isinstance(info.busId, bytes) else str(info.busId)
    domain, bus, rest = text.split(":")
    return f"{int(domain, 16):04x}:{bus}:{rest}".lower()


def one_of(words: Sequence[str], number: int) -> str | Failure:
    """The word of that number; unknown numbers are failures."""
    return words[number] if 0 <= number < len(words) else Failure(f"unknown value {number}")


def flag(number: int) -> bool | Failure:
    """Off or on."""
    return bool(number) if number in {0, 1} else Failure(f"unknown value {number}")


def watts(milliwatts: int) -> float:
    """Watts from NVML's milliwatts."""
    return milliwatts / 1000


def degrees(number: int) -> int | Failure:
    """An absolute temperature; newer families return offsets or zero for a different threshold."""
    signed = ctypes.c_int(number).value
    return signed if signed > 0 else Failure(f"not an absolute temperature: {signed}")


def margin(number: int) -> int | Failure:
    """A T.Limit threshold, which is an offset of at most zero."""
    signed = ctypes.c_int(number & 0xFFFFFFFF).value
    return signed if signed <= 0 else Failure(f"not an offset: {signed}")


def count(number: int) -> int | Failure:
    """A counter; the largest number of 32 or 64 bits means unknown."""
    return number if 0 <= number not in {2**32 - 1, 2**64 - 1} else Failure("unknown count")


def numbers(words: Iterable[int]) -> tuple[int, ...] | Failure:
    """The members of a bit set of 64-bit words; an empty set is a failure."""
    found = [64 * place + bit for place, word in enumerate(words) if word for bit in range(64) if word >> bit & 1]
    return tuple(found) or Failure("empty set")


def ask(call: str) -> Callable[..., Any]:
    """The binding's function, looked up at call time because older bindings lack some."""

    def answer(*arguments: Any) -> Any:
        return getattr(pynvml, call)(*arguments)

    return answer


def field_number(value: Any) -> int | Failure:
    """The number of a field value, from the union's member for its type; or its return code."""
    if value.nvmlReturn != pynvml.NVML_SUCCESS:
        return Failure(code_name(value.nvmlReturn))
    members = ("dVal", "uiVal", "ulVal", "ullVal", "sllVal", "siVal", "usVal")
    if value.valueType >= len(members):
        return Failure(f"unknown type of value {value.valueType}")
    number = getattr(value.value, members[value.valueType])
    return int(number) if math.isfinite(number) else Failure(f"not a number: {number}")
