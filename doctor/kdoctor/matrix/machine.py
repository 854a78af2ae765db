"""The machine that ``kdoctor matrix`` judges: from the options, and from this machine for everything else.

Files are read: /proc/driver/nvidia for the kernel module's version and the models, and the version of the C library.
The interpreter lists its distributions. NVML is queried, in a child process with a deadline, only if those files do
not identify a GPU.
"""

import os
import re
import shutil
import sys
import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TypeVar

from kdoctor.errors import UsageError, one_of
from kdoctor.facts import TENSORFLOWS, Gpus, Packages, Target
from kdoctor.matrix.gpus import GpuNameError, NamedGpu, find_gpu
from kdoctor.matrix.model import VersionMatrix
from kdoctor.matrix.values import numbers
from kdoctor.matrix.verdict import MUSL, Machine
from kdoctor.matrix.view import Fact
from kdoctor.probes import interpreter
from kdoctor.probes.collector import begin_facts, collect_facts
from kdoctor.probes.files import read_text
from kdoctor.probes.kernel import parse_version
from kdoctor.probes.nvml.probe import PROBE
from kdoctor.probes.probe import Context
from kdoctor.probes.process.child import Children
from kdoctor.probes.target import choose_target
from kdoctor.records import record

T = TypeVar("T")

READ_DEADLINE_S = 2.0
"""Deadline in seconds for reading /proc/driver/nvidia, which a broken driver may block."""

_MODEL = re.compile(r"^Model:\s*(.+?)\s*$", re.MULTILINE)
_ARM = "linux-aarch64"
_NO_GPU = (("none",), ("cpu",))
_WITH_GPUS = ("tensorflow", "tf-nightly")


@record
class Asked:
    """The values of the options. What they do not state is read from this machine."""

    driver: str | None = None
    gpus: tuple[str, ...] = ()
    python: str | None = None
    platform: str | None = None
    glibc: str | None = None
    cuda: str | None = None
    cudnn: str | None = None

    @property
    def anything(self) -> bool:
        """Whether an option describes a machine."""
        stated = (self.driver, self.python, self.platform, self.glibc, self.cuda, self.cudnn)
        return bool(self.gpus) or any(value is not None for value in stated)


@record
class Found:
    """The machine, and the origin of each fact."""

    machine: Machine
    facts: tuple[Fact, ...]
    installed: str | None
    """Version of the TensorFlow in the target environment, if it is the build that the machine needs."""


@dataclass(frozen=True)
class _Gpus:
    gpus: tuple[NamedGpu, ...] | None
    unnamed: tuple[str, ...]
    fact: Fact


@dataclass(frozen=True)
class _Python:
    version: str
    """With ``t`` at its end if it is free-threaded."""
    called: str
    fact: Fact
    target: Target | None = None
    """Where it installs."""
    packages: Packages | None = None


ReadPython = Callable[[], _Python]
"""Waits until the Python is read."""


def describe(
    matrix: VersionMatrix,
    asked: Asked,
    environ: Mapping[str, str],
    *,
    reading: ReadPython | None = None,
    root: Path = Path("/"),
) -> Found:
    """The machine to judge.

    Args:
        matrix: for the names of GPUs.
        asked: the options.
        environ: the user's environment variables.
        reading: what :func:`begin_python` returned, if that was called before.
        root: root of /proc and /dev, for tests.

    Raises:
        UsageError: an option is not a driver version, not a Python, or not a GPU in the matrix.
    """
    # --driver, --gpu and --platform describe another machine, whose C library is unknown.
    for_cpu = tuple(name.strip().lower() for name in asked.gpus) in _NO_GPU
    here = asked.driver is None and (for_cpu or not asked.gpus) and asked.platform is None
    platform = _asked_platform(matrix, asked.platform) or (_platform() if here else None)
    driver, driver_fact = _driver(asked.driver, root)
    other = asked.platform is not None or asked.driver is not None
    if for_cpu:
        gpus = _Gpus((), (), Fact("GPUs", "none, so the verdicts are for the CPU", "--gpu"))
    elif asked.gpus:
        gpus = _named_gpus(matrix, asked.gpus, "--gpu")
    else:
        gpus = _own_gpus(matrix, environ, root, other=other)
    on_arm = bool(gpus.gpus) and all(gpu.arm_only for gpu in gpus.gpus or ())
    if platform is None and on_arm and matrix.elsewhere(_ARM):
        platform = _ARM
    python = (reading or begin_python(asked.python, environ))()
    libc = _asked_libc(asked.glibc) or (_libc(root) if here else None)
    machine = Machine(
        driver=driver,
        gpus=gpus.gpus,
        unnamed_gpus=gpus.unnamed,
        python=python.version.removesuffix("t"),
        free_threaded=python.version.endswith("t"),
        interpreter=python.called,
        target=python.target,
        packages=python.packages,
        glibc=libc,
        without_avx=here and _without_avx(root),
        platform=platform,
        cuda=_dotted("--cuda", asked.cuda, "12.4"),
        cudnn=_dotted("--cudnn", asked.cudnn, "9.3"),
    )
    facts = [gpus.fact, python.fact] if for_cpu else [driver_fact, gpus.fact, python.fact]
    if asked.platform or platform == _ARM:
        origin = "--platform" if asked.platform else "these GPUs come with Arm processors" if on_arm else "this machine"
        facts.append(Fact("Platform", platform or "", origin))
    facts += [
        Fact(label, f"{value} on the system, so no [and-cuda]", option)
        for label, value, option in (("CUDA", machine.cuda, "--cuda"), ("cuDNN", machine.cudnn, "--cudnn"))
        if value
    ]
    if libc:
        label = "C library" if libc == MUSL else "glibc"
        facts.append(Fact(label, libc, "--glibc" if asked.glibc else "this machine"))
    found = [one for one in python.packages.installed if one.name in TENSORFLOWS] if python.packages else []
    if python.packages:
        shown = ", ".join(f"{one.name} {one.version or 'of unknown version'}" for one in found)
        facts.append(Fact("Installed", shown or "no TensorFlow", "site-packages"))
    fitting = [one for one in found if machine.for_cpu or one.name in _WITH_GPUS]
    return Found(machine=machine, facts=tuple(facts), installed=fitting[0].version if fitting else None)


