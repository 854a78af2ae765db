"""Tests with real child processes."""

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kdoctor.probes.process.child import ChildEnd, Children, ChildrenEnded

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals and process groups are POSIX'")


def run(code: str, *, deadline_s: float = 20, **options: Any) -> ChildEnd:
    return Children().run([sys.executable, "-c", code], env=os.environ, deadline_s=deadline_s, **options)


def is_alive(pid: int) -> bool:
    """Whether the process runs; a zombie does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def eventually(condition: Callable[[], bool], seconds: float = 10) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.02)
    return condition()


def test_records_and_chatter_are_separated() -> None:
    seen: list[object] = []
    end = run(
        "print('noise'); print('more\\x1e{\"a\": 1}'); print('\\x1e[2]'); print('rest', end='')", on_record=seen.append
    )
    assert end.ok
    assert end.records == ({"a": 1}, [2])
    assert seen == [{"a": 1}, [2]]
    assert end.chatter == "noise\nmorerest"


@pytest.mark.parametrize("invalid", ["\\x1e{", "\\x1e\\xff", "\\x1e", "\\x1enull", "\\x1e' + '[' * 200000 + '"])
def test_invalid_records_are_chatter(invalid: str) -> None:
    end = run(f"print('{invalid}'); print('\\x1e1')")
    assert end.records == (1,)


def test_long_output_keeps_its_end_and_the_records() -> None:
    noise = "import sys; sys.stdout.write('x' * 50_000_000 + '\\n'); print('\\x1e1')"
    end = run(noise + "; sys.stderr.write('e' * 300000 + 'last')")
    assert end.records == (1,)
    assert len(end.chatter) <= 64 * 1024
    assert end.stderr.endswith("elast")
    assert len(end.stderr) <= 64 * 1024


def test_large_record_is_complete() -> None:
    end = run("import json; print('\\x1e' + json.dumps('y' * 5_000_000))")
    assert end.records == ("y" * 5_000_000,)


def test_exit_status_and_last_line() -> None:
    end = run("import sys; sys.exit('no such thing\\nI0000 00:00:1795701583.954011 26943 a.cc:31] x')")
    assert (end.exit_code, end.signal, end.timed_out, end.ok) == (1, None, False, False)
    assert end.describe() == "exited with status 1 (no such thing)"


def test_segfault_is_reported_as_signal() -> None:
    end = run("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)")
    assert (end.exit_code, end.signal) == (None, "SIGSEGV")
    assert end.describe() == "died of SIGSEGV"


def test_external_kill_is_a_signal_not_a_timeout() -> None:
    end = run("import os, signal; os.kill(os.getpid(), signal.SIGKILL)")
    assert (end.signal, end.timed_out) == ("SIGKILL", False)


def test_hang_is_ended_at_its_deadline() -> None:
    started = time.monotonic()
    end = run("import time; print('\\x1e1', flush=True); time.sleep(60)", deadline_s=0.5)
    assert (end.timed_out, end.exit_code, end.signal, end.ok) == (True, None, None, False)
    assert end.records == (1,)
    assert re.fullmatch(r"did not finish within \d+ s and was ended", end.describe())
    assert time.monotonic() - started < 10


def test_child_that_ignores_sigterm_is_ended() -> None:
    end = run("import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(60)", deadline_s=0.5)
    assert end.timed_out


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_grandchildren_in_the_group_are_ended() -> None:
    code = """if True:
        import subprocess, sys
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
        print("\\x1e", child.pid, flush=True)
    """
    end = run(code)
    (pid,) = end.records
    assert isinstance(pid, int)
    assert eventually(lambda: not is_alive(pid))


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_pipe_kept_open_by_another_process_does_not_block() -> None:
    code = """if True:
        import subprocess, sys
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(30)"], start_new_session=True)
        print("\\x1e", child.pid, flush=True)
    """
    started = time.monotonic()
    end = run(code)
    (pid,) = end.records
    assert isinstance(pid, int)
    os.kill(pid, signal.SIGKILL)
    assert time.monotonic() - started < 15
    assert end.ok


def test_stdin_stays_open_and_silent() -> None:
    end = run("import select, sys; print('\\x1e', len(select.select([sys.stdin], [], [], 0.3)[0]))")
    assert end.records == (0,)


def test_end_all_ends_children_and_prevents_new_ones() -> None:
    children = Children()
    ready = threading.Event()
    outcome: list[BaseException] = []

    def work() -> None:
        code = "import time; print('\\x1e1', flush=True); time.sleep(60)"
        argv = [sys.executable, "-c", code]
        try:
            children.run(argv, env=os.environ, deadline_s=60, on_record=lambda _: ready.set())
        except ChildrenEnded as error:
            outcome.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    assert ready.wait(20)
    children.end_all()
    thread.join(10)
    assert not thread.is_alive()
    assert len(outcome) == 1
    with pytest.raises(ChildrenEnded):
        children.run([sys.executable, "-c", ""], env=os.environ, deadline_s=5)
    children.end_all()


def test_child_that_starts_while_all_are_asked_to_end_is_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    children, start = Children(), subprocess.Popen

    def starting(*arguments: Any, **named: Any) -> Any:
        process = start(*arguments, **named)
        while not (tmp_path / "started").exists():
            time.sleep(0.01)
        children.ask_all_to_end()  # before it is known
        return process

    monkeypatch.setattr(subprocess, "Popen", starting)
    script = f"trap 'touch {tmp_path}/asked; exit' TERM; touch {tmp_path}/started; sleep 60 & wait"
    with pytest.raises(ChildrenEnded):
        children.run(["/bin/sh", "-c", script], env=os.environ, deadline_s=60)
    assert (tmp_path / "asked").exists()


def test_missing_program_is_an_os_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        Children().run([str(tmp_path / "nothing")], env={}, deadline_s=5)


def test_error_in_on_record_is_raised_after_reading() -> None:
    def refuse(record: object) -> None:
        raise LookupError(record)

    with pytest.raises(LookupError):
        run("print('\\x1e1'); print('\\x1e2' + ' ' * 1_000_000)", on_record=refuse)


def test_only_the_given_environment_is_passed() -> None:
    code = "import json, os; print('\\x1e' + json.dumps(os.environ.get('KDOCTOR_TEST')))"
    end = Children().run([sys.executable, "-c", code], env={"KDOCTOR_TEST": "yes"}, deadline_s=20)
    assert end.records == ("yes",)


def test_output_is_taken_as_it_is() -> None:
    taken: list[bytes] = []

    def take(piece: bytes) -> bool:
        taken.append(piece)
        return True

    end = run(r"print('\x1e{}', 'text')", take=take)
    assert (end.ok, end.records, end.chatter) == (True, (), "")
    assert b"".join(taken) == b"\x1e{} text\n"


@pytest.mark.parametrize("grace_s", [0.0, 5.0])
def test_child_whose_output_is_refused_ends(grace_s: float, tmp_path: Path) -> None:
    code = (
        "import pathlib, signal, sys\n"
        f"signal.signal(signal.SIGTERM, lambda *_: sys.exit(pathlib.Path({str(tmp_path / 'asked')!r}).touch()))\n"
        "while True: print('x' * 1000)"
    )
    end = run(code, take=lambda _: False, grace_s=grace_s)
    assert end.seconds < 15
    assert (tmp_path / "asked").exists() == (grace_s > 0)
    assert end.signal == ("SIGKILL" if not grace_s else None)


def test_error_of_the_function_that_takes_output_is_raised() -> None:
    def take(piece: bytes) -> bool:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        run("print('x')", take=take)
