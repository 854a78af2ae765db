"""Cases with several processes, without TensorFlow: the end of each is recorded, and no process is left."""

import shutil
import sys
import textwrap
import threading
import time
from pathlib import Path

import psutil
import pytest

from helpers import smoke
from helpers.marked import carries, left_of
from kdoctor.facts import SmokeCase
from kdoctor.probes.process.child import ChildrenEnded
from kdoctor_checks.smoke._cases import describe_end

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="processes are forked")

SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 - where Linux keeps it

_CLUSTER = """
import os, signal, socket, time
from kdoctor_target.training.workers import Cluster, Task, expect_all_trained, note_workers

def task(own, me):
    own.phase("train")
    {body}

cluster = Cluster(case, worker=2)
try:
    cluster.start_all([Task("worker", number) for number in range(2)], task)
    ended = cluster.wait({patience}, grace_s={grace})
finally:
    cluster.end()
note_workers(case, ended)
expect_all_trained(ended)
"""


def cluster(
    folder: Path, body: str, *, patience: float = 10.0, grace: float | None = None, isolation: str = "fork"
) -> SmokeCase:
    """A case of two workers that both run this body."""
    text = _CLUSTER.format(body=body, patience=patience, grace=grace)
    fake = smoke.scenario(folder, together=text)
    return smoke.only_case(fake, smoke.context(KDOCTOR_TEST_MARK=str(folder)), isolation=isolation)


@pytest.mark.parametrize("isolation", ["fork", "fresh"])
def test_workers_have_their_task_and_the_case_the_facts_of_the_first(tmp_path: Path, isolation: str) -> None:
    body = 'own.note(optimizer=os.environ["TF_CONFIG"], losses=[1.0 + me.number], steps=2)'
    case = cluster(tmp_path, body, isolation=isolation)
    assert case.outcome == "trained", case
    assert [(worker.name, worker.outcome, worker.losses) for worker in case.workers] == [
        ("worker 0", "trained", (1.0,)),
        ("worker 1", "trained", (2.0,)),
    ]
    assert (case.losses, case.steps, case.phase) == ((1.0,), 2, "train")
    assert case.optimizer is not None
    assert case.optimizer.count("127.0.0.1:") == 2
    assert '"index": 0' in case.optimizer


def test_worker_that_has_finished_stays_until_the_others_have(tmp_path: Path) -> None:
    case = cluster(tmp_path, "time.sleep(0.4 * me.number)")
    assert [worker.outcome for worker in case.workers] == ["trained", "trained"]
    assert min(worker.seconds or 0.0 for worker in case.workers) >= 0.4


def test_error_of_one_worker_ends_the_other_soon(tmp_path: Path) -> None:
    started = time.monotonic()
    case = cluster(tmp_path, "time.sleep(60) if me.number else {}['gone']", grace=0.5)
    assert (case.outcome, case.error_type) == ("raised", "WorkerFailed")
    assert all(part in (case.error_message or "") for part in ("worker 0", "KeyError", "train", "gone"))
    assert [worker.outcome for worker in case.workers] == ["raised", "timed-out"]
    assert time.monotonic() - started < 9
    assert left_of(str(tmp_path)) == []


def test_killed_worker_has_its_signal(tmp_path: Path) -> None:
    case = cluster(tmp_path, "os.kill(os.getpid(), signal.SIGKILL) if me.number else None", grace=1.0)
    assert all(part in (case.error_message or "") for part in ("worker 1", "SIGKILL", "train"))
    assert [(worker.outcome, worker.signal) for worker in case.workers] == [("trained", None), ("died", "SIGKILL")]


@pytest.mark.parametrize("body", ["time.sleep(60)", "__import__('ctypes').PyDLL(None).sleep(60)"], ids=["python", "c"])
def test_waiting_workers_are_ended_with_their_stacks(tmp_path: Path, body: str) -> None:
    case = cluster(tmp_path, body, patience=1.0)
    assert "worker 0 in phase train, worker 1 in phase train" in (case.error_message or "")
    stacks = case.stacks or ""
    assert "worker 0:" in stacks
    assert "worker 1:" in stacks
    assert stacks.count("in task") == 2
    assert left_of(str(tmp_path)) == []


