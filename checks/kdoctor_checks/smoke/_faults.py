"""Judges the packages that were found at fault where an import failed."""

from __future__ import annotations

from collections.abc import Sequence

from kdoctor.commands.packages import install
from kdoctor.commands.shell import quoted, set_variable
from kdoctor.facts import Environment, PackageFault, Packages, SmokeRun, Target, Unavailable
from kdoctor.model import Action, Finding, Remedy, Rollback
from kdoctor.text.lists import counted, some

_SUBJECT = "import tensorflow"
_EXPECTED = "TensorFlow is imported, and the trainings run"
_PYTHONPATH = "PYTHONPATH"


def find_fault(
    run: SmokeRun,
    target: Target | Unavailable,
    packages: Packages | Unavailable,
    environment: Environment | Unavailable,
) -> Finding | None:
    """The finding about the packages at fault, without the error of the import; None if none is known."""
    shadowed = [fault for fault in run.faults if fault.shadowed]
    if shadowed:
        return _shadowed(shadowed[0], environment)
    if run.faults and isinstance(target, Target) and isinstance(packages, Packages):
        return _damaged(run.faults, target, packages)
    return None


def _damaged(faults: Sequence[PackageFault], target: Target, packages: Packages) -> Finding:
    named = some([f"{fault.package} {fault.version}" for fault in faults])
    problems = (
        f"{fault.file} is {'missing' if fault.missing else 'changed'} "
        f"({fault.missing + fault.changed} of {counted(fault.files, 'file')} of {fault.package} {fault.version})"
        for fault in faults
    )
    pins = [f"{fault.package}=={fault.version}" for fault in faults]
    return Finding(
        subject=_SUBJECT,
        observed="; ".join(problems),
        brief=f"{named}: files are missing or changed",
        expected=_EXPECTED,
        remedy=Remedy(
            summary=f"Install {named} again, with all files.",
            action=Action.REINSTALL,
            commands=(install(target, packages, "--force-reinstall", "--no-deps", *pins),),
        ),
        rollback=Rollback.nothing("not needed (the version stays the same)"),
    )


def _shadowed(fault: PackageFault, environment: Environment | Unavailable) -> Finding:
    path = fault.file.removesuffix("/__init__.py")
    folder, _, name = path.rpartition("/")
    recorded = environment.get(_PYTHONPATH) if isinstance(environment, Environment) else None
    entries = [entry for entry in (recorded or "").split(":") if entry]
    kept = [entry for entry in entries if entry.rstrip("/") != folder]
    if len(kept) < len(entries):
        remedy = Remedy(
            summary=f"Remove {folder} from {_PYTHONPATH}, or rename {name} there.",
            action=Action.CONFIGURE,
            commands=(set_variable(_PYTHONPATH, ":".join(kept) or None),),
        )
        rollback = Rollback.to("restore the recorded value", set_variable(_PYTHONPATH, recorded))
    else:
        renamed = f"{folder}/renamed_{name}"
        remedy = Remedy(
            summary=f"Rename {path}: Python imports it instead of {fault.package}.",
            action=Action.CHANGE_CODE,
            commands=(quoted("mv", path, renamed),),
        )
        rollback = Rollback.to("restore the name", quoted("mv", renamed, path))
    return Finding(
        subject=_SUBJECT,
        observed=f"{fault.file} hides {fault.package} {fault.version}",
        brief=f"a file outside the environment hides {fault.package}",
        expected=_EXPECTED,
        remedy=remedy,
        rollback=rollback,
    )
