"""Finds the file that the dynamic loader would choose for every library that the installed TensorFlow opens.

TensorFlow is not imported, and no CUDA context is made. The names and their order are those of
xla/tsl/platform/default/dso_loader.cc in openxla/xla.
"""

from __future__ import annotations

import glob
import os
import re
import sys
from functools import lru_cache
from typing import Any, Dict, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from kdoctor_target.inspect import elf, library_versions
from kdoctor_target.inspect.environment import read_cuda_config, read_tensorflow
from kdoctor_target.inspect.frameworks import SONAMES_BY_MAJOR, describe_frameworks
from kdoctor_target.inspect.loader import Loader, Opener, starting_environment
from kdoctor_target.inspect.names import canonical_name
from kdoctor_target.inspect.provenance import Owners, in_real_folder, tidy
from kdoctor_target.inspect.xla_files import describe_xla_file, xla_candidates
from kdoctor_target.runner.channel import Channel
from kdoctor_target.runner.faults import real_path
from kdoctor_target.runner.watchdog import arm

Record = Dict[str, Any]

NOT_SEARCHED = "not searched"

_OPENERS = ("libtensorflow_framework.so.2", "libtensorflow_framework.so.1")
"""The library that contains TensorFlow's ``DsoLoader``, whose search path applies."""

_LOADED_BY = ("python/_pywrap_tensorflow_internal.so",)

FIRST_WITH_OPENED_NCCL = (2, 21)
"""Before this release NCCL was linked into TensorFlow (measured: the wheels of 2.10 to 2.20 contain it)."""

# In TensorFlow's order (TryDlopenCUDALibraries), with the macro of cuda_config.h that holds the version.
_NAMES = (
    ("cudart", "TF_CUDART_VERSION", "every GPU"),
    ("cublas", "TF_CUBLAS_VERSION", "every GPU"),
    ("cublasLt", "TF_CUBLAS_VERSION", "every GPU"),
    ("cufft", "TF_CUFFT_VERSION", "every GPU"),
    ("cusolver", "TF_CUSOLVER_VERSION", "every GPU"),
    ("cusparse", "TF_CUSPARSE_VERSION", "every GPU"),
    ("cudnn", "TF_CUDNN_VERSION", "every GPU"),
    ("cupti", "TF_CUPTI_VERSION", "profiling"),
)

# Where copies often are that the loader does not search: they explain a missing library.
_OTHER_FOLDERS = (
    "/usr/local/cuda*/lib64",
    "/usr/local/cuda*/targets/*/lib",
    "/usr/local/cuda*/extras/CUPTI/lib64",
    "/usr/local/cuda*/compat",
    "/usr/local/nvidia/lib64",
    "/usr/lib64-nvidia",
    "/usr/lib/wsl/lib",
    "/opt/cuda/lib64",
)


class UnknownBuildError(Exception):
    """It is unknown which libraries are opened. The message is the reason."""


class Wanted(NamedTuple):
    """One library that TensorFlow opens."""

    name: str
    sonames: Tuple[str, ...]
    """The names that TensorFlow tries, in order."""
    needed_for: str


def main(settings: Mapping[str, Any]) -> None:
    """Send ``{"facts": ...}``, or ``{"error": ...}`` with the reason.

    ``settings``: ``deadline_s``, and ``versions_s``, the part of it for version calls.
    """
    arm(settings["deadline_s"])
    channel = Channel()
    try:
        record: Record = {"facts": read_libraries(settings["versions_s"])}
    except UnknownBuildError as error:
        record = {"error": str(error)}
    except Exception as error:
        record = {"error": f"searching TensorFlow's libraries failed: {type(error).__name__}: {error}"}
    channel.send(record)


def read_libraries(versions_s: float) -> Record:
    """The facts of group ``libraries``.

    Raises:
        UnknownBuildError: TensorFlow is not installed, or its build or this system's loader is unknown.
    """
    build = read_tensorflow([])
    if not build["installed"]:
        raise UnknownBuildError("TensorFlow is not installed")
    if build["cuda_build"] is None:
        why = build["unreadable"] or "no build information in its files"
        raise UnknownBuildError(f"the libraries that this TensorFlow opens are unknown ({why})")
    if not build["cuda_build"]:
        return {"cuda_build": False, "note": "this TensorFlow was built without CUDA and opens no CUDA libraries"}
    if sys.platform != "linux" or "glibc" not in _libc():
        raise UnknownBuildError("the loader's search is implemented for Linux with glibc only")
    environ = starting_environment(dict(os.environ))
    folder = build["location"]
    config = read_cuda_config(folder)
    opener = _find_opener(folder)
    try:
        loader = Loader(opener, environ)
    except (OSError, elf.ElfError) as error:
        raise UnknownBuildError(f"{opener.path}: {error}") from error
    owners = Owners(sys.path)
    elsewhere = list(_other_folders(environ))
    wanted = list_wanted(build, config, read_release(folder))
    libraries = [describe_library(loader, entry, elsewhere, owners) for entry in wanted]
    _add_versions(libraries, versions_s)
    xla = {name: xla_candidates(name, folder, config, environ) for name in ("libdevice", "ptxas")}
    driver = libraries[0]
    return {
        "cuda_build": True,
        "opener": opener.path,
        **_describe_search(loader),
        "libraries": libraries,
        "frameworks": describe_frameworks(libraries, environ, owners),
        "xla_files": [describe_xla_file(name, candidates, owners) for name, candidates in xla.items()],
        "driver_version": driver["version"],
        "driver_is_compat": _is_compat(driver) if driver["path"] else None,
    }


