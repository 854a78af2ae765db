"""Whether TensorFlow and Keras have what they say they need."""

from __future__ import annotations

from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import KerasChoice, Packages, Target, TensorFlowBuild
from kdoctor.model import Evidence, Outcome, Severity, Unjudged
from kdoctor_checks._requirements import conflicts, needs_of
from kdoctor_checks.versions._conflicts import as_finding


@check("versions.package-conflicts", severity=Severity.ERROR, requires=["versions.tensorflow-installed"])
def package_conflicts(
    packages: Packages, tensorflow: TensorFlowBuild, keras: KerasChoice, target: Target
) -> Iterator[Outcome]:
    """Everything that TensorFlow and Keras require is installed, in versions that they accept.

    Why: a package that was upgraded on its own past what TensorFlow accepts (NumPy 2 under TensorFlow 2.17, a newer
    protobuf) breaks the import or, worse, a step in the middle of the job. pip installs such a state with a warning
    only. The requirements are followed to the end, with the extras and the markers of the examined interpreter.
    Remedy: install a version that all who need it accept.
    Sources:
        https://packaging.python.org/en/latest/specifications/dependency-specifiers/
        https://github.com/tensorflow/tensorflow/issues/98406
    Failure modes: numpy2_abi
    """
    name = tensorflow.distribution or "tensorflow"
    found = packages.find(name)
    if found is None:
        yield Unjudged(subject=name, reason="its metadata is not among the environment's distributions")
        return
    roots = (found.name, *((keras.package,) if keras.package != "tensorflow" else ()))
    needs = needs_of(roots, packages, target)
    yield from needs.unjudged
    bad = 0
    for conflict in conflicts(needs, packages):
        bad += 1
        yield conflict if isinstance(conflict, Unjudged) else as_finding(conflict, packages, target)
    if not needs.count:
        yield Unjudged(subject=name, reason="its metadata lists no requirements")
    elif not bad:
        observed = f"{needs.count} requirements of {len(needs.visited)} distributions are met"
        yield Evidence(subject=f"{found.name} {found.version}", observed=observed)
