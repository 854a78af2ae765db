"""Runs the instructions of the Containerfile in a chroot, where no container engine can be used.

The base is a minimal Debian of the release on which the base image is built, with Debian's Python.
"""

import json
import shlex
import shutil
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from helpers.command import captured
from helpers.integrations import tool

PROGRAMS = ("debootstrap", "unshare", "chroot")
_RELEASE = "trixie"
_OF_HOST = ("/etc/resolv.conf", "/etc/ssl/certs/ca-certificates.crt")
"""What lets pip in a chroot reach what it reaches here."""


@dataclass
class Stage:
    """A stage: its file system, and what its instructions have set."""

    root: Path
    user: str = "0"
    folder: str = "/"
    variables: dict[str, str] = field(default_factory=dict)
    entrypoint: list[str] = field(default_factory=list)

    def run(
        self, command: Sequence[str], *, mounts: Iterable[str] = (), timeout_s: float = 600
    ) -> subprocess.CompletedProcess[str]:
        """Run a command in the stage, with folders of this machine at their own places, read-only."""
        script = [
            f"mount --bind {shlex.quote(place)} {shlex.quote(f'{self.root}{place}')}" for place in ("/proc", "/dev")
        ]
        for place in mounts:
            Path(f"{self.root}{place}").mkdir(parents=True, exist_ok=True)
            inside = shlex.quote(f"{self.root}{place}")
            script += [f"mount --bind {shlex.quote(place)} {inside}", f"mount -o remount,bind,ro {inside}"]
        place = shlex.join([str(tool("chroot")), f"--userspec={self.user}:{self.user}", str(self.root)])
        inner = f"cd {shlex.quote(self.folder)} && exec {shlex.join(command)}"
        script.append(f"exec {place} /bin/sh -c {shlex.quote(inner)}")
        return captured(
            ["unshare", "--mount", "sh", "-ec", "\n".join(script)],
            env={"PATH": "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", "HOME": "/", **self.variables},
            timeout=timeout_s,
        )


def debian(folder: Path) -> Path:
    """A minimal Debian with Python as ``python``, in place of the base image."""
    root = folder / "base"
    include = "python3,python3-venv,ca-certificates"
    command = ("debootstrap", "--variant=minbase", f"--include={include}", _RELEASE, str(root))
    done = captured(command)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr
    (root / "usr/local/bin/python").symlink_to("/usr/bin/python3")
    for place in _OF_HOST:
        shutil.copy(place, f"{root}{place}")
    return root


def build(containerfile: Path, context: Path, base: Path) -> Stage:
    """Follow the instructions; returns the last stage.

    Raises:
        AssertionError: a RUN instruction failed, or an instruction is not known.
    """
    stages: dict[str, Stage] = {}
    stage = Stage(root=base)
    for instruction, rest in _instructions(containerfile.read_text(encoding="utf-8")):
        if instruction == "FROM":
            stage = Stage(root=base.with_name(f"stage-{len(stages)}"))
            stages[rest.rpartition(" AS ")[2] if " AS " in rest else str(len(stages))] = stage
            subprocess.run(("cp", "--archive", str(base), str(stage.root)), check=True)
        elif instruction == "COPY":
            _copy(shlex.split(rest), stage, stages, context)
        elif instruction == "RUN":
            done = stage.run(["/bin/sh", "-c", rest])
            assert done.returncode == 0, f"RUN {rest}: {done.stdout[-2000:]}{done.stderr[-2000:]}"
        elif instruction == "USER":
            stage.user = rest
        elif instruction == "WORKDIR":
            stage.folder = rest
            Path(f"{stage.root}{rest}").mkdir(parents=True, exist_ok=True)
        elif instruction == "ENV":
            for word in shlex.split(rest):
                name, value = word.split("=", 1)
                stage.variables[name] = value.replace("$PATH", "/usr/local/bin:/usr/bin:/bin")
        elif instruction == "ENTRYPOINT":
            stage.entrypoint = json.loads(rest)
        else:
            assert instruction in ("ARG", "LABEL", "CMD"), instruction
    return stage


def _instructions(text: str) -> Iterator[tuple[str, str]]:
    """Name and arguments of each instruction. Continued lines are joined, and comments left out."""
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    for line in "\n".join(lines).replace("\\\n", " ").splitlines():
        name, _, rest = line.partition(" ")
        yield name, " ".join(rest.split())


def _copy(words: list[str], stage: Stage, stages: dict[str, Stage], context: Path) -> None:
    """Copy files of the context, or a folder of another stage."""
    source = context
    if words[0].startswith("--from="):
        source = stages[words.pop(0).removeprefix("--from=")].root
    *names, target = words
    for name in names:
        found = list(source.glob(name.lstrip("/")))
        assert found, f"COPY {name}: no such file"
        for path in found:
            place = f"{stage.root}{target}" if path.is_dir() else f"{stage.root}{target}/"
            subprocess.run(("cp", "--archive", str(path), place), check=True)