_HOLDER = """
import mmap, socket, subprocess, sys
server = socket.create_server(("127.0.0.1", 0))
path = "/dev/shm/kdoctor-test-{{}}-{{}}".format({mark!r}, me.number)
with open(path, "wb+") as file:
    file.truncate(4096)
    memory = mmap.mmap(file.fileno(), 4096)
# Outside the process group, so that it is not ended with it.
subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"], start_new_session=True)
own.note(optimizer=str(server.getsockname()[1]))
time.sleep(60)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc and /dev/shm")
@pytest.mark.parametrize(("patience", "deadline"), [(5.0, 40.0), (50.0, 6.0)], ids=["of-the-cluster", "of-the-case"])
def test_hang_leaves_no_process_port_or_shared_memory(tmp_path: Path, patience: float, deadline: float) -> None:
    mark = f"{tmp_path.parent.name}-{tmp_path.name}"
    body = textwrap.indent(_HOLDER.format(mark=mark), "    ").strip()
    fake = smoke.scenario(
        tmp_path, deadline_s=deadline, together=_CLUSTER.format(body=body, patience=patience, grace=None)
    )
    seen: list[int] = []

    def watch() -> None:
        end = time.monotonic() + 20
        while len(seen) < 2 and time.monotonic() < end:
            seen[:] = {*_listeners(str(tmp_path))}  # a child that has just been forked has its parent's port
            time.sleep(0.05)

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    case = smoke.only_case(fake, smoke.context(KDOCTOR_TEST_MARK=str(tmp_path)))
    thread.join()
    assert len(seen) == 2  # something could have been left
    assert case.outcome == ("timed-out" if deadline < patience else "raised")
    assert left_of(str(tmp_path)) == []
    assert _listeners(str(tmp_path)) == []
    assert list(SHARED_MEMORY.glob(f"kdoctor-test-{mark}-*")) == []


_READER = """
import os, time
own = [open({old!r}, "r+b"), open({staged!r}, "r+b"), open("/dev/shm/" + {new!r}, "wb")]
time.sleep(60)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc and /dev/shm")
def test_hang_costs_no_file_that_the_user_has_in_shared_memory(tmp_path: Path) -> None:
    mark = f"kdoctor-test-{tmp_path.parent.name}-{tmp_path.name}"
    old, folder = SHARED_MEMORY / f"{mark}-data", SHARED_MEMORY / f"{mark}-staged"
    try:
        folder.mkdir()
        staged = folder / "data"
        for path in (old, staged):
            path.write_text("data")
        body = _READER.format(old=str(old), staged=str(staged), new=f"{mark}-new")
        case = smoke.only_case(smoke.scenario(tmp_path, deadline_s=3.0, reads=body))
        assert case.outcome == "timed-out"
        assert [old.read_text(), staged.read_text()] == ["data", "data"]
        assert not (SHARED_MEMORY / f"{mark}-new").exists()
    finally:
        old.unlink(missing_ok=True)
        shutil.rmtree(folder, ignore_errors=True)


_STRAY = """
import subprocess, sys
stray = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"], start_new_session=True)
with open({file!r}, "w") as file:
    file.write(str(stray.pid))
"""

