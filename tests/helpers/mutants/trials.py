"""Tries mutants in one process: pytest collects the tests once, and a child of it runs them on each changed module.

A change inside a function replaces the code of that function in the child. A change of code that runs at import needs a
child that has imported nothing yet (``try_at_import``).

A child tries many changes, because most of the memory is copied after each fork. What one change leaves behind does
not count as a kill of the next: a test that failed must pass without the change, or a new child tries the change.
"""

import contextlib
import functools
import gc
import importlib
import json
import os
import resource
import shutil
import signal
import sys
import tempfile
import threading
import traceback
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
_Cached = type(functools.cache(len))
AGAIN, TRYING, RAISED = "again", "trying ", "raised "
"""What a child reports besides verdicts."""
_leave = os._exit  # a test of the command line replaces it
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
    _caches: dict[str, list["functools._lru_cache_wrapper[object]"]] = field(default_factory=dict)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        items = [item for item in session.items if not any(map(item.get_closest_marker, _LEFT_OUT))]
        for path in {mutant.path for mutant in self.wanted}:  # some are imported where they are used
            importlib.import_module(".".join(Path(path).with_suffix("").parts[1:]).removesuffix(".__init__"))
        gc.collect()
        for found in gc.get_objects():
            if isinstance(found, FunctionType) and found.__code__.co_filename.startswith(str(ROOT)):
                code = found.__code__
                self._functions.setdefault((code.co_filename, code.co_firstlineno, code.co_name), []).append(found)
            elif isinstance(found, _Cached) and isinstance(found.__wrapped__, FunctionType):
                self._caches.setdefault(found.__wrapped__.__code__.co_filename, []).append(found)
        gc.freeze()
        known = _baseline(items)
        items = [item for item in items if known[item.nodeid].passed and known[item.nodeid].seconds < SLOW_S]
        number, where = 0, "not tried"
        while number < len(self.wanted):
            for line in _lines_of_child(lambda say: self._try_from(number, items, known, say)):  # noqa: B023 - runs now
                if line == AGAIN:
                    break
                if line.startswith(TRYING):
                    where = line.removeprefix(TRYING)
                else:
                    self.verdicts[self.wanted[number]] = line
                    number, where = number + 1, "not tried"
            else:
                if number < len(self.wanted):  # the change crashed or stopped the child
                    self.verdicts[self.wanted[number]] = where
                    number, where = number + 1, "not tried"
        return True

    def _try_from(
        self, start: int, items: Sequence[pytest.Item], known: dict[str, Baseline], say: Callable[[str], None]
    ) -> None:
        """Report what notices each change from a number on, until one must be tried in a new child."""
        for number in range(start, len(self.wanted)):
            verdict = self._try(self.wanted[number], items, known, say, is_first=number == start)
            say(verdict)
            if verdict == AGAIN:
                return

    def _try(
        self,
        mutant: Mutant,
        items: Sequence[pytest.Item],
        known: dict[str, Baseline],
        say: Callable[[str], None],
        *,
        is_first: bool,
    ) -> str:
        source = (ROOT / mutant.path).read_text(encoding="utf-8")
        file = str(ROOT / mutant.path)
        first, last = next((one, two) for name, one, two in lines_of(source) if name == mutant.function)
        calling = [item for item in items if any(f == file and first <= n <= last for f, n in known[item.nodeid].calls)]
        calling.sort(key=lambda item: known[item.nodeid].seconds)
        files = self.own_tests(mutant.path)
        own = [item for item in calling if item.path in files]
        others = [item for item in calling if item.path not in files][:MOST_OTHER]
        _limit_time(int(5 + 5 * sum(known[item.nodeid].seconds for item in [*own, *others])))
        changed = self._changed(file, _functions_of(compile(mutate(source, mutant.number), file, "exec")))
        for where, tests in (("own tests", own), ("other tests", others)):
            say(f"{TRYING}{where}")
            for cache in self._caches.get(file, ()):
                cache.cache_clear()  # it would hide the change
            with _with_code(changed):
                failed = next((item for item, following in _with_next(tests) if not _passes(item, following)), None)
            if failed:
                with contextlib.suppress(BaseException):  # what a fixture holds may be broken
                    failed.session._setupstate.teardown_exact(None)
                return where if is_first or _passes(failed, None) else AGAIN
        return "survived" if calling else "not called"

    def _changed(self, file: str, codes: dict[tuple[int, str], CodeType]) -> dict[FunctionType, CodeType]:
        return {
            function: code
            for (line, name), code in codes.items()
            for function in self._functions.get((file, line, name), ())
            if function.__code__.co_freevars == code.co_freevars
        }


