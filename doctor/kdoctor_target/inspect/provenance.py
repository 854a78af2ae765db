"""Finds the pip distribution that owns a file, and normalises paths for display."""

from __future__ import annotations

import glob
import os
from functools import lru_cache
from typing import Dict, List, NamedTuple, Optional, Sequence

from kdoctor_target.inspect.names import canonical_name


class Owner(NamedTuple):
    """A pip distribution."""

    package: str
    version: str


class Owners:
    """The NVIDIA wheels on the search path, and their files."""

    def __init__(self, folders: Sequence[str]) -> None:
        self._folders = [os.path.realpath(folder) for folder in folders if folder]

    def of(self, path: Optional[str]) -> Optional[Owner]:
        """The distribution that lists this file in its RECORD, with its size if there are several; or None."""
        owners = self.all_of(path)
        return max(owners, key=lambda owner: owners[owner], default=None)

    def all_of(self, path: Optional[str]) -> Dict[Owner, bool]:
        """The distributions that list this file in their RECORD, and whether they list it with its size."""
        for folder in self._folders:
            if path is not None and path.startswith(folder + os.sep):
                owners = _owned_files(folder).get(path[len(folder) + 1 :], {})
                if owners:
                    size = str(os.path.getsize(path)) if os.path.exists(path) else ""
                    return {owner: owners[owner] == size for owner in owners}
        return {}


@lru_cache(maxsize=None)
def _owned_files(folder: str) -> Dict[str, Dict[Owner, str]]:
    """The files of the NVIDIA wheels in a folder, with their owners and the size that each owner lists."""
    files: Dict[str, Dict[Owner, str]] = {}
    for info in sorted(glob.glob(os.path.join(glob.escape(folder), "nvidia*.dist-info"))):
        name, _, version = os.path.basename(info)[: -len(".dist-info")].partition("-")
        for line in read_lines(os.path.join(info, "RECORD")):
            path, _, rest = line.partition(",")
            files.setdefault(path.strip('"'), {})[Owner(canonical_name(name), version)] = rest.rpartition(",")[2]
    return files


def read_lines(path: str) -> List[str]:
    """The lines of a text file; empty if it cannot be read."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read().splitlines()
    except OSError:
        return []


def tidy(path: str) -> str:
    """The path without ``..``. Its folder's links are followed, because ``..`` may come after a link."""
    if ".." not in path.split("/"):
        return os.path.normpath(path)
    return in_real_folder(path)


def in_real_folder(path: str) -> str:
    """The path with the links of its folder followed, except a link at its end."""
    folder, name = os.path.split(path.rstrip("/"))
    return os.path.join(os.path.realpath(folder), name)
