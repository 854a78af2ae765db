"""A real Slurm on this machine: a controller and nodes on free ports, with all files in one folder."""

import getpass
import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from helpers.integrations import tool

PROGRAMS = ("slurmctld", "slurmd", "srun", "sbatch", "scontrol", "sinfo", "squeue")


class Slurm:
    """A cluster. With several nodes, the slurmds have different names and ports on this machine."""

    def __init__(self, folder: Path, *, nodes: int = 1, settings: Mapping[str, object] | None = None) -> None:
        self.folder = folder
        self.host = socket.gethostname().partition(".")[0]
        self.nodes = [self.host] if nodes == 1 else [f"node{index}" for index in range(1, nodes + 1)]
        self.settings = dict(settings or {})
        self.env = {**os.environ, "SLURM_CONF": str(folder / "slurm.conf")}
        self.processes: list[subprocess.Popen[bytes]] = []

    @property
    def node(self) -> str:
        """The only node."""
        return self.nodes[0]

    def start(self) -> None:
        """Start the daemons, and wait until all nodes are idle."""
        (self.folder / "slurm.conf").write_text(self._configuration(), encoding="utf-8")
        if tool("munged"):
            self._start_munge()
        self._daemon("slurmctld", "-D")
        for node in self.nodes:
            self._daemon("slurmd", "-D", "-N", node)
        self.until(lambda: self.states() == ["idle"] * len(self.nodes))

    def stop(self) -> None:
        """End the daemons."""
        for process in reversed(self.processes):
            os.killpg(process.pid, signal.SIGTERM)
        for process in reversed(self.processes):
            process.wait(timeout=60)

    def ask(self, *command: str) -> str:
        """The output of a client program."""
        return subprocess.run(command, check=True, capture_output=True, text=True, env=self.env).stdout.strip()

    def states(self) -> list[str]:
        """The state of each node."""
        return [line.rstrip("*") for line in self.ask("sinfo", "--noheader", "--Node", "--format=%t").splitlines()]

    def state(self) -> str:
        """The state of the only node."""
        return self.states()[0]

    def reason(self, node: str) -> str:
        """Why a node is drained."""
        return self.ask("sinfo", "--noheader", f"--nodes={node}", "--format=%500E")

    def submit(self, script: str = "echo the job ran", *options: str) -> str:
        """Submit a job; returns its number. Its output is job.out."""
        output = f"--output={self.folder}/job.out"
        return self.ask("sbatch", "--parsable", "--chdir=/", output, *options, f"--wrap={script}")

    def ran(self, job: str) -> bool:
        """Whether the job ran to its end. False if it failed, or if Slurm holds it."""
        state = ""

        def ended() -> bool:
            nonlocal state
            state = self.ask("scontrol", "show", "job", job)
            return any(word in state for word in ("JobState=COMPLETED", "JobState=FAILED", "requeued_held"))

        self.until(ended)
        return "JobState=COMPLETED" in state and (self.folder / "job.out").exists()

    def until(self, condition: Callable[[], bool], seconds: float = 60) -> None:
        """Wait for a condition."""
        for _ in range(int(seconds * 10)):
            try:
                if condition():
                    return
            except subprocess.CalledProcessError:
                pass  # the controller is starting
            time.sleep(0.1)
        logs = "\n".join(path.read_text(errors="replace")[-1000:] for path in self.folder.glob("*.log"))
        raise AssertionError(f"condition not met within {seconds:.0f} s:\n{logs}")

    def _start_munge(self) -> None:
        (self.folder / "munge.key").write_bytes(os.urandom(1024))
        (self.folder / "munge.key").chmod(0o600)
        files = {name: self.folder / f"munge.{name}" for name in ("socket", "pid", "log", "seed")}
        self._daemon(
            "munged", "--foreground", "--force", f"--socket={files['socket']}", f"--key-file={self.folder}/munge.key",
            f"--pid-file={files['pid']}", f"--log-file={files['log']}", f"--seed-file={files['seed']}",
        )  # fmt: skip
        self.until(files["socket"].exists)

    def _daemon(self, *command: str) -> None:
        path = f"{os.environ['PATH']}:/usr/sbin:/usr/local/sbin"
        with (self.folder / f"{command[0]}-{len(self.processes)}.log").open("wb") as log:
            self.processes.append(
                subprocess.Popen(
                    command, env={**self.env, "PATH": path}, stdout=log, stderr=log, start_new_session=True
                )
            )

    def _configuration(self) -> str:
        controller, *ports = free_ports(1 + len(self.nodes))
        munge = {"AuthType": "auth/munge", "AuthInfo": f"socket={self.folder}/munge.socket"}
        values = {
            "ClusterName": "kdoctor", "SlurmctldHost": self.host, "SlurmctldPort": controller,
            "SlurmUser": getpass.getuser(), "SlurmdUser": getpass.getuser(),
            **(munge if tool("munged") else {"AuthType": "auth/none", "CredType": "cred/none"}),
            "StateSaveLocation": self.folder / "state",
            "SlurmdSpoolDir": self.folder / "spool-%n", "SlurmctldPidFile": self.folder / "slurmctld.pid",
            "SlurmdPidFile": self.folder / "slurmd-%n.pid", "ProctrackType": "proctrack/linuxproc",
            "TaskPlugin": "task/none", "MpiDefault": "none", "KillWait": 2,
            **self.settings,
        }  # fmt: skip
        (self.folder / "state").mkdir()
        for node in self.nodes:
            (self.folder / f"spool-{node}").mkdir()
        place = "" if len(self.nodes) == 1 else " NodeHostname=localhost NodeAddr=127.0.0.1"
        lines = [f"{name}={value}" for name, value in values.items()]
        lines += [f"NodeName={node}{place} Port={port} CPUs=1" for node, port in zip(self.nodes, ports, strict=True)]
        return "\n".join((*lines, "PartitionName=all Nodes=ALL Default=YES", ""))


def free_ports(number: int) -> list[int]:
    """Ports on which nothing listens."""
    sockets = [socket.socket() for _ in range(number)]
    try:
        for item in sockets:
            item.bind(("127.0.0.1", 0))
        return [item.getsockname()[1] for item in sockets]
    finally:
        for item in sockets:
            item.close()


@contextmanager
def slurm_folder() -> Iterator[Path]:
    """A folder that other users may enter, and whose sockets have short paths (at most 107 characters)."""
    folder = Path("/tmp", f"kdoctor-slurm-{os.getpid()}")  # noqa: S108
    folder.mkdir(mode=0o755)
    try:
        yield folder
    finally:
        shutil.rmtree(folder)
