"""Finds what an import would meet, without importing: missing, broken or replaced files, or another file first."""

from __future__ import annotations

import glob
import os
import re
import sys
import sysconfig
from _imp import is_frozen
from importlib import metadata
from importlib.machinery import EXTENSION_SUFFIXES
from typing import Any, Dict, Iterable, Iterator, List, Optional, Set

from kdoctor_target.inspect.elf import ElfError, Header, OtherMachineError, own_header, verify
from kdoctor_target.inspect.names import canonical_name
from kdoctor_target.runner.faults import Fault, compared, hiding, real_path, recorded_files, shadowing

_LOADED = re.compile(r"\.(py|pyd|dll|dylib)\b|\.so\b")
"""Modules and libraries."""
_LIBRARY = re.compile(r"\.so(\.\d+)*$")
_TESTS = re.compile(r"(^|/)(tests?/|conftest\.py$)")
"""Images are made smaller by deleting the tests of packages."""


def find_damage(names: Iterable[str], folder: Optional[str] = None) -> Dict[str, Any]:
    """What an import of these distributions would meet, without importing them.

    Args:
        names: normalised names of distributions.
        folder: the folder of the job's script, which Python searches first; None if it is not known.

    Returns:
        The ``faults`` by the names of ``PackageFault``'s fields, and the number of ``files`` that were looked up.
    """
    wanted, faults, files = set(names), [], 0
    folder = _searched(folder)
    first = [folder] if folder else []
    own, gone = _own_header(), left_over()
    for distribution in metadata.distributions():
        stem, _, rest = os.path.basename(str(getattr(distribution, "_path", ""))).partition("-")
        name = canonical_name(stem)
        if name not in wanted or metadata_folder(distribution) in gone:
            continue
        wanted.remove(name)
        rows = [row for row in recorded_files(distribution, _LOADED) if not _TESTS.search(row[0])]
        files += len(rows)
        where = str(distribution.locate_file(""))
        version = read_version(distribution)
        package: Fault = {"package": name, "version": version or rest.rpartition(".")[0], "files": len(rows)}
        missing, changed = compared(rows, where)
        libraries = (path for path, _ in rows if _LIBRARY.search(path) and path not in missing)
        broken = [path for path in libraries if own and _is_broken(os.path.join(where, path), own)]
        if not version:
            broken.append(f"{stem}-{rest}/METADATA")
        shadow = shadowing(rows, where, [*first, *sys.path])
        if missing or broken:
            counts = {"missing": len(missing), "changed": len(broken)}
            faults.append(dict(package, file=(missing or broken)[0], **counts))
        elif changed:
            faults += [dict(package, **other) for other in _overwriting(changed, name)]
        if shadow:
            faults.append(dict(package, file=shadow, shadowed=True))
    faults += _hidden_by_path_files(set(names))
    for path, version in gone.items():
        name = canonical_name(os.path.basename(path).partition("-")[0])
        if name in names:
            faults.append({"package": name, "version": version, "files": 0, "file": path, "shadowed": True})
    if folder:
        faults += [
            {"package": "python", "version": sys.version.split()[0], "files": 0, "file": path, "shadowed": True}
            for path in hiding(filter(_is_searched, getattr(sys, "stdlib_module_names", ())), folder)
        ]
    return {"faults": faults, "files": files}


def _searched(folder: Optional[str]) -> Optional[str]:
    """The folder of the script, if Python searches it."""
    return None if sys.version_info >= (3, 11) and os.environ.get("PYTHONSAFEPATH") else folder


def _is_searched(name: str) -> bool:
    """Whether Python looks for a module of its library in folders."""
    return name not in sys.builtin_module_names and not is_frozen(name)


def metadata_folder(distribution: metadata.Distribution) -> str:
    """The folder of its metadata, without links."""
    return real_path(str(getattr(distribution, "_path", "")))


def left_over() -> Dict[str, str]:
    """Metadata of versions that are gone, next to that of the installed one: its folder, to its version."""
    several: Dict[str, Dict[str, metadata.Distribution]] = {}
    for distribution in metadata.distributions():
        path = metadata_folder(distribution)
        stem = canonical_name(os.path.basename(path).partition("-")[0])
        several.setdefault(os.path.join(os.path.dirname(path), stem), {})[path] = distribution
    gone: Dict[str, str] = {}
    for found in (found for found in several.values() if len(found) > 1):
        kept = {path: _kept(distribution) for path, distribution in found.items()}
        best = max(kept, key=lambda path: kept[path])
        gone.update({path: read_version(one) or "" for path, one in found.items() if kept[path] < kept[best]})
    return gone


def _kept(distribution: metadata.Distribution) -> float:
    """The share of its recorded files that are in place."""
    rows = list(recorded_files(distribution))
    missing, changed = compared(rows, str(distribution.locate_file("")))
    return 1 - len({*missing, *changed}) / len(rows) if rows else 0.0


def _hidden_by_path_files(names: Set[str]) -> Iterator[Fault]:
    """Packages of the environment that a ``.pth`` file hides: it puts a folder with another copy before them."""
    site = sysconfig.get_path("purelib")
    asked = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    before = sys.path[: sys.path.index(site)] if site in sys.path else []
    for entry in (entry for entry in before if entry and entry not in asked):
        files = [path for path in sorted(glob.glob(os.path.join(glob.escape(site), "*.pth"))) if _mentions(path, entry)]
        for other in metadata.distributions(path=[entry]) if files else ():
            name = canonical_name(os.path.basename(str(getattr(other, "_path", ""))).partition("-")[0])
            for own in metadata.distributions(path=[site], name=name) if name in names else ():
                version = read_version(own) or ""
                yield {"package": name, "version": version, "files": 0, "file": files[0], "shadowed": True}


def _mentions(path: str, text: str) -> bool:
    with open(path, encoding="utf-8", errors="replace") as file:
        return text in file.read()


def _own_header() -> Optional[Header]:
    """What the loader requires of a library; None without ELF files, as on macOS."""
    try:
        return own_header()
    except (OSError, ElfError):
        return None


def _is_broken(path: str, own: Header) -> bool:
    """Whether Python cannot use the library: it is cut off or of another machine or release. A stripped one is fine."""
    module, tag, _ = path.partition(".cpython-")
    if tag and not any(os.path.exists(module + suffix) for suffix in EXTENSION_SUFFIXES):
        return True
    try:
        verify(path, own)
    except (OSError, ElfError, OtherMachineError):
        return True
    return False


def read_version(distribution: metadata.Distribution) -> Optional[str]:
    """The version in the metadata; None if it is empty or missing, which is an error from Python 3.14 on."""
    try:
        return distribution.version or None
    except Exception:
        return None


def _overwriting(changed: List[str], name: str) -> Iterator[Fault]:
    """Another distribution that records the changed files, too: its own have taken their place.

    A single one may be the ``__init__.py`` of a folder that several distributions share.
    """
    for distribution in metadata.distributions():
        other = str(distribution.metadata["Name"])
        recorded = {path for path, _ in recorded_files(distribution, _LOADED)}
        both = [path for path in changed if path in recorded]
        if len(both) > 1 and canonical_name(other) != name:
            yield {"file": both[0], "changed": len(both), "overwritten_by": other}
