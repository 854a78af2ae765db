"""Describes a failed import of TensorFlow, and finds the package whose files it failed in."""

from __future__ import annotations

import re

from kdoctor.commands.packages import install
from kdoctor.commands.shell import quoted, set_variable
from kdoctor.facts import Package, Packages, SmokeRun, Target, Unavailable
from kdoctor.model import Action, Finding, Remedy, Rollback
from kdoctor_checks._causes import of_import
from kdoctor_checks._versions import first_short

_NAMED = re.compile(
    r"No module named '([\w.]+)'"
    r"|cannot import name '[^']*' from (?:partially initialized module )?'([\w.]+)'"
    r"|module '([\w.]+)' has no attribute"
)
_FRAME = re.compile(r'File "[^"]*(?:site|dist)-packages/([^"]+?)(?:\.py)?", line')
_OTHER_NAMES = {"absl": "absl-py", "clang": "libclang", "google": "protobuf", "grpc": "grpcio", "tf_keras": "tf-keras"}
"""Module to its distribution, where the names differ."""


def import_failed(
    run: SmokeRun, failure: str, target: Target | Unavailable, packages: Packages | Unavailable
) -> Finding:
    """The finding that TensorFlow or its Keras cannot be imported."""
    kind, _, message = failure.partition(": ")
    backend = failure.startswith("WrongBackendError")
    culprit = None if backend else damaged_package(run, packages)
    rollback = Rollback.nothing("not needed (it restores the files of the same version)")
    if backend:
        remedy, brief = _BACKEND_REMEDY, "Keras does not use the TensorFlow backend"
        rollback = Rollback.nothing("not needed (export affects one shell only)")
    elif culprit and isinstance(target, Target) and isinstance(packages, Packages):
        remedy = _reinstall(culprit, target, packages)
        brief = first_short(f"fails in {culprit.name} {culprit.version} ({kind})", f"fails in {culprit.name}", kind)
    else:
        pins = _pins(packages) if kind.isidentifier() else []  # a crash or a hang may have other reasons
        remedy = _import_by_hand(pins, target, packages)
        brief = first_short(message or kind, f"raises {kind}", "fails")
    return Finding(
        subject="import tensorflow",
        observed=failure,
        brief=brief,
        expected="TensorFlow is imported, and the trainings run",
        remedy=remedy,
        rollback=rollback,
        explained_by=of_import(run),
    )


def damaged_package(run: SmokeRun, packages: Packages | Unavailable) -> Package | None:
    """The package of the module that the error names, or of the traceback's innermost frame, if it is installed."""
    if not isinstance(packages, Packages):
        return None
    # The first error of a chain is the cause: Keras, for one, is then reported as "cannot be imported".
    text = f"{run.failure or ''}\n{run.stderr_tail or ''}"
    named = _NAMED.search(text)
    frames = _FRAME.findall(text)
    module = next(filter(None, named.groups())) if named else frames[-1] if frames else ""
    top = re.split(r"[./]", module)[0]
    package = packages.find(_OTHER_NAMES.get(top, top))
    return package if package and package.version else None


def _reinstall(package: Package, target: Target, packages: Packages) -> Remedy:
    pin = f"{package.name}=={package.version}"
    return Remedy(
        summary=f"Reinstall {package.name}: its files are incomplete, damaged or from another version.",
        action=Action.REINSTALL,
        commands=(install(target, packages, "--force-reinstall", "--no-deps", pin),),
        look=_look(target),
    )


def _import_by_hand(pins: list[str], target: Target | Unavailable, packages: Packages | Unavailable) -> Remedy:
    return Remedy(
        summary="Import TensorFlow and Keras by hand and fix the error. A crash or a hang here usually means a "
        "broken installation.",
        action=Action.REINSTALL,
        commands=(install(target, packages, "--force-reinstall", "--no-deps", *pins),)
        if pins and isinstance(target, Target) and isinstance(packages, Packages)
        else (),
        look=_look(target),
    )


def _pins(packages: Packages | Unavailable) -> list[str]:
    if not isinstance(packages, Packages):
        return []
    return [f"{name}=={version}" for name in ("tensorflow", "keras") if (version := packages.version(name))]


def _look(target: Target | Unavailable) -> tuple[str, ...]:
    python = target.executable if isinstance(target, Target) else "python"
    return (quoted(python, "-X", "faulthandler", "-c", "import tensorflow; tensorflow.keras"),)


_BACKEND_REMEDY = Remedy(
    summary="Set the Keras backend to TensorFlow for tf.distribute. To test a job on JAX, run kdoctor smoke "
    "--strategy data-parallel.",
    action=Action.CONFIGURE,
    commands=(set_variable("KERAS_BACKEND", "tensorflow"),),
)
