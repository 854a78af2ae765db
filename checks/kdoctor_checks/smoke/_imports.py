"""Describes a failed import of TensorFlow, and finds the package whose files it failed in."""

from __future__ import annotations

import re
from dataclasses import replace

from kdoctor.commands.packages import install
from kdoctor.commands.shell import quoted, set_variable
from kdoctor.facts import Environment, Package, Packages, SmokeRun, Target, Unavailable
from kdoctor.model import Action, Finding, Remedy, Rollback
from kdoctor_checks._versions import first_short
from kdoctor_checks.smoke._causes import of_import
from kdoctor_checks.smoke._faults import find_fault

_NAMED = (
    re.compile(r"No module named '([\w.]+)'"),
    re.compile(r"cannot import name '[^']*' from (?:partially initialized module )?'([\w.]+)'"),
    re.compile(r"module '([\w.]+)' has no attribute"),
    re.compile(r"DLL load failed while importing ([\w.]+)"),
)
_FRAME = re.compile(r'File "[^"]*(?:site|dist)-packages/([^"]+?)(?:\.py)?", line')
_OTHER_NAMES = {"absl": "absl-py", "clang": "libclang", "google": "protobuf", "grpc": "grpcio", "tf_keras": "tf-keras"}
"""Module to its distribution, where the names differ."""


def import_failed(
    run: SmokeRun,
    failure: str,
    target: Target | Unavailable,
    packages: Packages | Unavailable,
    environment: Environment | Unavailable,
) -> Finding:
    """The finding that TensorFlow or its Keras cannot be imported."""
    known = find_fault(run, target, packages, environment)
    if known:
        return replace(known, observed=f"{known.observed}: {failure}", explained_by=of_import(run))
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
    """The installed package that the error names, or else the one with the innermost frame of the traceback."""
    if not isinstance(packages, Packages):
        return None
    modules = [found[1] for pattern in _NAMED if (found := pattern.search(run.failure or ""))]
    frames = _FRAME.findall(run.stderr_tail or "")
    modules += [path.replace("/", ".") for path in frames[-1:]]
    for module in modules:
        top = module.partition(".")[0]
        package = packages.find(_OTHER_NAMES.get(top, top))
        if package and package.version:
            return package
    return None


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
        summary="Import TensorFlow and its Keras manually and fix the error. A crash or a hang before any training "
        "usually means a broken installation, or a file system that does not respond.",
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
    summary="Set the Keras backend to TensorFlow for a job that uses a tf.distribute strategy. A job on JAX uses "
    "keras.distribution instead; test it with kdoctor smoke --strategy data-parallel.",
    action=Action.CONFIGURE,
    commands=(set_variable("KERAS_BACKEND", "tensorflow"),),
)
