"""Faults of the examined interpreter."""

from pathlib import Path

import psutil

from helpers.command import make_target
from helpers.faults.running import Fault, wait_for

SMOKE = ("check", "--checklist", "cpu-smoke", "--python", "{folder}/python")
ENVIRONMENT = ("check", "--checklist", "cpu-smoke", "--python", "{folder}/target")
START = r"\036"


def _script(body: str, folder: Path) -> None:
    file = folder / "python"
    file.write_text(f"#!/bin/sh\n{body}\n", encoding="utf-8")
    file.chmod(0o755)


def _runner(body: str, folder: Path) -> None:
    """A Python whose process for the trainings is replaced."""
    target = make_target(folder / "target", tensorflow="")
    _script(f'case "$*" in *runner.main*) ;; *) exec {target}/bin/python "$@";; esac\n{body}', folder)


def _much(folder: Path) -> None:
    _script("head -c 100000000 /dev/zero", folder)


def _endless_records(folder: Path) -> None:
    _script(f"yes \"$(printf '{START}[3, 11, 7]')\"", folder)


def _odd(folder: Path) -> None:
    records = [
        '{"event":"ended"}',
        "[]",
        '{"event":"imported","tensorflow":[1]}',
        '{"scenario":["smoke.baseline"],"event":"x"}',
        '{"event":"failed","faults":5}',
        '{"scenario":"smoke.baseline","event":"ended","case":"fit","facts":{}}',
    ]
    _runner("".join(f"printf '{START}{record}\\n'\n" for record in records), folder)


def _endless_events(folder: Path) -> None:
    record = '{"event":"started","scenario":"smoke.baseline","case":"fit"}'
    _runner(f"exec yes \"$(printf '{START}{record}')\"", folder)


def _runner_hangs(folder: Path) -> None:
    _runner("sleep 1000", folder)


def slow_import(folder: Path) -> None:
    """An interpreter whose TensorFlow never finishes its import, and says when it begins."""
    source = f"import pathlib, time\npathlib.Path({str(folder / 'started')!r}).touch()\ntime.sleep(1000)\n"
    make_target(folder / "target", tensorflow=source)


def end_at_once(folder: Path) -> None:
    """Let the TensorFlow of ``slow_import`` fail."""
    module = next((folder / "target").glob("lib/python*/site-packages/tensorflow/__init__.py"))
    module.write_text("raise ImportError('ends at once')", encoding="utf-8")


def _remove(process: psutil.Process, folder: Path) -> None:
    wait_for(folder / "started")
    (folder / "target" / "bin" / "python").unlink()


def _stop_children(process: psutil.Process, folder: Path) -> None:
    wait_for(folder / "started")
    for child in process.children(recursive=True):
        child.suspend()


def _kill_children(process: psutil.Process, folder: Path) -> None:
    wait_for(folder / "started")
    for child in process.children(recursive=True):
        child.kill()


INTERPRETERS: dict[str, Fault] = {
    "target: 100 MB": Fault(exits=(2,), says="not a Python interpreter", arguments=SMOKE, prepare=_much, slow=True),
    "target: endless records": Fault(
        exits=(2,),
        says="not a Python interpreter|did not report its version",
        arguments=SMOKE,
        prepare=_endless_records,
        slow=True,
    ),
    "target: odd records": Fault(exits=(1,), says="smoke.baseline", arguments=SMOKE, prepare=_odd),
    "target: endless events": Fault(
        exits=(1, 3), says="timed out after", arguments=(*SMOKE, "--timeout", "6"), prepare=_endless_events, slow=True
    ),
    "target: the runner hangs": Fault(
        exits=(1, 3), says="timed out after", arguments=(*SMOKE, "--timeout", "6"), prepare=_runner_hangs, slow=True
    ),
    "target: removed in mid-run": Fault(
        exits=(1, 3),
        says="timed out after",
        arguments=(*ENVIRONMENT, "--timeout", "30"),
        prepare=slow_import,
        meanwhile=_remove,
        slow=True,
    ),
    "children: stopped": Fault(
        exits=(1, 3),
        says="timed out after",
        arguments=(*ENVIRONMENT, "--timeout", "30"),
        prepare=slow_import,
        meanwhile=_stop_children,
        slow=True,
    ),
    "children: killed": Fault(
        exits=(1,), says="smoke.baseline", arguments=ENVIRONMENT, prepare=slow_import, meanwhile=_kill_children
    ),
}
