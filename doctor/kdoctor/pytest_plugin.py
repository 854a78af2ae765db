"""A pytest plugin: each check of a checklist is a test, and the report is a fixture.

``pytest --kdoctor CHECKLIST`` or ``kdoctor_checklist`` in the configuration adds the tests. The fixture
``kdoctor_report`` is the JSON report of the same run as a dictionary. ``kdoctor check`` runs once, in a child process,
when a test or the fixture needs it. Processes of pytest-xdist share one run.

Whatever the options, the report of a test in which a ``fit`` raises a known failure has its diagnosis.

A failure or unknown at or above ``--fail-on`` fails. A failure below it is an expected failure. A skipped check, an
accepted unknown and an unknown below ``--fail-on`` are skipped.
"""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

_RANKS = ("info", "warning", "error")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options and the configuration's keys."""
    group = parser.getgroup("kdoctor", "checks of a machine for multi-GPU Keras jobs")
    group.addoption(
        "--kdoctor",
        metavar="CHECKLIST",
        help="Add a test for each check of this checklist: the name of a shipped one, or a path.",
    )
    group.addoption("--kdoctor-options", metavar="OPTIONS", help="Further options of kdoctor check, as one string.")
    parser.addini("kdoctor_checklist", "Add a test for each check of this checklist, as with --kdoctor.")
    parser.addini("kdoctor_options", "Further options of kdoctor check, as one string.")


def _chosen(config: pytest.Config, name: str) -> str:
    value = config.getoption(f"--kdoctor{name.replace('_checklist', '').replace('_', '-')}")
    return str(value or config.getini(f"kdoctor{name}") or "")


@pytest.fixture(scope="session")
def kdoctor_report(pytestconfig: pytest.Config) -> dict[str, Any]:
    """The JSON report of ``kdoctor check`` (see ``kdoctor schema report``)."""
    return _report(pytestconfig)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(session: pytest.Session, config: pytest.Config, items: list[pytest.Item]) -> None:
    """Add a test for each check, before pytest deselects tests."""
    checklist = _chosen(config, "_checklist")
    if checklist:
        collector = _Checks.from_parent(session, name=f"kdoctor-{Path(checklist).stem}")
        items.extend(collector.collect())


class _Checks(pytest.Collector):
    """The checks of the checklist."""

    def collect(self) -> Iterator[_CheckItem]:
        """One item for each check."""
        for check in _ids(self.config):
            yield _CheckItem.from_parent(self, name=check)


class _CheckFailedError(Exception):
    """A check failed or is unknown."""


class _CheckItem(pytest.Item):
    """One check."""

    def runtest(self) -> None:
        """Look up its result in the report."""
        report = _report(self.config)
        result = next((item for item in report["results"] if item["id"] == self.name), None)
        if result is None:
            raise _CheckFailedError(f"the report has no {self.name}")
        counts = _RANKS.index(result["severity"]) >= _RANKS.index(_fail_on(self.config))
        text = _describe(result)
        if result["status"] == "pass":
            self.add_report_section("call", "kdoctor", text)
        elif result["status"] == "fail":
            if counts:
                raise _CheckFailedError(text)
            pytest.xfail(text)
        elif result["status"] == "unknown" and counts and not result["accepted"]:
            raise _CheckFailedError(text)
        else:
            pytest.skip(text)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], *args: Any, **kwargs: Any) -> Any:
        """The findings with their fixes, without a traceback of kdoctor."""
        if isinstance(excinfo.value, (_CheckFailedError, pytest.UsageError)):
            return str(excinfo.value)
        return super().repr_failure(excinfo, *args, **kwargs)

    def reportinfo(self) -> tuple[os.PathLike[str] | str, int | None, str]:
        """Its location in lists of tests."""
        return self.path, None, f"kdoctor: {self.name}"


def _describe(result: dict[str, Any]) -> str:
    """Every finding with its fix, then the reason, the evidence, and the check's title."""
    from kdoctor.report.phrases import Label

    lines = []
    for finding in result["findings"]:
        lines += [f"{finding['subject']}: {finding['observed']}", f"  {Label.EXPECTED}: {finding['expected']}"]
        lines += [f"  {Label.FIX}: {finding['remedy']['summary']}"]
        lines += [f"    {line}" for line in finding["remedy"]["commands"]]
    lines += [result["reason"]] if result["reason"] else []
    lines += [f"{item['subject']}: {item['observed']}" for item in result["evidence"]]
    return "\n".join([*lines, f"{Label.CHECK}: {result['id']} ({result['severity']}): {result['title']}"])


