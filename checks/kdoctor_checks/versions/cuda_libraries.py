"""Whether TensorFlow finds and can load the libraries without which it registers no GPU."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kdoctor.check import check
from kdoctor.commands.packages import install, restore
from kdoctor.commands.search_path import search_without
from kdoctor.facts import Environment, Libraries, Library, Packages, Target, TensorFlowBuild
from kdoctor.matrix.model import VersionMatrix
from kdoctor.model import Action, Evidence, Finding, NotApplicable, Outcome, Remedy, Rollback, Severity
from kdoctor_checks._builds import release_of, versions_there
from kdoctor_checks.versions._libraries import cuda_libraries, outside_search, shown, with_libraries


@check("versions.cuda-libraries", severity=Severity.ERROR, needs_gpus=True, requires=["versions.cuda-build"])
def cuda_libraries_load(
    libraries: Libraries,
    tensorflow: TensorFlowBuild,
    packages: Packages,
    target: Target,
    environment: Environment,
    matrix: VersionMatrix,
) -> Iterator[Outcome]:
    """Every CUDA library that TensorFlow needs for a GPU is installed, and can be loaded.

    Why: TensorFlow opens cudart, cuBLAS, cuFFT, cuSOLVER, cuSPARSE and cuDNN by name. If one of them is missing or does
    not load, it says "Cannot dlopen some GPU libraries", not which, registers no GPU and trains on the CPU. "Could
    not find cuda drivers" means libcudart, not the driver. Plain "tensorflow" brings none of them, and wheels of
    another CUDA major do not count. Components of different CUDA releases may miss each other's functions ("undefined
    symbol: cublasSetEnvironmentMode").
    Remedy: install tensorflow[and-cuda] of the same version, all its NVIDIA libraries together.
    Sources:
        https://www.tensorflow.org/install/pip
        https://github.com/tensorflow/tensorflow/issues/62328
        https://github.com/openxla/xla/blob/main/xla/tsl/platform/default/dso_loader.cc
    Failure modes: cudart_not_found, mixed_cuda_components
    """
    wanted = cuda_libraries(libraries)
    if not libraries.cuda_build or not wanted:
        yield NotApplicable(reason=libraries.note or "this TensorFlow opens no CUDA library")
        return
    subjects = _Environment(tensorflow, packages, target, environment, matrix)
    # A copy that is installed and not searched is versions.libraries-searched's.
    missing = [item for item in wanted if item.status == "missing" and not outside_search(item)]
    if missing:
        yield subjects.missing(missing)
    for item in wanted:
        if item.status == "unusable" or (item.status == "found" and item.load_error):
            yield subjects.broken(item)
        elif item.status in {"found", "built-in"}:
            yield Evidence(subject=item.soname or item.name, observed=shown(item))
    if not missing and all(outside_search(item) for item in wanted):
        yield NotApplicable(reason="all of them lie outside the search: see versions.libraries-searched")


class _Environment:
    """Where the libraries should be."""

    def __init__(
        self,
        tensorflow: TensorFlowBuild,
        packages: Packages,
        target: Target,
        environment: Environment,
        matrix: VersionMatrix,
    ) -> None:
        self._target, self._packages, self._environment = target, packages, environment
        self._release = release_of(tensorflow, matrix)
        self._tensorflow = tensorflow
        self._requirement = with_libraries(tensorflow, self._release)
        there = versions_there(tensorflow, packages)
        alone = {name: version for name, version in there.items() if name == "tensorflow"}
        self._also = next((row.fix for row in matrix.known_bad_for(alone) if row.effect == "no-gpu"), None)

    def missing(self, items: Sequence[Library]) -> Finding:
        """One finding for all of them: they have one cause."""
        names = ", ".join(item.soname or item.name for item in items)
        others = sorted({path for item in items for path in item.other_versions})
        beside = f"; of another version there is {', '.join(others)}" if others else ""
        no_extra = self._release is not None and self._release.and_cuda is None
        how = (
            f"This release has no [and-cuda]: install CUDA {self._release.cuda if self._release else ''} and cuDNN "
            f"{self._release.cudnn if self._release else ''} on the system."
            if no_extra
            else "Install TensorFlow's NVIDIA libraries with it."
        )
        if self._also and not no_extra:
            how += f" This release does not find all of them by itself; it needs {self._also}."
        return Finding(
            subject="CUDA libraries",
            observed=f"not found anywhere that is searched: {names}{beside}",
            expected="all libraries that TensorFlow needs for a GPU",
            remedy=Remedy(
                summary=how,
                action=Action.REINSTALL,
                commands=("kdoctor matrix",)
                if no_extra
                else (install(self._target, self._packages, self._requirement),),
            ),
            rollback=self._packages_as_recorded(),
        )

    def broken(self, item: Library) -> Finding:
        """A file that the loader takes, and that does not load."""
        strange = item.package is None and item.found_by == "LD_LIBRARY_PATH"
        folder = (item.path or "").rpartition("/")[0]
        commands = [search_without([folder], self._environment)] if strange else []
        commands.append(install(self._target, self._packages, "--force-reinstall", self._requirement))
        return Finding(
            subject=item.soname or item.name,
            observed=f"{item.path} does not load: {item.load_error or item.status}",
            expected="a library that loads",
            remedy=Remedy(
                summary="Install all NVIDIA libraries of one CUDA release together"
                + (", and take the folder of this copy off LD_LIBRARY_PATH." if strange else "."),
                action=Action.REINSTALL,
                commands=tuple(commands),
            ),
            rollback=self._packages_as_recorded(),
        )

    def _packages_as_recorded(self) -> Rollback:
        nvidia = sorted({item.name for item in self._packages.installed if item.name.startswith("nvidia-")})
        return restore(self._target, self._packages, self._tensorflow.distribution or "tensorflow", *nvidia)
