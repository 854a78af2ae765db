from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.commands.packages import install, restore
from kdoctor.commands.shell import quoted
from kdoctor.facts import Packages, Target, TensorFlowBuild, Unavailable
from kdoctor.model import Assumptions, Evidence, Finding, Outcome, Remedy, Rollback, Severity, Unjudged
from kdoctor_checks._versions import parse_version


@check("versions.tensorflow-installed", severity=Severity.ERROR)
def tensorflow_installed(
    tensorflow: TensorFlowBuild | Unavailable,
    packages: Packages | Unavailable,
    target: Target | Unavailable,
    assumptions: Assumptions,
) -> Iterator[Outcome]:
    """TensorFlow is installed in the target environment.

    Why: without TensorFlow the job stops at its first import. If its metadata is missing (a copied or partly removed
    installation), its version is unknown, and neither pip nor a lock file can restore it.
    Remedy: install TensorFlow with its CUDA libraries, or check another environment with --python.
    Source: https://www.tensorflow.org/install/pip
    """
    if isinstance(target, Unavailable) and target.interpreter:
        yield _does_not_start(target)
        return
    if isinstance(tensorflow, Unavailable) or isinstance(packages, Unavailable) or isinstance(target, Unavailable):
        missing = (group for group in (tensorflow, packages, target) if isinstance(group, Unavailable))
        yield Unjudged(subject="TensorFlow", reason=next(missing).unavailable)
        return
    subject = f"tensorflow in {target.prefix}"
    if not tensorflow.installed:
        has_cuda = assumptions.expects_gpus and target.platform == "linux-x86_64"
        yield Finding(
            subject="TensorFlow",
            observed=f"not found by {target.executable} ({target.chosen_by})",
            brief="not installed in the examined environment",
            expected="TensorFlow 2",
            remedy=Remedy.reinstall(
                f"Install TensorFlow{' with its CUDA libraries' if has_cuda else ''}, {_instead(packages)}.",
                *_installation(packages, target, has_cuda=has_cuda),
            ),
            rollback=Rollback.nothing("not needed (the packages of the system do not change)")
            if target.externally_managed and not packages.find("tensorflow")
            else restore(target, packages, "tensorflow"),
        )
    elif parse_version(tensorflow.version) is None:
        version = f"version {tensorflow.version!r}" if tensorflow.version else "no version in its metadata"
        why = f": {tensorflow.unreadable}" if tensorflow.unreadable else ""
        yield Unjudged(subject=subject, reason=f"{tensorflow.location or 'the package'} has {version}{why}")
    else:
        name = tensorflow.distribution or "tensorflow"
        brief = f"{'TensorFlow' if name == 'tensorflow' else name} {tensorflow.version}"
        yield Evidence(subject=subject, observed=f"{name} {tensorflow.version}", brief=brief)


def _does_not_start(target: Unavailable) -> Finding:
    """The interpreter ends before it runs anything."""
    file, look = target.ended_by, (quoted(target.interpreter, "-c", "pass"),)
    remedy = Remedy.configure("Install the environment again, or name another one with --python.", look=look)
    rollback = Rollback.nothing("not needed (this step is read-only)")
    if file:
        summary = f"Correct {file}, or rename it: Python runs it at each start."
        remedy = Remedy.configure(summary, quoted("mv", file, f"{file}.unused"), look=look)
        rollback = Rollback.to("restore the name", quoted("mv", f"{file}.unused", file))
    return Finding(
        subject="Python",
        observed=target.unavailable,
        brief="does not start",
        expected="the interpreter of the job starts",
        remedy=remedy,
        rollback=rollback,
    )


def _instead(packages: Packages) -> str:
    """What else may be meant: a job on JAX, if both Keras and JAX are installed."""
    other = "check another environment with --python"
    jax = "or set KERAS_BACKEND=jax, without --model"
    return f"{other}, {jax}" if packages.find("jax") and packages.find("keras") else f"or {other}"


def _installation(packages: Packages, target: Target, *, has_cuda: bool) -> Iterator[str]:
    found = packages.find("tensorflow")
    extra = "[and-cuda]" if has_cuda else ""
    if found and found.version:  # its files were removed, and pip regards it as installed
        yield install(target, packages, "--force-reinstall", "--no-deps", f"tensorflow=={found.version}")
    elif target.externally_managed:
        yield quoted(target.executable, "-m", "venv", ".venv")
        yield quoted(".venv/bin/python", "-m", "pip", "install", f"tensorflow{extra}")
        yield "kdoctor check --python .venv"
    else:
        yield install(target, packages, f"tensorflow{extra}")
