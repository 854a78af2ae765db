"""The process of a case: load the scenario's program, run the case's function, report how it ended, exit."""

from __future__ import annotations

import faulthandler
import importlib.util
import os
import sys
import traceback
from pathlib import Path
from types import ModuleType
from typing import IO, Any, Callable, Dict, Optional

from kdoctor_target.runner.case import Case
from kdoctor_target.runner.case_files import CaseFiles, write_stacks_to
from kdoctor_target.runner.importing import import_all, reason_missing
from kdoctor_target.runner.outcome import describe_error

Settings = Dict[str, Any]
Facts = Dict[str, Any]


def import_and_run(job: Facts, settings: Settings, folder: Path) -> None:
    """In a fresh interpreter: import what the case needs, then run it. A failing import is the case's error."""
    files = CaseFiles(folder, job)
    with files.events.open("a", encoding="utf-8") as events:
        case = _case(events, job, settings, files)
        case.phase("import")
        try:
            import_all(settings["preload"])
        except BaseException as error:
            traceback.print_exc()
            case.write({"end": describe_error(error)})
            return
        case.write({"imported": True})
    arm_stacks(files.stacks, job["deadline_s"])
    run_case(job, settings, files)


def run_case(job: Facts, settings: Settings, files: CaseFiles) -> None:
    """Run the case's function and exit, without the clean-up that belongs to the parent process."""
    with files.events.open("a", encoding="utf-8") as events:
        case = _case(events, job, settings, files)
        case.phase("import")

        def work() -> None:
            reason = reason_missing(settings.get("framework", "tensorflow"))
            if reason:
                case.skip(reason)
            case_function(_load(job["program"]), job["case"])(case)

        case.conclude(work)


def _case(events: IO[str], job: Facts, settings: Settings, files: CaseFiles) -> Case:
    return Case(
        events,
        settings["devices_kind"],
        settings["replicas"],
        stem=files.stem,
        deadline_s=job["deadline_s"],
        settings=job.get("settings"),
    )


def case_function(program: ModuleType, case: str) -> Callable[[Case], None]:
    """The function of a case in a scenario's program: in ``CASES``, or with the name of the case.

    Raises:
        LookupError: the program has no such case.
    """
    cases = getattr(program, "CASES", {})
    found = cases.get(case) if isinstance(cases, dict) else None
    function: Optional[Callable[[Case], None]] = found or getattr(program, case.replace("-", "_"), None)
    if function is None:
        raise LookupError(f"{program.__file__} defines no case {case!r}")
    return function


def _load(path: str) -> ModuleType:
    _make_package_importable(path)
    spec = importlib.util.spec_from_file_location("kdoctor_scenario", path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules["kdoctor_scenario"] = module
    keep, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    spec.loader.exec_module(module)
    sys.dont_write_bytecode = keep
    return module


def _make_package_importable(program: str) -> None:
    """Let a program of a plugin import the modules of its package, without running the package's ``__init__``.

    The plugin is not on the path of the examined interpreter, whose packages must not be mixed with kdoctor's.
    """
    folder = os.path.dirname(program)
    while os.path.isfile(os.path.join(os.path.dirname(folder), "__init__.py")):
        folder = os.path.dirname(folder)
    name = os.path.basename(folder)
    if os.path.isfile(os.path.join(folder, "__init__.py")) and name not in sys.modules:
        package = ModuleType(name)
        package.__path__ = [folder]
        sys.modules[name] = package


def arm_stacks(path: Path, deadline_s: float) -> None:
    """Write the stacks of all threads on a crash, and shortly before the deadline.

    ``faulthandler`` does not need the GIL for this, so it works during a hang in C code.
    """
    file = write_stacks_to(path)
    faulthandler.dump_traceback_later(max(0.8 * deadline_s, deadline_s - 2.0), file=file)
