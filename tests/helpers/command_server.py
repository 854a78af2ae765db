"""Runs command lines of kdoctor, each in a process that is forked after the modules of kdoctor were imported.

It reads a request a line from standard input, ``[arguments, variables, folder, files of the three streams]``, and
answers with the process id and then with the exit status. Such a process differs from ``python -m kdoctor`` in what it
has imported already, and in nothing else that a command can see.
"""

import gc
import importlib
import json
import os
import pkgutil
import sys
import tempfile
import time

sys.path.pop(0)  # this folder

import kdoctor.__main__
import kdoctor.cli

PACKAGES = ("kdoctor", "kdoctor_checks", "kdoctor_fleet", "kdoctor_lint", "kdoctor_diagnose", "kdoctor_recordings")


def preload() -> None:
    """Import every module that a command may need; what needs a further package is left out."""
    for name in PACKAGES:
        try:
            package = importlib.import_module(name)
        except ImportError:  # an extension that was taken away
            continue
        for module in pkgutil.walk_packages(package.__path__, f"{name}.", onerror=lambda _: None):
            if ".target" not in module.name and not module.name.endswith(("child", "__main__")):
                try:
                    importlib.import_module(module.name)
                except ImportError:
                    continue


def serve() -> None:
    """Answer requests until standard input ends; returns in the process of a command, too."""
    answers = os.dup(1)
    os.dup2(2, 1)
    for line in iter(sys.stdin.buffer.readline, b""):
        arguments, variables, folder, streams = json.loads(line)
        child = os.fork()
        if child == 0:
            os.close(answers)
            _become(arguments, variables, folder, streams)
            return
        os.write(answers, f"{child}\n".encode())
        _, status = os.waitpid(child, 0)
        os.write(answers, f"{os.waitstatus_to_exitcode(status)}\n".encode())


def _become(arguments: list[str], variables: dict[str, str], folder: str, streams: list[str]) -> None:
    """Run the command, and end as Python does."""
    for number, path in enumerate(streams):
        opened = os.open(path, os.O_WRONLY if number else os.O_RDONLY)
        os.dup2(opened, number)
        os.close(opened)
    os.environ.clear()
    os.environ.update(variables)
    tempfile.tempdir = None
    time.tzset()
    os.chdir(folder)
    sys.argv = [kdoctor.__main__.__file__, *arguments]
    sys.modules["__main__"].__package__ = "kdoctor"  # the command's name in its help
    kdoctor.__main__.main()


if __name__ == "__main__":
    preload()
    gc.collect()
    gc.freeze()
    serve()