def _driver(option: str | None, root: Path) -> tuple[str | None, Fact]:
    if option is None:
        version = _within(READ_DEADLINE_S, lambda: _kernel_module(root))
        if version:
            return version, Fact("Driver", version, "the loaded kernel module")
        return None, Fact("Driver", "unknown", "no NVIDIA kernel module is loaded; see --driver")
    text = option.strip().lower().removeprefix("r")
    parts = _numbers(text)
    if not parts or not 100 <= parts[0] < 10_000:  # noqa: PLR2004 - 535.161.08
        hint = (
            "Expected a version such as 535.161.08, or a branch such as 535; see: nvidia-smi "
            "--query-gpu=driver_version --format=csv,noheader"
        )
        raise UsageError(f"--driver {option}: not an NVIDIA driver version", hint=hint)
    return text, Fact("Driver", text if len(parts) > 1 else f"{text}, the newest release of this branch", "--driver")


def _numbers(text: str) -> tuple[int, ...]:
    """A dotted version as integers; empty if it is not one."""
    try:
        return numbers(text)
    except ValueError:
        return ()


def _kernel_module(root: Path) -> str | None:
    version, _ = parse_version(read_text(root / "proc/driver/nvidia/version") or "")
    return version or read_text(root / "sys/module/nvidia/version") or None


def _own_gpus(matrix: VersionMatrix, environ: Mapping[str, str], root: Path, *, other: bool) -> _Gpus:
    models = _within(READ_DEADLINE_S, lambda: _models(root)) or ()
    found = _named_gpus(matrix, models, "/proc/driver/nvidia/gpus", strict=False)
    if models and not found.unnamed:
        return found
    has_driver = (root / "proc/driver/nvidia").is_dir() or (root / "dev/dxg").exists()
    if has_driver and root == Path("/"):
        found = _nvml_gpus(matrix, environ) or found
    if found.gpus or found.unnamed:
        return found
    if has_driver:
        return _Gpus(None, (), Fact("GPUs", "unknown", "the driver reports none; see --gpu"))
    if other:
        return _Gpus(None, (), Fact("GPUs", "unknown", "none given; see --gpu"))
    return _Gpus((), (), Fact("GPUs", "none", "no NVIDIA driver; the verdicts are for the CPU"))


def _models(root: Path) -> tuple[str, ...]:
    """The model of each GPU, as the kernel module names it."""
    files = sorted((root / "proc/driver/nvidia/gpus").glob("*/information"))
    found = (_MODEL.search(read_text(file) or "") for file in files)
    return tuple(match[1] if match else "a GPU without a name" for match in found)


def _named_gpus(matrix: VersionMatrix, names: Sequence[str], origin: str, *, strict: bool = True) -> _Gpus:
    """The GPUs with these names; unless ``strict``, unknown names are kept."""
    gpus: list[NamedGpu] = []
    unnamed: list[str] = []
    for name in names:
        try:
            gpus.append(find_gpu(matrix, name))
        except GpuNameError:
            if strict:
                raise
            unnamed.append(name)
    return _with_fact(gpus, unnamed, origin)


