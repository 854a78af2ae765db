import sys
from pathlib import Path

import pytest

from helpers.cases import cases
from kdoctor.cli import _Commands
from kdoctor.commands import again
from kdoctor.commands.again import CORE_COMMANDS, called_here, in_same_place, program


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the program, from which nothing else is found."""
    file = tmp_path / "my env" / "kdoctor"
    file.parent.mkdir()
    file.write_text("#!/bin/sh\n")
    file.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    return file.parent


def test_program_is_called_by_its_name_only_where_a_shell_finds_it(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    called = [str(folder / "kdoctor")]
    assert program(called) == (called[0],)
    monkeypatch.setenv("PATH", str(folder))
    assert program(called) == ("kdoctor",)


def test_module_is_called_by_its_interpreter_where_no_shell_finds_the_program(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    called = ["/opt/job/lib/python3.11/site-packages/kdoctor/__main__.py"]
    assert program(called) == (sys.executable, "-m", "kdoctor")
    monkeypatch.setenv("PATH", str(folder))
    assert program(called) == ("kdoctor",)


def test_script_that_imports_kdoctor_names_its_interpreter(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["/opt/job/train.py"])
    assert in_same_place("kdoctor explain gpu.free", "") == f"{sys.executable} -m kdoctor explain gpu.free"
    monkeypatch.setenv("PATH", str(folder))
    assert in_same_place("kdoctor explain gpu.free", "") == "kdoctor explain gpu.free"


@cases(
    (
        "kdoctor check --checklist cpu-smoke",
        "kdoctor check --python 'a b'",
        "kdoctor check --checklist cpu-smoke --python 'a b'",
    ),
    ("kdoctor check --gpus 1", "kdoctor check -c node.yaml", "kdoctor check --gpus 1 -c node.yaml"),
    ("kdoctor check --gpus 0", "kdoctor check --select gpu -c x --select=host", "kdoctor check --gpus 0 -c x"),
    ("kdoctor check --gpus 0", "kdoctor check --model x --steps 0", "kdoctor check --gpus 0 --model x --steps 0"),
    ("kdoctor check --gpus 1", "kdoctor check --select gpu", "kdoctor check --gpus 1 --select gpu"),
    ("kdoctor snapshot", "kdoctor check --checklist=x --python y", "kdoctor snapshot --python y"),
    ("kdoctor check", ".venv/bin/kdoctor check --python=x", ".venv/bin/kdoctor check --python=x"),
    ("kdoctor check --python PATH", "kdoctor check --python x --snapshot y", "kdoctor check --python PATH"),
    (
        "kdoctor explain gpu.free",
        "/opt/a/python -m kdoctor smoke --python x",
        "/opt/a/python -m kdoctor explain gpu.free",
    ),
    ("kdoctor topology --replicas 2", "'my env/kdoctor' check", "'my env/kdoctor' topology --replicas 2"),
    ("sudo reboot", "kdoctor check --python x", "sudo reboot"),
    ("kdoctor check", "kdoctor check --python x --no-smoke", "kdoctor check --python x --no-smoke"),
    ("kdoctor check --no-smoke", "kdoctor check --no-smoke", "kdoctor check --no-smoke"),
    ("kdoctor snapshot", "kdoctor check --no-smoke", "kdoctor snapshot"),
    (
        "kdoctor check --checklist cpu-smoke",
        "kdoctor check -c multi.yaml --model train:build --gpus=4 --data 'a b:data'",
        "kdoctor check --checklist cpu-smoke --model train:build --data 'a b:data'",
    ),
    (
        "kdoctor check --checklist cpu-smoke",
        "kdoctor smoke --python x",
        "kdoctor check --checklist cpu-smoke --python x",
    ),
    ("kdoctor check --gpus 0", "kdoctor smoke baseline --python x", "kdoctor smoke --replicas 2 baseline --python x"),
    ("kdoctor check --python PATH", "kdoctor smoke --tier quick", "kdoctor smoke --python PATH --tier quick"),
)
def test_command_of_a_fix_examines_what_the_run_examined(command: str, asked: str, printed: str) -> None:
    assert in_same_place(command, asked) == printed


def test_message_calls_the_program_as_the_user_did(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", [str(folder / "kdoctor")])
    assert called_here("kdoctor: gone\nList: kdoctor list") == f"kdoctor: gone\nList: '{folder}/kdoctor' list"
    assert called_here("kdoctor: kdoctor fleet requires x") == "kdoctor: kdoctor fleet requires x"
    assert called_here("  Fix:\n      kdoctor check --gpus 1") == f"  Fix:\n      '{folder}/kdoctor' check --gpus 1"
    assert called_here("more (kdoctor snapshot --help)") == f"more ('{folder}/kdoctor' snapshot --help)"
    prose = (
        "A run of\n  kdoctor checks the machine (kdoctor changed nothing).\nkeras 2.15.0: kdoctor has not measured it"
    )
    assert called_here(prose) == prose


def test_every_command_of_the_core_is_known_to_the_messages() -> None:
    assert _Commands.lazy_commands.keys() == CORE_COMMANDS


@cases(
    ("sudo reboot", "reboot"),
    ("printf 'x\\n' | sudo tee /etc/a; sudo update-initramfs -u", "printf 'x\\n' | tee /etc/a; update-initramfs -u"),
    ("visudo -c", "visudo -c"),
)
def test_root_without_sudo_needs_none(monkeypatch: pytest.MonkeyPatch, command: str, printed: str) -> None:
    monkeypatch.setattr(again, "root_without_sudo", True)
    assert in_same_place(command, "kdoctor check") == printed
    assert in_same_place(command, "") == command
    assert in_same_place(command, "kdoctor check --snapshot node7.json") == command  # another machine
