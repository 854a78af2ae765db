"""Faults of streams, limits, variables and folders."""

import resource
from pathlib import Path

from helpers.faults.running import Fault

READY = "READY in"
UNKNOWN = "could not be evaluated"


def _job_log(folder: Path) -> None:
    (folder / "job.log").write_text("Epoch 1/2\n", encoding="utf-8")


def _startup(source: str) -> dict[str, str | None]:
    """Variables that make each Python, kdoctor's own included, run this module first."""
    return {"PYTHONPATH": "{folder}/" + source}


def _startup_modules(folder: Path) -> None:
    for name, source in {
        "printing": "print('noise ' * 20, flush=True)\n",
        "raising": "raise RuntimeError('a broken sitecustomize')\n",
    }.items():
        (folder / name).mkdir()
        (folder / name / "sitecustomize.py").write_text(source, encoding="utf-8")


SURROUNDINGS: dict[str, Fault] = {
    "streams: stdin closed": Fault(exits=(0,), says=READY, closed=(0,), slow=True),
    "streams: stdout closed": Fault(exits=(0,), closed=(1,), slow=True),
    "streams: stderr closed": Fault(exits=(0,), says=READY, closed=(2,), slow=True),
    "streams: all closed": Fault(exits=(0,), closed=(0, 1, 2)),
    "streams: stdin closed, lint": Fault(exits=(1,), says="stdin is closed", arguments=("lint", "-"), closed=(0,)),
    **{
        f"streams: stdin closed, {' '.join(arguments)}": Fault(
            exits=(2,), says=r"stdin|requests", arguments=arguments, closed=(0,), slow=arguments != ("diagnose", "-")
        )
        for arguments in (("diagnose", "-"), ("explain", "-"), ("fleet", "merge", "-"), ("mcp",))
    },
    "streams: stdin empty, mcp": Fault(exits=(0,), arguments=("mcp",)),
    "streams: stdin closed, a log": Fault(
        exits=(0, 1), says="job.log: 1 line", arguments=("diagnose", "{folder}/job.log"), closed=(0,), prepare=_job_log
    ),
    "streams: stdout full": Fault(exits=(2,), says="No space left on device", stdout="/dev/full", slow=True),
    "streams: stdout full, unbuffered": Fault(
        exits=(2,), says="No space left on device", stdout="/dev/full", variables={"PYTHONUNBUFFERED": "1"}, slow=True
    ),
    "streams: stdout full after 100 bytes, unbuffered": Fault(
        exits=(2,),
        says="cannot write to stdout: File too large",
        stdout="{folder}/report",
        variables={"PYTHONUNBUFFERED": "1", "KDOCTOR_NO_HISTORY": "1"},
        limits={resource.RLIMIT_FSIZE: 100},
    ),
    **{
        f"streams: stdout full, {arguments[-1]}{', unbuffered' * bool(variables)}": Fault(
            exits=(2,),
            says="cannot write to stdout: No space left on device",
            arguments=arguments,
            stdout="/dev/full",
            variables=variables,
            slow=arguments != ("--version",),
        )
        for arguments in (("--version",), ("check", "--help"), ("--show-completion", "bash"))
        for variables in ({}, {"PYTHONUNBUFFERED": "1"})
    },
    "streams: stdout full after a part of the help, unbuffered": Fault(
        exits=(2,),
        says="cannot write to stdout: File too large",
        arguments=("check", "--help"),
        stdout="{folder}/help",
        variables={"PYTHONUNBUFFERED": "1"},
        limits={resource.RLIMIT_FSIZE: 1000},
        slow=True,
    ),
    "streams: ASCII": Fault(
        exits=(0,), says=READY, variables={"PYTHONIOENCODING": "ascii", "LC_ALL": "C", "PYTHONUTF8": "0"}, slow=True
    ),
    "limits: address space": Fault(
        exits=(2, 3), says=f"refuses resources|{UNKNOWN}", limits={resource.RLIMIT_AS: 300_000_000}
    ),
    "limits: open files": Fault(exits=(0, 3), limits={resource.RLIMIT_NOFILE: 10}, slow=True),
    "limits: size of files": Fault(
        exits=(0,), says="not in the history", limits={resource.RLIMIT_FSIZE: 100}, slow=True
    ),
    "variables: no docstrings": Fault(exits=(0,), says=READY, variables={"PYTHONOPTIMIZE": "2"}, slow=True),
    "variables: no HOME and USER": Fault(
        exits=(0,), says=READY, variables={"HOME": None, "USER": None, "LOGNAME": None}, slow=True
    ),
    "variables: no temporary folder": Fault(
        exits=(2,),
        says="",
        arguments=("rollback", "--verify"),
        variables={"TMPDIR": "/nonexistent", "TEMP": "/nonexistent", "TMP": "/nonexistent"},
        slow=True,
    ),
    "variables: sitecustomize prints": Fault(
        exits=(0,), says=READY, variables=_startup("printing"), prepare=_startup_modules, slow=True
    ),
    "variables: sitecustomize raises": Fault(
        exits=(0, 1, 3), variables=_startup("raising"), prepare=_startup_modules, slow=True
    ),
}
