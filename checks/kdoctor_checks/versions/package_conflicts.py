from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import KerasChoice, Packages, Target, TensorFlowBuild
from kdoctor.model import Outcome, Severity, Unjudged
from kdoctor_checks.versions._requirements import judge_needs, needs_of


@check("versions.package-conflicts", severity=Severity.ERROR, requires=["versions.tensorflow-installed"])
def package_conflicts(
    packages: Packages, tensorflow: TensorFlowBuild, keras: KerasChoice, target: Target
) -> Iterator[Outcome]:
    """All requirements of TensorFlow and Keras are met.

    Why: a package that is missing, or in a version that TensorFlow does not accept (NumPy 2 with TensorFlow 2.17),
    breaks the import or, worse, a later step of the job. pip only warns about it. Indirect requirements count too,
    with the extras and environment markers of the target interpreter.
    Remedy: install a version that meets all requirements.
    Sources:
        https://packaging.python.org/en/latest/specifications/dependency-specifiers/
        https://github.com/tensorflow/tensorflow/issues/98406
    Failure modes: numpy2_abi
    """
    name = tensorflow.distribution or "tensorflow"
    found = packages.find(name)
    if found is None:
        yield Unjudged(subject=name, reason="the environment has no metadata of it")
        return
    needs = needs_of((name, *((keras.package,) if keras.package != "tensorflow" else ())), packages, target)
    if not needs.count:
        yield from needs.unjudged
        yield Unjudged(subject=name, reason="its metadata lists no requirements")
        return
    explained_by: dict[str, tuple[str, ...]] = {keras.package: ("versions.keras-compatible",)}
    if keras.package == "tf-keras":
        explained_by[name] = ("versions.keras-compatible",)  # a tf-keras for another TensorFlow
    yield from judge_needs(
        needs,
        packages,
        target,
        subject=f"{found.name} {found.version}",
        count=len(needs.visited),
        explained_by=explained_by,
    )
