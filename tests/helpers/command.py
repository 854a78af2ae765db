"""The command line as a user runs it, and environments for it to examine."""

import atexit
import contextlib
import io
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import venv
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any
from unittest import mock

from kdoctor.cli import main

KDOCTOR = (sys.executable, "-m", "kdoctor")
_AT_START = ("PYTHON", "LC_", "LANG", "FORCE_COLOR", "PY_COLORS", "GITHUB_ACTIONS", "TERMINAL_WIDTH", "LD_PRELOAD")
"""Variables, or starts of their names, that Python reads when it starts or a module when it is imported."""
SCRIPT = """import tensorflow as tf
strategy = tf.distribute.MirroredStrategy()
model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
with strategy.scope():
    model.compile("sgd", "mse")
model.fit(x, y)
"""
"""A training script with a mistake that ``kdoctor lint`` finds."""


def environ(**changes: str) -> dict[str, str]:
    """The environment of this process without variables that choose a target or a width, and without run history."""
    removed = ("VIRTUAL_ENV", "CONDA_PREFIX", "COLUMNS", "CUDA_VISIBLE_DEVICES", "KDOCTOR_DEBUG")
    return {
        **{name: value for name, value in os.environ.items() if name not in removed},
        "KDOCTOR_NO_HISTORY": "1",
        **changes,
    }


ON_PATH = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
"""A ``PATH`` on which kdoctor is found by its name, for screens that do not depend on the place of this clone."""
_AS_STARTED = environ()


def captured(command: Sequence[str | Path], *, check: bool = False, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run a program, and keep what it prints."""
    return subprocess.run(command, check=check, capture_output=True, text=True, **options)


def kdoctor(
    *arguments: str | Path,
    cwd: Path | None = None,
    timeout_s: float = 120,
    stdin: str = "",
    variables: Mapping[str, str] | None = None,
    **changes: str,
) -> subprocess.CompletedProcess[str]:
    """Run ``kdoctor`` with these arguments and environment variables.

    The process is forked from one that has imported kdoctor (``command_server``), unless a variable changes how Python
    starts or what it imports.
    """
    command: Sequence[str] = [*KDOCTOR, *map(str, arguments)]
    env = environ(**{**(variables or {}), **changes})
    if any(name.startswith(_AT_START) for name, _ in env.items() ^ _AS_STARTED.items()):
        return subprocess.run(
            command, check=False, capture_output=True, text=True, env=env, cwd=cwd, input=stdin, timeout=timeout_s
        )
    with tempfile.TemporaryDirectory() as folder:
        streams = [Path(folder, name) for name in ("stdin", "stdout", "stderr")]
        for path, text in zip(streams, (stdin, "", ""), strict=True):
            path.write_text(text, encoding="utf-8")
        status = _serve(json.dumps([command[3:], env, str(cwd or Path.cwd()), [*map(str, streams)]]), timeout_s)
        texts = [path.read_text(encoding="utf-8") for path in streams[1:]]
    return subprocess.CompletedProcess(command, status, *texts)


def kdoctor_here(*arguments: str | Path, **changes: str) -> subprocess.CompletedProcess[str]:
    """Run a command that only reads and prints, in this process: its start would take longer than its work."""
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in range(2))
    status = 0
    with (
        mock.patch.dict(os.environ, environ(**changes), clear=True),
        mock.patch.object(sys, "argv", ["kdoctor", *map(str, arguments)]),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        try:
            main()
        except SystemExit as ended:
            status = int(ended.code or 0)
    for stream in (out, err):
        stream.seek(0)
    return subprocess.CompletedProcess(arguments, status, out.read(), err.read())


def _serve(request: str, timeout_s: float) -> int:
    """The exit status of a command. One that takes too long is killed."""
    server = _server()
    assert server.stdin
    assert server.stdout
    server.stdin.write(f"{request}\n")
    server.stdin.flush()
    timer = threading.Timer(timeout_s, os.kill, (int(server.stdout.readline()), signal.SIGKILL))
    timer.start()
    status = int(server.stdout.readline())
    if not timer.is_alive():
        raise subprocess.TimeoutExpired(request, timeout_s)
    timer.cancel()
    return status


@cache
def _server() -> subprocess.Popen[str]:
    pipe = subprocess.PIPE
    command = [sys.executable, str(Path(__file__).with_name("command_server.py"))]
    server = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, env=_AS_STARTED)
    atexit.register(server.kill)
    return server


def make_target(folder: Path, *, tensorflow: str | None = None) -> Path:
    """A virtual environment without packages, or with a ``tensorflow`` whose ``__init__.py`` is the given text."""
    venv.create(folder, with_pip=False, symlinks=True)
    if tensorflow is not None:
        site = next(folder.glob("lib/python*/site-packages"))
        _install(site, "tensorflow", "2.21.0", tensorflow)
        _install(site, "keras", "3.15.1", "")
    return folder


def _install(site: Path, name: str, version: str, source: str) -> None:
    (site / name).mkdir()
    (site / name / "__init__.py").write_text(source, encoding="utf-8")
    metadata = site / f"{name}-{version}.dist-info"
    metadata.mkdir()
    text = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\nRequires-Python: >=3.9\n"
    (metadata / "METADATA").write_text(text, encoding="utf-8")
