from collections.abc import Iterator, Sequence

from kdoctor.check import check
from kdoctor.commands.packages import install, minor, restore
from kdoctor.commands.search_path import restore_path, search_first
from kdoctor.facts import Environment, Libraries, Packages, PciDevices, Target, TensorFlowBuild, Unavailable
from kdoctor.matrix.model import VersionMatrix
from kdoctor.matrix.values import specifier
from kdoctor.model import Evidence, Finding, NotApplicable, Outcome, Remedy, Severity
from kdoctor.text.lists import counted
from kdoctor_checks._builds import after_a_gpu
from kdoctor_checks._versions import parse_version
from kdoctor_checks.versions._libraries import cuda_libraries, outside_search


@check("versions.libraries-searched", severity=Severity.ERROR, needs_gpus=True, requires=["versions.cuda-build"])
def libraries_searched(
    libraries: Libraries,
    tensorflow: TensorFlowBuild,
    packages: Packages,
    target: Target,
    environment: Environment,
    pci: PciDevices | Unavailable,
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
    if not wanted:
        yield NotApplicable(reason=libraries.note or "this TensorFlow opens no CUDA library")
        return
    outside = {item: folder for item in wanted if (folder := outside_search(item))}
    if outside:
        folders = list(dict.fromkeys(outside.values()))
        names = ", ".join(item.soname or item.name for item in outside)
        remedy, rollback = _put_first(folders), restore_path(environment)
        if fixed_in := _fixed_in(tensorflow, matrix):
            # ">=2.16.2" alone would also install another minor release.
            release = f"tensorflow[and-cuda]{fixed_in},=={minor(tensorflow.version or '')}.*"
            summary = "Install a release without the defect, or add the folders to LD_LIBRARY_PATH."
            command = install(target, packages, release)
            remedy = Remedy.reinstall(summary, command)
            rollback = restore(target, packages, tensorflow.distribution or "tensorflow")
        yield Finding(
            subject=f"TensorFlow {tensorflow.version}",
            observed=f"does not find {names} in {', '.join(folders)}",
            brief=f"does not search the folder of {names}"
            if len(outside) == 1
            else f"does not search the folders of {len(outside)} CUDA libraries",
            expected="all folders of CUDA libraries on the search path",
            remedy=remedy,
            rollback=rollback,
            after=after_a_gpu(pci),
        )
    found = [item for item in wanted if item.status != "missing"]
    if found:
        number = counted(len(wanted), "library", "libraries")
        observed = f"{libraries.path_kind or 'the loader'} covers {len(found)} of {number}"
        yield Evidence(subject="search path", observed=observed)
    elif not outside:
        yield NotApplicable(reason="no CUDA library is installed (see versions.cuda-libraries)")


def _put_first(folders: Sequence[str]) -> Remedy:
    return Remedy.configure(
        "Add the folders to LD_LIBRARY_PATH in the shell or unit that starts the job, before Python starts.",
        search_first(folders),
    )


def _fixed_in(tensorflow: TensorFlowBuild, matrix: VersionMatrix) -> str | None:
    """The releases without the defect, if the matrix lists one of the same minor release."""
    version = parse_version(tensorflow.version)
    if version is None:
        return None
    rows = matrix.known_bad_for({"tensorflow": str(version)})
    fixed = next((row.ended_by["tensorflow"] for row in rows if row.effect == "no-gpu" and row.ended_by), None)
    later = [row.version for row in matrix.releases if row.key.release[:2] == version.release[:2]]
    return fixed if fixed and any(True for _ in specifier(fixed).filter(later)) else None
