"""Commands that change what the target environment holds, and the way back from them."""

from __future__ import annotations

import re
import shlex

from kdoctor.facts import Packages, Target
from kdoctor.model import Rollback

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
"""NVIDIA's wheels, without the CUDA major, to the packages of conda-forge."""

_REQUIREMENT = re.compile(r"(?P<name>[A-Za-z0-9._-]+)(?P<extra>\[[^\]]*\])?(?P<specifier>.*)")
_WHEEL = re.compile(r"(nvidia-[a-z-]+?)(?:-cu\d+)?")


def install(target: Target, packages: Packages | None, *requirements: str) -> str:
    """The command that installs the requirements into the target, by the tool that can reach it.

    Where conda installed TensorFlow or what is asked for, conda changes it too: pip would put a second copy over the
    first, and conda's record would be wrong.
    """
    wanted = [requirement for requirement in requirements if not requirement.startswith("-")]
    if _is_condas(target, packages, *(_name(requirement) for requirement in wanted)):
        options = ["--force-reinstall"] if "--force-reinstall" in requirements else []
        specs = [_conda_spec(requirement) for requirement in wanted]
        return shlex.join(["conda", "install", "--yes", "--prefix", target.prefix, *options, *specs])
    return _command(target, packages, "install", *requirements)


def _name(requirement: str) -> str:
    match = _REQUIREMENT.fullmatch(requirement)
    return match["name"] if match else requirement


def _is_condas(target: Target, packages: Packages | None, *names: str) -> bool:
    """Whether conda takes care of one of these distributions, or of TensorFlow where they are NVIDIA's."""
    if target.environment != "conda" or packages is None:
        return False
    owners = [*names, *(["tensorflow"] if any(name.startswith("nvidia-") for name in names) else [])]
    return any(found.installer == "conda" for name in owners if (found := packages.find(name)))


def _conda_spec(requirement: str) -> str:
    """The requirement in conda's words: ``tensorflow=2.19.1=cuda*`` for ``tensorflow[and-cuda]==2.19.1``."""
    match = _REQUIREMENT.fullmatch(requirement)
    if match is None:
        return requirement
    wheel = _WHEEL.fullmatch(match["name"])
    name = _CONDA_NAMES.get(wheel[1], match["name"]) if wheel else match["name"]
    specifier = match["specifier"]
    if name != match["name"]:
        # A wheel's fourth number counts builds of the wheel; conda-forge counts its own.
        specifier = re.sub(r"(\d+\.\d+\.\d+)\.\d+", r"\1", specifier)
    if match["extra"] == "[and-cuda]":
        exact = specifier.removeprefix("==") if specifier.startswith("==") and "," not in specifier else None
        return f"{name}={exact or '*'}=cuda*"
    return f"{name}{specifier}"


def uninstall(target: Target, packages: Packages | None, *names: str) -> str:
    """The command that removes the distributions from the target without asking."""
    if _is_condas(target, packages, *names):
        removed = [_conda_spec(name) for name in names]
        return shlex.join(["conda", "remove", "--yes", "--prefix", target.prefix, *removed])
    has_pip = packages is None or packages.has_pip is not False
    return _command(target, packages, "uninstall", *(("-y",) if has_pip else ()), *names)


def restore(target: Target, packages: Packages, *names: str) -> Rollback:
    """The way back from a fix to what these facts tell of the distributions: their versions, or their absence.

    It is no way back to the last green run, which only a lock knows: see ``kdoctor rollback``.
    """
    if _is_condas(target, packages, *names):
        # What conda brought besides Python's distributions is not among the facts; conda keeps its own record.
        at = ["--prefix", target.prefix]
        return Rollback.to(
            "the revision of the environment before the change, as conda records it",
            shlex.join(["conda", "list", *at, "--revisions"]),
            f"{shlex.join(['conda', 'install', '--yes', *at, '--revision'])} '<number>'",
        )
    present = [found for name in names if (found := packages.find(name))]
    unversioned = [found.name for found in present if found.version is None]
    if unversioned:
        return Rollback.irreversible(f"the installed {', '.join(unversioned)} has no version in its metadata")
    absent = [name for name in names if packages.find(name) is None]
    pins = [f"{found.name}=={found.version}" for found in present]
    commands = [install(target, packages, *pins)] if pins else []
    if absent:
        commands.append(uninstall(target, packages, *absent))
    state = ", ".join([*pins, *(f"no {name}" for name in absent)])
    return Rollback.to(f"what stood here before the fix: {state}", *commands)


def _command(target: Target, packages: Packages | None, verb: str, *arguments: str) -> str:
    """Pip of the target itself; uv from outside where the target has none (``uv venv`` makes such)."""
    if packages is not None and packages.has_pip is False:
        return shlex.join(["uv", "pip", verb, "--python", target.executable, *arguments])
    return shlex.join([target.executable, "-m", "pip", verb, *arguments])
