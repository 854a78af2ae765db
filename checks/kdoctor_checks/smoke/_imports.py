"""Judges a framework that cannot be imported."""

import re
from dataclasses import replace

from kdoctor.commands.shell import quoted, set_variable
from kdoctor.facts import Environment, Packages, SmokeRun, Target, Unavailable
from kdoctor.model import Finding, Remedy, Rollback
from kdoctor_checks._causes import of_import
from kdoctor_checks._files import damaged, shadowed
from kdoctor_checks._versions import first_short
from kdoctor_checks.smoke._judging import KILLED, NO_ROLLBACK, finding

_SUBJECT = "import tensorflow"
_EXPECTED = "TensorFlow is imported, and the trainings run"
_LIBRARIES = "LD_LIBRARY_PATH"
_OTHER_LIBRARY = re.compile("undefined symbol|version `[^']*' not found")
"""What the loader says of a library that was found and is not the one that was linked."""
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
    if run.import_s is not None:
        return _after_import(failure, run.signal)
    backend = environment.variables.get("KERAS_BACKEND", "") if isinstance(environment, Environment) else ""
    hides = "Keras cannot be imported" in failure and backend not in ("", "tensorflow")  # the message hides its cause
    if failure.startswith("WrongBackendError") or hides:
        return finding(
            _SUBJECT,
            failure,
            _EXPECTED,
            _BACKEND_REMEDY,
            brief="Keras does not use the TensorFlow backend",
            explained_by=of_import(run),
        )
    hidden = [fault for fault in run.faults if fault.shadowed]
    if hidden:
        return _first(shadowed(_SUBJECT, _EXPECTED, hidden[0], environment, failure))
    if run.faults and isinstance(target, Target) and isinstance(packages, Packages):
        return _first(damaged(_EXPECTED, run.faults, target, packages, subject=_SUBJECT, error=failure))
    kind, _, message = failure.partition(": ")
    python = target.executable if isinstance(target, Target) else "python"
    program = "import tensorflow; tensorflow.keras.Model"
    rollback = NO_ROLLBACK
    remedy = Remedy.reinstall(
        "Fix the error of the import. A crash or a hang before any training usually means a broken "
        "installation, or a file system that does not respond.",
        look=(quoted(python, "-X", "faulthandler", "-c", program), quoted(python, "-m", "pip", "check")),
    )
    if run.signal == "SIGKILL":
        remedy = KILLED
    folders = environment.variables.get(_LIBRARIES) if isinstance(environment, Environment) else None
    if folders and _OTHER_LIBRARY.search(failure):
        summary = f"Unset {_LIBRARIES}, or remove the folder with the old library: it comes before the system's."
        remedy = Remedy.configure(summary, set_variable(_LIBRARIES, None), look=remedy.look)
        rollback = Rollback.to("restore the recorded value", set_variable(_LIBRARIES, folders))
    return Finding(
        subject=_SUBJECT,
        observed=failure,
        expected=_EXPECTED,
        remedy=remedy,
        rollback=rollback,
        brief=f"its process died of {run.signal}"
        if run.signal
        else first_short(message or kind, re.sub(r"^/\S*/", "", message) or kind, f"raises {kind}", "fails"),
        explained_by=of_import(run),
    )


def _after_import(failure: str, signal: str | None) -> Finding:
    """The framework was imported, and then the process ended without a result."""
    again = Remedy.configure("Run it again. If it ends so again, see what it wrote.")
    end = failure.partition(" (")[0].removeprefix("the process that runs the trainings ")
    brief = first_short(f"their process {end}", f"their process {end.partition(' during ')[0]}", "they ended early")
    return finding("trainings", failure, _EXPECTED, KILLED if signal == "SIGKILL" else again, brief=brief)


def _first(found: Finding) -> Finding:
    """The finding, as what follows from the files that were found before any import."""
    return replace(found, explained_by=("versions.packages-intact", *found.explained_by))
