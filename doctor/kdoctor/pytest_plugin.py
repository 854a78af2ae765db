"""A pytest plugin: each check of a checklist as a test, and the report as a fixture. It does nothing unless asked.

``pytest --kdoctor CHECKLIST`` (or ``kdoctor_checklist`` in the configuration) adds the tests. The fixture
``kdoctor_report`` is the JSON report of the same run as a dictionary; asking for it runs the check, too. The check runs
once, in a process of its own, when the first of them needs it; processes of pytest-xdist share one run.

What became of a check is told so: a failure or an unknown that matters fails, a failure below ``--fail-on`` is an
expected failure, and what was skipped or is unknown by agreement is skipped.
"""

from __future__ import annotations

import contextlib
import json
import os
import shlex
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
    group = parser.getgroup("kdoctor", "may a multi-GPU Keras job start here?")
    group.addoption(
        "--kdoctor",
        metavar="CHECKLIST",
        help="Each check of this checklist is a test: a shipped one's name, or a path.",
    )
    group.addoption("--kdoctor-options", metavar="OPTIONS", help="Further options of kdoctor check, as one text.")
    parser.addini("kdoctor_checklist", "Each check of this checklist is a test, as by --kdoctor.")
    parser.addini("kdoctor_options", "Further options of kdoctor check, as one text.")


def _chosen(config: pytest.Config, name: str) -> str:
    value = config.getoption(f"--kdoctor{name.replace('_checklist', '').replace('_', '-')}")
    return str(value or config.getini(f"kdoctor{name}") or "")


@pytest.fixture(scope="session")
def kdoctor_report(pytestconfig: pytest.Config) -> dict[str, Any]:
    """The JSON report of ``kdoctor check``, as ``kdoctor schema report`` describes it."""
    return _report(pytestconfig)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(session: pytest.Session, config: pytest.Config, items: list[pytest.Item]) -> None:
    """Add a test for each check, before pytest deselects."""
    checklist = _chosen(config, "_checklist")
    if checklist:
        collector = _Checks.from_parent(session, name=f"kdoctor-{Path(checklist).stem}")
        items.extend(collector.collect())


class _Checks(pytest.Collector):
    """The checks of the checklist, without running them."""

    def collect(self) -> Iterator[_CheckItem]:
        """One item for each check that the options leave."""
        for check in _ids(self.config):
            yield _CheckItem.from_parent(self, name=check)


class _CheckFailedError(Exception):
    """A check failed, or could not be judged."""


class _CheckItem(pytest.Item):
    """One check."""

    def runtest(self) -> None:
        """Look up what became of it."""
        report = _report(self.config)
        result = next((item for item in report["results"] if item["id"] == self.name), None)
        if result is None:
            raise _CheckFailedError(f"the report has no {self.name}")
        weighty = _RANKS.index(result["severity"]) >= _RANKS.index(_fail_on(self.config))
        found = _describe(result)
        if result["status"] == "pass":
            self.add_report_section("call", "kdoctor", found)
        elif result["status"] == "fail":
            if weighty:
                raise _CheckFailedError(found)
            pytest.xfail(found)
        elif result["status"] == "unknown" and weighty and not result["accepted"]:
            raise _CheckFailedError(found)
        else:
            pytest.skip(found)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], *args: Any, **kwargs: Any) -> Any:
        """What was found and how to mend it, without a traceback of kdoctor's own code."""
        if isinstance(excinfo.value, (_CheckFailedError, pytest.UsageError)):
            return str(excinfo.value)
        return super().repr_failure(excinfo, *args, **kwargs)

    def reportinfo(self) -> tuple[os.PathLike[str] | str, int | None, str]:
        """Where it stands, for a list of tests."""
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


_REPORT = pytest.StashKey["dict[str, Any]"]()


def _report(config: pytest.Config) -> dict[str, Any]:
    """The report of this session's run, which the first caller starts."""
    if _REPORT not in config.stash:
        run = os.environ.get("PYTEST_XDIST_TESTRUNUID")
        config.stash[_REPORT] = _shared(config, run) if run else _run(config)
    return config.stash[_REPORT]


def _shared(config: pytest.Config, run: str) -> dict[str, Any]:
    """The same for all processes of pytest-xdist: two trainings at once would disturb each other."""
    place = _place(run)
    with place.with_suffix(".lock").open("w") as lock:
        with contextlib.suppress(ImportError):  # Windows has no such lock: there each process runs its own
            import fcntl

            fcntl.flock(lock, fcntl.LOCK_EX)
        if not place.exists():
            place.write_text(json.dumps(_run(config)), encoding="utf-8")
        report: dict[str, Any] = json.loads(place.read_text(encoding="utf-8"))
        return report


def _place(run: str) -> Path:
    return Path(tempfile.gettempdir(), f"kdoctor-{run}.json")


_RUN = pytest.StashKey[str]()
"""The run of pytest-xdist that this process leads."""


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Remember which run the processes of pytest-xdist will share a report in."""
    node.config.stash[_RUN] = node.workerinput["testrunuid"]


def pytest_unconfigure(config: pytest.Config) -> None:
    """Leave nothing of the shared report behind."""
    if _RUN in config.stash:
        place = _place(config.stash[_RUN])
        for file in (place, place.with_suffix(".lock")):
            file.unlink(missing_ok=True)


def _run(config: pytest.Config) -> dict[str, Any]:
    checklist = _chosen(config, "_checklist")
    command = [sys.executable, "-m", "kdoctor", "check", "--format", "json", *_options(config)]
    done = subprocess.run(  # noqa: S603 - our own program, with the options that the user gave
        [*command, *(["--checklist", checklist] if checklist else [])], check=False, capture_output=True, text=True
    )
    try:
        report: dict[str, Any] = json.loads(done.stdout)
    except ValueError:
        raise pytest.UsageError(done.stderr.strip() or f"kdoctor check ended with {done.returncode}") from None
    return report


def _ids(config: pytest.Config) -> list[str]:
    """Ids of the checks that the checklist asks for; what the options leave out is then skipped, with the reason."""
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
