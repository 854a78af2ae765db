"""Describes the running interpreter: its packages, its TensorFlow build and the Keras that ``tf.keras`` resolves to.

TensorFlow's files are read; it is never imported.
"""

from __future__ import annotations

import ast
import json
import os
import re
import shutil
import sys
import sysconfig
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Callable, Dict, List, Mapping, Optional, Tuple, TypeVar

from kdoctor_target.inspect.damage import find_damage, left_over, metadata_folder
from kdoctor_target.inspect.names import canonical_name
from kdoctor_target.runner.channel import Channel
from kdoctor_target.runner.watchdog import arm

Record = Dict[str, Any]
T = TypeVar("T")

TENSORFLOW_DISTRIBUTIONS = (
    "tensorflow", "tensorflow-cpu", "tf-nightly", "tf-nightly-cpu", "tensorflow-intel", "tensorflow-cpu-aws",
    "tensorflow-aarch64", "tensorflow-gpu", "tf-nightly-gpu", "tensorflow-macos", "tensorflow-rocm", "intel-tensorflow",
)  # fmt: skip
"""Distributions that contain the package ``tensorflow``, the most likely first."""

_HEADER = "include/third_party/gpus/cuda/cuda_config.h"
_BUILD_INFO = "python/platform/build_info.py"
_FIRST_WITH_SEPARATE_KERAS = (2, 6)
"""Before that release, Keras was a part of TensorFlow itself."""
_KERAS_DEFAULTS = {"floatx": "float32", "epsilon": "1e-07", "image_data_format": "channels_last"}
"""Defaults of both Keras 2 and 3 without ``keras.json`` (keras/src/backend/config.py, tf_keras/src/backend.py)."""


def main(settings: Mapping[str, Any]) -> None:
    """Send one record for each group of facts, ``{"group": ..., "facts": ...}``, or ``{"group": ..., "error": ...}``.

    ``settings``: ``deadline_s`` (seconds), ``executable`` and ``chosen_by`` (both are handed back), and
    ``script_folder``, which Python searches first for the job; None if it is not known.
    """
    arm(settings["deadline_s"])
    channel = Channel()
    installed: List[Record] = []
    _send(channel, "target", lambda: read_target(settings["executable"], settings["chosen_by"]))

    def packages() -> Record:
        installed.extend(read_packages())
        found: Record = {"installed": installed, "has_pip": _has("pip"), "conda": read_conda(sys.prefix)}
        found["has_uv"] = shutil.which("uv") is not None
        return {**found, **_quietly(lambda: find_damage(_core(installed), settings.get("script_folder")), {})}

    build: Record = {}

    def tensorflow() -> Record:
        build.update(read_tensorflow(installed))
        return build

    _send(channel, "packages", packages)
    _send(channel, "tensorflow", tensorflow)
    _send(channel, "keras", lambda: read_keras(installed, build.get("version"), os.environ))


def _send(channel: Channel, group: str, read: Callable[[], Record]) -> None:
    """Send a group's facts, or why they could not be read: groups fail independently."""
    try:
        record: Record = {"group": group, "facts": read()}
    except Exception as error:
        record = {"group": group, "error": f"{type(error).__name__}: {error}"}
    channel.send(record)


def read_target(executable: str, chosen_by: str) -> Record:
    """The facts of group ``target``."""
    without_conda = "venv" if sys.prefix != sys.base_prefix else "system"
    return {
        "executable": executable,
        "chosen_by": chosen_by,
        "version": sys.version.split()[0],
        "implementation": sys.implementation.name,
        "environment": "conda" if Path(sys.prefix, "conda-meta").is_dir() else without_conda,
        "prefix": sys.prefix,
        "base_prefix": sys.base_prefix,
        "platform": sysconfig.get_platform(),
        "externally_managed": sys.prefix == sys.base_prefix
        and Path(sysconfig.get_path("stdlib"), "EXTERNALLY-MANAGED").is_file(),
        "read_only": not os.access(sysconfig.get_path("purelib"), os.W_OK),
    }


def read_packages() -> List[Record]:
    """Every distribution on the path, in order of name, then of the search path."""
    packages: List[Record] = []
    seen = set()
    gone: Dict[str, str] = _quietly(left_over, {})
    distributions = sorted(metadata.distributions(), key=lambda one: metadata_folder(one) in gone)
    for distribution in distributions:
        folder = getattr(distribution, "_path", None)
        stem = Path(str(folder)).name if folder is not None else ""
        real = metadata_folder(distribution)
        # "~umpy-2.0.dist-info" is left by pip after it failed to remove an installation; pip ignores it. A folder may
        # be on the path twice, as lib and as lib64.
        if stem.startswith("~") or real in seen:
            continue
        seen.add(real)
        packages.append(_read_package(distribution, stem))
    packages.sort(key=lambda package: str(package["name"]))
    return packages


