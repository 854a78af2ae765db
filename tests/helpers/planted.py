"""Environments with one planted defect, and a user who pastes the first printed fix into the same shell."""

import json
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from helpers.command import KDOCTOR, captured, environ
from helpers.machines.collecting import environment as described_machine

_PRIVATE_MOUNTS = ("unshare", "--map-root-user", "--mount")
_SHELL = f"""
kdoctor() {{ {shlex.join(KDOCTOR)} "$@"; }}
sudo() {{ "$@"; }}  # it would ask for a password
"""
_CHECK_AGAIN = re.compile(r"Check again(?: \(.*?\))?: (.*)")
_FIX_FAILED = 90
"""Exit status of a session whose pasted commands failed."""


@dataclass(frozen=True, kw_only=True)
class Plant:
    """One defect."""

    name: str
    breaks: str = ""
    """What made the environment defective: bash, with ``$PYTHON`` and ``$SITE`` of the environment."""
    profile: str = ""
    """What the user set in the shell: bash, before every command of the session."""
    options: str = "--checklist cpu-smoke --select versions --select smoke.baseline"
    cause: str
    """The check that has to be first in the report."""
    empty: bool = False
    """Whether the environment has pip only."""
    machine: str = ""
    """The described machine (``helpers.machines``) that the session is on, instead of this one."""
    private_mounts: bool = False
    """Whether the session can mount file systems that end with it."""
    needs: tuple[str, ...] = ()
    """Programs without which the test is skipped."""

    def missing(self) -> list[str]:
        """What this machine lacks for it."""
        missing = [name for name in self.needs if shutil.which(name) is None]
        if (
            self.private_mounts
            and subprocess.run([*_PRIVATE_MOUNTS, "true"], check=False, capture_output=True).returncode
        ):
            missing.append("a private mount namespace")
        return missing


@dataclass(frozen=True, kw_only=True)
class Seen:
    """What one run of ``kdoctor check`` showed."""

    screen: str
    report: Mapping[str, object]
    exit_code: int

    @property
    def causes(self) -> list[str]:
        """The ids of the causes that fail the run, the first one first."""
        causes = self.report["causes"]
        assert isinstance(causes, list)
        return [cause["checks"][0] for cause in causes]

    @property
    def fix(self) -> tuple[str, ...]:
        """The commands below the first ``Start now`` or ``Fix`` on the screen, as a user would copy them."""
        lines = iter(self.screen.splitlines())
        for line in lines:
            if line.startswith(("  Start now:", "  Fix:")):
                break
        found: list[str] = []
        for line in lines:
            if line.startswith(" " * 6):
                found.append(line.strip())
            elif found or not line.startswith(" " * 4):
                break
        return tuple(found)

    @property
    def check(self) -> str:
        """The command behind ``Check again``."""
        (command,) = [found[1] for line in self.screen.splitlines() if (found := _CHECK_AGAIN.fullmatch(line))]
        return command


class Session:
    """One user, one shell, one environment."""

    def __init__(self, folder: Path, plant: Plant, environment: Path) -> None:
        self._folder = folder
        self._plant = plant
        self._environment = environment
        self._machine = described_machine(plant.machine, folder / "machine") if plant.machine else {}

    def check(self) -> Seen:
        """Run ``kdoctor check`` for the first time."""
        return self._see(f"kdoctor check {self._plant.options} --python {shlex.quote(str(self._environment))}")

    def paste(self, seen: Seen) -> Seen:
        """Paste the first printed fix, then the printed command that checks the result."""
        *fix, last = seen.fix
        check = last
        if not last.startswith("kdoctor check"):
            fix, check = [*fix, last], seen.check
        commands = "\n".join(fix)
        return self._see(f"trap 'exit {_FIX_FAILED}' ERR\n{{ {commands}\n}} >fix.log 2>&1\ntrap - ERR\n{check}")

    def _see(self, script: str) -> Seen:
        report, log = self._folder / "report.json", self._folder / "fix.log"
        report.unlink(missing_ok=True)
        done = self._bash(f"{script} --output json={shlex.quote(str(report))}")
        assert done.returncode != _FIX_FAILED, f"{script}\n{log.read_text(encoding='utf-8')}"
        assert report.is_file(), done.stdout + done.stderr
        return Seen(screen=done.stdout, report=json.loads(report.read_text()), exit_code=done.returncode)

    def plant(self) -> None:
        """Make the environment defective."""
        done = self._bash(f"set -e\n{self._plant.breaks}", with_defect=False)
        assert done.returncode == 0, done.stdout + done.stderr

    def _bash(self, script: str, *, with_defect: bool = True) -> subprocess.CompletedProcess[str]:
        site = next(self._environment.glob("lib/python*/site-packages"))
        variables = {
            "COLUMNS": "80",
            "HOME": str(self._folder),
            "PIP_CACHE_DIR": _pip_cache(),
            "PIP_NO_COMPILE": "no",  # pip reads it as "compile: no"
            "PYTHON": str(self._environment / "bin/python"),
            "SITE": str(site),
            **self._machine,
        }
        shell = [*(_PRIVATE_MOUNTS if self._plant.private_mounts else ()), "bash", "-c"]
        profile = f"set -e\n{self._plant.profile}\nset +e\n" if with_defect else ""
        return captured([*shell, _SHELL + profile + script], env=environ(**variables), cwd=self._folder, timeout=600)


def pip(python: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the environment's pip."""
    command = [str(python), "-m", "pip", "--quiet", "--disable-pip-version-check", *arguments]
    return captured(command, env=environ())


def _pip_cache() -> str:
    """pip's cache, which a session with another HOME must share."""
    done = pip(Path(sys.executable), "cache", "dir")
    return done.stdout.strip() or str(Path.home() / ".cache/pip")


def pinned(name: str) -> str:
    """The requirement of the package in constraints.txt for this Python, as tests of the environment use it."""
    lines = (Path(__file__).parents[2] / "constraints.txt").read_text(encoding="utf-8").splitlines()
    return next(line for line in lines if re.match(rf"{re.escape(name)}==", line))
