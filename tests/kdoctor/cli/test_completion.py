"""Completion as a shell asks for it."""

import os
import shutil
import sys
from pathlib import Path

import pytest

from helpers.cases import cases
from helpers.command import captured, environ
from kdoctor.catalog.load import load_catalog

pytestmark = pytest.mark.skipif(not shutil.which("bash"), reason="needs bash")

BIN = Path(sys.executable).parent
ASK = """
eval "$(_KDOCTOR_COMPLETE=source_bash kdoctor)"
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
_kdoctor_completion kdoctor
printf '%s\\n' "${COMPREPLY[@]}"
"""


def completed(*words: str) -> list[str]:
    """What bash offers for the last word."""
    env = environ(PATH=f"{BIN}:{os.environ['PATH']}")
    done = captured(["bash", "--norc", "-c", ASK, "bash", "kdoctor", *words], check=True, env=env)
    assert not done.stderr
    return done.stdout.split()


@cases(
    (("ch",), ["check", "checklist"]),
    (("checklist", "di"), ["diff"]),
    (("check", "--gp"), ["--gpus"]),
    (("check", "--lock"), ["--lock"]),  # of --help-all
    (("check", "--checklist", "s"), ["single-gpu-keras"]),
    (("check", "--fail-on", ""), ["error", "warning", "info"]),
    (("check", "--format", "n"), ["nagios"]),
    (("check", "--select", "topology.p2"), ["topology.p2p", "topology.p2p-geforce", "topology.p2p-trusted"]),
    (("smoke", "smoke.per"), ["smoke.persistence"]),
    (("explain", "cudart"), ["cudart_not_found"]),
    (("schema", "to"), ["topology"]),
    ids=" ".join,
)
def test_bash_offers(words: tuple[str, ...], offered: list[str]) -> None:
    assert completed(*words) == offered


def test_every_checklist_is_offered() -> None:
    assert completed("checklist", "show", "") == list(load_catalog().checklists)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_script_of_each_shell_is_printed(shell: str) -> None:
    done = captured([BIN / "kdoctor"], check=True, env=environ(_KDOCTOR_COMPLETE=f"source_{shell}"))
    assert f"_KDOCTOR_COMPLETE=complete_{shell}" in done.stdout
