"""Chooses the interpreter to examine and verifies it."""

import os
import shlex
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.machinery import PathFinder
from pathlib import Path

from kdoctor.errors import UsageError, about_missing_file, is_exhausted
from kdoctor.inputs import expanded
from kdoctor.probes.process.child import Children, ChildrenEnded
from kdoctor.probes.process.readers import TooManyRecordsError
from kdoctor.probes.project import PYTHONS, environment_python, find_project_environment, how_to_create, missing_python
from kdoctor.records import record
from kdoctor.text.sanitize import clean

MINIMUM_VERSION = (3, 9)
"""The oldest Python that kdoctor examines, also required by the oldest TensorFlow for Keras 3."""

DEADLINE_S = 10.0
"""Seconds for an interpreter to report its version."""

# Valid in Python 2, too, to distinguish an old Python from another program.
_QUESTION = "import sys; sys.stdout.write('\\n\\036[%d, %d, %d]\\n' % tuple(sys.version_info[:3]))"
_FRAMEWORKS = ("tensorflow", "keras", "tf_keras", "jax")
_NAME_IT = "Repair it, or name the environment of the job: --python /path/to/venv"
_HOW_TO_CHOOSE = "choose one with --python, for example --python /path/to/venv/bin/python"


class TargetError(UsageError):
    """The interpreter to examine cannot be used. The message is for the user."""


@record
class ChosenTarget:
    """The interpreter to examine."""

    python: str
    """Absolute path. Links are not followed, because a virtual environment's Python is a link."""
    chosen_by: str
    """Which environment it is and why. As in ``Target``."""
    version: str
    """``major.minor.micro``."""
    stand_in: bool = False
    """As in ``Target``."""


def choose_target(
    option: str | None,
    environ: Mapping[str, str],
    children: Children | None = None,
    *,
    deadline_s: float = DEADLINE_S,
    folder: Path | None = None,
) -> ChosenTarget:
    """Choose the interpreter of the job.

    The first of these: the one that ``--python`` names; the active environment's; kdoctor's own, if TensorFlow, Keras
    or JAX is installed with it; that of the project in the working directory; kdoctor's own.

    Args:
        option: the value of ``--python``: the path of an interpreter or of an environment's folder, or a program on
            PATH.
        environ: the user's environment variables.
        children: starts the interpreter to read its version.
        deadline_s: seconds for that.
        folder: the folder to search for a project; the working directory by default.

    Raises:
        TargetError: the interpreter does not exist, is not Python, is too old, or hangs.
        ChildrenEnded: the run was interrupted.
    """
    choice = _choose(option, environ, folder)
    if choice.python == sys.executable:
        version = sys.version_info[:3]
    else:
        try:
            version = _ask_version(choice.python, environ, children or Children(), deadline_s)
        except TargetError as error:
            if not choice.found:
                raise
            raise TargetError(clean(f"{choice.by}: {error}"), hint=_NAME_IT) from error
    if version < MINIMUM_VERSION:
        least = ".".join(map(str, MINIMUM_VERSION))
        raise TargetError(
            f"{choice.python} is Python {_text(version)}, but kdoctor requires Python {least} or newer",
            hint="Create the job's environment again with a newer Python, or name another one: --python /path/to/venv",
        )
    return ChosenTarget(python=choice.python, chosen_by=choice.by, version=_text(version), stand_in=choice.stand_in)


@dataclass(frozen=True)
class _Choice:
    python: str
    by: str
    stand_in: bool = False
    found: bool = False
    """Whether it was found in a project, so that the user may not have thought of it."""


def _choose(option: str | None, environ: Mapping[str, str], folder: Path | None) -> _Choice:
    if option is not None:
        return _Choice(_from_option(option, environ), "--python")
    active = (("VIRTUAL_ENV", "the active virtual environment"), ("CONDA_PREFIX", "the active conda environment"))
    for variable, by in active:
        place = environ.get(variable)
        if place:
            python = environment_python(Path(place))
            if python is None:
                what = f"{by} {place} ({variable}) has no Python"
                if gone := missing_python(Path(place)):
                    raise TargetError(f"{what}: {gone}", hint=_link_again(Path(place), environ))
                raise TargetError(f"{what}: activate another one, or {_HOW_TO_CHOOSE}")
            return _Choice(python, by)
    return _unnamed(environ, folder)


