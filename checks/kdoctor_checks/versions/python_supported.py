from collections.abc import Callable, Iterator, Sequence

from packaging.version import Version

from kdoctor.check import check
from kdoctor.commands.packages import create_environment, pip_command
from kdoctor.commands.shell import quoted
from kdoctor.facts import Packages, Target, TensorFlowBuild
from kdoctor.matrix.model import VersionMatrix
from kdoctor.model import Assumptions, Evidence, Finding, NotApplicable, Outcome, Remedy, Rollback, Severity, Unjudged
from kdoctor_checks._builds import release_of
from kdoctor_checks._versions import first_short, meets, parse_specifiers, parse_version

_MINORS = range(8, 16)
"""Minor releases of Python 3 to choose from."""


@check("versions.python-supported", severity=Severity.ERROR, judges=("python",))
def python_supported(
    target: Target, packages: Packages, tensorflow: TensorFlowBuild, assumptions: Assumptions, matrix: VersionMatrix
) -> Iterator[Outcome]:
    """The checklist and the installed TensorFlow support this Python version.

    Why: the compiled modules of TensorFlow exist for some Python releases only. If they were copied into another
    release, the import fails, or a later step does. A job that was tested with one Python is untested with another.
    Remedy: create an environment with a Python that TensorFlow supports, and install the job's packages in it.
    Source: https://packaging.python.org/en/latest/specifications/core-metadata/#requires-python
    """
    demands = [("the checklist", assumptions.python)] if assumptions.python is not None else []
    if tensorflow.installed:
        found = packages.find(tensorflow.distribution or "tensorflow")
        if found and found.requires_python:
            demands.append((f"{found.name} {found.version}", found.requires_python))
        else:
            yield Unjudged(subject="tensorflow", reason="its metadata does not state which Python it requires")
    elif not demands:
        yield NotApplicable(reason="TensorFlow is not installed, and the checklist names no Python")
    release = release_of(tensorflow, matrix)
    demanded = [*(wanted for _, wanted in demands), *([release.python] if release else [])]
    for owner, wanted in demands:
        yield _judge(target, owner, wanted, lambda: _remedy(target, packages, tensorflow, demanded))


def _judge(target: Target, owner: str, wanted: str, remedy: Callable[[], Remedy]) -> Outcome:
    subject = f"Python for {owner}"
    version, specifiers = parse_version(target.version), parse_specifiers(wanted)
    if version is None or specifiers is None:
        return Unjudged(subject=subject, reason=f"cannot compare Python {target.version!r} with {wanted!r}")
    if meets(version, specifiers):
        brief = f"Python {target.version}"
        return Evidence(subject=subject, observed=f"Python {target.version} meets {wanted}", brief=brief)
    return Finding(
        subject=f"Python {target.version}",
        observed=f"not supported by {owner} ({target.executable})",
        brief=first_short(f"not supported by {owner}, which needs {wanted}", f"not supported by {owner}"),
        expected=f"Python {wanted}",
        remedy=remedy(),
        rollback=Rollback.nothing(f"not needed (a new environment leaves {target.prefix} unchanged)"),
    )


def _remedy(target: Target, packages: Packages, tensorflow: TensorFlowBuild, demanded: Sequence[str]) -> Remedy:
    """A new environment with the newest Python that all of these accept, and the TensorFlow and Keras of this one."""
    accepted = [item for text in demanded if (item := parse_specifiers(text))]
    minors = [f"3.{number}" for number in _MINORS if all(meets(Version(f"3.{number}.99"), item) for item in accepted)]
    if not minors:
        summary = f"Choose a TensorFlow for the Python of the checklist: no Python meets {' and '.join(demanded)}."
        return Remedy.reinstall(summary, look=("kdoctor matrix",))
    folder = f"{target.prefix}-py{minors[-1]}" if target.environment != "system" else f"venv-py{minors[-1]}"
    python = f"{folder}/bin/python"
    names = (tensorflow.distribution or "tensorflow", "keras")
    pins = [f"{name}=={version}" for name in names if (version := packages.version(name))]
    return Remedy.reinstall(
        f"Create an environment with Python {minors[-1]}, install the job's packages in it, and check it.",
        create_environment("uv", minors[-1], folder),
        *([pip_command("uv", python, "install", *pins)] if pins else []),
        quoted("kdoctor", "check", "--python", python),
    )
