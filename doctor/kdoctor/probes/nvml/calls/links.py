"""The NVLinks of a GPU."""

from collections.abc import Callable, Sequence
from typing import Any

import pynvml

from kdoctor.probes.nvml.calls.answers import Failure, bus_id, error_name, field_number, flag

_REMOTE_KINDS = {0: "gpu", 1: "npu", 2: "switch", 255: "unknown"}
_LINK_COUNT, _LINK_SPEED = 91, 164
_LINK_SPEEDS = (84, 85, 86, 87, 88, 89, 132, 133, 134, 135, 136, 137)
"""Field ids of the speed of links 0 to 11, for drivers without ``_LINK_SPEED``."""
_LINKS_AT_MOST = 36


def links(handle: Any) -> list[dict[str, Any]]:
    """The GPU's NVLinks; raises "not supported" if it has none.

    Old drivers do not report the number of links; then links are tried until one does not exist.
    """
    count = field_number(pynvml.nvmlDeviceGetFieldValues(handle, [_LINK_COUNT])[0])
    found: list[dict[str, Any]] = []
    for index in range(_LINKS_AT_MOST if isinstance(count, Failure) else count):
        link = _link(handle, index)
        missing = link["errors"].get("active") in {"NVML_ERROR_NOT_SUPPORTED", "NVML_ERROR_INVALID_ARGUMENT"}
        if missing and isinstance(count, Failure):
            break
        found.append(link)
    if not found or all(link["errors"].get("active") == "NVML_ERROR_NOT_SUPPORTED" for link in found):
        raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_SUPPORTED)
    _add_speeds(handle, found)
    return found


_LINK_FIELDS: dict[str, Callable[[Any, int], Any]] = {
    "active": lambda handle, index: flag(pynvml.nvmlDeviceGetNvLinkState(handle, index)),
    "version": lambda handle, index: _link_version(pynvml.nvmlDeviceGetNvLinkVersion(handle, index)),
    "remote_bus_id": lambda handle, index: bus_id(pynvml.nvmlDeviceGetNvLinkRemotePciInfo(handle, index)),
    "remote_kind": lambda handle, index: _REMOTE_KINDS.get(
        pynvml.nvmlDeviceGetNvLinkRemoteDeviceType(handle, index), Failure("unknown value")
    ),
}


def _link(handle: Any, index: int) -> dict[str, Any]:
    """One link; for an inactive link nothing else is read."""
    errors: dict[str, str] = {}
    link: dict[str, Any] = {"index": index, "errors": errors}
    for field, read in _LINK_FIELDS.items():
        try:
            value = read(handle, index)
        except Exception as error:  # noqa: BLE001 - any exception is this field's error
            value = Failure(error_name(error))
        if isinstance(value, Failure):
            errors[field] = value.error
        else:
            link[field] = value
        if not link.get("active"):
            break
    return link


_LINK_VERSIONS = {1: 1, 2: 2, 3: 2, 4: 3, 5: 3, 6: 4, 7: 5, 8: 6}
"""``NVML_NVLINK_VERSION_...`` (1.0, 2.0, 2.2, 3.0, 3.1, 4.0, 5.0, 6.0) to the major version."""


def _link_version(number: int) -> int | Failure:
    return _LINK_VERSIONS.get(number, Failure(f"unknown value {number}"))


def _add_speeds(handle: Any, found: Sequence[dict[str, Any]]) -> None:
    active = [link for link in found if link.get("active")]
    if not active:
        return
    asked = _speeds(handle, [(_LINK_SPEED, link["index"]) for link in active])
    if all(isinstance(speed, Failure) for speed in asked):
        asked = _speeds(handle, [_LINK_SPEEDS[link["index"]] for link in active if link["index"] < len(_LINK_SPEEDS)])
    for link, speed in zip(active, asked, strict=False):
        if isinstance(speed, Failure):
            link["errors"]["speed_gbs"] = speed.error
        else:
            link["speed_gbs"] = speed / 1000


def _speeds(handle: Any, ids: Sequence[Any]) -> list[int | Failure]:
    try:
        return [field_number(value) for value in pynvml.nvmlDeviceGetFieldValues(handle, ids)]
    except pynvml.NVMLError as error:
        return [Failure(error_name(error))] * len(ids)
