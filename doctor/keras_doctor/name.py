"""Checks that the package ``kdoctor`` is ours.

On the public package index, another project has the name ``kdoctor``. Its package and its command have the same
names, and installers replace the files of one with those of the other. This package has another name, so it can report
that. It uses the standard library only.
"""

from __future__ import annotations

import base64
import csv
import hashlib
import os
import re
import shlex
import sys
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import NoReturn

EXIT_USAGE = 2

_OURS = Path(__file__).parent.parent / "kdoctor"
_OTHER = re.compile(r"kdoctor-(?P<version>[^-]+)\.(?:dist|egg)-info")
_SEPARATELY = "Install one of them in a separate environment, such as those of pipx or uv tool."


@cache
def check_name() -> None:
    """Warn about another distribution ``kdoctor``, once. If it replaced files of this one, end with a message."""
    spec = find_spec("kdoctor")
    found = Path(spec.origin).parent if spec and spec.origin else None
    other = _find_other({_OURS.parent, *([found.parent] if found else [])})
    if found and _is_ours(found):
        if other:
            _report_shared_folder(other)
    elif found:
        _end(f"{_name(other)} is imported from {found} instead of keras-doctor", _SEPARATELY)
    else:
        _end(f"files of keras-doctor are missing in {_OURS}, as after uninstalling {_name(other)}")


def _is_ours(package: Path) -> bool:
    try:
        return package == _OURS or package.samefile(_OURS)
    except OSError:
        return False


def _report_shared_folder(other: Path) -> None:
    """End if the other distribution replaced files of this one; warn if it is the other way around."""
    replaced = _replaced_files(other)
    if replaced:
        what = f"{_name(other)} is installed in this environment and replaced files of keras-doctor"
        _end(f"{what}: {', '.join(replaced)}", _SEPARATELY)
    _say(f"warning: {_name(other)} is installed in this environment, and keras-doctor replaced its files", _SEPARATELY)


def _find_other(folders: set[Path]) -> Path | None:
    """The metadata of the other distribution in these folders."""
    for folder in folders:
        try:
            with os.scandir(folder) as entries:
                names = [entry.name for entry in entries if entry.name.startswith("kdoctor-")]
        except OSError:
            continue
        name = next(filter(_OTHER.fullmatch, names), None)
        if name:
            return folder / name
    return None


def _name(other: Path | None) -> str:
    match = _OTHER.fullmatch(other.name) if other else None
    return "another project named kdoctor" + (f" ({match['version']})" if match else "")


def _replaced_files(other: Path) -> list[str]:
    """The files of the package that both distributions installed, with contents that are not ours."""
    ours = next((hashes for folder in other.parent.glob("keras_doctor-*.dist-info") if (hashes := _record(folder))), {})
    shared = sorted(name for name in ours.keys() & _record(other).keys() if name.startswith("kdoctor/"))
    return [name for name in shared if ours[name] and ours[name] != _hash(other.parent / name)]


def _record(metadata: Path) -> dict[str, str]:
    """The hash of each file that an installer recorded."""
    try:
        with (metadata / "RECORD").open(encoding="utf-8", newline="") as file:
            return {row[0]: row[1] for row in csv.reader(file) if len(row) > 1}
    except (OSError, ValueError, csv.Error):
        return {}


def _hash(file: Path) -> str:
    try:
        digest = hashlib.sha256(file.read_bytes()).digest()
    except OSError:
        return ""
    return "sha256=" + base64.urlsafe_b64encode(digest).decode().rstrip("=")


def _end(*lines: str) -> NoReturn:
    """End with a message and the command that separates the two.

    Raises:
        SystemExit: always.
    """
    python = sys.executable or "python"
    pip = (
        [python, "-m", "pip", "uninstall", "-y"] if find_spec("pip") else ["uv", "pip", "uninstall", "--python", python]
    )
    _say(
        *lines,
        "To repair keras-doctor, uninstall both, then install it again as its README describes:",
        "    " + shlex.join([*pip, "kdoctor", "keras-doctor"]),
    )
    raise SystemExit(EXIT_USAGE)


def _say(*lines: str) -> None:
    if sys.stderr is not None:
        print("kdoctor: " + "\n".join(lines), file=sys.stderr)  # noqa: T201 - before the command line is imported