def _unnamed(environ: Mapping[str, str], folder: Path | None) -> _Choice:
    """The choice if neither an option nor an active environment names it.

    kdoctor in the job's environment is called by its path (``.venv/bin/kdoctor``) or is alone in a container. So it
    precedes the environment of the working directory, which may be another project's or the host's.
    """
    start = folder or _working_folder()
    project = find_project_environment(start, environ) if start else None
    is_own = project is not None and _is_same(project.folder, Path(sys.prefix))
    framework = own_framework(start)
    if framework and sys.executable:
        other = f" (not {project.title})" if project and project.python else ""
        own = f"kdoctor's own environment, which has {framework}{other}"
        return _Choice(sys.executable, project.title if project and is_own else own)
    if project and is_own and sys.executable:
        return _Choice(sys.executable, f"{project.title}, which is kdoctor's own", stand_in=True)
    if project and project.python:
        return _Choice(project.python, project.title, found=True)
    if project:
        hint = _link_again(project.folder, environ) if missing_python(project.folder) else _NAME_IT
        raise TargetError(f"{project.title} cannot be used: {project.problem}", hint=hint)
    if not sys.executable:
        raise TargetError(f"kdoctor's own interpreter is unknown: {_HOW_TO_CHOOSE}")
    create = how_to_create(start, environ) if start else ""
    hint = f"; to create that of {create}" if create else ""
    return _Choice(sys.executable, f"kdoctor's own: no other environment was found{hint}", stand_in=True)


def own_framework(folder: Path | None = None) -> str | None:
    """A package of a job that is installed with kdoctor, found without importing it. The folder is not searched."""
    path = [entry for entry in sys.path if entry and Path(entry) != folder]
    found = ((name, PathFinder.find_spec(name, path)) for name in _FRAMEWORKS)
    return next((name for name, spec in found if spec and spec.origin), None)


def _working_folder() -> Path | None:
    """The working directory; None if it was deleted."""
    try:
        return Path.cwd()
    except FileNotFoundError:
        return None


def _is_same(one: Path, other: Path) -> bool:
    try:
        return one.samefile(other)
    except OSError:
        return False


def _from_option(option: str, environ: Mapping[str, str]) -> str:
    if not option.strip():
        raise TargetError("--python is empty: pass the path of an interpreter or of an environment's folder")
    path = expanded(option)
    if ".." in path.parts[:-1]:
        path = path.parent.resolve() / path.name
    if os.path.isdir(path):  # noqa: PTH112 - it never raises
        python = environment_python(path)
        if python is None:
            if gone := missing_python(path):
                raise TargetError(f"--python {option}: {gone}", hint=_link_again(path, environ))
            inside = next((path / name for name in (".venv", "venv", "env") if environment_python(path / name)), None)
            near = f"; did you mean {str(inside)!r}?" if inside else f" (expected {', '.join(PYTHONS[:2])})"
            raise TargetError(f"--python {option}: no Python in this folder{near}")
        return python
    if path.name == option:
        found = shutil.which(option, path=environ.get("PATH", os.defpath))
        if found:
            return _absolute(Path(found))
        if not os.path.exists(path):  # noqa: PTH110 - it never raises
            raise TargetError(f"--python {option}: not found on PATH or as a file{about_missing_file(path)}")
    if not os.path.exists(path):  # noqa: PTH110 - it never raises
        broken = " (broken link)" if os.path.islink(path) else ""  # noqa: PTH114 - it never raises
        raise TargetError(f"--python {option}: no such file{broken or about_missing_file(path)}")
    return _absolute(path)


def _link_again(folder: Path, environ: Mapping[str, str]) -> str:
    """How to link a virtual environment to a Python of its release; its packages stay. Another one must be named.

    Nothing is deleted before that Python has started.
    """
    release = next((path.name for path in folder.glob("lib/python3.*")), None)
    settings = folder / "pyvenv.cfg"
    if release is None or not settings.is_file():
        return _NAME_IT
    shared = "include-system-site-packages = true" in settings.read_text(encoding="utf-8", errors="replace")
    options = [*(["--system-site-packages"] if shared else []), str(folder)]
    found = [shutil.which(name, path=environ.get("PATH", os.defpath)) for name in (release, "uv")]
    again = "Link it to a Python again:"
    try:
        _ask_version(found[0] or release, environ, Children(), DEADLINE_S)
    except TargetError:
        if found[1]:
            wanted = release.removeprefix("python")
            return f"{again} {shlex.join(['uv', 'venv', '--allow-existing', '--python', wanted, *options])}"
        again = f"{again} install {release}, then {release} --version &&"
    remove = shlex.join(["find", str(folder / "bin"), "-xtype", "l", "-delete"])
    return f"{again} {remove} && {shlex.join([release, '-m', 'venv', '--upgrade', *options])}"


def _absolute(path: Path) -> str:
    return str(path.absolute())


def _ask_version(
    python: str, environ: Mapping[str, str], children: Children, deadline_s: float
) -> tuple[int, int, int]:
    try:
        end = children.run([python, "-S", "-E", "-c", _QUESTION], env=environ, deadline_s=deadline_s)
    except ChildrenEnded:
        raise
    except TooManyRecordsError as error:
        raise TargetError(f"{python} is not a Python interpreter: {error}") from error
    except (OSError, ValueError) as error:
        if is_exhausted(error):
            raise
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise TargetError(f"{python} could not be started: {reason}") from error
    if end.timed_out:
        raise TargetError(f"{python} did not report its version within {deadline_s:g} s")
    match end.records:
        case ([int(major), int(minor), int(micro)],):
            return major, minor, micro
        case _:
            raise TargetError(f"{python} is not a Python interpreter: it {end.describe()} and reported no version")


def _text(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))
