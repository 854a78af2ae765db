from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.commands.packages import install, restore
from kdoctor.commands.search_path import search_without
from kdoctor.facts import Environment, Libraries, Library, Packages, PciDevices, Target, TensorFlowBuild, Unavailable
from kdoctor.matrix.compatibility import hidden_folders
from kdoctor.matrix.model import Release, VersionMatrix
from kdoctor.matrix.verdict import search_wheels
from kdoctor.model import Evidence, Finding, NotApplicable, Outcome, Remedy, Severity
from kdoctor_checks._builds import after_a_gpu, release_of
from kdoctor_checks.versions._libraries import cuda_libraries, outside_search, version_of, with_libraries


@check("versions.cuda-libraries", severity=Severity.ERROR, needs_gpus=True, requires=["versions.cuda-build"])
def cuda_libraries_load(
    libraries: Libraries,
    tensorflow: TensorFlowBuild,
    packages: Packages,
    target: Target,
    environment: Environment,
    pci: PciDevices | Unavailable,
    matrix: VersionMatrix,
) -> Iterator[Outcome]:
    """The CUDA libraries that TensorFlow needs are installed and can be loaded.

    Why: TensorFlow opens cudart, cuBLAS, cuFFT, cuSOLVER, cuSPARSE and cuDNN by name. If one is missing or does not
    load, TensorFlow logs "Cannot dlopen some GPU libraries" without naming it, registers no GPU and trains on the CPU.
    "Could not find cuda drivers" refers to libcudart, not to the driver. Plain "tensorflow" installs none of them, and
    wheels for another CUDA major do not count. Components of different CUDA releases may lack each other's functions
    ("undefined symbol: cublasSetEnvironmentMode").
    Remedy: install tensorflow[and-cuda] of the same version, together with all its NVIDIA libraries.
    Sources:
        https://www.tensorflow.org/install/pip
        https://github.com/tensorflow/tensorflow/issues/62328
        https://github.com/openxla/xla/blob/main/xla/tsl/platform/default/dso_loader.cc
    Failure modes: cudart_not_found, mixed_cuda_components
    """
    wanted = cuda_libraries(libraries)
    if not wanted:
        yield NotApplicable(reason=libraries.note or "this TensorFlow opens no CUDA library")
        return
    release = release_of(tensorflow, matrix)
    reinstall = with_libraries(tensorflow, release)
    nvidia = sorted({item.name for item in packages.installed if item.name.startswith("nvidia-")})
    rollback = restore(target, packages, tensorflow.distribution or "tensorflow", *nvidia)
    # versions.libraries-searched judges copies that are installed but not searched.
    missing = [item for item in wanted if item.status == "missing" and not outside_search(item)]
    if missing:
        others = sorted({path for item in missing for path in item.other_versions})
        share = "none" if len(missing) == len(wanted) else f"{len(wanted) - len(missing)}"
        hidden = hidden_folders(matrix, release) if release else ()
        verb = "are" if len(wanted) - len(missing) > 1 else "is"
        yield Finding(
            subject="CUDA libraries",
            observed=f"{', '.join(item.soname or item.name for item in missing)} not found"
            + (f" (other versions: {', '.join(others)})" if others else ""),
            brief=f"{share} of the {len(wanted)} that TensorFlow needs {verb} installed",
            expected="all libraries that TensorFlow needs for GPUs",
            remedy=_install_all(
                release,
                install(target, packages, reinstall),
                search_wheels(hidden, target.executable) if hidden else None,
            ),
            rollback=rollback,
            after=after_a_gpu(pci),
        )
    folders = [_folder(item) for item in wanted if _does_not_load(item) and _is_foreign(item)]
    for item in wanted:
        if _does_not_load(item):
            summary = "Reinstall all NVIDIA libraries from one CUDA release"
            summary += f", and remove {_folder(item)} from LD_LIBRARY_PATH" if _is_foreign(item) else ""
            yield Finding(
                subject=item.soname or item.name,
                observed=f"{item.path} does not load: {item.load_error or item.status}",
                brief="installed, but does not load",
                expected="a library that loads",
                remedy=Remedy.reinstall(
                    f"{summary}.",
                    *([search_without(folders, environment)] if folders else []),
                    install(target, packages, "--force-reinstall", reinstall),
                ),
                rollback=rollback,
                after=after_a_gpu(pci),
            )
        elif item.status in {"found", "built-in"}:
            yield Evidence(subject=item.soname or item.name, observed=version_of(item))
    if not missing and all(outside_search(item) for item in wanted):
        yield NotApplicable(reason="all of them are outside the search path (see versions.libraries-searched)")


def _does_not_load(item: Library) -> bool:
    return item.status == "unusable" or (item.status == "found" and item.load_error is not None)


def _is_foreign(item: Library) -> bool:
    return item.package is None and item.found_by == "LD_LIBRARY_PATH"


def _folder(item: Library) -> str:
    return (item.path or "").rpartition("/")[0]


def _install_all(release: Release | None, command: str, hidden: str | None) -> Remedy:
    if release and release.and_cuda is None:
        summary = (
            f"Install CUDA {release.cuda} and cuDNN {release.cudnn} on the system. This release has no [and-cuda]."
        )
        return Remedy.reinstall(summary, look=("kdoctor matrix",))
    if not hidden:
        return Remedy.reinstall("Install TensorFlow with its NVIDIA libraries.", command)
    summary = "Install TensorFlow with its NVIDIA libraries. Each shell that starts a job needs the variable, too: this"
    return Remedy.reinstall(f"{summary} release does not search all their folders.", command, hidden)