_FRAMEWORKS = ("keras", "tf_keras", "tensorflow", "jax")


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(call: pytest.CallInfo[None]) -> Iterator[None]:
    """Add the diagnosis to the report of a test in which Keras or its backend raised a known failure."""
    outcome: Any = yield
    error = call.excinfo.value if call.excinfo else None
    if not isinstance(error, Exception) or not _is_from_framework(error):
        return
    from kdoctor.diagnose.exceptions import describe_exception

    text = describe_exception(error)
    if text:
        outcome.get_result().sections.append(("kdoctor diagnose", text.rstrip("\n")))


def _is_from_framework(error: BaseException) -> bool:
    """Whether the exception was raised in a training framework, which is known without importing kdoctor."""
    trace = error.__traceback__
    while trace is not None:
        if str(trace.tb_frame.f_globals.get("__name__", "")).partition(".")[0] in _FRAMEWORKS:
            return True
        trace = trace.tb_next
    return False


_REPORT = pytest.StashKey["dict[str, Any]"]()


def _report(config: pytest.Config) -> dict[str, Any]:
    """The report of this session. The first call runs ``kdoctor check``."""
    if _REPORT not in config.stash:
        folder = getattr(config, "workerinput", {}).get("kdoctor")
        # Processes of pytest-xdist on other hosts do not have the folder.
        config.stash[_REPORT] = _shared(config, Path(folder)) if folder and Path(folder).is_dir() else _run(config)
    return config.stash[_REPORT]


def _shared(config: pytest.Config, folder: Path) -> dict[str, Any]:
    """One report for all processes of pytest-xdist, because parallel trainings would disturb each other."""
    file = folder / "report.json"
    with (folder / "lock").open("w") as lock:
        with contextlib.suppress(ImportError):  # Windows has no fcntl: each process runs its own check
            import fcntl

            fcntl.flock(lock, fcntl.LOCK_EX)
        if not file.exists():
            file.write_text(json.dumps(_run(config)), encoding="utf-8")
        report: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        return report


_FOLDER = pytest.StashKey[str]()
"""The folder that the processes of pytest-xdist share, if this process controls them."""


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Tell a process of pytest-xdist where the report is shared. No other user can write there or knew its name."""
    stash = node.config.stash
    if _FOLDER not in stash:
        stash[_FOLDER] = tempfile.mkdtemp(prefix="kdoctor-pytest-")
    node.workerinput["kdoctor"] = stash[_FOLDER]


def pytest_unconfigure(config: pytest.Config) -> None:
    """Remove the shared report."""
    if _FOLDER in config.stash:
        shutil.rmtree(config.stash[_FOLDER], ignore_errors=True)


_KDOCTOR = (
    "import sys; sys.path[:1] = filter(None, sys.path[:1]); sys.argv[0] = 'kdoctor'; "
    "from kdoctor.__main__ import main; main()"
)
"""``python -m kdoctor`` would run a file kdoctor.py of the working directory."""


def _run(config: pytest.Config) -> dict[str, Any]:
    checklist = _chosen(config, "_checklist")
    command = [sys.executable, "-c", _KDOCTOR, "check", "--format", "json", *_options(config)]
    done = subprocess.run(  # noqa: S603 - kdoctor, with the options of the user
        [*command, *(["--checklist", checklist] if checklist else [])], check=False, capture_output=True, text=True
    )
    try:
        report: dict[str, Any] = json.loads(done.stdout)
    except ValueError:
        raise pytest.UsageError(done.stderr.strip() or f"kdoctor check ended with {done.returncode}") from None
    return report


def _ids(config: pytest.Config) -> list[str]:
    """Ids of the checklist's checks. Those that the options leave out are skipped when they run."""
    from kdoctor.checklist.load import load_checklist
    from kdoctor.checklist.plan import plan
    from kdoctor.engine.catalog import load_catalog
    from kdoctor.errors import UsageError

    try:
        catalog = load_catalog(())
        return [entry.check.id for entry in plan(load_checklist(_chosen(config, "_checklist"), catalog), catalog)]
    except UsageError as error:
        raise pytest.UsageError(str(error)) from None


def _options(config: pytest.Config) -> list[str]:
    return shlex.split(_chosen(config, "_options"))


def _fail_on(config: pytest.Config) -> str:
    """The value of ``--fail-on`` among the options."""
    words = [word for option in _options(config) for word in option.split("=", 1)]
    return words[words.index("--fail-on") + 1] if "--fail-on" in words[:-1] else "error"
