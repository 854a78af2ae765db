from collections import Counter
from collections.abc import Iterator

from packaging.requirements import InvalidRequirement, Requirement

from kdoctor.check import check
from kdoctor.commands.packages import install, repeated, restore, uninstall
from kdoctor.facts import TENSORFLOWS, Package, Packages, Target, TensorFlowBuild, canonical_name
from kdoctor.model import Evidence, Finding, Outcome, Remedy, Severity, Unjudged
from kdoctor.text.lists import counted


@check("versions.one-tensorflow", severity=Severity.ERROR, requires=["versions.tensorflow-installed"])
def one_tensorflow(packages: Packages, tensorflow: TensorFlowBuild, target: Target) -> Iterator[Outcome]:
    """Exactly one TensorFlow distribution is installed.

    Why: the distributions tensorflow, tensorflow-cpu, tf-nightly and their variants install into the same folder. The
    last one installed overwrites files of the others, and uninstalling one removes files of another. The import then
    fails, or the files are a CPU-only build although the metadata lists a CUDA build.
    Remedy: uninstall all of them, delete what remains of the folder, and install the one that the job needs.
    Sources:
        https://www.tensorflow.org/install/pip
        https://packaging.python.org/en/latest/specifications/recording-installed-packages/
    """
    found = [package for package in packages.installed if package.name in TENSORFLOWS]
    required = {name for package in found for name in _requirements(package)}
    # On some platforms "tensorflow" is empty and requires the distribution that has the files (tensorflow-intel).
    separate = [package for package in found if package.name not in required]
    shown = [f"{package.name} {package.version or '(no version in its metadata)'}" for package in separate]
    kept = tensorflow.distribution or "tensorflow"
    if not found:
        yield Unjudged(subject="tensorflow", reason="no TensorFlow distribution has metadata in the environment")
        return
    if len(separate) <= 1:
        observed = shown[0] if shown else f"{kept} {tensorflow.version}, required by another distribution"
        yield Evidence(subject=kept, observed=f"the only TensorFlow distribution ({observed})")
        return
    counts = Counter(package.name for package in separate)
    names, copies = sorted(counts), max(counts.values())
    yield Finding(
        subject=" and ".join(names),
        observed=f"{counted(len(separate), 'distribution')} are installed: {', '.join(shown)}",
        brief=f"{counted(len(separate), 'TensorFlow')}, which overwrite each other's files"
        if len(names) > 1
        else f"{copies} copies are installed, and Python imports one of them",
        expected="one distribution",
        remedy=Remedy.reinstall(
            "Uninstall all of them, then install the one that the job needs.",
            repeated(uninstall(target, packages, *names), copies),
            install(target, packages, _wanted(kept, names, tensorflow, packages)),
        ),
        rollback=restore(target, packages, *names),
    )


def _wanted(kept: str, names: list[str], tensorflow: TensorFlowBuild, packages: Packages) -> str:
    """The one to install: the release whose files are there, with CUDA if one of them had it."""
    name = "tensorflow" if "tensorflow" in names else kept
    has_wheels = any(package.name.startswith("nvidia-cu") for package in packages.installed)
    extra = "[and-cuda]" if has_wheels and "cpu" not in name else ""
    return f"{name}{extra}=={tensorflow.version}" if tensorflow.version else f"{name}{extra}"


def _requirements(package: Package) -> Iterator[str]:
    for line in package.requires:
        try:
            yield canonical_name(Requirement(line).name)
        except InvalidRequirement:
            continue
