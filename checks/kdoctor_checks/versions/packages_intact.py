from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.commands.packages import install, repeated, restore, uninstall
from kdoctor.facts import (
    TENSORFLOWS,
    Environment,
    Package,
    PackageFault,
    Packages,
    Target,
    TensorFlowBuild,
    Unavailable,
)
from kdoctor.model import Evidence, Finding, Outcome, Remedy, Severity, Unjudged
from kdoctor.text.lists import counted, grouped
from kdoctor_checks._files import damaged, overwritten, shadowed

_EXPECTED = "every file that the import needs, and no other file first"


@check("versions.packages-intact", severity=Severity.ERROR, requires=["versions.tensorflow-installed"])
def packages_intact(
    packages: Packages, tensorflow: TensorFlowBuild, target: Target, environment: Environment | Unavailable
) -> Iterator[Outcome]:
    """The job imports TensorFlow, Keras and their requirements with all their files.

    Why: a job fails at its first line, or trains with another Keras, if files of a package are missing or a file hides
    it. An interrupted installation or a copied environment leaves packages without some files, and a second package
    with the same files (keras-nightly) replaces them. A file named
    tensorflow.py, keras/ or random.py in the script's folder or on PYTHONPATH hides the package of that name. The
    recorded files (RECORD) and the search path show this without an import. With --script, the folder of the script is
    searched first.
    Remedy: install the damaged package again, or rename the file that hides it.
    Sources:
        https://packaging.python.org/en/latest/specifications/recording-installed-packages/
        https://docs.python.org/3/library/sys_path_init.html
    """
    subject = f"{tensorflow.distribution or 'tensorflow'} {tensorflow.version or '(version unknown)'}"
    if not packages.files:
        yield Unjudged(subject=subject, reason="the files of the packages were not looked up")
        return
    hidden = [fault for fault in packages.faults if fault.shadowed]
    broken = [fault for fault in packages.faults if not fault.shadowed and not fault.overwritten_by]
    for fault in hidden:
        yield shadowed(f"import {_module(fault)}", _EXPECTED, fault, environment)
    for fault in packages.faults:
        if fault.overwritten_by:
            yield overwritten(fault, target, packages)
    if broken:
        yield damaged(_EXPECTED, broken, target, packages)
    copies = [*_copies(packages)]
    for several in copies:
        yield _doubled(several, target, packages)
    if not packages.faults and not copies:
        observed = f"{counted(packages.files, 'module and library', 'modules and libraries')} of it, Keras and their "
        yield Evidence(subject=subject, observed=f"{observed}requirements are in place")


def _copies(packages: Packages) -> Iterator[tuple[Package, ...]]:
    """Packages of which one folder has the metadata of several versions: only one can have the files."""
    listed = (((package.name, package.location), package) for package in packages.installed)
    for (name, location), several in grouped(listed).items():
        damaged = any(fault.package == name for fault in packages.faults)
        if location and name not in TENSORFLOWS and not damaged and len({one.version for one in several}) > 1:
            yield tuple(several)


def _doubled(copies: tuple[Package, ...], target: Target, packages: Packages) -> Finding:
    first, *_ = copies
    shown = " and ".join(str(package.version) for package in copies)
    return Finding(
        subject=f"import {first.name}",
        observed=f"{first.location} has the metadata of {first.name} {shown}",
        brief="metadata of several versions, and the files of at most one",
        expected=_EXPECTED,
        remedy=Remedy.reinstall(
            "Uninstall all of them, then install the one that the job needs.",
            repeated(uninstall(target, packages, first.name), len(copies)),
            install(target, packages, f"{first.name}=={first.version}" if first.version else first.name),
        ),
        rollback=restore(target, packages, first.name),
    )


def _module(fault: PackageFault) -> str:
    """The name by which Python imports what is hidden."""
    if fault.file.endswith((".pth", ".dist-info")):
        return fault.package
    return fault.file.removesuffix("/__init__.py").rpartition("/")[2].partition(".")[0]
