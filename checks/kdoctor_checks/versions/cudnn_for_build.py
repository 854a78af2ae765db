import re
from collections.abc import Iterator
from dataclasses import replace

from kdoctor.check import check
from kdoctor.commands.packages import install, restore
from kdoctor.commands.search_path import restore_path, search_without
from kdoctor.facts import Environment, Libraries, Library, Packages, PciDevices, Target, TensorFlowBuild, Unavailable
from kdoctor.matrix.model import VersionMatrix
from kdoctor.model import Action, Evidence, Finding, NotApplicable, Outcome, Remedy, Severity, Unjudged
from kdoctor_checks._builds import after_a_gpu, cuda_of, release_of
from kdoctor_checks._versions import first_short, numbers
from kdoctor_checks.versions._libraries import pinned, version_of

_AT_LEAST = re.compile(r"(?:>=|==|~=)\s*(\d+\.\d+)")


@check("versions.cudnn-for-build", severity=Severity.ERROR, needs_gpus=True, requires=["versions.cuda-libraries"])
def cudnn_for_build(
    libraries: Libraries,
    tensorflow: TensorFlowBuild,
    packages: Packages,
    target: Target,
    environment: Environment,
    pci: PciDevices | Unavailable,
    matrix: VersionMatrix,
) -> Iterator[Outcome]:
    """The installed cuDNN is compatible with the TensorFlow build.

    Why: TensorFlow compares the versions at the first convolution and stops ("Loaded runtime CuDNN library: 9.1.0 but
    source was compiled with: 9.3.0"). PyTorch in the same environment may pin an older cuDNN. A cuDNN on
    LD_LIBRARY_PATH takes precedence over the installed one.
    Remedy: install the cuDNN that TensorFlow's [and-cuda] requires, and remove older ones from LD_LIBRARY_PATH.
    Sources:
        https://github.com/tensorflow/tensorflow/issues/60913
        https://docs.nvidia.com/deeplearning/cudnn/backend/latest/developer/forward-compatibility.html
    Failure modes: cudnn_older_than_build
    """
    cudnn = libraries.find("cudnn")
    if cudnn is None or cudnn.status == "missing":
        yield NotApplicable(reason=libraries.note or "cuDNN is not installed")
        return
    subject = cudnn.soname or "libcudnn"
    release = release_of(tensorflow, matrix)
    built = (release.cudnn if release else None) or _required(tensorflow, packages) or tensorflow.cudnn_version
    least = numbers(built)
    if numbers(cudnn.version) is None:
        reason = cudnn.version_error or cudnn.load_error or "not read"
        yield Unjudged(subject=subject, reason=f"its version is unknown: {reason}")
    elif built is None or least is None:
        yield Unjudged(subject=subject, reason="the cuDNN that TensorFlow was built with is unknown")
    elif mismatch := _mismatch(cudnn, built, cuda_of(tensorflow, matrix)):
        cuda = (tensorflow.cuda_version or "12").partition(".")[0]
        wheel = cudnn.package or f"nvidia-cudnn-cu{cuda}"
        fallback = f"{wheel}>={built},<{least[0] + 1}"
        pin = pinned(release, wheel) or fallback
        finding = _finding(cudnn, built, mismatch, pin, (packages, target, environment))
        yield replace(finding, after=after_a_gpu(pci))
    elif len(least) < 2:  # noqa: PLR2004 - major and minor
        reason = f"{cudnn.version} has the required major version; the minor version that TensorFlow needs is unknown"
        yield Unjudged(subject=subject, reason=reason)
    else:
        yield Evidence(subject=subject, observed=f"{version_of(cudnn)}, TensorFlow built with {built}")


def _required(tensorflow: TensorFlowBuild, packages: Packages) -> str | None:
    """The oldest cuDNN that the installed TensorFlow's [and-cuda] accepts, as major and minor."""
    installed = packages.find(tensorflow.distribution or "tensorflow")
    for line in installed.requires if installed else ():
        if line.startswith("nvidia-cudnn-cu") and (bound := _AT_LEAST.search(line)):
            return bound[1]
    return None


def _mismatch(cudnn: Library, built: str, cuda: str | None) -> str | None:
    """Why this cuDNN does not fit a TensorFlow that was built with those releases; None if it does."""
    found, least = numbers(cudnn.version) or (), numbers(built) or ()
    if found[:1] != least[:1] or found[: len(least)] < least:
        return f"TensorFlow was built with cuDNN {built}"
    made, wanted = numbers(cudnn.built_with), numbers(cuda)
    if made is None or wanted is None or made[0] == wanted[0]:
        return None
    return f"it was built for CUDA {cudnn.built_with}, TensorFlow for CUDA {cuda}"


def _finding(
    cudnn: Library, built: str, mismatch: str, pin: str, installed: tuple[Packages, Target, Environment]
) -> Finding:
    packages, target, environment = installed
    wheel = re.split("[=>]", pin)[0]
    folder = (cudnn.path or "").rpartition("/")[0]
    foreign = cudnn.package is None and cudnn.found_by == "LD_LIBRARY_PATH"
    commands = [search_without([folder], environment)] if foreign else []
    if not foreign or packages.find(wheel) is None:
        commands.append(install(target, packages, pin))
    owner = packages.find(cudnn.package or "")
    return Finding(
        subject=f"cuDNN {cudnn.version}",
        brief=first_short(mismatch, "not the cuDNN that TensorFlow was built with"),
        observed=f"{version_of(cudnn)} from {cudnn.path} ({cudnn.found_by}); {mismatch}",
        expected=f"cuDNN {built} or a later {built.partition('.')[0]}.x",
        remedy=Remedy(
            summary=f"Remove {folder} from LD_LIBRARY_PATH."
            if foreign
            else "Install the cuDNN that TensorFlow was built with. Use a separate environment for a framework that "
            "pins another one.",
            action=Action.CONFIGURE if foreign else Action.REINSTALL,
            commands=tuple(commands),
        ),
        rollback=restore_path(environment) if foreign else restore(target, packages, owner.name if owner else wheel),
    )
