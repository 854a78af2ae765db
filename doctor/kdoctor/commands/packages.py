"""Commands of pip, uv and conda, and the rule which of them changes an environment."""

import importlib.metadata
import importlib.util
import json
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Literal

from packaging.requirements import Requirement
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import Version

from kdoctor.commands.markers import applicable, marker_environment
from kdoctor.commands.shell import quoted
from kdoctor.facts import Package, Packages, Target, canonical_name
from kdoctor.model import Rollback

Verb = Literal["install", "uninstall"]
Installer = Literal["conda", "uv", "pip", "ensurepip"]
"""``ensurepip``: pip, which Python installs first."""

_CONDA_NAMES = {
    "nvidia-cublas": "libcublas",
    "nvidia-cuda-cupti": "cuda-cupti",
    "nvidia-cuda-nvcc": "cuda-nvcc",
    "nvidia-cuda-runtime": "cuda-cudart",
    "nvidia-cudnn": "cudnn",
    "nvidia-cufft": "libcufft",
    "nvidia-cusolver": "libcusolver",
    "nvidia-cusparse": "libcusparse",
    "nvidia-nccl": "nccl",
}
"""NVIDIA wheel, without the CUDA major, to the package on conda-forge."""

_REQUIREMENT = re.compile(r"(?P<name>[A-Za-z0-9._-]+)(?P<extra>\[[^\]]*\])?(?P<specifier>.*)")
_SPECIFIED = re.compile(
    r"[A-Za-z0-9_][A-Za-z0-9._-]*(?:\[[A-Za-z0-9,._-]*\])?"
    r"(?:\s*[<>=!~]{1,3}\s*[A-Za-z0-9.*+!_-]+(?:\s*,\s*[<>=!~]{1,3}\s*[A-Za-z0-9.*+!_-]+)*(?:=[A-Za-z0-9.*_+]+)?)?"
)
"""A name with a version. Not an option, a URL, a path or a direct reference, of which each can run other code."""
_OPTIONS = frozenset(
    {"--break-system-packages", "--force", "--force-reinstall", "--no-deps", "--revision", "--upgrade"}
)
_NO_DEPS = "--no-deps"
_NO_PACKAGE = "<package>"
"""A placeholder, which scripts do not run, instead of a name that is none."""
_WHEEL = re.compile(r"(nvidia-[a-z-]+?)(?:-cu\d+)?")


def installer_of(target: Target | None, packages: Packages | None, *names: str) -> Installer:
    """The tool that owns these distributions, and so must change them.

    - Conda owns what it installed. pip would put a second copy over it and invalidate conda's records.
    - Without pip in the environment (as ``uv venv`` makes it), uv changes it. Without uv, Python installs its pip.
    - Otherwise the recorded installer (``INSTALLER``) decides. With several distributions, uv wins if it is there.
    - What is not installed, or has no record, belongs to the tool that installed most of the environment.
    """
    if packages is None:
        return "pip"
    owners = {(found.installer or "").lower() for name in names if (found := packages.find(name))}
    if "conda" in owners and target is not None and target.environment == "conda":
        return "conda"
    if packages.has_uv is False:
        return "ensurepip" if packages.has_pip is False else "pip"
    if packages.has_pip is False or "uv" in owners:
        return "uv"
    installers = [package.installer for package in packages.installed]
    return "uv" if "pip" not in owners and installers.count("uv") > installers.count("pip") else "pip"


def pip_command(installer: Installer, python: str, verb: Verb, *arguments: str) -> str:
    """The command of the interpreter's pip, or of ``uv pip`` if uv is the installer. Nothing is asked."""
    if installer == "uv":
        return quoted("uv", "pip", verb, "--python", python, *map(_argument, arguments))
    first = f"{quoted(python, '-m', 'ensurepip')}; " if installer == "ensurepip" else ""
    options = ["-y"] if verb == "uninstall" else []
    return first + quoted(python, "-m", "pip", verb, *options, *map(_argument, arguments))


def conda_command(verb: Literal["create", "install", "remove"], prefix: str, *arguments: str) -> str:
    """The command of conda for the environment at ``prefix``. Nothing is asked."""
    return quoted("conda", verb, "--yes", "--prefix", prefix, *map(_argument, arguments))


def _argument(text: str) -> str:
    return text if text in _OPTIONS or _SPECIFIED.fullmatch(text) else _NO_PACKAGE


def minor(version: str) -> str:
    """The minor release of a version: 3.11 for 3.11.7."""
    return ".".join(version.split(".")[:2])


def tf_keras_for(tensorflow: str) -> str:
    """The tf-keras for a release of TensorFlow: each works only with that of the same minor release."""
    return f"tf-keras~={minor(tensorflow)}.0"


def create_environment(installer: Installer, version: str, folder: str) -> str:
    """The command that creates a virtual environment with that Python release."""
    if installer == "uv":
        return quoted("uv", "venv", "--python", version, folder)
    return quoted(f"python{minor(version)}", "-m", "venv", folder)


