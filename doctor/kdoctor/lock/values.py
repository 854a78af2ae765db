"""What the facts of a lock may look like. Commands are made of them, so a lock with other values is refused."""

import re
from collections.abc import Mapping

from kdoctor.probes.environment import is_recorded
from kdoctor.text.sanitize import is_printable

_TEXT = re.compile(r"[^\n]*")
_NAMES = {
    "packages": (re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?"), "a package name"),
    "conda": (re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]*"), "a package name"),
    "environment": (re.compile(r"[^\s=]+"), "a variable name"),
}
_WORD = (re.compile(r"[A-Za-z0-9_.+-]*"), "a word")
_VERSION = re.compile(r"[A-Za-z0-9][A-Za-z0-9.!+_-]*")
_VALUES = {
    "packages": (_VERSION, "a version"),
    "conda": (re.compile(r"[A-Za-z0-9][A-Za-z0-9.!+_]*=[A-Za-z0-9._+-]*"), "a version and a build"),
    "environment": (re.compile(r"[\s\S]*"), "a text"),
    "python.version": (_VERSION, "a version"),
    **dict.fromkeys(("keras.backend", "keras.floatx", "keras.epsilon", "keras.image_data_format"), _WORD),
    "host.image": (re.compile(r"[^\s-]\S*"), "the name of an image"),
}


def problem(section: str, name: str, value: str) -> str | None:
    """Why a fact cannot be in a lock; None if it can."""
    names, kind = _NAMES.get(section, (_TEXT, "a name"))
    if not (is_printable(name) and names.fullmatch(name)):
        return f"{name!r:.60} is not {kind}"
    if section == "environment" and not is_recorded(name):
        return f"{name!r:.60} is not a variable that is recorded"  # PATH or BASH_ENV would run programs of a stranger
    values, kind = _VALUES.get(f"{section}.{name}") or _VALUES.get(section, (_TEXT, "one line of text"))
    if not (is_printable(value) and values.fullmatch(value)):
        return f"{value!r:.60} is not {kind}"
    return None


def fitting(section: str, facts: Mapping[str, str]) -> dict[str, str]:
    """The facts that a lock can hold. Others name nothing that a command could restore."""
    return {name: value for name, value in facts.items() if problem(section, name, value) is None}
