import json
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from helpers.cases import cases
from kdoctor.errors import UsageError
from kdoctor_fleet.launch.engine import InterruptedRunError, first_problem, tied
from kdoctor_fleet.launch.engines import ENGINES
from kdoctor_fleet.launch.kubernetes import Kubectl
from kdoctor_fleet.launch.slurm import Slurm
from kdoctor_fleet.launch.ssh import Ssh

COMMAND = ["env", "KDOCTOR_NODE=n1", "kdoctor", "check", "--checklist", "my node.yaml", "--skip", "$(reboot)"]


def program(folder: Path, name: str, script: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program with that name that comes first on PATH."""
    (folder / name).write_text(f"#!/bin/sh\n{script}\n")
    (folder / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")


@pytest.mark.parametrize("name", ["ssh", "slurm"])
def test_missing_program_is_a_usage_error(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UsageError, match="not installed"):
        ENGINES[name](())


def test_ssh_gives_the_remote_shell_quoted_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(tmp_path, "ssh", 'for last; do :; done; printf "%s" "$last"', monkeypatch)
    written: list[bytes] = []
    engine = Ssh(("-F/my config",))
    argv = engine.argv("n1", COMMAND, 60)
    assert argv[-2] == "n1"
    assert argv.index("-F/my config") < argv.index("-oBatchMode=yes")

    def keep(piece: bytes) -> bool:
        written.append(piece)
        return True

    ended = engine.run("n1", COMMAND, keep, 60)
    assert ended.exit_code == 0
    assert b"".join(written).decode().endswith("""kdoctor check --checklist 'my node.yaml' --skip '$(reboot)'""")


@cases(("exit 0", 0), ("exit 3", 3), ("kill -KILL $$", 137), ("exec /absent/kdoctor", 127))
def test_tied_command_keeps_its_output_and_exit_code(script: str, code: int) -> None:
    command = tied(["sh", "-c", f"echo said; {script}"], 60)
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdout
        assert process.stdout.read() == b"said\n"
        assert process.wait() == code


@pytest.mark.parametrize("ends", ["input", "time"])
def test_tied_command_ends_with_its_input_or_its_time_and_with_all_that_it_started(ends: str, tmp_path: Path) -> None:
    started = tmp_path / "started"
    script = f"sleep 60 & echo $! > {started}.new; mv {started}.new {started}; sleep 60"
    command = tied(["sh", "-c", script], 60 if ends == "input" else -14)
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        while not started.exists():
            time.sleep(0.02)
        assert process.stdin
        assert process.stdout
        if ends == "input":
            process.stdin.close()
        assert process.wait(timeout=30) != 0
        process.stdout.read()  # ends when nothing that was started has it open
    deadline = time.monotonic() + 10
    while _runs(int(started.read_text())):  # a process closes its files before it ends
        assert time.monotonic() < deadline
        time.sleep(0.02)


def _runs(pid: int) -> bool:
    try:
        return " Z " not in Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return False


def test_failure_of_ssh_itself_has_no_exit_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(tmp_path, "ssh", "echo 'n1: Permission denied (publickey).' >&2; exit 255", monkeypatch)
    ended = Ssh(()).run("n1", COMMAND, lambda _: True, 60)
    assert ended.exit_code is None
    assert ended.problem == "ssh: n1: Permission denied (publickey)."


def test_srun_uses_the_allocation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(tmp_path, "srun", "exit 0", monkeypatch)
    engine = Slurm(("--gpus-per-node=8",))
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)
    outside = engine.argv("node7", COMMAND, 90)
    assert {"--nodelist=node7", "--nodes=1", "--time=3", "--immediate=60"} <= set(outside)
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    inside = engine.argv("node7", COMMAND, 90)
    assert "--overlap" in inside
    assert not any(word.startswith(("--time", "--immediate")) for word in inside)
    assert inside[inside.index("--gpus-per-node=8") + 1 :] == tied(COMMAND, 90)
    assert engine.nodes({"SLURM_JOB_NODELIST": "node[1-4]"}) == "node[1-4]"
    assert engine.nodes({}) == ""


@cases(
    (["bash: kdoctor: command not found", "srun: error: n1: task 0: Exited with exit code 127"], "bash: kdoctor: "),
    (["srun: error: n1: task 0: Exited with exit code 2"], "srun: error: n1: task 0: Exited with exit code 2"),
    (
        ["srun: error: Unable to allocate resources: Requested nodes are busy"],
        "srun: error: Unable to allocate resources: Requested nodes are busy",
    ),
    (["slurmstepd: error: *** STEP 3.0 ON n1 CANCELLED AT 2026-01-01T00:00:00 ***", "srun: oops"], "srun: oops"),
)
def test_line_of_srun_that_says_most_is_the_problem(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lines: list[str], said: str
) -> None:
    program(tmp_path, "srun", "\n".join(f"echo '{line}' >&2" for line in lines) + "\nexit 1", monkeypatch)
    assert Slurm(()).run("n1", COMMAND, lambda _: True, 60).problem.startswith(said)


@cases(
    ("", ""),
    ("motd\nkdoctor: unknown checklist\nAvailable: a\n", "kdoctor: unknown checklist"),
    ("one\n  two  \n\n", "two"),
    ("╭─ Error ─╮\n│ No such option: --x │\n╰────────╯\n", "│ No such option: --x │"),
)
def test_first_problem_is_the_error_of_kdoctor_or_the_last_line(stderr: str, problem: str) -> None:
    assert first_problem(stderr) == problem


def test_program_that_is_killed_or_hangs_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(tmp_path, "ssh", "kill -KILL $$", monkeypatch)
    assert "SIGKILL" in Ssh(()).run("n1", COMMAND, lambda _: True, 60).problem
    program(tmp_path, "srun", f"trap 'echo asked > {tmp_path}/asked; exit' TERM; sleep 60 & wait", monkeypatch)
    ended = Slurm(()).run("n1", COMMAND, lambda _: True, 0.3)
    assert ended.timed_out
    assert (tmp_path / "asked").exists()


def test_interrupted_program_may_end_its_remote_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = f"trap 'echo asked > {tmp_path}/asked; exit' TERM; touch {tmp_path}/started; sleep 60 & wait"
    program(tmp_path, "srun", script, monkeypatch)
    engine = Slurm(())
    raised: list[BaseException] = []

    def run() -> None:
        try:
            engine.run("n1", COMMAND, lambda _: True, 60)
        except InterruptedRunError as error:
            raised.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    while not (tmp_path / "started").exists():
        time.sleep(0.01)
    engine.interrupt()
    thread.join(10)
    engine.end()
    assert raised
    assert (tmp_path / "asked").exists()
    with pytest.raises(InterruptedRunError):
        engine.run("n2", COMMAND, lambda _: True, 60)


def test_pods_are_found_by_their_nodes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    owner = {"ownerReferences": [{"kind": "DaemonSet"}]}
    own: dict[str, object] = {"containers": [{"name": "proxy"}, {"name": "kdoctor"}]}
    pods = [
        {"metadata": {"name": "new", "creationTimestamp": "2026-01-02", **owner}, "spec": {"nodeName": "n1", **own}},
        {"metadata": {"name": "old", "creationTimestamp": "2026-01-01"}, "spec": {"nodeName": "n1", **own}},
        {"metadata": {"name": "p2", "creationTimestamp": "2026-01-01"}, "spec": own, "status": {"phase": "Pending"}},
        {"metadata": {"name": "p3", "creationTimestamp": "2026-01-01"}, "spec": {"nodeName": "../n3", **own}},
    ]
    (tmp_path / "pods.json").write_text(json.dumps({"items": pods}))
    program(tmp_path, "kubectl", f'case $1 in get) cat {tmp_path}/pods.json;; *) echo "$@";; esac', monkeypatch)
    engine = Kubectl(["--namespace=ml", "--selector=a=b"])
    assert engine.nodes({}) == "n1,p2"
    written: list[bytes] = []
    assert engine.run("n1", COMMAND, lambda piece: not written.append(piece), 60).exit_code == 0  # type: ignore[func-returns-value]
    assert b"".join(written).split() == [b"logs", b"--namespace=ml", b"--container=kdoctor", b"pod/new"]
    assert "pending" in engine.run("p2", COMMAND, lambda _: True, 60).problem
    assert "a=b" in engine.run("n9", COMMAND, lambda _: True, 60).problem


@pytest.mark.parametrize("script", ["echo nonsense", "echo '{}'", "echo 'error: no server' >&2; exit 1"])
def test_pods_that_cannot_be_listed_are_a_usage_error(
    script: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(tmp_path, "kubectl", script, monkeypatch)
    with pytest.raises(UsageError, match=r"list of pods|kubectl get pods: "):
        Kubectl(()).nodes({})


def test_ray_is_an_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(UsageError, match="not installed"):
        ENGINES["ray"](())