def verify_versions(python: str, wanted: Mapping[str, str], gone: Iterable[str] = ()) -> str:
    """The command that exits with 0 if these versions are installed and those distributions are not."""
    program = (
        "import importlib.metadata as m",
        f"wanted, gone = {json.dumps(wanted, sort_keys=True)}, {json.dumps(sorted(gone))}",
        'have = {d.metadata["Name"].lower().replace("_", "-").replace(".", "-"): d.version for d in m.distributions()}',
        'wrong = [f"{n} is {have.get(n)}, not {v}" for n, v in wanted.items() if have.get(n) != v]',
        'wrong += [f"{n} is still installed" for n in gone if n in have]',
        'raise SystemExit("; ".join(wrong) or 0)',
    )
    return quoted(python, "-c", "; ".join(program))


def verify_conda(prefix: str, wanted: Mapping[str, str], gone: Iterable[str] = ()) -> tuple[str, ...]:
    """The commands that exit with 0 if conda recorded these packages (name to ``version=build``), and not those."""
    records = f"{prefix}/conda-meta"
    files = (f"{records}/{name}-{version.replace('=', '-')}.json" for name, version in wanted.items())
    patterns = (f"^{_escape(name)}-[^-]+-[^-]+\\.json$" for name in gone)
    return (
        *(quoted("test", "-f", file) for file in files),
        *(f"! ls {quoted(records)} | {quoted('grep', '-E', pattern)}" for pattern in patterns),
    )


def _escape(name: str) -> str:
    """The name for ``grep -E``, which warns about an escaped hyphen."""
    return re.escape(name).replace("\\-", "-")


def install(target: Target, packages: Packages | None, *requirements: str) -> str:
    """The command that installs the requirements; options (``--upgrade``) may be among them.

    A requirement is narrowed to what the other installed packages accept, so that the fix does not break them. What
    requires ``tensorflow`` is installed alone where another distribution (``tensorflow-cpu``) has its files, because
    pip would put a second TensorFlow over it.
    """
    if packages is not None:
        changed = {canonical_name(_name(text)) for text in requirements}
        kept = [package for package in packages.installed if package.name not in changed]
        requirements = tuple(_accepted(text, kept, target) or text for text in requirements)
        if _NO_DEPS not in requirements and _brings_tensorflow(packages, requirements):
            requirements = (_NO_DEPS, *requirements)
    wanted = [requirement for requirement in requirements if not requirement.startswith("-")]
    installer = _installer(target, packages, *map(_name, wanted))
    if installer == "conda":
        options = ["--force-reinstall"] if "--force-reinstall" in requirements else []
        return conda_command("install", target.prefix, *options, *map(_conda_spec, wanted))
    return pip_command(installer, target.executable, "install", *_override(target), *requirements)


def _override(target: Target) -> tuple[str, ...]:
    """The option without which pip changes nothing in a distribution's Python."""
    return ("--break-system-packages",) if target.externally_managed else ()


def _brings_tensorflow(packages: Packages, requirements: Iterable[str]) -> bool:
    """Whether a requirement is of a package that requires ``tensorflow``, and another distribution has its files."""
    if packages.tensorflow is None or packages.tensorflow.name == "tensorflow":
        return False
    found = [packages.find(_name(text)) or _name(text) for text in requirements]
    lines = [line for one in found for line in (one.requires if isinstance(one, Package) else [])]
    return "tf-keras" in found or any(canonical_name(_name(line)) == "tensorflow" for line in lines)


def first_accepted(target: Target, packages: Packages, *requirements: str) -> str:
    """The first of these requirements of one package that the others accept, narrowed; the first one if none is."""
    kept = [package for package in packages.installed if package.name != canonical_name(_name(requirements[0]))]
    return next((found for text in requirements if (found := _accepted(text, kept, target))), requirements[0])


def _accepted(text: str, kept: Sequence[Package], target: Target) -> str | None:
    """The requirement within what these packages accept; None if nothing is."""
    match = _REQUIREMENT.fullmatch(text)
    specifiers = _bounds(match["specifier"]) if match and not text.startswith("-") else None
    if match is None or specifiers is None:
        return text
    for requirement in _requirements_of(canonical_name(match["name"]), kept, target):
        specifiers &= requirement.specifier
    return f"{match['name']}{match['extra'] or ''}{narrowest(specifiers)}" if _possible(specifiers) else None


def _bounds(text: str) -> SpecifierSet | None:
    """The specifiers; None if they are not valid, or choose a release."""
    try:
        specifiers = SpecifierSet(text)
    except InvalidSpecifier:
        return None
    return None if any(item.operator in ("==", "~=") for item in specifiers) else specifiers


