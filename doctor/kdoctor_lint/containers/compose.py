"""Reads the services of a compose file."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import yaml

_UNITS = {"": 1, "b": 1, "k": 1024, "kb": 1024, "m": 1024**2, "mb": 1024**2, "g": 1024**3, "gb": 1024**3}


@dataclass(frozen=True, kw_only=True)
class Service:
    """A service, and what it says about GPUs."""

    name: str
    line: int
    image: str
    settings: dict[str, Any]

    @property
    def has_gpus(self) -> bool:
        """Whether it reserves GPUs."""
        if self.settings.get("gpus") or self.settings.get("runtime") == "nvidia":
            return True
        reserved: Any = self.settings
        for key in ("deploy", "resources", "reservations", "devices"):
            reserved = reserved.get(key) if isinstance(reserved, dict) else None
        devices = reserved if isinstance(reserved, list) else []
        named = [one.get("capabilities") for one in devices if isinstance(one, dict)]
        return any(isinstance(capabilities, list) and "gpu" in capabilities for capabilities in named)

    @property
    def shared_memory(self) -> int | None:
        """Bytes of ``/dev/shm``; None for that of the host, or if it is not understood."""
        if self.settings.get("ipc") == "host":
            return None
        stated = str(self.settings.get("shm_size", "64m")).strip().lower()
        found = re.fullmatch(r"(\d{1,15}(?:\.\d{1,9})?)\s*([kmg]?b?)", stated)
        return int(float(found[1]) * _UNITS[found[2]]) if found else None

    @property
    def locks_memory(self) -> bool:
        """Whether it may lock any amount of memory."""
        limits = self.settings.get("ulimits")
        stated = limits.get("memlock") if isinstance(limits, dict) else None
        return stated == -1 or (isinstance(stated, dict) and stated.get("soft") == stated.get("hard") == -1)


def read_services(text: str) -> Iterator[Service]:
    """The services with the lines of their names.

    Raises:
        yaml.YAMLError: the file is not YAML, or not one that can be read.
    """
    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
        loaded = yaml.safe_load(text)
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
    node = next((value for key, value in root.value if key.value == "services"), None)
    entries = node.value if isinstance(node, yaml.MappingNode) else ()
    lines = {key.value: key.start_mark.line + 1 for key, _ in entries if isinstance(key, yaml.ScalarNode)}
    for name, settings in services.items():
        if isinstance(settings, dict):
            line = lines.get(str(name), 1)
            yield Service(name=str(name), line=line, image=str(settings.get("image", "")), settings=settings)
