"""Reads the services of a compose file."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import yaml

_UNITS = {unit: 1024**power for power, unit in enumerate(("", "k", "m", "g", "t", "p"))}
_SHARED_FOLDER = "/dev/shm"  # noqa: S108 - of the container
_LOCKING = {"ALL", "IPC_LOCK", "CAP_IPC_LOCK"}
"""Capabilities with which a process may lock any amount of memory."""
_GPU_DEVICE = re.compile(r"/dev/nvidia\d|nvidia\.com/gpu=")
_DEFAULT = re.compile(r"\$\{\w{1,60}:?-([^${}]{0,60})\}")
"""A variable with its default value: ``${SHM:-8gb}``."""
_MOST_EXTENDED = 50
_MERGED = {"deploy", "resources", "reservations", "environment", "ulimits", "memlock"}


@dataclass(frozen=True, kw_only=True)
class Service:
    """A service, and what it says about GPUs."""

    name: str
    line: int
    image: str
    settings: dict[str, Any]
    is_whole: bool = True
    """Whether other files say no more about it, as far as this file shows. An override names no image."""
    dockerfile: str = ""
    """The Dockerfile that is written in the service itself (``dockerfile_inline``)."""
    dockerfile_line: int = 1
    """The line where that begins."""

    @property
    def has_gpus(self) -> bool:
        """Whether it has GPUs."""
        if self.settings.get("gpus") or self.settings.get("runtime") == "nvidia" or self._reservations:
            return True
        kinds = [_at(one, "discrete_resource_spec", "kind") for one in _entries(self._reserved("generic_resources"))]
        devices = [_at(one, "source") or one for one in _entries(self.settings.get("devices"))]
        visible = _environment(self.settings).get("NVIDIA_VISIBLE_DEVICES", "")
        return (
            any("gpu" in str(kind).lower() for kind in kinds)
            or any(_GPU_DEVICE.match(str(device)) for device in devices)
            or visible.strip().lower() not in ("", "none", "void")
        )

    def _reserved(self, key: str) -> Any:
        return _at(self.settings, "deploy", "resources", "reservations", key)

    @property
    def _reservations(self) -> list[dict[str, Any]]:
        """The devices with the capability ``gpu``."""
        named = [one for one in _entries(self._reserved("devices")) if isinstance(one, dict)]
        return [one for one in named if "gpu" in _entries(one.get("capabilities"))]

    @property
    def has_one_gpu(self) -> bool:
        """Whether it has exactly one GPU, which needs no shared memory for NCCL."""
        gpus = _entries(self.settings.get("gpus"))
        return [_number(one) for one in (*self._reservations, *gpus)] == [1]

    @property
    def shared_memory(self) -> int | None:
        """Bytes of ``/dev/shm``; None for that of the host or of another container, or if it is not known."""
        ipc = str(self.settings.get("ipc", "private")).partition(":")[0]
        if ipc in ("host", "service", "container") or self._mounts_shared_folder:
            return None
        if self.settings.get("shm_size") is None and not self.is_whole:
            return None
        stated = _DEFAULT.sub(r"\1", str(self.settings.get("shm_size") or "64m")).strip().lower()
        found = re.fullmatch(r"([0-9]{1,15}(?:\.[0-9]{1,9})?) ?([kmgtp]?)i?b?", stated)
        return int(float(found[1]) * _UNITS[found[2]]) if found else None

    @property
    def _mounts_shared_folder(self) -> bool:
        mounts = [*_entries(self.settings.get("volumes")), *_entries(self.settings.get("tmpfs"))]
        targets = [_at(one, "target") if isinstance(one, dict) else one for one in mounts]
        return any(_SHARED_FOLDER in str(target).split(":") for target in targets)

    @property
    def locks_memory(self) -> bool:
        """Whether it may lock any amount of memory, or whether that is not known."""
        added = {str(one).upper() for one in _entries(self.settings.get("cap_add"))}
        if self.settings.get("privileged") is True or added & _LOCKING:
            return True
        stated = _at(self.settings, "ulimits", "memlock")
        if stated is None:
            return not self.is_whole
        limits = [stated.get("soft"), stated.get("hard")] if isinstance(stated, dict) else [stated]
        return all(str(limit).strip() == "-1" for limit in limits)


def _at(value: Any, *keys: str) -> Any:
    """What nested mappings have under these keys, or None."""
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _entries(value: Any) -> list[Any]:
    """A list, or a list of the one text."""
    return value if isinstance(value, list) else [value] if isinstance(value, str) else []


def _number(device: Any) -> int | None:
    """How many GPUs a reservation has; None for all, or if it is not known."""
    listed, count = _at(device, "device_ids"), _at(device, "count")
    if isinstance(listed, list):
        return len(listed)
    return int(count) if isinstance(count, (int, str)) and str(count).isascii() and str(count).isdigit() else None


def _environment(settings: dict[str, Any]) -> dict[str, str]:
    stated = settings.get("environment")
    pairs = stated.items() if isinstance(stated, dict) else (str(one).partition("=")[::2] for one in _entries(stated))
    return {str(name): str(value) for name, value in pairs if value is not None}


class _Loader(yaml.SafeLoader):
    """Reads the tags of compose files, too."""


def _override(loader: yaml.SafeLoader, node: yaml.Node) -> Any:
    """``!override``: the value itself."""
    if isinstance(node, yaml.MappingNode):
        return loader.construct_mapping(node, deep=True)
    if isinstance(node, yaml.SequenceNode):
        return loader.construct_sequence(node, deep=True)
    return loader.construct_yaml_str(node)


_Loader.add_constructor("!override", _override)
_Loader.add_constructor("!reset", lambda _loader, _node: None)


def read_services(text: str) -> Iterator[Service]:
    """The services with the lines of their names.

    Raises:
        yaml.YAMLError: the file is not YAML, or not one that can be read.
    """
    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
        loaded = yaml.load(text, Loader=_Loader)  # noqa: S506 - a safe loader
    except (
        ValueError,
        LookupError,
        ArithmeticError,
        TypeError,
        AttributeError,
    ) as error:  # of a tagged scalar or an escape
        raise yaml.YAMLError(str(error)) from error
    services = loaded.get("services") if isinstance(loaded, dict) else None
    if not isinstance(services, dict) or not isinstance(root, yaml.MappingNode):
        return
    entries = _children(_child(root, "services"))
    for name, own in services.items():
        if isinstance(own, dict):
            settings, known = _extended(own, services)
            key, node = entries.get(str(name), (None, None))
            text, line = _inline(node)
            yield Service(
                name=str(name),
                line=key.start_mark.line + 1 if key else 1,
                image=str(settings.get("image") or ""),
                settings=settings,
                is_whole=known and bool(settings.get("image") or settings.get("build")),
                dockerfile=text,
                dockerfile_line=line,
            )


def _children(node: yaml.Node | None) -> dict[str, tuple[yaml.Node, yaml.Node]]:
    """The keys and values of a mapping, by the text of the key."""
    pairs = node.value if isinstance(node, yaml.MappingNode) else ()
    return {key.value: (key, value) for key, value in pairs if isinstance(key, yaml.ScalarNode)}


def _child(node: yaml.Node | None, key: str) -> yaml.Node | None:
    """The value of a key of a mapping."""
    return _children(node).get(key, (None, None))[1]


def _inline(service: yaml.Node | None) -> tuple[str, int]:
    """The Dockerfile in a service and its first line. Only a block (``|``) has the lines of the file."""
    node = _child(_child(service, "build"), "dockerfile_inline")
    if not isinstance(node, yaml.ScalarNode) or node.style != "|":
        return "", 1
    return node.value, node.start_mark.line + 2


def _extended(settings: dict[str, Any], services: dict[Any, Any]) -> tuple[dict[str, Any], bool]:
    """The settings of a service with those that it extends, and whether all of them are in this file."""
    for _ in range(_MOST_EXTENDED):
        extends = settings.get("extends")
        if extends is None:
            return settings, True
        base = services.get(_at(extends, "service") if isinstance(extends, dict) else str(extends))
        if not isinstance(base, dict) or _at(extends, "file") is not None:
            return settings, False
        settings = _merged(base, {key: value for key, value in settings.items() if key != "extends"})
    return settings, False


def _merged(base: dict[str, Any], own: dict[str, Any], levels: int = 4) -> dict[str, Any]:
    """The settings of both. Lists are joined, and mappings merged where this linter reads them."""
    merged = dict(base)
    for key, value in own.items():
        old = merged.get(key)
        if isinstance(old, dict) and isinstance(value, dict) and key in _MERGED and levels:
            merged[key] = _merged(old, value, levels - 1)
        elif isinstance(old, list) and isinstance(value, list):
            merged[key] = [*old, *value]
        else:
            merged[key] = value
    return merged
