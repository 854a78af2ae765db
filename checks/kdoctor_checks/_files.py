"""Packages whose files are missing, or that Python does not find because another file comes first."""

from collections.abc import Sequence

from kdoctor.commands.packages import install, restore, uninstall
from kdoctor.commands.shell import quoted, set_variable
from kdoctor.facts import Environment, PackageFault, Packages, Target, Unavailable
from kdoctor.model import Finding, Remedy, Rollback
from kdoctor.text.lists import counted, some

_PYTHONPATH = "PYTHONPATH"
_DOES = {".pth": "it puts a folder with another one before", ".dist-info": "it is left of a version that is gone, of"}


def damaged(
    expected: str,
    faults: Sequence[PackageFault],
    target: Target,
    packages: Packages,
    *,
    subject: str = "",
    error: str = "",
) -> Finding:
    """The finding that files of packages are missing or changed; ``error`` is that of the import of ``subject``."""
    named = some([f"{fault.package} {fault.version}" for fault in faults])
    problems = "; ".join(
        f"{fault.file} is {'missing' if fault.missing else 'changed'} "
        f"({fault.missing + fault.changed} of {counted(fault.files, 'file')} of {fault.package} {fault.version})"
        for fault in faults
    )
    pins = [f"{fault.package}=={fault.version}" for fault in faults]
    return Finding(
        subject=subject or named,
        observed=f"{problems}: {error}" if error else problems,
        brief=f"{named}: files are missing or changed" if subject else "files are missing or changed",
        expected=expected,
        remedy=Remedy.reinstall(
            f"Install {named} again, with all files.",
            install(target, packages, "--force-reinstall", "--no-deps", *pins),
        ),
        rollback=Rollback.nothing("not needed (the version stays the same)"),
        explained_by=("versions.one-tensorflow",),
    )


def overwritten(fault: PackageFault, target: Target, packages: Packages) -> Finding:
    """The finding that another distribution's files have taken the place of a package's."""
    names = (fault.package, fault.overwritten_by)
    pin = f"{fault.package}=={fault.version}"
    return Finding(
        subject=" and ".join(names),
        observed=f"{fault.changed} of {counted(fault.files, 'file')} of {fault.package} {fault.version}, such as "
        f"{fault.file}, are those of {fault.overwritten_by}",
        brief="they have the same files, and one replaced the other's",
        expected=f"one of {some(names)} is installed",
        remedy=Remedy.reinstall(
            f"Uninstall both, then install the one that the job needs: {fault.package}, or {fault.overwritten_by}.",
            uninstall(target, packages, *names),
            install(target, packages, pin),
        ),
        rollback=restore(target, packages, *names),
        explained_by=("versions.one-tensorflow",),
    )


def shadowed(
    subject: str, expected: str, fault: PackageFault, environment: Environment | Unavailable, error: str = ""
) -> Finding:
    """The finding that Python finds another file first; ``error`` is that of an import."""
    path = fault.file.removesuffix("/__init__.py")
    folder, _, name = path.rpartition("/")
    recorded = environment.variables.get(_PYTHONPATH) if isinstance(environment, Environment) else None
    entries = [entry for entry in (recorded or "").split(":") if entry]
    kept = [entry for entry in entries if entry.rstrip("/") != folder]
    what = "the standard library" if fault.package == "python" else fault.package
    if len(kept) < len(entries):
        remedy = Remedy.configure(
            f"Remove {folder} from {_PYTHONPATH}, or rename {name} there.",
            set_variable(_PYTHONPATH, ":".join(kept) or None),
        )
        rollback = Rollback.to("restore the recorded value", set_variable(_PYTHONPATH, recorded))
    else:
        renamed = f"{path}.unused"
        does = _DOES.get(f".{path.rpartition('.')[2]}", "Python imports it instead of")
        remedy = Remedy.change_code(f"Rename {path}: {does} {what}.", quoted("mv", path, renamed))
        rollback = Rollback.to("restore the name", quoted("mv", renamed, path))
    hides = f"{fault.file} hides {fault.package} {fault.version}"
    return Finding(
        subject=subject,
        observed=f"{hides}: {error}" if error else hides,
        brief=f"{'metadata of another version' if path.endswith('.dist-info') else 'a file outside the environment'} "
        f"hides {what}",
        expected=expected,
        remedy=remedy,
        rollback=rollback,
    )
