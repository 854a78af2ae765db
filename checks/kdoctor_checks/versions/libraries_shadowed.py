"""Whether another copy of a library is taken than the one that was installed with TensorFlow."""

from __future__ import annotations

from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.commands.search_path import restore_path, search_without
from kdoctor.facts import Environment, Libraries, Library
from kdoctor.model import Action, Evidence, Finding, NotApplicable, Outcome, Remedy, Severity
from kdoctor_checks.versions._libraries import cuda_libraries, shown

_BEFORE_WHEELS = ("LD_PRELOAD", "RPATH", "LD_LIBRARY_PATH")


@check("versions.libraries-shadowed", severity=Severity.WARNING, needs_gpus=True, requires=["versions.cuda-libraries"])
def libraries_shadowed(libraries: Libraries, environment: Environment) -> Iterator[Outcome]:
    """No other copy stands before a CUDA library that was installed with TensorFlow.

    Why: LD_LIBRARY_PATH goes before TensorFlow's own search path, so that a CUDA of the system, of a module or of
    conda is taken instead of the wheels that pip resolved. The lock file then says one thing and the job loads another,
    and the two may differ in the one function that matters. Whether the taken version is fit is judged by the
    other checks; this one tells that it is not the installed one.
    Remedy: take the folder off LD_LIBRARY_PATH for the job, or leave the wheels out on purpose.
    Sources:
        https://man7.org/linux/man-pages/man8/ld.so.8.html
        https://github.com/tensorflow/tensorflow/issues/60913
    Failure modes: cudnn_older_than_build, mixed_cuda_components
    """
    wanted = [item for item in cuda_libraries(libraries) if item.status in {"found", "unusable"}]
    if not wanted:
        yield NotApplicable(reason=libraries.note or "no CUDA library is found")
        return
    shadowed = [item for item in wanted if _wheel_behind(item)]
    for item in shadowed:
        yield _finding(item, environment)
    if not shadowed:
        yield Evidence(subject="search path", observed=f"{len(wanted)} libraries, each the first that was installed")


def _wheel_behind(item: Library) -> str | None:
    """The wheel's copy that the taken one hides."""
    if item.package is not None or item.found_by not in _BEFORE_WHEELS:
        return None
    behind = (copy.path for copy in item.other_copies if "/nvidia/" in copy.path and copy.found_by != "not searched")
    return next(behind, None)


def _finding(item: Library, environment: Environment) -> Finding:
    folder = (item.path or "").rpartition("/")[0]
    return Finding(
        subject=item.soname or item.name,
        observed=f"{shown(item)} from {item.path} ({item.found_by}) is taken before {_wheel_behind(item)}",
        expected="the copy that was installed with TensorFlow",
        remedy=Remedy(
            summary=f"Take {folder} off LD_LIBRARY_PATH in the shell or unit that starts the job.",
            action=Action.CONFIGURE,
            commands=(search_without([folder], environment),),
        ),
        rollback=restore_path(environment),
    )
