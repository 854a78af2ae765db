from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import Environment, PackageFault, Packages, Target, TensorFlowBuild, Unavailable
from kdoctor.model import Evidence, Outcome, Severity, Unjudged
from kdoctor.text.lists import counted
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
    if not packages.faults:
        observed = f"{counted(packages.files, 'module and library', 'modules and libraries')} of it, Keras and their "
        yield Evidence(subject=subject, observed=f"{observed}requirements are in place")


def _module(fault: PackageFault) -> str:
    """The name by which Python imports what is hidden."""
    if fault.file.endswith((".pth", ".dist-info")):
        return fault.package
    return fault.file.removesuffix("/__init__.py").rpartition("/")[2].partition(".")[0]
