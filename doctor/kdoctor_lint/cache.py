"""Results of earlier runs, by the content of the files and of the modules that they import."""

import json
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache, partial
from hashlib import blake2b
from pathlib import Path
from typing import Any

from kdoctor.errors import UsageError
from kdoctor.inputs import read_bounded
from kdoctor.output import write_atomically
from kdoctor.version import __version__
from kdoctor_lint.edits import Called, Fix
from kdoctor_lint.model import NO_CODE, Finding, Ignored, Spot
from kdoctor_lint.neighbours import Found, file_of
from kdoctor_lint.registry import RULES
from kdoctor_lint.settings import Settings

Result = tuple[Sequence[Finding], Sequence[Ignored]]
_PLACE = ("line", "column", "end_line", "end_column", "cell")
_MOST = 50_000  # Files that are remembered. Those that were linted last stay.


class Cache:
    """What is known of files. A result counts only for the same rules, releases, entry and release of kdoctor."""

    def __init__(self, environ: Mapping[str, str], settings: Settings) -> None:
        self._file = _folder(environ) / "kdoctor" / "lint.json"
        here = Path(__file__).parent
        sources = sorted([*here.rglob("*.py"), *here.glob("*.yaml")])
        state = sys.version, sorted(settings.targets.items()), settings.entry
        self._state = _digest(repr((__version__, state, [path.stat().st_mtime_ns for path in sources])).encode())
        self._keys: dict[str, str] = {}
        self._changed = False
        self._content = lru_cache(maxsize=None)(lambda file: _digest(os.fsencode(file) + read_bounded(Path(file))))
        self._module = lru_cache(maxsize=None)(partial(_module, self._content))
        try:
            self._entries: dict[str, Any] = dict(json.loads(self._file.read_bytes()))
        except (OSError, ValueError, TypeError):
            self._entries = {}

    def get(self, file: str, rules: Iterable[str]) -> Result | None:
        """The result of a file, if nothing has changed that it depends on."""
        try:
            content = self._content(os.path.abspath(file))  # noqa: PTH100
        except (OSError, ValueError, UsageError):
            return None  # such files are not remembered
        key = self._keys[file] = _digest(" ".join([self._state, content, *sorted(rules)]).encode())
        try:
            found, ignored, modules = self._entries[key]
            if any(self._module(*place) != digest for *place, digest in modules):
                return None
            self._entries[key] = self._entries.pop(key)
            return [_finding(file, row) for row in found], [
                Ignored(finding=_finding(file, row), reason=reason) for reason, *row in ignored
            ]
        except (LookupError, TypeError, ValueError):
            return None

    def put(self, file: str, result: Result, modules: Iterable[Found]) -> None:
        """Remember a result, and the modules that the file imports."""
        if file in self._keys:
            found, ignored = result
            rows = [_row(item) for item in found], [[item.reason, *_row(item.finding)] for item in ignored]
            self._entries[self._keys[file]] = [*rows, [[*place, self._module(*place)] for place in modules]]
            self._changed = True

    def save(self) -> None:
        """Write what is new. A folder that cannot be written to is not an error."""
        if self._changed:
            with suppress(OSError, UsageError):
                self._file.parent.mkdir(parents=True, exist_ok=True)
                write_atomically(self._file, json.dumps(dict(list(self._entries.items())[-_MOST:])))


def _folder(environ: Mapping[str, str]) -> Path:
    stated = Path(environ.get("XDG_CACHE_HOME", ""))
    return stated if stated.is_absolute() else Path(os.path.expanduser("~"), ".cache")  # noqa: PTH111 - it never raises


def _digest(data: bytes) -> str:
    return blake2b(data, digest_size=16).hexdigest()


def _module(content: Callable[[str], str], near: str, level: int, name: str) -> str:
    """The content of the module that an import finds now."""
    file = file_of(near, level, name)
    try:
        return "" if file is None else content(file)
    except (OSError, UsageError) as error:
        return repr(error)


def _row(item: Finding) -> list[Any]:
    spot, safe = item.spot, None if item.autofix is None else item.autofix.safe
    return [item.rule.id, item.message, item.source, item.own_fix, safe, [getattr(spot, name) for name in _PLACE]]


def _finding(path: str, row: Sequence[Any]) -> Finding:
    rule, message, source, own_fix, safe, place = row
    spot = Spot(path=path, **dict(zip(_PLACE, place, strict=True)))
    fix = None if safe is None else Fix(Called(), NO_CODE, safe)
    return Finding(rule=RULES[rule], spot=spot, message=message, source=source, own_fix=own_fix, autofix=fix)
