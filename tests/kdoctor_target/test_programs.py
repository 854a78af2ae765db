"""Properties of every program that runs in the examined interpreter."""

import ast
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from helpers.command import captured
from kdoctor.probes.process.launch import program_argv, target_folder

SOURCES = sorted(target_folder().rglob("*.py"))


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.name)
def test_syntax_is_valid_in_python_3_8(path: Path) -> None:
    ast.parse(path.read_text(encoding="utf-8"), feature_version=(3, 8))


def start(code: str, *, stdin: int | None = None) -> subprocess.CompletedProcess[str]:
    bootstrap = f"import sys; sys.path.insert(0, {str(target_folder().parent)!r})\n"
    return captured([sys.executable, "-c", bootstrap + code], timeout=60, stdin=stdin)


def test_channel_separates_records_from_output() -> None:
    answer = start(
        "import os\nprint('before')\nfrom kdoctor_target.runner.channel import Channel\nchannel = Channel()\n"
        "print('python', flush=True)\nos.system('echo shell')\nchannel.send({'a': 'ä\\n'})"
    )
    assert answer.stdout == 'before\n\x1e{"a": "ä\\n"}\n'
    assert answer.stderr == "python\nshell\n"


def test_channel_replaces_invalid_text_and_reads_names_as_utf8() -> None:
    for sent, read in (("a\\udcff", "a\ufffd"), ("\\udcc3\\udcb6", "ö"), ("a\\ud800", "a?")):
        answer = start(f"from kdoctor_target.runner.channel import Channel\nChannel().send(['{sent}'])")
        assert json.loads(answer.stdout[1:]) == [read]


def test_channel_rejects_nan() -> None:
    answer = start("from kdoctor_target.runner.channel import Channel\nChannel().send([float('nan')])")
    assert answer.returncode == 1
    assert "ValueError" in answer.stderr
    assert answer.stdout == ""


@pytest.mark.skipif(os.name != "posix", reason="holds Python's lock in a C call by ctypes")
def test_watchdog_ends_a_hang_in_c_code() -> None:
    started = time.monotonic()
    # PyDLL keeps the GIL during the call, so Python code cannot run, as in a hung driver.
    answer = start(
        "import ctypes, kdoctor_target.runner.watchdog as w\nw.MARGIN_S = 0.2\nw.arm(0.3)\nctypes.PyDLL(None).sleep(50)"
    )
    assert answer.returncode == 1
    assert "Timeout" in answer.stderr
    assert time.monotonic() - started < 20


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_watchdog_ends_a_program_after_kdoctor_was_killed(tmp_path: Path) -> None:
    hang = "import time, kdoctor_target.runner.watchdog as w; w.MARGIN_S = 0.5; w.arm(1.0); time.sleep(60)"
    code = (
        "import os, sys, threading\nfrom kdoctor.probes.process.child import Children\n"
        f"argv = [sys.executable, '-c', 'import os; print(\"\\\\x1e\", os.getpid(), flush=True); ' + {hang!r}]\n"
        "Children().run(argv, env=os.environ, deadline_s=50, on_record=lambda pid: print(pid, flush=True))"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as doctor:
        assert doctor.stdout
        child = int(doctor.stdout.readline())
        doctor.kill()
    end = time.monotonic() + 20
    while Path(f"/proc/{child}").exists() and time.monotonic() < end:
        time.sleep(0.05)
    assert not Path(f"/proc/{child}").exists()


def test_program_path_excludes_kdoctors_dependencies_and_working_directory(tmp_path: Path) -> None:
    (tmp_path / "json.py").write_text("raise SystemExit('the working directory is on the path')")
    settings = {"deadline_s": 20, "executable": "x", "chosen_by": "--python"}
    argv = program_argv(sys.executable, "inspect.environment", settings)
    answer = captured(argv, check=True, cwd=tmp_path, timeout=60)
    groups = [json.loads(line[1:])["group"] for line in answer.stdout.split("\n") if line]
    assert groups == ["target", "packages", "tensorflow", "keras"]