def _libc() -> str:
    try:
        return os.confstr("CS_GNU_LIBC_VERSION") or ""
    except (ValueError, OSError):
        return ""


def _find_opener(folder: str) -> Opener:
    for name in _OPENERS:
        path = os.path.join(folder, name)
        if os.path.exists(path):
            loaders = (os.path.join(folder, neighbour) for neighbour in _LOADED_BY)
            return Opener(path, tuple(loader for loader in loaders if os.path.exists(loader)))
    raise UnknownBuildError(f"{_OPENERS[0]} is missing in {folder}: reinstall TensorFlow")


def read_release(folder: str) -> Optional[Tuple[int, ...]]:
    """Major and minor version of the TensorFlow in that folder, from its metadata; None if there is none."""
    for path in sorted(glob.glob(os.path.join(glob.escape(os.path.dirname(folder)), "*.dist-info"))):
        name, _, version = os.path.basename(path)[: -len(".dist-info")].partition("-")
        if re.match(
            r"(intel-)?(tensorflow|tf-nightly)(-(cpu|gpu|aarch64|intel|cpu-aws|rocm|macos))?$", canonical_name(name)
        ):
            numbers = re.match(r"(\d+)\.(\d+)", version)
            if numbers:
                return int(numbers.group(1)), int(numbers.group(2))
    return None


def list_wanted(build: Record, config: Record, release: Optional[Tuple[int, ...]]) -> List[Wanted]:
    """The libraries that the build opens, the driver's first, then in TensorFlow's order.

    Raises:
        UnknownBuildError: neither the header nor the CUDA version determines the names.
    """
    versions = _library_versions(build, config)
    wanted = [Wanted("cuda", ("libcuda.so.1",), "every GPU")]
    for name, _, needed_for in _NAMES:
        version = versions.get(name)
        if version is None:
            raise UnknownBuildError(f"the version of lib{name} that it opens is unknown")
        soname = f"lib{name}.so.{version}".rstrip(".")
        # TensorFlow falls back to the plain name for CUPTI.
        wanted.append(Wanted(name, (soname, "libcupti.so") if name == "cupti" else (soname,), needed_for))
    opens_nccl = release is None or release >= FIRST_WITH_OPENED_NCCL
    wanted.insert(-1, Wanted("nccl", ("libnccl.so.2",) if opens_nccl else (), "several GPUs"))
    return wanted


def _library_versions(build: Record, config: Record) -> Dict[str, Optional[str]]:
    """The version at the end of each soname."""
    if "TF_CUDART_VERSION" in config:
        return {name: config.get(macro) for name, macro, _ in _NAMES}
    parts = re.findall(r"\d+", build["cuda_version"] or "")
    known: Dict[str, Optional[str]] = dict(SONAMES_BY_MAJOR.get(int(parts[0]), {})) if parts else {}
    known["cublasLt"] = known.get("cublas")
    if known and "cupti" not in known:
        known["cupti"] = ".".join(parts[:2])
    known["cudnn"] = (build["cudnn_version"] or "").partition(".")[0] or None
    return known


def _add_versions(libraries: Sequence[Record], versions_s: float) -> None:
    """Add the facts that require loading, except for libcuda, whose version is in its file name."""
    usable = [entry for entry in libraries if entry["status"] == "found" and entry["name"] != "cuda"]
    answers = library_versions.read_versions([(entry["name"], entry["path"]) for entry in usable], versions_s)
    for entry in usable:
        entry.update(answers[entry["name"]])


def _describe_search(loader: Loader) -> Record:
    runpath, rpath = loader.library.runpath, loader.library.rpath
    own = rpath if runpath is None else runpath
    kind = "RPATH" if runpath is None else "RUNPATH"
    return {
        "path_kind": None if own is None else kind,
        "runpath": list(dict.fromkeys(own.split(":"))) if own else [],
        "searched": [
            {"found_by": place.found_by, "path": tidy(place.path), "exists": os.path.exists(place.path)}
            for place in loader.places
        ],
    }