@contextlib.contextmanager
def _with_code(changed: dict[FunctionType, CodeType]) -> Iterator[None]:
    """Give functions other code, for a while."""
    before = {function: function.__code__ for function in changed}
    for function, code in changed.items():
        function.__code__ = code
    try:
        yield
    finally:
        for function, code in before.items():
            function.__code__ = code


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
    for place, item in enumerate(items):
        yield item, items[place + 1] if place + 1 < len(items) else None


def _passes(item: pytest.Item, following: pytest.Item | None) -> bool:
    try:
        return not any(report.failed for report in runtestprotocol(item, log=False, nextitem=following))
    except TimeoutError:
        raise  # of the baseline
    except BaseException:  # noqa: BLE001 - the change interrupts the test
        return False


def _baseline(items: Sequence[pytest.Item]) -> dict[str, Baseline]:
    """Each test without a change. A child runs them, so that this process stays as it is."""

    def give_up(*_: object) -> None:
        raise TimeoutError

    def run(say: Callable[[str], None]) -> None:
        _limit_time(3600)
        signal.signal(signal.SIGALRM, give_up)
        found: dict[str, Baseline] = {}
        for item, following in _with_next(items):
            calls: set[tuple[str, int]] = set()
            started = sum(os.times()[:4])
            signal.setitimer(signal.ITIMER_REAL, 4 * SLOW_S)  # a busy machine takes longer
            passed = False
            with contextlib.suppress(TimeoutError), _recorded(calls):  # it may be raised between two tests
                passed = _passes(item, following)
            signal.setitimer(signal.ITIMER_REAL, 0)
            found[item.nodeid] = Baseline(passed, sum(os.times()[:4]) - started, calls)
        say(json.dumps({name: [one.passed, one.seconds, sorted(one.calls)] for name, one in found.items()}))

    lines = list(_lines_of_child(run))
    assert lines, "the tests without a change did not end"
    record = json.loads(lines[-1])
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


def _in_child(work: Callable[[], bool], limit_s: int) -> bool:
    """Whether work in a child process was successful, within this CPU time. The child leaves no files."""

    def report(say: Callable[[str], None]) -> None:
        _limit_time(limit_s)
        if work():
            say("done")

    return list(_lines_of_child(report)) == ["done"]


def _lines_of_child(work: Callable[[Callable[[str], None]], None]) -> Iterator[str]:
    """What work in a child process reports, until it ends. The child leaves no files."""
    folder = tempfile.mkdtemp(prefix="kdoctor-mutant-")
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(reader)
            tempfile.tempdir = folder
            os.environ["TMPDIR"] = os.environ["PYTEST_DEBUG_TEMPROOT"] = folder
            silent = os.open(os.devnull, os.O_RDWR)
            for stream in (0, 1, 2):
                os.dup2(silent, stream)
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
            work(lambda line: _write_line(writer, line))
        except BaseException as error:  # noqa: BLE001 - the parent raises it
            *_, place = traceback.extract_tb(error.__traceback__)
            _write_line(writer, f"{RAISED}{error!r} in {place.name} ({place.filename}:{place.lineno})")
        _leave(0)
    os.close(writer)
    try:
        with os.fdopen(reader, encoding="utf-8") as lines:
            for line in lines:
                assert not line.startswith(RAISED), line
                yield line.rstrip("\n")
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        shutil.rmtree(folder, ignore_errors=True)


def _write_line(writer: int, line: str) -> None:
    os.write(writer, f"{line}\n".encode())


def _limit_time(seconds: int) -> None:
    """End this process after that much more CPU time, or if it waits for ten times as long."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    resource.setrlimit(resource.RLIMIT_CPU, (int(used.ru_utime + used.ru_stime) + 1 + seconds, resource.RLIM_INFINITY))
    signal.alarm(10 * seconds)
