"""Runs commands of kdoctor as on macOS or Windows: without ``/proc``, ``/sys``, ``os.fork``, ``fcntl`` and the like.

``python -m helpers.other_system win32 '[["list"], ...]'`` prints a JSON list: exit status and error output of each.
What the commands start is not simulated: on this system, it runs as usual.
"""

import asyncio  # noqa: F401 - from here on: chooses its code by the system, before another one is simulated
import getpass  # noqa: F401
import importlib.metadata  # noqa: F401
import io
import json
import multiprocessing.connection  # noqa: F401
import os
import shutil  # noqa: F401
import signal
import sqlite3  # noqa: F401
import subprocess  # noqa: F401
import sys
import sysconfig  # noqa: F401
import tempfile  # noqa: F401
import traceback
import types
import urllib.request  # noqa: F401
import zoneinfo  # noqa: F401

import jinja2  # noqa: F401
import libcst  # noqa: F401
import psutil  # noqa: F401
import pydantic  # noqa: F401
import rich.progress  # noqa: F401
import typer.testing  # noqa: F401
import yaml  # noqa: F401

LACKS = {
    "darwin": {"os": ("sched_getaffinity", "memfd_create", "pidfd_open"), "signal": (), "modules": ()},
    "win32": {
        "os": (
            *("fork", "forkpty", "killpg", "getpgid", "setsid", "getuid", "geteuid", "getgid", "getegid", "uname"),
            *("sched_getaffinity", "statvfs", "sysconf", "confstr", "mkfifo", "wait4", "getpgrp", "nice", "chown"),
            *("O_NONBLOCK", "O_CLOEXEC", "O_DIRECTORY", "O_NOFOLLOW", "WNOHANG", "register_at_fork", "getloadavg"),
        ),
        "signal": ("SIGKILL", "SIGHUP", "SIGALRM", "SIGUSR1", "SIGQUIT", "setitimer", "pthread_sigmask"),
        "modules": ("fcntl", "resource", "pwd", "grp", "termios", "pty", "tty"),
    },
}
GONE = ("/proc", "/sys", "/dev/kmsg", "/dev/shm", "/dev/nvidia", "/etc/os-release", "/etc/machine-id")  # noqa: S108
HERE = os.getcwd()  # noqa: PTH109 - as the audit events name it
LEFT_TO_LIBRARIES = ("psutil", "subprocess.py", "tempfile.py", "shutil.py")


def _refuse(event: str, arguments: tuple[object, ...]) -> None:
    """The files of Linux do not exist, but for the test's own folder."""
    path = str(arguments[0]) if event in {"open", "os.listdir", "os.scandir", "os.stat"} else ""
    if path.startswith(GONE) and not path.startswith(HERE):
        frame: types.FrameType | None = sys._getframe(1)
        while frame is not None and "pathlib" in frame.f_code.co_filename:
            frame = frame.f_back
        if frame is None or not any(name in frame.f_code.co_filename for name in LEFT_TO_LIBRARIES):
            raise FileNotFoundError(2, "No such file or directory", str(arguments[0]))


class Reduced(types.ModuleType):
    """A module without some of its names, for those who import it from now on."""

    def __init__(self, module: types.ModuleType, lacks: tuple[str, ...], **changed: object) -> None:
        super().__init__(module.__name__)
        self.__dict__.update(changed, _module=module, _lacks=lacks)

    def __getattr__(self, name: str) -> object:
        if name in self.__dict__["_lacks"]:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        return getattr(self.__dict__["_module"], name)


def simulate(system: str) -> None:
    """From now on, this is that system, for code that is not imported yet."""
    lacks = LACKS[system]
    stat = os.stat

    def checked(path: object, *arguments: object, **named: object) -> os.stat_result:
        _refuse("os.stat", (path,))
        return stat(path, *arguments, **named)  # type: ignore[arg-type]

    os.stat = checked
    sys.addaudithook(_refuse)
    sys.modules["os"] = Reduced(os, lacks["os"])
    sys.modules["signal"] = Reduced(signal, lacks["signal"])
    sys.modules["sys"] = Reduced(sys, (), platform=system)
    sys.modules.update(dict.fromkeys(lacks["modules"]))  # type: ignore[arg-type, unused-ignore]


def run() -> None:
    """Run the commands."""
    system, commands = sys.argv[1], json.loads(sys.argv[2])
    simulate(system)
    from kdoctor.cli import main as kdoctor

    found = []
    for command in commands:
        before = sys.stdout, sys.stderr
        sys.stdout, sys.stderr = (io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True) for _ in before)
        try:
            sys.argv = ["kdoctor", *command]
            kdoctor()
            code: object = 0
        except SystemExit as ended:
            code = ended.code
        except Exception:  # noqa: BLE001 - a user would see it
            code = traceback.format_exc()
        finally:
            written, (sys.stdout, sys.stderr) = (sys.stdout, sys.stderr), before
        output, errors = (stream.buffer.getvalue().decode() for stream in written)
        found.append({"code": code or 0, "output": output, "errors": errors})
    sys.stdout.write(json.dumps(found))


if __name__ == "__main__":
    run()
