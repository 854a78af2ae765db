"""The words of nvidia-smi, and what they mean. Whatever is not exactly such a word is "not known", in its own words.

Source: https://docs.nvidia.com/deploy/nvidia-smi/ for fields and units; nvidia-smi shows ``N/A`` for what a GPU does
not support, and NVML's words for any other error (``Unknown Error``, ``GPU is lost``).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

MIB = 1024**2

_NOT_KNOWN = re.compile(
    r"\[?(?:n/?a|not supported|not available|not found|not active|requested functionality.*|unknown.*|.*\berror\b.*"
    r"|err!|deprecated.*|insufficient.*|.*gpu is lost.*|.*reset required.*|function not found|none|uninitialized)\]?",
    re.IGNORECASE,
)
"""What stands in a field of free text in the place of a value."""
_DEPRECATED = re.compile(r"\s*\[Deprecated;.*$", re.IGNORECASE)
"""What driver 610 adds to the fields that it renames: ``610.57.04 [Deprecated; will be removed in CUDA 14.0. ...]``."""


class NotKnownError(Exception):
    """The dump names the field and gives no value. The message is what it says instead."""


Read = Callable[[str], Any]
"""Makes a value of a text; raises NotKnownError."""


def not_known(text: str) -> NotKnownError:
    """The error for such a text."""
    words = " ".join(text.split())
    return NotKnownError(words[:80] if words else "empty")


def _pattern(pattern: str, make: Callable[[str], Any]) -> Read:
    compiled = re.compile(pattern, re.IGNORECASE)

    def read(text: str) -> Any:
        found = compiled.fullmatch(text.strip())
        if not found:
            raise not_known(text)
        return make(found[1])

    return read


def _one_of(words: Mapping[str, Any]) -> Read:
    def read(text: str) -> Any:
        word = " ".join(text.lower().replace("_", " ").replace("-", " ").split())
        if word not in words:
            raise not_known(text)
        return words[word]

    return read


def free_text(text: str) -> str:
    """A name."""
    words = " ".join(text.split())
    if not words or _NOT_KNOWN.fullmatch(words) or words.endswith("..."):
        raise not_known(text)  # the table cuts long names, and half a name is another model's
    return words


def version(text: str) -> str:
    """A version, without the deprecation that driver 610 adds."""
    words = _DEPRECATED.sub("", text).strip()
    if not re.fullmatch(r"\d+(?:\.\d+)+", words):
        raise not_known(text)
    return words


def offset(text: str) -> int:
    """A threshold of T.Limit: never above zero."""
    degrees = int(_pattern(r"(-?\d+) C", int)(text))
    if degrees > 0:
        raise NotKnownError(f"no offset: {text}")
    return degrees


count = _pattern(r"(\d{1,18})", int)
mebibytes = _pattern(r"(\d{1,12})\s?MiB", lambda digits: int(digits) * MIB)
watts = _pattern(r"(\d+(?:\.\d+)?)\s?W", float)
megahertz = _pattern(r"(\d+) MHz", int)
percent = _pattern(r"(\d+)\s?%", int)
degrees = _pattern(r"(-?\d+)\s?C", int)
threshold = _pattern(r"([1-9]\d*) C", int)
generation = _pattern(r"([1-9])", int)
width = _pattern(r"([1-9]\d?)x", int)
performance_state = _pattern(r"P(\d+)", int)
uuid = _pattern(r"(GPU-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})", str)
enabled = _one_of({"enabled": True, "disabled": False, "on": True, "off": False})
active = _one_of({"active": True, "not active": False})
yes = _one_of({"yes": True, "no": False})
compute_mode = _one_of(
    {
        "default": "default",
        "exclusive thread": "exclusive-thread",
        "e. thread": "exclusive-thread",
        "prohibited": "prohibited",
        "exclusive process": "exclusive-process",
        "e. process": "exclusive-process",
    }
)
virtualization_mode = _one_of(
    {
        "none": "none",
        "pass through": "passthrough",
        "vgpu": "vgpu",
        "host vgpu": "host-vgpu",
        "host vsga": "host-vsga",
    }
)
addressing_mode = _one_of({"none": "none", "hmm": "hmm", "ats": "ats"})
fabric_state = _one_of(
    {
        "not supported": "not-supported",
        "not started": "not-started",
        "in progress": "in-progress",
        "completed": "completed",
    }
)
recovery_action = _one_of(
    {
        "none": "none",
        "reset": "reset",
        "gpu reset": "reset",
        "reboot": "reboot",
        "node reboot": "reboot",
        "drain p2p": "drain-p2p",
        "drain and reset": "drain-and-reset",
        "recover imex domain": "recover-imex-domain",
        "bus reset": "bus-reset",
        "system reboot": "system-reboot",
    }
)


def fabric_status(text: str) -> str:
    """``success``, or the error's words."""
    words = " ".join(text.split())
    if words.lower() == "success":
        return "success"
    if not words or words.upper() == "N/A":
        raise not_known(text)
    return words
