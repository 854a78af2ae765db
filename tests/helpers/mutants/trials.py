"""Tries mutants in one process: pytest collects the tests once, and a child of it runs them on each changed module.

A change inside a function replaces the code of that function in the child. A change of code that runs at import needs a
child that has imported nothing yet (``try_at_import``).
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import resource
import shutil
import signal
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FrameType, FunctionType

import pytest
from _pytest.runner import runtestprotocol

from helpers.mutants.changes import Mutant, lines_of, mutate
from helpers.mutants.hook import ROOT, announce, install

SLOW_S = 5.0
"""Tests that take longer are left out: they start processes, which do not see the change."""
MOST_OTHER = 300
"""Tests of other files that are run on a mutant, the fastest ones that call its function."""
MEMORY = 6 * 1024**3
_LEFT_OUT = ("tensorflow", "browser", *(() if shutil.which("cc") else ("compiler",)))


@dataclass
class Baseline:
    """A test without any change."""

    passed: bool
    seconds: float
    calls: set[tuple[str, int]]
    """Files and first lines of the functions of kdoctor that it called."""


@dataclass
class Trials:
    """A pytest plugin that runs the collected tests on each mutant instead of once."""

    wanted: Sequence[Mutant]
    own_tests: Callable[[str], Sequence[Path]]
    """The test files of a module, mirrored by their names."""
    verdicts: dict[Mutant, str] = field(default_factory=dict)
    _functions: dict[tuple[str, int, str], list[FunctionType]] = field(default_factory=dict)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        items = [item for item in session.items if not any(map(item.get_closest_marker, _LEFT_OUT))]
        gc.collect()
        for found in gc.get_objects():
            if isinstance(found, FunctionType) and found.__code__.co_filename.startswith(str(ROOT)):
                code = found.__code__
                self._functions.setdefault((code.co_filename, code.co_firstlineno, code.co_name), []).append(found)
        gc.freeze()
        known = _baseline(items)
        items = [item for item in items if known[item.nodeid].passed and known[item.nodeid].seconds < SLOW_S]
        for mutant in self.wanted:
            self.verdicts[mutant] = self._try(mutant, items, known)
        return True

    def _try(self, mutant: Mutant, items: Sequence[pytest.Item], known: dict[str, Baseline]) -> str:
        source = (ROOT / mutant.path).read_text(encoding="utf-8")
        file = str(ROOT / mutant.path)
        first, last = next((one, two) for name, one, two in lines_of(source) if name == mutant.function)
        calling = [item for item in items if any(f == file and first <= n <= last for f, n in known[item.nodeid].calls)]
        calling.sort(key=lambda item: known[item.nodeid].seconds)
        files = self.own_tests(mutant.path)
        own = [item for item in calling if item.path in files]
        others = [item for item in calling if item.path not in files]
        codes = _functions_of(compile(mutate(source, mutant.number), file, "exec"))
        for where, tests in (("own tests", own), ("other tests", others[:MOST_OTHER])):
            if tests and not _in_child(lambda tests=tests: self._run(tests, file, codes), _limit(tests, known)):  # type: ignore[misc]
                return where
        return "survived" if calling else "not called"

    def _run(self, tests: Sequence[pytest.Item], file: str, codes: dict[tuple[int, str], CodeType]) -> bool:
        for (line, name), code in codes.items():
            for function in self._functions.get((file, line, name), ()):
                if function.__code__.co_freevars == code.co_freevars:
                    function.__code__ = code
        return all(_passes(item, following) for item, following in _with_next(tests))


def try_at_import(mutant: Mutant, tests: Sequence[Path], arguments: Sequence[str]) -> str:
    """Run test files on a changed module, which the processes that they start load, too.

    kdoctor may not be imported in this process.
    """

    def run() -> bool:
        install(mutant.path, mutant.number)
        announce(mutant.path, mutant.number)
        return pytest.main([*map(str, tests), "-x", *arguments]) == 0

    return "survived" if _in_child(run, 120) else "own tests"


def _functions_of(code: CodeType) -> dict[tuple[int, str], CodeType]:
    """The functions and methods that a module defines, by first line and name."""
    found = {}
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            found[constant.co_firstlineno, constant.co_name] = constant
            found.update(_functions_of(constant))
    return found


def _with_next(items: Sequence[pytest.Item]) -> Iterator[tuple[pytest.Item, pytest.Item | None]]:
    yield from zip(items, [*items[1:], None], strict=True)


def _passes(item: pytest.Item, following: pytest.Item | None) -> bool:
    return not any(report.failed for report in runtestprotocol(item, log=False, nextitem=following))


def _baseline(items: Sequence[pytest.Item]) -> dict[str, Baseline]:
    """Each test without a change. A child runs them, so that this process stays as it is."""
    found: dict[str, Baseline] = {}
    with tempfile.NamedTemporaryFile("r", suffix=".json") as file:

        def give_up(*_: object) -> None:
            raise TimeoutError

        def run() -> bool:
            signal.signal(signal.SIGALRM, give_up)
            for item, following in _with_next(items):
                calls: set[tuple[str, int]] = set()
                started = sum(os.times()[:4])
                signal.setitimer(signal.ITIMER_REAL, 4 * SLOW_S)  # a busy machine takes longer
                passed = False
                with contextlib.suppress(TimeoutError), _recorded(calls):  # it may be raised between two tests
                    passed = _passes(item, following)
                signal.setitimer(signal.ITIMER_REAL, 0)
                found[item.nodeid] = Baseline(passed, sum(os.times()[:4]) - started, calls)
            record = {name: [one.passed, one.seconds, sorted(one.calls)] for name, one in found.items()}
            Path(file.name).write_text(json.dumps(record), encoding="utf-8")
            return True

        assert _in_child(run, 3600), "the tests without a change did not end"
        record = json.load(file)
    return {
        name: Baseline(passed, seconds, {(path, line) for path, line in calls})
        for name, (passed, seconds, calls) in record.items()
    }


@contextlib.contextmanager
def _recorded(calls: set[tuple[str, int]]) -> Iterator[None]:
    """Note the functions of kdoctor that are called, also in threads."""
    prefix = str(ROOT)

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call":
            code = frame.f_code
            if code.co_filename.startswith(prefix):
                calls.add((code.co_filename, code.co_firstlineno))

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        yield
    finally:
        sys.setprofile(None)
        threading.setprofile(None)


def _limit(tests: Sequence[pytest.Item], known: dict[str, Baseline]) -> int:
    return int(5 + 5 * sum(known[item.nodeid].seconds for item in tests))


def _in_child(work: Callable[[], bool], limit_s: int) -> bool:
    """Whether work in a child process was successful, within this CPU time. The child leaves no files."""
    folder = tempfile.mkdtemp(prefix="kdoctor-mutant-")
    child = os.fork()
    if child == 0:
        code = 1
        with contextlib.suppress(BaseException):
            tempfile.tempdir = folder
            os.environ["TMPDIR"] = os.environ["PYTEST_DEBUG_TEMPROOT"] = folder
            silent = os.open(os.devnull, os.O_RDWR)
            for stream in (0, 1, 2):
                os.dup2(silent, stream)
            resource.setrlimit(resource.RLIMIT_CPU, (limit_s, limit_s + 1))
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
            signal.alarm(10 * limit_s)  # a change may make it wait for ever
            code = 0 if work() else 1
        os._exit(code)
    _, status = os.waitpid(child, 0)
    shutil.rmtree(folder, ignore_errors=True)
    return status == 0
