"""The start of the command."""

import os
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest

from helpers.cases import cases

INTERRUPTED_IN_A_CALLBACK = dedent("""
    import sys, time, types, weakref
    from kdoctor.__main__ import main

    def interrupted(reference):
        raise KeyboardInterrupt

    def run():
        holder = type("Holder", (), {})()
        reference = weakref.ref(holder, interrupted)
        del holder
        while True:
            time.sleep(0.1)

    sys.modules["kdoctor.cli"] = types.SimpleNamespace(main=run)
    main()
""")


def test_interrupt_in_a_callback_that_cannot_raise_is_not_lost() -> None:
    command = [sys.executable, "-c", INTERRUPTED_IN_A_CALLBACK]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=50)
    assert (done.returncode, done.stderr) == (130, "kdoctor: interrupted\n")


ASCII = {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0"}


@cases("0", "1")
def test_file_is_named_so_that_a_shell_finds_it_in_each_locale(tmp_path: Path, utf8: str) -> None:
    command = [sys.executable, "-m", "kdoctor", "checklist", "init", "knoten ü.yaml"]
    done = subprocess.run(
        command,
        check=True,
        capture_output=True,
        timeout=50,
        cwd=tmp_path,
        env={**os.environ, **ASCII, "PYTHONUTF8": utf8},
    )
    assert done.stdout.decode().endswith(" check --checklist 'knoten ü.yaml'\n")
    assert [file.name for file in tmp_path.iterdir()] == ["knoten ü.yaml"]


@pytest.mark.parametrize("call", ["os._exit", "sys.exit"])
def test_plugin_cannot_end_a_run_with_its_exit_code(tmp_path: Path, call: str) -> None:
    file = tmp_path / "ends.py"
    file.write_text(f"import os, sys\n{call}(0)\n")
    command = [sys.executable, "-m", "kdoctor", "list", "--plugin", f"{file}:CHECK"]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=50)
    assert done.returncode == 2
    assert done.stderr.count("(ends.py:2)") == 1
