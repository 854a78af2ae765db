"""Finds the files that XLA searches for when it compiles for a GPU: libdevice and ptxas.

Sources: xla/tsl/platform/default/cuda_root_path.cc and xla/stream_executor/cuda/subprocess_compilation.cc, both in
openxla/xla.
"""

from __future__ import annotations

import os
import re
from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple

from kdoctor_target.inspect.provenance import Owners, read_lines, tidy

Record = Dict[str, Any]


def xla_candidates(name: str, folder: str, config: Record, environ: Mapping[str, str]) -> List[Tuple[str, str]]:
    """Every path that XLA tries for ``libdevice`` or ``ptxas``, in its order, each with its kind."""
    inside = "nvvm/libdevice/libdevice.10.bc" if name == "libdevice" else "bin/ptxas"
    named = _flag(environ.get("XLA_FLAGS", ""), "xla_gpu_cuda_data_dir")
    first = (named, "XLA_FLAGS") if named else ("./cuda_sdk_lib", "working folder")
    candidates = [(os.path.join(first[0], inside), first[1])]
    if name == "ptxas":
        folders = environ.get("PATH", "").split(":")
        candidates += [(os.path.join(entry, "ptxas"), "PATH") for entry in folders]
    candidates += [(os.path.join(root, inside), found_by) for root, found_by in _xla_roots(folder, config)]
    if name == "libdevice":
        candidates.append((os.path.join(".", inside), "working folder"))
    tried = [(os.path.join(os.getcwd(), path), found_by) for path, found_by in candidates]
    return list({os.path.normpath(path): (path, found_by) for path, found_by in reversed(tried)}.values())[::-1]


def _xla_roots(folder: str, config: Record) -> Iterator[Tuple[str, str]]:
    """The folders of ``tsl::CandidateCudaRoots``, except those that exist only inside TensorFlow's build."""
    toolkit = config.get("TF_CUDA_TOOLKIT_PATH")
    if toolkit:
        yield toolkit, "CUDA toolkit"
    yield "/usr/local/cuda", "CUDA toolkit"
    yield "/opt/cuda", "CUDA toolkit"
    component = "cu13" if str(config.get("TF_CUDA_VERSION", "")).startswith("13") else "cuda_nvcc"
    for path in ("..", "../.."):
        yield os.path.join(folder, path, "nvidia", component), "nvidia wheel"
    yield os.path.join(folder, "cuda"), "TensorFlow's folder"
    for path in ("../../../..", "../../../../.."):
        yield os.path.join(folder, path), "conda environment"


def _flag(text: str, name: str) -> Optional[str]:
    """The last value of a flag in ``XLA_FLAGS``, which may also name a file of flags."""
    if text and not text.lstrip().startswith("-"):
        text = " ".join(read_lines(text.strip()))
    found = re.findall(rf"--{name}[=\s]\s*(\"[^\"]*\"|'[^']*'|\S+)", text)
    return found[-1].strip("\"'") if found else None


def describe_xla_file(name: str, candidates: Sequence[Tuple[str, str]], owners: Owners) -> Record:
    """The record of one file: XLA uses the first that exists and, for programs, is executable."""
    mode = os.X_OK if name == "ptxas" else os.R_OK
    found = [(path, kind) for path, kind in candidates if os.path.isfile(path) and os.access(path, mode)]
    if not found:
        return {"name": name, "status": "missing", "searched": [os.path.normpath(path) for path, _ in candidates]}
    path, found_by = found[0]
    real = os.path.realpath(path)
    owner = owners.of(real)
    package, version = owner or (None, None)
    others = {os.path.realpath(other): tidy(other) for other, _ in reversed(found[1:])}
    others.pop(real, None)
    return {
        "name": name,
        "status": "found",
        "path": tidy(path),
        "found_by": found_by,
        "package": package,
        "package_version": version,
        "other_copies": list(others.values())[::-1],
    }
