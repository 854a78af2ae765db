"""The prolog in a real Slurm of one node: the state of the job and the node, and the messages in both."""

from __future__ import annotations

import getpass
import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from helpers.command import make_target
from helpers.integrations import FOLDER, KDOCTOR, needs

pytestmark = [pytest.mark.services, *needs("munged", "slurmctld", "slurmd", "sbatch", "scontrol", "sinfo", "squeue")]

CHECKLIST = """\
schema: kdoctor/checklist/v1
name: node
version: 1
owner: tests
checks: [{id: CHECK, severity: error}]
without: {baseline: a prolog trains nothing, edge-case: the same, failure-path: the same}
"""


class Slurm:
    """A controller and a node on free ports. All files are in one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.node = socket.gethostname().partition(".")[0]
        self.env = {**os.environ, "SLURM_CONF": str(folder / "slurm.conf")}
        self.prolog = folder / "prolog.sh"
        self.processes: list[subprocess.Popen[bytes]] = []

    def start(self) -> None:
        (self.folder / "munge.key").write_bytes(os.urandom(1024))
        (self.folder / "munge.key").chmod(0o600)
        (self.folder / "slurm.conf").write_text(self._configuration(), encoding="utf-8")
        self.accept()
        files = {name: self.folder / f"munge.{name}" for name in ("socket", "pid", "log", "seed")}
        self._daemon(
            "munged", "--foreground", "--force", f"--socket={files['socket']}", f"--key-file={self.folder}/munge.key",
            f"--pid-file={files['pid']}", f"--log-file={files['log']}", f"--seed-file={files['seed']}",
        )  # fmt: skip
        self._until(files["socket"].exists)
        self._daemon("slurmctld", "-D")
        self._daemon("slurmd", "-D", "-N", self.node)
        self._until(lambda: self.state() == "idle")

    def stop(self) -> None:
        for process in reversed(self.processes):
            os.killpg(process.pid, signal.SIGTERM)
        for process in reversed(self.processes):
            process.wait(timeout=60)

    def ask(self, *command: str) -> str:
        return subprocess.run(command, check=True, capture_output=True, text=True, env=self.env).stdout.strip()

    def state(self) -> str:
        return self.ask("sinfo", "--noheader", "--Node", "--format=%t").rstrip("*")

    def accept(
        self, *, python: Path | None = None, check: str = "versions.tensorflow-installed", kdoctor: Path = KDOCTOR
    ) -> None:
        """Install the documented prolog with adapted paths, or one that accepts every job without an interpreter."""
        checklist = self.folder / "node.yaml"
        checklist.write_text(CHECKLIST.replace("CHECK", check), encoding="utf-8")
        if python is None:
            self.prolog.write_text("#!/bin/sh\nexit 0\n", encoding="utf-8")
        else:
            text = (FOLDER / "slurm-prolog.sh").read_text(encoding="utf-8")
            for documented, adapted in {
                "/opt/kdoctor/bin/kdoctor": str(kdoctor), "/opt/job": str(python), "multi-gpu-keras": str(checklist),
                "logger --tag": f"{self.folder}/logger --tag",
            }.items():  # fmt: skip
                assert documented in text
                text = text.replace(documented, adapted)
            self.prolog.write_text(text, encoding="utf-8")
        self.prolog.chmod(0o755)
        logger = self.folder / "logger"
        logger.write_text(f'#!/bin/sh\nshift 2\necho "$@" >> {self.folder}/syslog\n', encoding="utf-8")
        logger.chmod(0o755)

    def submit(self) -> str:
        output = f"--output={self.folder}/job.out"
        return self.ask("sbatch", "--parsable", "--chdir=/", output, "--wrap=echo the job ran")

    def ran(self, job: str) -> bool:
        """Whether the job ran to its end. False if Slurm holds it."""
        state = ""

        def ended() -> bool:
            nonlocal state
            state = self.ask("scontrol", "show", "job", job)
            return "JobState=COMPLETED" in state or "requeued_held" in state

        self._until(ended)
        return "JobState=COMPLETED" in state and (self.folder / "job.out").exists()

    def _daemon(self, *command: str) -> None:
        path = f"{os.environ['PATH']}:/usr/sbin:/usr/local/sbin"
        with (self.folder / f"{command[0]}.log").open("wb") as log:
            self.processes.append(
                subprocess.Popen(
                    command, env={**self.env, "PATH": path}, stdout=log, stderr=log, start_new_session=True
                )
            )

    def _until(self, condition: Callable[[], bool]) -> None:
        for _ in range(300):
            try:
                if condition():
                    return
            except subprocess.CalledProcessError:
                pass  # the controller is starting
            time.sleep(0.1)
        logs = "\n".join(path.read_text(errors="replace")[-1000:] for path in self.folder.glob("*.log"))
        raise AssertionError(f"condition not met within 30 s:\n{logs}")

    def _configuration(self) -> str:
        controller, node = _free_ports()
        values = {
            "ClusterName": "kdoctor", "SlurmctldHost": self.node, "SlurmctldPort": controller, "SlurmdPort": node,
            "SlurmUser": getpass.getuser(), "SlurmdUser": getpass.getuser(), "AuthType": "auth/munge",
            "AuthInfo": f"socket={self.folder}/munge.socket", "StateSaveLocation": self.folder / "state",
            "SlurmdSpoolDir": self.folder / "spool", "SlurmctldPidFile": self.folder / "slurmctld.pid",
            "SlurmdPidFile": self.folder / "slurmd.pid", "ProctrackType": "proctrack/linuxproc",
            "TaskPlugin": "task/none", "MpiDefault": "none", "Prolog": self.prolog, "PrologFlags": "Alloc",
            "NodeName": f"{self.node} CPUs=1", "PartitionName": "all Nodes=ALL Default=YES",
        }  # fmt: skip
        (self.folder / "state").mkdir()
        (self.folder / "spool").mkdir()
        return "".join(f"{name}={value}\n" for name, value in values.items())


def _free_ports() -> tuple[int, int]:
    with socket.socket() as one, socket.socket() as other:
        one.bind(("", 0))
        other.bind(("", 0))
        return one.getsockname()[1], other.getsockname()[1]


@pytest.fixture
def slurm() -> Iterator[Slurm]:
    # Not tmp_path: the path of a socket is limited to 107 characters, and other users cannot enter tmp_path.
    folder = Path("/tmp", f"kdoctor-slurm-{os.getpid()}")  # noqa: S108
    folder.mkdir(mode=0o755)
    cluster = Slurm(folder)
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()
        shutil.rmtree(folder)


def test_passing_run_starts_the_job(slurm: Slurm, tmp_path: Path) -> None:
    slurm.accept(python=make_target(tmp_path / "job", tensorflow=""))
    assert slurm.ran(slurm.submit())
    assert slurm.state() in ("idle", "alloc", "comp")
    assert "exit code 0: kdoctor READY in " in (slurm.folder / "syslog").read_text()


def test_failed_run_drains_the_node_and_holds_the_job(slurm: Slurm, tmp_path: Path) -> None:
    slurm.accept(python=make_target(tmp_path / "job"))
    job = slurm.submit()
    assert not slurm.ran(job)
    assert slurm.state().startswith("drain")
    for message in (
        slurm.ask("sinfo", "--noheader", "--list-reasons", "--format=%500E"),
        slurm.ask("squeue", "--noheader", f"--jobs={job}", "--format=%k"),
    ):
        assert message.startswith("kdoctor NOT READY in ")
        assert "versions.tensorflow-installed" in message
    # After the repair, an administrator resumes the node and releases the job. Slurm waits two minutes to start it.
    slurm.ask("scontrol", "update", f"nodename={slurm.node}", "state=resume")
    slurm.ask("scontrol", "release", job)
    assert slurm.state() == "idle"
    assert "requeued_held" not in slurm.ask("scontrol", "show", "job", job)


def test_inconclusive_or_impossible_run_is_logged_and_starts_the_job(slurm: Slurm, tmp_path: Path) -> None:
    python = make_target(tmp_path / "job", tensorflow="")
    for code, given in (
        (3, {"check": "topology.pcie-errors"}),  # unknown without GPUs
        (2, {"check": "no.such-check"}),
        (127, {"kdoctor": tmp_path / "none"}),
    ):
        slurm.accept(python=python, **given)
        (slurm.folder / "job.out").unlink(missing_ok=True)
        assert slurm.ran(slurm.submit())
        assert f"exit code {code}: " in (slurm.folder / "syslog").read_text().splitlines()[-1]
    assert slurm.state() in ("idle", "alloc", "comp")