def describe_library(loader: Loader, wanted: Wanted, elsewhere: Sequence[str], owners: Owners) -> Record:
    """The record of one library, without the facts that require loading it."""
    if not wanted.sonames:
        return {
            "name": wanted.name,
            "soname": None,
            "needed_for": wanted.needed_for,
            "status": "built-in",
            "path": None,
        }
    soname = wanted.sonames[0]
    found = loader.find(soname)
    for other in wanted.sonames[1:]:
        if found.path is None:
            found_other = loader.find(other)
            found = found_other if found_other.path is not None else found
    record: Record = {
        "name": wanted.name,
        "soname": soname,
        "needed_for": wanted.needed_for,
        "status": "missing" if found.path is None else "unusable" if found.trouble else "found",
        "path": tidy(found.path) if found.path else None,
        "real_path": os.path.realpath(found.path) if found.path else None,
        "found_by": found.found_by,
        "load_error": found.trouble,
        "version": None,
        "skipped": [
            {"path": tidy(entry.path), "found_by": entry.found_by, "reason": entry.reason} for entry in found.skipped
        ],
    }
    owner = owners.of(in_real_folder(found.path)) or owners.of(record["real_path"]) if found.path else None
    record["package"], record["package_version"] = owner or (None, None)
    record["other_copies"] = _other_copies(loader, soname, record, elsewhere)
    record["other_versions"] = _other_versions(loader, wanted.name, soname, elsewhere)
    if wanted.name == "cuda" and record["path"]:
        record.update(_driver_version(record["real_path"]))
    return record


def _other_copies(loader: Loader, soname: str, record: Record, elsewhere: Sequence[str]) -> List[Record]:
    skipped = {entry["path"] for entry in record["skipped"]}
    seen = {record["real_path"]} | {os.path.realpath(path) for path in skipped}
    candidates = loader.find_all(soname)
    candidates += [(os.path.join(folder, soname), NOT_SEARCHED) for folder in elsewhere]
    copies = []
    for path, found_by in candidates:
        real = os.path.realpath(path)
        if real not in seen and os.path.exists(path):
            seen.add(real)
            copies.append({"path": tidy(path), "found_by": found_by})
    return copies


def _other_versions(loader: Loader, name: str, soname: str, elsewhere: Sequence[str]) -> List[str]:
    """Files ``lib<name>.so.<N>`` with a different soname; a link and its target count once."""
    found: Dict[str, str] = {}
    pattern = re.compile(rf"lib{re.escape(name)}\.so\.\d[\d.]*$")
    folders = [place.path for place in loader.places] + list(elsewhere)
    for folder in dict.fromkeys(map(real_path, folders)):
        for entry in sorted(_list(folder), key=len):
            same = entry == soname or entry.startswith(soname + ".")
            if pattern.match(entry) and not same:
                path = os.path.join(folder, entry)
                found.setdefault(os.path.realpath(path), path)
    return sorted(found.values())


@lru_cache(maxsize=None)
def _list(folder: str) -> List[str]:
    """The names of libraries in a folder; empty if it cannot be read."""
    try:
        return [name for name in os.listdir(folder) if ".so" in name]
    except OSError:
        return []


def _other_folders(environ: Mapping[str, str]) -> Iterator[str]:
    """Folders that often contain CUDA libraries, whether or not the loader searches them."""
    for entry in sys.path:
        yield from sorted(glob.glob(os.path.join(glob.escape(entry), "nvidia", "*", "lib")))
    yield os.path.join(sys.prefix, "lib")
    for variable in ("CUDA_HOME", "CUDA_PATH", "CUDA_ROOT"):
        if environ.get(variable):
            yield os.path.join(environ[variable], "lib64")
    for pattern in _OTHER_FOLDERS:
        yield from sorted(glob.glob(pattern))


def _driver_version(path: str) -> Record:
    """The driver's version from the name of its file: ``libcuda.so.535.161.08``."""
    found = re.match(r"libcuda\.so\.(\d{3,}(?:\.\d+)+)$", os.path.basename(path))
    if found:
        return {"version": found.group(1)}
    return {"version_error": f"no driver version in its file name: {os.path.basename(path)}"}


def _is_compat(record: Record) -> bool:
    """Whether the file is in a folder of NVIDIA's forward compatibility package."""
    parts = record["path"].split("/") + record["real_path"].split("/")
    return any(part in ("compat", "cuda-compat") or part.startswith("cuda-compat-") for part in parts)
