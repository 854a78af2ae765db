"""Finds the CUDA libraries that each installed framework would load: TensorFlow, JAX and torch share one process.

glibc loads a library once for each soname, so the framework that is imported first decides for all. Nothing is loaded.
"""

from __future__ import annotations

import glob
import os
import re
import sys
from typing import Any, Dict, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from kdoctor_target.inspect import elf
from kdoctor_target.inspect.loader import Loader, Opener
from kdoctor_target.inspect.provenance import Owners, tidy

Record = Dict[str, Any]

SONAMES_BY_MAJOR = {
    11: {"cudart": "11.0", "cublas": "11", "cufft": "10", "cusolver": "11", "cusparse": "11"},
    12: {"cudart": "12", "cublas": "12", "cufft": "11", "cusolver": "11", "cusparse": "12", "cupti": "12"},
    13: {"cudart": "13", "cublas": "13", "cufft": "12", "cusolver": "12", "cusparse": "12", "cupti": "13"},
}
"""The number at the end of each soname, by CUDA major."""

_TORCH = "torch/lib/libtorch_cuda.so"
_OF_CUDA = re.compile(r"lib(cudart|cublas|cublasLt|cufft|cusolver|cusparse|cudnn|nccl)\.so\.")


class _Framework(NamedTuple):
    name: str
    opener: str
    sonames: Tuple[str, ...]
    loads_wheels: bool
    """Whether it loads the files of the NVIDIA wheels by their path, whatever the loader's search finds."""


def describe_frameworks(libraries: Sequence[Record], environ: Mapping[str, str], owners: Owners) -> List[Record]:
    """What each framework loads, TensorFlow first: ``libraries`` are those that it opens."""
    found = [
        ("TensorFlow", item["soname"], item["path"])
        for item in libraries
        if item["status"] == "found" and item["name"] != "cuda"
    ]
    for framework in _frameworks():
        found += [(framework.name, soname, path) for soname, path in _loaded(framework, environ)]
    return [_record(name, soname, os.path.realpath(path), owners) for name, soname, path in found]


def _record(framework: str, soname: str, path: str, owners: Owners) -> Record:
    packages = {f"{owner.package}=={owner.version}": same for owner, same in owners.all_of(path).items()}
    its = [package for package, same in packages.items() if same]
    return {
        "framework": framework,
        "soname": soname,
        "path": tidy(path),
        "packages": list(packages),
        "installed_by": its[0] if len(its) == 1 else None,
    }


def _frameworks() -> Iterator[_Framework]:
    for major in sorted(SONAMES_BY_MAJOR):
        plugin = _first(f"jax_plugins/xla_cuda{major}/xla_cuda_plugin.so")
        if plugin:
            numbers = {**SONAMES_BY_MAJOR[major], "cudnn": "9", "nccl": "2"}
            sonames = tuple(f"lib{name}.so.{number}" for name, number in numbers.items())
            yield _Framework("JAX", plugin, sonames, loads_wheels=True)
    torch = _first(_TORCH)
    if torch:
        try:
            needed = elf.read_library(torch).needed
        except (OSError, elf.ElfError):
            return
        yield _Framework("torch", torch, tuple(filter(_OF_CUDA.match, needed)), loads_wheels=False)


def _loaded(framework: _Framework, environ: Mapping[str, str]) -> Iterator[Tuple[str, str]]:
    """The sonames and paths of the libraries that it loads."""
    try:
        loader = Loader(Opener(framework.opener), dict(environ))
    except (OSError, elf.ElfError):
        return
    for soname in framework.sonames:
        path = _first(f"nvidia/*/lib/{soname}") if framework.loads_wheels else None
        path = path or loader.find(soname).path
        if path:
            yield soname, path


def _first(pattern: str) -> Optional[str]:
    """The first file on the search path of Python."""
    for entry in sys.path:
        found = sorted(glob.glob(f"{glob.escape(entry)}/{pattern}"))  # noqa: PTH207 - paths are texts here
        if found:
            return found[0]
    return None
