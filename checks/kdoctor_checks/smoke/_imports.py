"""Judges a framework that cannot be imported."""

from collections.abc import Sequence

from kdoctor.commands.packages import install
from kdoctor.commands.shell import quoted, set_variable
from kdoctor.facts import Environment, PackageFault, Packages, SmokeRun, Target, Unavailable
from kdoctor.model import Finding, Remedy, Rollback
from kdoctor.text.lists import counted, some
from kdoctor_checks._causes import of_import
from kdoctor_checks._versions import first_short
from kdoctor_checks.smoke._judging import NO_ROLLBACK, finding

_SUBJECT = "import tensorflow"
_EXPECTED = "TensorFlow is imported, and the trainings run"
_PYTHONPATH = "PYTHONPATH"
_BACKEND_REMEDY = Remedy.configure(
    "Set the Keras backend to TensorFlow for tf.distribute. To test a job on JAX, run kdoctor smoke "
    "--strategy data-parallel.",
    "export KERAS_BACKEND=tensorflow",
)


def judge_import(
    run: SmokeRun,
    target: Target | Unavailable,
    packages: Packages | Unavailable,
    environment: Environment | Unavailable,
) -> Finding:
    """The finding that the framework cannot be imported, with what restores it as far as that is known."""
    failure = run.failure or "unknown error"
    if failure.startswith("WrongBackendError"):
        return finding(
            _SUBJECT,
            failure,
            _EXPECTED,
            _BACKEND_REMEDY,
            brief="Keras does not use the TensorFlow backend",
            explained_by=of_import(run),
        )
    shadowed = [fault for fault in run.faults if fault.shadowed]
    if shadowed:
        return _shadowed(shadowed[0], failure, environment)
    if run.faults and isinstance(target, Target) and isinstance(packages, Packages):
        return _damaged(run.faults, failure, target, packages)
    kind, _, message = failure.partition(": ")
    python = target.executable if isinstance(target, Target) else "python"
    program = "import tensorflow; tensorflow.keras.Model"
    return Finding(
        subject=_SUBJECT,
        observed=failure,
        expected=_EXPECTED,
        remedy=Remedy.reinstall(
            "Fix the error of the import. A crash or a hang before any training usually means a broken "
            "installation, or a file system that does not respond.",
            look=(quoted(python, "-X", "faulthandler", "-c", program), quoted(python, "-m", "pip", "check")),
        ),
        rollback=NO_ROLLBACK,
        brief=first_short(message or kind, f"raises {kind}", "fails"),
        explained_by=of_import(run),
    )


def _damaged(faults: Sequence[PackageFault], failure: str, target: Target, packages: Packages) -> Finding:
    named = some([f"{fault.package} {fault.version}" for fault in faults])
    problems = (
        f"{fault.file} is {'missing' if fault.missing else 'changed'} "
        f"({fault.missing + fault.changed} of {counted(fault.files, 'file')} of {fault.package} {fault.version})"
        for fault in faults
    )
    pins = [f"{fault.package}=={fault.version}" for fault in faults]
    return Finding(
        subject=_SUBJECT,
        observed=f"{'; '.join(problems)}: {failure}",
        brief=f"{named}: files are missing or changed",
        expected=_EXPECTED,
        remedy=Remedy.reinstall(
            f"Install {named} again, with all files.",
            install(target, packages, "--force-reinstall", "--no-deps", *pins),
        ),
        rollback=Rollback.nothing("not needed (the version stays the same)"),
        explained_by=("versions.one-tensorflow",),
    )


def _shadowed(fault: PackageFault, failure: str, environment: Environment | Unavailable) -> Finding:
    path = fault.file.removesuffix("/__init__.py")
    folder, _, name = path.rpartition("/")
    recorded = environment.get(_PYTHONPATH) if isinstance(environment, Environment) else None
    entries = [entry for entry in (recorded or "").split(":") if entry]
    kept = [entry for entry in entries if entry.rstrip("/") != folder]
    if len(kept) < len(entries):
        remedy = Remedy.configure(
            f"Remove {folder} from {_PYTHONPATH}, or rename {name} there.",
            set_variable(_PYTHONPATH, ":".join(kept) or None),
        )
        rollback = Rollback.to("restore the recorded value", set_variable(_PYTHONPATH, recorded))
    else:
        renamed = f"{folder}/renamed_{name}"
        remedy = Remedy.change_code(
            f"Rename {path}: Python imports it instead of {fault.package}.", quoted("mv", path, renamed)
        )
        rollback = Rollback.to("restore the name", quoted("mv", renamed, path))
    return Finding(
        subject=_SUBJECT,
        observed=f"{fault.file} hides {fault.package} {fault.version}: {failure}",
        brief=f"a file outside the environment hides {fault.package}",
        expected=_EXPECTED,
        remedy=remedy,
        rollback=rollback,
    )
