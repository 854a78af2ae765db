from collections.abc import Iterator, Sequence

from kdoctor.check import check
from kdoctor.commands.packages import install, restore, uninstall
from kdoctor.facts import FrameworkLibrary, Libraries, Packages, Target, TensorFlowBuild
from kdoctor.model import Evidence, Finding, NotApplicable, Outcome, Remedy, Severity
from kdoctor.text.lists import counted


@check("versions.shared-libraries", severity=Severity.WARNING, explained_by=["versions.tensorflow-installed"])
def shared_libraries(
    libraries: Libraries, packages: Packages, tensorflow: TensorFlowBuild, target: Target
) -> Iterator[Outcome]:
    """Frameworks of one environment load the same CUDA libraries.

    Why: TensorFlow, JAX and torch each bring NCCL, cuDNN and cuBLAS. A process has one library of each name: that of
    the framework that is imported first, also for the others. A framework that gets another version fails later, for
    example with "corrupted comm object", "invalid argument" or "Outdated cuBLAS installation found". The cuDNN and NCCL
    wheels for CUDA 12 and 13 install the same file, so the one that was installed last counts for all frameworks. Both
    cuSPARSE wheels have a libcusparse.so.12.
    Remedy: install all frameworks for one CUDA release, or each in an environment.
    Sources:
        https://man7.org/linux/man-pages/man3/dlopen.3.html
        https://github.com/jax-ml/jax/issues/39167
        https://github.com/jax-ml/jax/issues/34918
    Failure modes: mixed_cuda_components
    """
    by_soname: dict[str, list[FrameworkLibrary]] = {}
    for item in libraries.frameworks:
        by_soname.setdefault(item.soname, []).append(item)
    judged = [_judge(items, packages, tensorflow, target) for items in by_soname.values()]
    findings = [finding for finding in judged if finding]
    yield from findings
    if not by_soname:
        yield NotApplicable(reason=libraries.note or "no framework loads a CUDA library")
    elif not findings:
        names = ", ".join(dict.fromkeys(item.framework for item in libraries.frameworks))
        number = counted(len(by_soname), "library", "libraries")
        yield Evidence(subject="CUDA libraries", observed=f"{names}: one file for each of {number}")


def _judge(
    items: Sequence[FrameworkLibrary], packages: Packages, tensorflow: TensorFlowBuild, target: Target
) -> Finding | None:
    pins = tuple(dict.fromkeys(pin for item in items for pin in item.packages))
    names = [pin.partition("==")[0] for pin in pins]
    paths = list(dict.fromkeys(item.path for item in items))
    if len(paths) == 1 and len(pins) <= 1:
        return None
    users = ", ".join(dict.fromkeys(item.framework for item in items))
    if len(paths) > 1:
        wheels = [", ".join(item.packages) or "of no NVIDIA wheel" for item in items]
        copies = [f"{item.framework} loads {item.path} ({of})" for item, of in zip(items, wheels, strict=True)]
        observed = f"{'; '.join(copies)}. The framework that is imported first decides for all"
        brief = f"{users} find {counted(len(paths), 'copy', 'copies')}; the first import wins"
        summary = (
            "Install the frameworks for one CUDA release (jax[cuda12] next to TensorFlow), or each in an environment."
        )
        remedy = Remedy.reinstall(summary, look=("kdoctor matrix --framework jax",))
    else:
        whose = f"; it is that of {items[0].installed_by}" if items[0].installed_by else ""
        observed = f"{', '.join(pins)} install the same {paths[0]}, loaded by {users}{whose}"
        brief = f"{' and '.join(names)} overwrite it"
        major = f"-cu{(tensorflow.cuda_version or '').partition('.')[0]}=="
        kept = next((pin for pin in pins if major in pin), pins[-1])
        remedy = Remedy.reinstall(
            "Uninstall them all, then install the one for TensorFlow's CUDA. Install the other frameworks for that "
            "CUDA, or in another environment.",
            uninstall(target, packages, *names),
            install(target, packages, kept),
        )
    return Finding(
        subject=items[0].soname,
        observed=observed,
        brief=brief,
        explained_by=() if all(item.packages for item in items) else ("versions.libraries-shadowed",),
        expected="one copy, of one wheel",
        remedy=remedy,
        rollback=restore(target, packages, *(names or [tensorflow.distribution or "tensorflow"])),
    )