_LOOK = """
import os, time
time.sleep(0.5)
with open({file!r}) as file:
    pid = file.read()
with open("/proc/{{}}/stat".format(pid)) if os.path.exists("/proc/" + pid) else open(os.devnull) as file:
    assert file.read().rpartition(")")[2].split()[:1] in ([], ["Z"]), "it still runs"
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_stray_process_is_ended_before_the_next_case(tmp_path: Path) -> None:
    file = str(tmp_path / "pid")
    fake = smoke.scenario(tmp_path, stray=_STRAY.format(file=file), look=_LOOK.format(file=file))
    run = smoke.run(fake, smoke.context(KDOCTOR_TEST_MARK=str(tmp_path)), parallel=1)
    assert [(case.outcome, case.stderr_tail) for case in run.cases] == [("trained", None), ("trained", None)]
    assert left_of(str(tmp_path)) == []


def test_interruption_leaves_no_worker_and_no_port(tmp_path: Path) -> None:
    body = """server = socket.create_server(("127.0.0.1", 0)); own.note(steps=1); time.sleep(60)"""
    fake = smoke.scenario(tmp_path, together=_CLUSTER.format(body=body, patience=50.0, grace=None))
    where = smoke.context(KDOCTOR_TEST_MARK=str(tmp_path))

    def interrupt() -> None:
        deadline = time.monotonic() + 20
        while len(_listeners(str(tmp_path))) < 2 and time.monotonic() < deadline:
            time.sleep(0.05)
        where.children.end_all()

    thread = threading.Thread(target=interrupt, daemon=True)
    thread.start()
    with pytest.raises(ChildrenEnded):
        smoke.session(fake, where).run()
    thread.join()
    assert left_of(str(tmp_path)) == []
    assert _listeners(str(tmp_path)) == []


def _listeners(mark: str) -> list[int]:
    """Ports on which processes with the mark listen."""
    ports: list[int] = []
    for process in psutil.process_iter():
        if carries(process, mark):
            try:
                listed = process.net_connections() if psutil.version_info >= (6,) else process.connections()
                ports += [item.laddr.port for item in listed if item.status == psutil.CONN_LISTEN]
            except psutil.Error:
                continue
    return ports


def test_skipped_case_has_its_reason(tmp_path: Path) -> None:
    case = smoke.only_case(smoke.scenario(tmp_path, away="case.skip('no TPU')"))
    assert (case.outcome, case.skip_reason, case.stderr_tail) == ("skipped", "no TPU", None)


def test_measures_are_merged_and_nan_is_none(tmp_path: Path) -> None:
    fake = smoke.scenario(tmp_path, count="case.measure({'a': 1})\ncase.measure({'b': float('nan')})")
    assert smoke.only_case(fake).measures == {"a": 1.0, "b": None}


def test_warnings_of_native_code_are_kept(tmp_path: Path) -> None:
    log = (
        "2026-11-20 10:00:00.123456: I tensorflow/core/x.cc:1] fine\\n"
        "2026-11-20 10:00:00.123456: E tensorflow/core/x.cc:2] broken\\n"
        "node7:12:34 [0] net.cc:5 NCCL WARN Connection refused\\n"
        "E0000 00:00:1795204269.944037   30581 cuda_platform.cc:52] failed call to cuInit\\n"
    )
    fake = smoke.scenario(tmp_path, bad=f"import os\nos.write(2, b'''{log}''')\nraise OSError('no')")
    assert [line.rpartition(" ")[2] for line in smoke.only_case(fake).log_lines] == ["broken", "refused", "cuInit"]


def test_first_line_of_nccl_is_kept(tmp_path: Path) -> None:
    cause = "node7:12:34 [0] net.cc:5 NCCL WARN NET/IB : No device found."
    after = [f"2026-11-20 10:00:00.{number:06}: E tensorflow/core/x.cc:2] follows" for number in range(20)]
    log = "\n".join([cause, *after, after[-1]]) + "\n"
    fake = smoke.scenario(tmp_path, bad=f"import os\nos.write(2, {log.encode()!r})\nraise OSError('no')")
    case = smoke.only_case(fake)
    assert case.log_lines == (cause, *after[-9:])
    assert cause in describe_end(case)


def test_temporary_files_are_removed_and_not_in_the_artifacts(tmp_path: Path) -> None:
    outside, kept = tmp_path / "outside", tmp_path / "kept"
    outside.mkdir()
    leaves = "import tempfile\nfile = tempfile.NamedTemporaryFile(delete=False)\nprint(file.name)"
    fake = smoke.scenario(tmp_path, leaves=leaves)
    smoke.run(fake, smoke.context(TMPDIR=str(outside)), artifacts=kept)
    name = Path((kept / "smoke.fake.leaves.stderr").read_text().strip())
    assert not name.exists()
    assert not list(outside.iterdir())
    assert not list(kept.rglob(name.name))


def test_artifacts_are_kept_on_request(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    fake = smoke.scenario(tmp_path, good="case.phase('train')\nprint('hello')")
    smoke.run(fake, artifacts=kept)
    assert (kept / "smoke.fake.good.stderr").read_text() == "hello\n"
    assert '"train"' in (kept / "smoke.fake.good.events").read_text()
