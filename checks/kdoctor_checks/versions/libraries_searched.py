from __future__ import annotations

from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.commands.packages import install, minor
from kdoctor.commands.search_path import restore_path, search_first
from kdoctor.facts import Environment, Libraries, Packages, Target, TensorFlowBuild
from kdoctor.matrix.model import VersionMatrix
from kdoctor.matrix.values import specifier
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
    """TensorFlow's search path covers all CUDA libraries installed for it.

    Why: TensorFlow finds the NVIDIA wheels by a search path in its library (RUNPATH). In 2.16.1 that path has only
    cuda_runtime; in 2.21.0 it lacks cusolver. The libraries are installed but not found, so TensorFlow registers no
    GPU ("Cannot dlopen some GPU libraries"), even if [and-cuda] was installed as documented.
    Remedy: add the folders to LD_LIBRARY_PATH before the job starts; replace 2.16.1 with 2.16.2.
    Sources:
        https://github.com/tensorflow/tensorflow/issues/63362
        https://man7.org/linux/man-pages/man8/ld.so.8.html
    Failure modes: tf2161_runpath
    """
    wanted = cuda_libraries(libraries)
    if not libraries.cuda_build or not wanted:
        yield NotApplicable(reason=libraries.note or "this TensorFlow opens no CUDA library")
        return
    outside = {item: folder for item in wanted if (folder := outside_search(item))}
    if outside:
        folders = list(dict.fromkeys(outside.values()))
        names = ", ".join(item.soname or item.name for item in outside)
        commands = [search_first(folders)]
        summary = "Add the folders to LD_LIBRARY_PATH in the shell or unit that starts the job, before Python starts."
        if fixed_in := _fixed_in(tensorflow, matrix):
            # ">=2.16.2" alone would also install another minor release.
            release = f"tensorflow[and-cuda]{fixed_in},=={minor(tensorflow.version or '')}.*"
            commands.append(install(target, packages, release))
            summary += f" Or install a release without the defect (tensorflow{fixed_in})."
        yield Finding(
            subject="search path",
            observed=f"TensorFlow {tensorflow.version} does not find {names} in {', '.join(folders)}",
            expected="all folders of CUDA libraries on the search path",
            remedy=Remedy(summary=summary, action=Action.CONFIGURE, commands=tuple(commands)),
            rollback=restore_path(environment),
        )
    found = [item for item in wanted if item.status != "missing"]
    if found:
        observed = f"{libraries.path_kind or 'the loader'} covers {len(found)} of {len(wanted)} libraries"
        yield Evidence(subject="search path", observed=observed)
    elif not outside:
        yield NotApplicable(reason="no CUDA library is installed (see versions.cuda-libraries)")


def _fixed_in(tensorflow: TensorFlowBuild, matrix: VersionMatrix) -> str | None:
    """The releases without the defect, if the matrix lists one of the same minor release."""
    version = parse_version(tensorflow.version)
    if version is None:
        return None
    rows = matrix.known_bad_for({"tensorflow": str(version)})
    fixed = next((row.ended_by["tensorflow"] for row in rows if row.effect == "no-gpu" and row.ended_by), None)
    later = [row.version for row in matrix.releases if row.key.release[:2] == version.release[:2]]
    return fixed if fixed and any(True for _ in specifier(fixed).filter(later)) else None
