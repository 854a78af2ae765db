"""Runs the smoke scenarios of one framework: imports it once, then runs every case in a separate process.

A failed collective breaks later strategies of its process, and a crash or a hang ends it, so each case gets a process.
Forking after the import avoids repeating the import. If forking is impossible, or unsafe because this process already
uses a GPU, each case gets a fresh interpreter.
"""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
import threading
import time
import warnings
from pathlib import Path
from typing import Any, Dict, List

from kdoctor_target.runner.case_files import CaseFiles
from kdoctor_target.runner.case_main import arm_stacks, import_and_run, run_case
from kdoctor_target.runner.case_process import CaseProcess, RunningCase
from kdoctor_target.runner.channel import Channel
from kdoctor_target.runner.cleanup import end_adopted, shared_memory
from kdoctor_target.runner.importing import preload, prepare_environment
from kdoctor_target.runner.orphans import adopt_orphans, die_when_orphaned, end_with_parent

Settings = Dict[str, Any]
Facts = Dict[str, Any]

POLL_S = 0.01
MOST_PARALLEL = 4


def main(settings: Settings) -> None:
    """Run the cases in the settings (see ``kdoctor.smoke.session``) and send events as they happen."""
    channel = Channel()
    folder = Path(settings["folder"])
    job = settings.get("job")
    if job is not None:
        CaseFiles(folder, job).take_over()
    end_with_parent(expected_parent=None)
    prepare_environment(settings)
    if job is not None:
        arm_stacks(CaseFiles(folder, job).stacks, settings["import_deadline_s"] + job["deadline_s"])
        import_and_run(job, settings, folder)
    else:
        adopt_orphans()
        threading.Thread(target=die_when_orphaned, daemon=True).start()
        if preload(settings, folder, channel):
            _Runner(settings, folder, channel).run()


class _Runner:
    def __init__(self, settings: Settings, folder: Path, channel: Channel) -> None:
        self._settings = settings
        self._folder = folder
        self._channel = channel
        self._waiting: List[Facts] = list(settings["cases"])
        self._running: List[RunningCase] = []

    def run(self) -> None:
        """Run every case to its end or to its deadline."""
        # Garbage collection in a case must not traverse, and thereby copy, what was imported.
        gc.freeze()
        # The threads of TensorFlow and Keras hold no Python lock between import and first use; JAX starts its threads
        # with its first device.
        warnings.filterwarnings("ignore", message=r".*fork\(\) may lead to deadlocks", category=DeprecationWarning)
        warnings.filterwarnings("ignore", message=r".*os\.fork\(\) was called", category=RuntimeWarning)
        most = _parallel(self._settings)
        while self._waiting or self._running:
            while self._waiting and len(self._running) < most:
                job = self._waiting.pop(0)
                self._send("started", job)
                self._running.append(self._start(job))
            self._advance()
            time.sleep(POLL_S)

    def _advance(self) -> None:
        for case in list(self._running):
            facts = case.advance(lambda job, so_far: self._send("phase", job, phase=so_far["phase"], facts=so_far))
            if facts is not None:
                self._running.remove(case)
                end_adopted(one.pid for one in self._running)
                self._send("ended", case.job, facts=facts)

    def _send(self, event: str, job: Facts, **more: Any) -> None:
        self._channel.send({"event": event, "scenario": job["scenario"], "case": job["case"], **more})

    def _start(self, job: Facts) -> RunningCase:
        files, earlier = CaseFiles(self._folder, job), shared_memory()
        if _may_fork(self._settings["isolation"]):
            return RunningCase(job, self._fork(job, files), files, earlier)
        # A fresh interpreter imports again.
        return RunningCase(job, self._spawn(job), files, earlier, import_s=self._settings["import_deadline_s"])

    def _fork(self, job: Facts, files: CaseFiles) -> CaseProcess:
        parent = os.getpid()
        sys.stderr.flush()
        pid = os.fork()
        if pid:
            return CaseProcess(pid)
        try:
            files.take_over()
            end_with_parent(expected_parent=parent)
            arm_stacks(files.stacks, job["deadline_s"])
            run_case(job, self._settings, files)
        finally:
            os._exit(1)

    def _spawn(self, job: Facts) -> CaseProcess:
        settings = dict(self._settings, cases=[], job=job)
        argv = [*self._settings["respawn"], json.dumps(settings)]
        popen = subprocess.Popen(argv, stdin=subprocess.DEVNULL)  # noqa: S603 - kdoctor's command line
        return CaseProcess(popen.pid, popen)


def _may_fork(isolation: str) -> bool:
    if isolation == "fresh" or not hasattr(os, "fork"):
        return False
    return isolation == "fork" or not _holds_a_gpu()


def _holds_a_gpu() -> bool:
    """Whether CUDA was initialised in this process, after which a forked one cannot use it.

    The driver library opens the device nodes when it is initialised.
    """
    descriptors = Path("/proc/self/fd")
    if not descriptors.is_dir():
        return False
    for descriptor in descriptors.iterdir():
        try:
            target = os.readlink(str(descriptor))  # noqa: PTH115 - Python 3.8
        except OSError:
            continue
        if target.startswith("/dev/nvidia"):
            return True
    return False


def _parallel(settings: Settings) -> int:
    """The number of cases that run at once: one on GPUs, because of their memory; one for each core on the CPU."""
    if settings["parallel"]:
        return int(settings["parallel"])
    if settings["devices_kind"] == "gpu":
        return 1
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(MOST_PARALLEL, usable))