def _nvml_gpus(matrix: VersionMatrix, environ: Mapping[str, str]) -> _Gpus | None:
    """The GPUs and capabilities that NVML reports; None if it does not respond."""
    context = Context(python=sys.executable, chosen_by="kdoctor's own", environ=dict(environ), children=Children())
    facts = collect_facts([PROBE], context).get(Gpus)
    if not isinstance(facts, Gpus) or not facts.devices:
        return None
    gpus: list[NamedGpu] = []
    unnamed: list[str] = []
    for device in facts.devices:
        name = device.name or device.subject
        kind = matrix.capability(device.compute_capability) if device.compute_capability else None
        if kind is not None:
            gpus.append(NamedGpu(name=name, capability=kind.capability))
        else:
            unnamed.append(f"{name} (compute capability {device.compute_capability or 'unknown'})")
    return _with_fact(gpus, unnamed, "NVML")


def _with_fact(gpus: Sequence[NamedGpu], unnamed: Sequence[str], origin: str) -> _Gpus:
    shown = [f"{gpu.name}, compute capability {gpu.capability}" for gpu in gpus]
    shown += [f"{name}, not in the matrix" for name in unnamed]
    counts = [f"{number} x {text}" if number > 1 else text for text, number in Counter(shown).items()]
    return _Gpus(tuple(gpus), tuple(unnamed), Fact("GPUs", "; ".join(counts), origin))


def begin_python(option: str | None, environ: Mapping[str, str]) -> ReadPython:
    """Begin to read the Python that the option asks for, in a child process; what is returned waits for it.

    Raises:
        UsageError: the option is not a Python.
    """
    if option is not None and "/" not in option and "\\" not in option and not os.path.isdir(option):  # noqa: PTH112
        text = option.strip()
        parts = _numbers(text.removesuffix("t"))
        if not 2 <= len(parts) <= 3 or parts[0] != 3:  # noqa: PLR2004 - 3.11 or 3.11.7
            hint = "Give a version such as 3.11 or 3.14t, or a path with a slash, such as ./venv"
            raise UsageError(f"--python {option}: not a Python 3 version", hint=hint)
        called = f"python3.{parts[1]}{'t' if text.endswith('t') else ''}"  # each environment of that release has it
        return partial(_Python, text, called, Fact("Python", text, "--python"))
    chosen = choose_target(option, environ)
    # A stand-in is not the environment of the job, whose shell finds its own.
    is_found = chosen.stand_in or shutil.which("python", path=environ.get("PATH")) == chosen.python
    called = "python" if is_found and not option else chosen.python
    fact = Fact("Python", chosen.version, f"{chosen.python}, {chosen.chosen_by}")
    context = Context(python=chosen.python, chosen_by=chosen.chosen_by, environ=dict(environ), children=Children())
    wait = begin_facts([interpreter.PROBE], context)

    def read() -> _Python:
        facts = wait()
        target, packages = facts.get(Target), facts.get(Packages)
        installs = isinstance(target, Target) and not chosen.stand_in
        here = replace(target, executable=called) if isinstance(target, Target) and installs else None
        return _Python(chosen.version, called, fact, here, packages if isinstance(packages, Packages) else None)

    return read


def _glibc() -> str | None:
    """The version of glibc; None for another C library such as musl."""
    try:
        name, _, version = (os.confstr("CS_GNU_LIBC_VERSION") or "").partition(" ")
    except (AttributeError, ValueError, OSError):
        return None
    return version if name == "glibc" and version.replace(".", "").isdecimal() else None


def _asked_libc(option: str | None) -> str | None:
    text = option.strip().lower().removeprefix("glibc").strip(" -=") if option else None
    return text if text == MUSL else _dotted("--glibc", text, "2.28, or musl")


def _libc(root: Path) -> str | None:
    """The version of glibc, or musl."""
    return _glibc() or (MUSL if any((root / "lib").glob("ld-musl-*")) else None)


def _without_avx(root: Path) -> bool:
    flags = re.search(r"^flags\s*:(.*)$", read_text(root / "proc/cpuinfo") or "", re.MULTILINE)
    return flags is not None and "avx" not in flags[1].split()


def _platform() -> str:
    if sys.platform == "win32":
        return "windows"
    if sys.platform == "darwin":
        return "macos-x86_64" if os.uname().machine == "x86_64" else "macos"
    if Path("/dev/dxg").exists():
        return "wsl2"
    return f"{sys.platform}-{os.uname().machine}"


def _asked_platform(matrix: VersionMatrix, option: str | None) -> str | None:
    known = tuple(dict.fromkeys((matrix.platform, *(row.platform for row in matrix.platforms))))
    return None if option is None else one_of("--platform", option.strip().lower(), known)


def _dotted(name: str, option: str | None, example: str) -> str | None:
    if option is not None and not _numbers(option.strip()):
        raise UsageError(f"{name} {option}: not a version such as {example}")
    return option.strip() if option else None


def _within(deadline_s: float, read: Callable[[], T]) -> T | None:
    """What the function returns, or None if it fails or takes longer. It may keep running in its thread."""
    results: list[T] = []

    def run() -> None:
        try:
            results.append(read())
        except OSError:
            return

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(deadline_s)
    return results[0] if results else None