def _requirements_of(name: str, packages: Iterable[Package], target: Target) -> Iterator[Requirement]:
    """What these packages require of a distribution."""
    markers = marker_environment(target)
    for package in packages:
        lines = tuple(line for line in package.requires if canonical_name(_name(line)) == name)
        yield from applicable(replace(package, requires=lines), markers)[0] if lines else ()


def _possible(specifiers: SpecifierSet) -> bool:
    """Whether no lower bound is above an upper bound."""
    lower = [Version(item.version) for item in specifiers if item.operator in (">=", ">")]
    upper = [Version(item.version) for item in specifiers if item.operator in ("<", "<=")]
    return not (lower and upper) or max(lower) < min(upper)


def narrowest(specifiers: SpecifierSet) -> str:
    """The same condition in the usual order, without implied bounds: ``>=6.31,<8`` for ``<8,>=3,>=6.31``."""
    lower = [item for item in specifiers if item.operator == ">="]
    upper = [item for item in specifiers if item.operator == "<"]
    others = sorted({str(item) for item in specifiers if item.operator not in (">=", "<")})
    lowest = [str(max(lower, key=lambda item: Version(item.version)))] if lower else []
    highest = [str(min(upper, key=lambda item: Version(item.version)))] if upper else []
    return ",".join([*lowest, *others, *highest])


def uninstall(target: Target, packages: Packages | None, *names: str) -> str:
    """The command that removes the distributions."""
    installer = _installer(target, packages, *names)
    if installer == "conda":
        return conda_command("remove", target.prefix, *map(_conda_spec, names))
    return pip_command(installer, target.executable, "uninstall", *_override(target), *names)


def repeated(removal: str, copies: int) -> str:
    """The command once for each copy: pip removes one at a time."""
    numbers = " ".join(str(number + 1) for number in range(copies))
    return removal if copies == 1 else f"for copy in {numbers}; do {removal}; done"


def restore(target: Target, packages: Packages, *names: str) -> Rollback:
    """The rollback of a fix: back to the versions in these facts, which need not be those of the last passing run."""
    if _installer(target, packages, *names) == "conda":
        # The facts lack conda packages that are not Python distributions. Conda's own revisions have them.
        return Rollback.to(
            "the revision of the environment before the fix, as recorded by conda",
            quoted("conda", "list", "--prefix", target.prefix, "--revisions"),
            f"{conda_command('install', target.prefix, '--revision')} '<number>'",
        )
    present = [found for name in names if (found := packages.find(name))]
    unversioned = [found.name for found in present if found.version is None]
    if unversioned:
        return Rollback.irreversible(f"not possible (the metadata of {', '.join(unversioned)} has no version)")
    absent = [name for name in names if packages.find(name) is None]
    pins = [f"{found.name}=={found.version}" for found in present]
    commands = [install(target, packages, *pins)] if pins else []
    if absent:
        commands.append(uninstall(target, packages, *absent))
    state = ", ".join([*pins, *(f"no {name}" for name in absent)])
    return Rollback.to(f"restore the packages before the fix: {state}", *commands)


def _installer(target: Target, packages: Packages | None, *names: str) -> Installer:
    """As :func:`installer_of`; NVIDIA libraries that are not installed as wheels belong with TensorFlow."""
    absent = packages and any(name.startswith("nvidia-") and packages.find(name) is None for name in names)
    return installer_of(target, packages, *names, *(["tensorflow"] if absent else []))


def _name(requirement: str) -> str:
    match = _REQUIREMENT.fullmatch(requirement)
    return match["name"] if match else requirement


def _conda_spec(requirement: str) -> str:
    """The requirement in conda's syntax: ``tensorflow=2.19.1=cuda*`` for ``tensorflow[and-cuda]==2.19.1``."""
    match = _REQUIREMENT.fullmatch(requirement)
    if match is None:
        return requirement
    wheel = _WHEEL.fullmatch(match["name"])
    name = _CONDA_NAMES.get(wheel[1], match["name"]) if wheel else match["name"]
    specifier = match["specifier"]
    if name != match["name"]:
        # The fourth number of a wheel's version counts its builds. conda-forge numbers its own builds.
        specifier = re.sub(r"(\d+\.\d+\.\d+)\.\d+", r"\1", specifier)
    if match["extra"] == "[and-cuda]":
        exact = specifier.removeprefix("==") if specifier.startswith("==") and "," not in specifier else None
        return f"{name}={exact or '*'}=cuda*"
    return f"{name}{specifier}"


def install_extra(name: str) -> str:
    """The command that installs what an extra of kdoctor needs next to it. kdoctor itself need not be on an index."""
    requirements = map(Requirement, importlib.metadata.requires("keras-doctor") or ())
    marked = ((one, one.marker) for one in requirements if one.marker and "extra" in str(one.marker))
    needed = [f"{one.name}{one.specifier}" for one, marker in marked if marker.evaluate({"extra": name})]
    installer: Installer = "pip" if importlib.util.find_spec("pip") else "uv"
    return pip_command(installer, sys.executable, "install", *needed)