def _core(installed: List[Record]) -> List[str]:
    """TensorFlow, Keras and all that they require without an extra, as far as it is installed."""
    by_name = {package["name"]: package for package in reversed(installed)}
    waiting = [*TENSORFLOW_DISTRIBUTIONS, "keras", "tf-keras"]
    found: Dict[str, None] = {}
    while waiting:
        name = waiting.pop()
        if name in by_name and name not in found:
            found[name] = None
            lines = (line for line in by_name[name]["requires"] if "extra ==" not in line)
            waiting += (canonical_name(re.split(r"[^A-Za-z0-9._-]", line.strip(), maxsplit=1)[0]) for line in lines)
    return list(found)


def read_conda(prefix: str) -> List[str]:
    """The packages that conda recorded, as ``name=version=build``; its files are named ``name-version-build.json``."""
    files = sorted(path.stem for path in Path(prefix, "conda-meta").glob("*.json"))
    return ["=".join(name.rsplit("-", 2)) for name in files if name.count("-") > 1]


def _read_package(distribution: metadata.Distribution, stem: str) -> Record:
    headers = read_headers(_text(distribution, "METADATA") or _text(distribution, "PKG-INFO") or "")
    requires = headers.get("requires-dist", [])
    if not requires and stem.endswith((".egg-info", "EGG-INFO")):
        requires = _quietly(lambda: list(distribution.requires or []), [])
    installer = (_text(distribution, "INSTALLER") or "").strip()
    return {
        "name": canonical_name(_first(headers, "name") or _name_of_folder(stem) or "unknown"),
        "version": _first(headers, "version"),
        "location": _quietly(lambda: os.path.normpath(str(distribution.locate_file(""))), None),
        "requires": requires,
        "requires_python": _first(headers, "requires-python"),
        "installer": installer or None,
    }


def _name_of_folder(stem: str) -> str:
    """``foo_bar`` for ``foo_bar-1.0.dist-info``."""
    return re.sub(r"\.(dist-info|egg-info|egg)$", "", stem).partition("-")[0]


def _text(distribution: metadata.Distribution, name: str) -> Optional[str]:
    return _quietly(lambda: distribution.read_text(name), None)


def _quietly(read: Callable[[], T], default: T) -> T:
    """The result of ``read``, or ``default`` if it raises: one broken package must not hide the others."""
    try:
        return read()
    except Exception:
        return default


def read_headers(text: str) -> Dict[str, List[str]]:
    """The header fields of core metadata by lower-case name, up to the first empty line.

    The standard library's mail parser reads the whole file and is many times slower.
    """
    headers: Dict[str, List[str]] = {}
    last: Optional[List[str]] = None
    for line in text.split("\n"):
        if not line.strip():
            break
        if line[0] in " \t":
            if last:
                last[-1] += " " + line.strip()
            continue
        name, colon, value = line.partition(":")
        if colon:
            last = headers.setdefault(name.strip().lower(), [])
            last.append(value.strip())
    return headers


def _first(headers: Mapping[str, List[str]], name: str) -> Optional[str]:
    values = headers.get(name) or [""]
    return values[0] or None


def _has(module: str) -> bool:
    """Whether a top-level module can be found; it is not imported."""
    return _quietly(lambda: find_spec(module), None) is not None


def read_tensorflow(installed: List[Record]) -> Record:
    """The facts of group ``tensorflow``."""
    spec = find_spec("tensorflow")
    if spec is None:
        return {"installed": False}
    folders = list(spec.submodule_search_locations or [])
    if not folders:
        return {"installed": False, "location": spec.origin, "unreadable": "a file of that name shadows TensorFlow"}
    if not spec.origin:
        why = "only remains of a removed installation (a folder without __init__.py)"
        return {"installed": False, "location": folders[0], "unreadable": why}
    distribution = _tensorflow_distribution(installed, folders[0])
    return {
        "installed": True,
        "location": folders[0],
        "distribution": distribution.get("name"),
        "version": distribution.get("version"),
        **read_build(folders[0]),
    }


def _tensorflow_distribution(installed: List[Record], folder: str) -> Record:
    """The distribution in the same folder as the package; else the first with a known name."""
    known = [package for name in TENSORFLOW_DISTRIBUTIONS for package in installed if package["name"] == name]
    beside = os.path.realpath(Path(folder).parent)
    near = [package for package in known if package["location"] and os.path.realpath(package["location"]) == beside]
    return (near or known or [{}])[0]


