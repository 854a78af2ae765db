"""Whether the cuDNN that would be loaded is one that TensorFlow accepts."""

from __future__ import annotations

from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.commands.packages import install, restore
from kdoctor.commands.search_path import restore_path, search_without
from kdoctor.facts import Environment, Libraries, Library, Packages, Target, TensorFlowBuild
from kdoctor.matrix.model import VersionMatrix
from kdoctor.model import Action, Evidence, Finding, NotApplicable, Outcome, Remedy, Severity, Unjudged
from kdoctor_checks._builds import cuda_of, release_of
from kdoctor_checks._versions import numbers
from kdoctor_checks.versions._libraries import pinned, shown


@check("versions.cudnn-for-build", severity=Severity.ERROR, needs_gpus=True, requires=["versions.cuda-libraries"])
def cudnn_for_build(
    libraries: Libraries,
    tensorflow: TensorFlowBuild,
    packages: Packages,
    target: Target,
    environment: Environment,
    matrix: VersionMatrix,
) -> Iterator[Outcome]:
    """The cuDNN that is loaded has the major of the one that TensorFlow was built against, and is not older.

    Why: TensorFlow compares the two when the first convolution runs, and stops ("Loaded runtime CuDNN library: 9.1.0
    but source was compiled with: 9.3.0"). PyTorch in the same environment pins an older one, and a cuDNN on
    LD_LIBRARY_PATH goes before the installed one.
    Remedy: install the cuDNN that TensorFlow's [and-cuda] asks for, and take older ones off LD_LIBRARY_PATH.
    Sources:
        https://github.com/tensorflow/tensorflow/issues/60913
        https://docs.nvidia.com/deeplearning/cudnn/backend/latest/developer/forward-compatibility.html
    Failure modes: cudnn_older_than_build
    """
    cudnn = libraries.find("cudnn")
    if not libraries.cuda_build or cudnn is None or cudnn.status == "missing":
        yield NotApplicable(reason=libraries.note or "there is no cuDNN to judge")
        return
    subject, found = cudnn.soname or "libcudnn", numbers(cudnn.version)
    release = release_of(tensorflow, matrix)
    built = (release.cudnn if release else None) or tensorflow.cudnn_version
    least = numbers(built)
    if found is None:
        why = cudnn.version_error or cudnn.load_error or "not read"
        yield Unjudged(subject=subject, reason=f"its version: {why}")
    elif least is None:
        yield Unjudged(subject=subject, reason="which cuDNN TensorFlow was built against is not known")
    elif (wrong := _wrong(cudnn, built or "", cuda_of(tensorflow, matrix))) is not None:
        requirement = pinned(release, _package(cudnn, tensorflow))
        yield _finding(cudnn, built or "", (packages, target, environment), requirement, wrong)
    elif len(least) < 2:  # noqa: PLR2004 - major and minor
        reason = f"{cudnn.version} has the right major; the minor that TensorFlow was built against is not known"
        yield Unjudged(subject=subject, reason=reason)
    else:
        yield Evidence(subject=subject, observed=f"{shown(cudnn)}, built against {built}")


def _package(cudnn: Library, tensorflow: TensorFlowBuild) -> str:
    major = (tensorflow.cuda_version or "12").partition(".")[0]
    return cudnn.package or f"nvidia-cudnn-cu{major}"


def _wrong(cudnn: Library, built: str, cuda: str | None) -> str | None:
    """What is wrong with this cuDNN for a TensorFlow that was built with those releases; None: nothing is."""
    found, least = numbers(cudnn.version) or (), numbers(built) or ()
    if found[:1] != least[:1] or found[: len(least)] < least:
        return f"TensorFlow was built with cuDNN {built}"
    made, wanted = numbers(cudnn.built_with), numbers(cuda)
    if made is None or wanted is None or made[0] == wanted[0]:
        return None
    return f"it was made for CUDA {cudnn.built_with}, and TensorFlow for {cuda}"


def _finding(
    cudnn: Library,
    built: str,
    where: tuple[Packages, Target, Environment],
    requirement: str | None,
    wrong: str,
) -> Finding:
    packages, target, environment = where
    major = built.partition(".")[0]
    fallback = cudnn.package or "nvidia-cudnn-cu12"
    pin = requirement or f"{fallback}>={built},<{int(major) + 1}"
    folder = (cudnn.path or "").rpartition("/")[0]
    strange = cudnn.package is None and cudnn.found_by == "LD_LIBRARY_PATH"
    commands = [search_without([folder], environment)] if strange else []
    if not strange or packages.find(pin.partition("=")[0].partition(">")[0]) is None:
        commands.append(install(target, packages, pin))
    name = packages.find(cudnn.package or "") or packages.find(pin.partition("=")[0])
    return Finding(
        subject=cudnn.soname or "libcudnn",
        observed=f"{shown(cudnn)} from {cudnn.path} ({cudnn.found_by}); {wrong}",
        expected=f"cuDNN {built} or a later {major}.x",
        remedy=Remedy(
            summary="Take the folder of this cuDNN off LD_LIBRARY_PATH."
            if strange
            else "Install the cuDNN that TensorFlow was made with; a framework that pins another needs an environment "
            "of its own.",
            action=Action.CONFIGURE if strange else Action.REINSTALL,
            commands=tuple(commands),
        ),
        rollback=restore_path(environment)
        if strange
        else restore(target, packages, name.name if name else pin.partition("=")[0].partition(">")[0]),
    )
