"""What is known about a machine, and the verdict on a release."""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from kdoctor.commands.packages import install, uninstall
from kdoctor.facts import TENSORFLOWS, Packages, Target
from kdoctor.matrix.gpus import NamedGpu
from kdoctor.matrix.model import Release
from kdoctor.records import record

Outcome = Literal["runs", "does-not-run", "unknown"]
MUSL = "musl"
"""The C library of Alpine, as ``Machine.glibc``."""

Rule = Literal["platform", "python", "glibc", "driver", "gpu", "cudnn", "libraries", "known-bad"]


@record
class Machine:
    """What is known about the machine that TensorFlow should run on. None means unknown, which is never good."""

    driver: str | None = None
    """Version of the NVIDIA driver."""
    gpus: tuple[NamedGpu, ...] | None = None
    """Its GPUs; empty to judge the CPU."""
    python: str | None = None
    """Python, ``major.minor`` or longer."""
    free_threaded: bool = False
    """Whether it is a build without the global lock: ``3.14t``."""
    interpreter: str = "python"
    """The program that installs: the interpreter that was named by its path."""
    target: Target | None = None
    """The environment to install into; None if only its Python is known."""
    packages: Packages | None = None
    """What is installed there."""
    glibc: str | None = None
    """Version of glibc, or ``musl``; None also if it does not matter."""
    without_avx: bool = False
    """Whether the processor lacks AVX."""
    platform: str | None = None
    """``linux-x86_64``; None for the platform of the matrix."""
    cuda: str | None = None
    """The CUDA release whose libraries are installed on the system; None to install those of the release."""
    cudnn: str | None = None
    """The same for cuDNN."""
    unnamed_gpus: tuple[str, ...] = ()
    """GPUs of the machine that are not in the matrix."""

    @property
    def system_libraries(self) -> bool:
        """Whether it uses the CUDA libraries of the system, not the NVIDIA wheels."""
        return self.cuda is not None or self.cudnn is not None

    @property
    def for_cpu(self) -> bool:
        """Whether there is no GPU to judge."""
        return self.gpus == () and not self.unnamed_gpus


@dataclass(frozen=True)
class Reason:
    """Why a release does not run, what is not known, or what to know about it."""

    kind: Literal["against", "missing", "caution"]
    rule: Rule
    text: str
    failure: str | None = None
    """Id of the failure mode, if it is one."""
    brief: str = ""
    """The reason without what is installed, where releases are grouped by it."""
    needed: str | None = None
    """The version that would do, of what a failure mode is about."""


@record
class Verdict:
    """Whether one release runs on a machine."""

    release: Release
    reasons: tuple[Reason, ...] = ()
    requirements: tuple[str, ...] = ()
    """What to install, with pins against known-bad combinations."""
    machine: Machine = Machine()
    """Where it is installed."""
    hidden_folders: tuple[str, ...] = ()
    """Folders of ``site-packages/nvidia`` with libraries that it opens and does not search."""

    @property
    def against(self) -> tuple[Reason, ...]:
        """Why it does not run."""
        return tuple(reason for reason in self.reasons if reason.kind == "against")

    @property
    def missing(self) -> tuple[Reason, ...]:
        """The facts that are missing for a verdict."""
        return tuple(reason for reason in self.reasons if reason.kind == "missing")

    @property
    def cautions(self) -> tuple[Reason, ...]:
        """What to know if it runs."""
        return tuple(reason for reason in self.reasons if reason.kind == "caution")

    @property
    def outcome(self) -> Outcome:
        """Whether it runs."""
        return "does-not-run" if self.against else "unknown" if self.missing else "runs"

    @property
    def command(self) -> str:
        """The command that installs it."""
        target, packages = self.machine.target, self.machine.packages
        if target is None:
            return shlex.join([self.machine.interpreter, "-m", "pip", "install", *self.requirements])
        return install(target, packages, *self.requirements)

    @property
    def removal(self) -> str | None:
        """The command that removes what is installed in the same folder, where that is another distribution."""
        target, packages = self.machine.target, self.machine.packages
        if target is None or packages is None or self.release.distribution not in TENSORFLOWS:
            return None
        own = self.requirements[0].partition("=")[0].partition("[")[0]
        names = [one.name for one in packages.installed if one.name in TENSORFLOWS]
        return uninstall(target, packages, *names) if {*names} - {own} else None

    @property
    def export(self) -> str | None:
        """The command that makes the loader find the libraries in folders that the release does not search."""
        return search_wheels(self.hidden_folders, self.machine.interpreter) if self.hidden_folders else None

    @property
    def commands(self) -> tuple[str, ...]:
        """What to run: the installation, then what each shell that starts a job needs."""
        return tuple(command for command in (self.removal, self.command, self.export) if command)


def search_wheels(folders: Sequence[str], python: str) -> str:
    """The command that makes the loader search these folders of that interpreter's NVIDIA wheels first."""
    place = 's.get_path("purelib")'
    if len(folders) == 1:
        program = f'import sysconfig as s;print({place}+"/nvidia/{folders[0]}/lib")'
    else:
        program = f'import glob,sysconfig as s;print(*glob.glob({place}+"/nvidia/*/lib"),sep=":")'
    return f"export LD_LIBRARY_PATH=\"$({shlex.quote(python)} -c '{program}' )${{LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}}\""


def add_row(tensorflow: str) -> str:
    """The command that reads the wheel of a TensorFlow release, and writes its row."""
    return f"{shlex.join(['kdoctor', 'matrix', 'add', '--wheel', f'tensorflow=={tensorflow.strip()}'])} > own.yaml"