def read_build(folder: str) -> Record:
    """The build properties of TensorFlow, from its generated files.

    Releases have them in ``build_info.py``. Nightlies from 2.23 on have the CUDA properties only in the C header.
    """
    info, trouble = _read_build_info(Path(folder, _BUILD_INFO))
    header: Record = {}
    if info.get("is_cuda_build") is not False and "cuda_version" not in info:
        header = read_cuda_config(folder)
    cuda = info.get("cuda_version") or header.get("TF_CUDA_VERSION")
    is_cuda = info.get("is_cuda_build")
    if is_cuda is None and header:
        is_cuda = bool(cuda)
    cudnn = info.get("cudnn_version") or header.get("TF_CUDNN_VERSION")
    capabilities = info.get("cuda_compute_capabilities") or header.get("TF_CUDA_COMPUTE_CAPABILITIES") or []
    return {
        "cuda_build": is_cuda if isinstance(is_cuda, bool) else None,
        "cuda_version": str(cuda) if cuda and is_cuda is not False else None,
        "cudnn_version": str(cudnn) if cudnn and is_cuda is not False else None,
        "compute_capabilities": [str(entry) for entry in capabilities] if is_cuda is not False else [],
        "unreadable": trouble if is_cuda is None else None,
    }


def _read_build_info(path: Path) -> Tuple[Record, Optional[str]]:
    """The literal in ``build_info.py``, without running it, or why it could not be read."""
    try:
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.Assign) and any(getattr(name, "id", "") == "build_info" for name in node.targets):
                value = node.value.args[0] if isinstance(node.value, ast.Call) else node.value
                return dict(ast.literal_eval(value)), None
    except Exception as error:
        return {}, f"{path.name}: {error}"
    return {}, f"{path.name}: no build information found"


def read_cuda_config(folder: str) -> Record:
    """The definitions of ``cuda_config.h`` in TensorFlow's folder; empty if the file does not exist."""
    text = _quietly(lambda: Path(folder, _HEADER).read_text(encoding="utf-8"), "")
    found: Record = {}
    for name, value in re.findall(r"^#define (TF_\w+)[ \t]+(.*)$", text, re.MULTILINE):
        found[name] = value.strip().strip('"')
    listed = found.get("TF_CUDA_COMPUTE_CAPABILITIES", "")
    found["TF_CUDA_COMPUTE_CAPABILITIES"] = [entry.strip() for entry in listed.split(",") if entry.strip()]
    return found if text else {}


def read_keras(installed: List[Record], tensorflow: Optional[str], environ: Mapping[str, str]) -> Record:
    """The facts of group ``keras``: what ``tf.keras`` resolves to, by the rules of TensorFlow and Keras.

    Sources: tensorflow/python/util/lazy_loader.py (``KerasLazyLoader``), keras/src/backend/config.py.
    """
    legacy = environ.get("TF_USE_LEGACY_KERAS") in ("true", "True", "1")
    release = tuple(int(part) for part in re.findall(r"\d+", tensorflow or "")[:2])
    if release and release < _FIRST_WITH_SEPARATE_KERAS:
        package, version = "tensorflow", tensorflow
    else:
        package = "tf-keras" if legacy else "keras"
        wanted = ("tf-keras", "tf-keras-nightly") if legacy else ("keras", "keras-nightly")
        found = [entry for name in wanted for entry in installed if entry["name"] == name]
        version = found[0]["version"] if found else None
    configured = _keras_config(environ)
    backend, source = _keras_backend(configured, environ)
    return {
        "package": package,
        "version": version,
        "legacy": legacy,
        "backend": backend,
        "backend_from": source,
        "settings": {name: str(configured.get(name, default)) for name, default in _KERAS_DEFAULTS.items()},
    }


def _keras_backend(configured: Record, environ: Mapping[str, str]) -> Tuple[str, str]:
    """The backend that Keras 3 will use, and the setting that selects it."""
    if environ.get("KERAS_BACKEND"):
        return environ["KERAS_BACKEND"], "KERAS_BACKEND"
    backend = configured.get("backend")
    return (str(backend), "keras.json") if backend else ("tensorflow", "default")


def _keras_config(environ: Mapping[str, str]) -> Record:
    """The contents of ``keras.json``; empty if it does not exist or cannot be read."""
    if "KERAS_HOME" in environ:
        folder = Path(os.path.expanduser(environ["KERAS_HOME"]))  # noqa: PTH111 - pathlib raises without a home
    else:
        home = os.path.expanduser("~")  # noqa: PTH111 - pathlib raises without a home
        # Keras uses the folder for temporary files if the home folder is not writable.
        folder = Path(home if os.access(home, os.W_OK) else "/tmp", ".keras")  # noqa: S108 - Keras's rule
    try:
        configured = json.loads((folder / "keras.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return configured if isinstance(configured, dict) else {}
