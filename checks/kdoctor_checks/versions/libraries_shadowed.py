from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.commands.search_path import restore_path, search_without
from kdoctor.facts import Environment, Libraries, Library
from kdoctor.model import Evidence, Finding, NotApplicable, Outcome, Remedy, Severity
from kdoctor.text.lists import some
from kdoctor_checks.versions._libraries import cuda_libraries, version_of

_BEFORE_WHEELS = ("LD_PRELOAD", "RPATH", "LD_LIBRARY_PATH")


@check("versions.libraries-shadowed", severity=Severity.WARNING, needs_gpus=True, requires=["versions.cuda-libraries"])
def libraries_shadowed(libraries: Libraries, environment: Environment) -> Iterator[Outcome]:
    """No other copy shadows TensorFlow's CUDA libraries.

    Why: LD_LIBRARY_PATH takes precedence over TensorFlow's search path. CUDA libraries of the system, a module or conda
    are then loaded instead of the wheels that pip resolved, so the job does not use the locked versions. Other checks
    judge whether the loaded version is suitable.
    Remedy: remove the folder from LD_LIBRARY_PATH for the job, or uninstall the wheels on purpose.
    Sources:
        https://man7.org/linux/man-pages/man8/ld.so.8.html
        https://github.com/tensorflow/tensorflow/issues/60913
    Failure modes: cudnn_older_than_build, mixed_cuda_components
    """
    wanted = [item for item in cuda_libraries(libraries) if item.status in {"found", "unusable"}]
    if not wanted:
        yield NotApplicable(reason=libraries.note or "no CUDA library is found")
        return
    shadowed = [(item, wheel) for item in wanted if (wheel := _shadowed_wheel(item))]
    folders = list(dict.fromkeys((item.path or "").rpartition("/")[0] for item, _ in shadowed))
    for item, wheel in shadowed:
        yield Finding(
            subject=item.soname or item.name,
            observed=f"{version_of(item)} from {item.path} ({item.found_by}) shadows {wheel}",
            brief="another copy is loaded instead of the one of TensorFlow",
            expected="the copy installed with TensorFlow",
            remedy=Remedy.configure(
                f"Remove {some(folders)} from LD_LIBRARY_PATH in the shell or unit that starts the job.",
                search_without(folders, environment),
            ),
            rollback=restore_path(environment),
        )
    if not shadowed:
        yield Evidence(subject="search path", observed=f"none of {len(wanted)} libraries is shadowed")


def _shadowed_wheel(item: Library) -> str | None:
    """The copy in a wheel that the loaded one shadows."""
    if item.package is not None or item.found_by not in _BEFORE_WHEELS:
        return None
    behind = (copy.path for copy in item.other_copies if "/nvidia/" in copy.path and copy.found_by != "not searched")
    return next(behind, None)
