"""Whether TensorFlow looks where its libraries lie."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kdoctor.check import check
from kdoctor.commands.packages import install
from kdoctor.commands.search_path import restore_path, search_first
from kdoctor.facts import Environment, Libraries, Library, Packages, Target, TensorFlowBuild
from kdoctor.matrix.model import VersionMatrix
from kdoctor.model import Action, Evidence, Finding, NotApplicable, Outcome, Remedy, Severity
from kdoctor_checks._versions import parse_version
from kdoctor_checks.versions._libraries import cuda_libraries, outside_search


@check("versions.libraries-searched", severity=Severity.ERROR, needs_gpus=True, requires=["versions.cuda-build"])
def libraries_searched(
    libraries: Libraries,
    tensorflow: TensorFlowBuild,
    packages: Packages,
    target: Target,
    environment: Environment,
    matrix: VersionMatrix,
) -> Iterator[Outcome]:
    """TensorFlow looks into the folder of every CUDA library that is installed for it.

    Why: TensorFlow finds the NVIDIA wheels by a search path inside its own library (RUNPATH). In 2.16.1 that path names
    cuda_runtime alone; in 2.21.0 it lacks cusolver. The libraries are then installed and not found: TensorFlow
    registers no GPU ("Cannot dlopen some GPU libraries"), with [and-cuda] as its guide says.
    Remedy: put the folders on LD_LIBRARY_PATH before the job starts; for 2.16.1, install 2.16.2.
    Sources:
        https://github.com/tensorflow/tensorflow/issues/63362
        https://man7.org/linux/man-pages/man8/ld.so.8.html
    Failure modes: tf2161_runpath
    """
    wanted = cuda_libraries(libraries)
    if not libraries.cuda_build or not wanted:
        yield NotApplicable(reason=libraries.note or "this TensorFlow opens no CUDA library")
        return
    outside = [item for item in wanted if outside_search(item)]
    if outside:
        yield _finding(outside, tensorflow, (packages, target), environment, _ended_by(tensorflow, matrix))
    found = [item for item in wanted if item.status != "missing"]
    if found:
        observed = f"{len(found)} of {len(wanted)} libraries lie where {libraries.path_kind or 'the loader'} looks"
        yield Evidence(subject="search path", observed=observed)
    elif not outside:
        yield NotApplicable(reason="none of the libraries is installed: see versions.cuda-libraries")


def _ended_by(tensorflow: TensorFlowBuild, matrix: VersionMatrix) -> str | None:
    """The releases that no longer have the defect, if the matrix knows it of this one."""
    version = parse_version(tensorflow.version)
    if version is None:
        return None
    rows = matrix.known_bad_for({"tensorflow": str(version)})
    return next((row.ended_by["tensorflow"] for row in rows if row.effect == "no-gpu" and row.ended_by), None)


def _finding(
    outside: Sequence[Library],
    tensorflow: TensorFlowBuild,
    installed: tuple[Packages, Target],
    environment: Environment,
    ended_by: str | None,
) -> Finding:
    packages, target = installed
    folders = list(dict.fromkeys(folder for item in outside if (folder := outside_search(item))))
    names = ", ".join(item.soname or item.name for item in outside)
    commands = [search_first(folders)]
    summary = "Put the folders on LD_LIBRARY_PATH in the shell or unit that starts the job, before Python starts."
    if ended_by:
        # The newest patch of the minor release changes least; ">=2.16.2" alone would bring another minor release.
        minor = ".".join((tensorflow.version or "").split(".")[:2])
        commands.append(install(target, packages, f"tensorflow[and-cuda]{ended_by},=={minor}.*"))
        summary += f" Or install a release without the defect (tensorflow{ended_by})."
    return Finding(
        subject="search path",
        observed=f"{names} installed in {', '.join(folders)}, where TensorFlow {tensorflow.version} never looks",
        expected="the folder of every library on the search path",
        remedy=Remedy(summary=summary, action=Action.CONFIGURE, commands=tuple(commands)),
        rollback=restore_path(environment),
    )
